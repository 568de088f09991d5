// SPDX-License-Identifier: Apache-2.0
// Text in columns, and text as JSON strings.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace sterna::cli {

/// Rows of cells, printed with each column as wide as its widest cell; the last column is not padded.
class Table {
 public:
  explicit Table(std::string indent = "") : indent_(std::move(indent)) {}
  /// `right` holds the columns set flush right, such as numbers.
  void align_right(size_t column) { right_.push_back(column); }
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  void print(std::ostream& out) const;

 private:
  bool is_right(size_t column) const;

  std::string indent_;
  std::vector<size_t> right_;
  std::vector<std::vector<std::string>> rows_;
};

/// The text between quotation marks, escaped as JSON wants it.
std::string json_string(std::string_view text);

}  // namespace sterna::cli
