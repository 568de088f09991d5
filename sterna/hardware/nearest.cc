// SPDX-License-Identifier: Apache-2.0
#include "sterna/hardware/nearest.h"

#include <algorithm>
#include <numeric>

#include "sterna/base/text.h"

namespace sterna {
namespace {

/// Levenshtein's distance: insertions, deletions and replacements that turn one word into the other.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_hint(std::string_view word, const std::vector<std::string>& names) {
  const std::string* best = nullptr;
  size_t least = 0;
  for (const std::string& name : names) {
    const size_t distance = edit_distance(word, name);
    if (best == nullptr || distance < least) best = &name, least = distance;
  }
  if (best != nullptr && 3 * least <= best->size()) return cat("; did you mean \"", *best, "\"?");
  if (names.empty() || names.size() > 12) return "";
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return cat("; the names are ", list);
}

}  // namespace sterna
