// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/site.h"

namespace sterna {

uint32_t SiteTable::intern(uint32_t file, uint32_t function, int32_t line, uint32_t parent) {
  const uint64_t key = (uint64_t{file} << 40) ^ (uint64_t{parent} << 20) ^ static_cast<uint32_t>(line);
  auto& bucket = index_[key];
  for (uint32_t id : bucket) {
    const Site& s = sites_[id];
    if (s.file == file && s.function == function && s.line == line && s.parent == parent) return id;
  }
  sites_.push_back({file, function, line, parent});
  bucket.push_back(static_cast<uint32_t>(sites_.size() - 1));
  return bucket.back();
}

uint32_t NameTable::intern(std::string_view text) {
  if (text.empty()) return 0;
  auto [at, fresh] = index_.try_emplace(std::string(text), static_cast<uint32_t>(names_.size()));
  if (fresh) names_.emplace_back(text);
  return at->second;
}

}  // namespace sterna
