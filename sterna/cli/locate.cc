// SPDX-License-Identifier: Apache-2.0
#include "sterna/cli/locate.h"

#include <algorithm>
#include <filesystem>

namespace sterna::cli {

namespace fs = std::filesystem;

std::string command_directory() {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : path.parent_path().string();
}

std::vector<std::string> installed_hardware(const std::string& directory) {
  std::error_code ignored;
  const fs::path prefix = fs::path(directory).parent_path();
  std::vector<fs::path> candidates = {prefix / "share" / "sterna" / "hardware"};
  std::vector<fs::path> pythons;
  for (const auto& entry : fs::directory_iterator(prefix / "lib", ignored))
    if (entry.path().filename().string().starts_with("python")) pythons.push_back(entry.path());
  std::sort(pythons.begin(), pythons.end());
  for (const fs::path& python : pythons)
    for (const char* packages : {"site-packages", "dist-packages", "."})
      candidates.push_back((python / packages / "sterna" / "hardware").lexically_normal());
  candidates.push_back("hardware");
  std::vector<std::string> found;
  for (const fs::path& candidate : candidates)
    if (fs::is_directory(candidate / "chips", ignored)) found.push_back(candidate.string());
  if (found.empty())
    for (const fs::path& candidate : candidates) found.push_back(candidate.string());
  return found;
}

}  // namespace sterna::cli
