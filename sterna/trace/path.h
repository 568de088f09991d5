// SPDX-License-Identifier: Apache-2.0
// Path: what only a run can know, in the order in which it happened. It is the first section of a Trace. Timing and
// checks walk Program and Path together; a program with nothing dynamic has an empty Path.
#pragma once

#include <cstdint>
#include <vector>

namespace sterna {

/// What each record with something dynamic appends when it runs:
///   loop   low, high, step                         while  1 for each trip, then 0
///   if     1 or 0                                  a dynamic view: its resolved offset in elements
///   an indirect view: the number of rows, then each row's index
class Path {
 public:
  void add(int64_t value) { values_.push_back(value); }
  bool empty() const { return values_.empty(); }
  const std::vector<int64_t>& values() const { return values_; }
  void assign(std::vector<int64_t> values) { values_ = std::move(values); }

 private:
  std::vector<int64_t> values_;
};

/// Reads a Path in order. Reading past the end gives 0 and sets `short_of_values`.
class PathReader {
 public:
  explicit PathReader(const Path& path) : values_(&path.values()) {}
  int64_t next() {
    if (at_ >= values_->size()) {
      short_of_values = true;
      return 0;
    }
    return (*values_)[at_++];
  }
  bool short_of_values = false;

 private:
  const std::vector<int64_t>* values_;
  size_t at_ = 0;
};

}  // namespace sterna
