// SPDX-License-Identifier: Apache-2.0
// Sites: where in the user's source an instruction was recorded, as nodes of a call tree. A site is a line of a
// function called from a parent site, so one 32-bit number carries the whole call stack.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sterna/base/result.h"

namespace sterna {

struct Site {
  uint32_t file = 0, function = 0;  ///< ids in the program's names
  int32_t line = 0;
  uint32_t parent = 0;  ///< the caller's site; 0 = none
};

class SiteTable {
 public:
  SiteTable() { sites_.push_back({}); }
  /// The node for (file, function, line) under `parent`; made if new. Site 0 means "not known".
  uint32_t intern(uint32_t file, uint32_t function, int32_t line, uint32_t parent);
  const Site& operator[](uint32_t id) const { return sites_[id < sites_.size() ? id : 0]; }
  size_t size() const { return sites_.size(); }

 private:
  std::vector<Site> sites_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> index_;
};

/// Strings by number; 0 is the empty string.
class NameTable {
 public:
  NameTable() { names_.emplace_back(); }
  uint32_t intern(std::string_view text);
  const std::string& operator[](uint32_t id) const { return names_[id < names_.size() ? id : 0]; }
  const std::vector<std::string>& all() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t> index_;
};

}  // namespace sterna
