// SPDX-License-Identifier: Apache-2.0
#include "sterna/hardware/catalog.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "sterna/base/text.h"

namespace sterna {
namespace {

namespace fs = std::filesystem;

struct Settings {
  std::mutex mutex;
  std::vector<std::string> directories = {"hardware"};
};

Settings& settings() {
  static Settings instance;
  return instance;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

bool is_path(std::string_view name) { return name.find('/') != std::string_view::npos || name.ends_with(".toml"); }

std::vector<std::string> chip_files(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::path(directory) / "chips", ignored))
    if (entry.path().extension() == ".toml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<std::string> hardware_directories() {
  std::vector<std::string> out;
  if (const char* text = std::getenv("STERNA_HARDWARE")) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const size_t colon = std::min(rest.find(':'), rest.size());
      if (colon > 0) out.emplace_back(rest.substr(0, colon));
      rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
  }
  const std::lock_guard lock(settings().mutex);
  out.insert(out.end(), settings().directories.begin(), settings().directories.end());
  return out;
}

void set_hardware_directories(std::vector<std::string> directories) {
  const std::lock_guard lock(settings().mutex);
  settings().directories = std::move(directories);
}

Result<Chip> find_chip(std::string_view name) {
  const std::vector<std::string> directories = hardware_directories();
  if (is_path(name)) return load_chip(std::string(name), directories);
  for (const std::string& directory : directories) {
    const std::string path = (fs::path(directory) / "chips" / (std::string(name) + ".toml")).string();
    if (!name.empty() && fs::exists(path)) return load_chip(path, directories);
  }
  STERNA_ASSIGN(const std::vector<ChipHeader> chips, list_chips());
  std::vector<std::string> names;
  for (const ChipHeader& header : chips) {
    if (std::find(header.aliases.begin(), header.aliases.end(), name) != header.aliases.end())
      return load_chip(header.file, directories);
    names.push_back(header.name);
    names.insert(names.end(), header.aliases.begin(), header.aliases.end());
  }
  if (names.empty())
    return Fault(FaultKind::kBadInput, "",
                 cat("no chip file was found in ", joined(directories),
                     " (each with a subfolder chips); set "
                     "STERNA_HARDWARE to the hardware folder of Sterna"));
  return Fault(FaultKind::kBadInput, "", cat("no chip is named \"", name, "\"; there are: ", joined(names)));
}

Result<std::vector<ChipHeader>> list_chips() {
  std::map<std::string, ChipHeader> chips;
  for (const std::string& directory : hardware_directories()) {
    for (const std::string& file : chip_files(directory)) {
      STERNA_ASSIGN(ChipHeader header, load_chip_header(file));
      // By file name, since that is what find_chip goes by.
      header.name = fs::path(file).stem().string();
      chips.emplace(header.name, std::move(header));
    }
  }
  std::vector<ChipHeader> out;
  for (auto& [name, header] : chips) out.push_back(std::move(header));
  return out;
}

}  // namespace sterna
