// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/collectives_ranks.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "sterna/base/text.h"

namespace sterna::collectives {

Fault bad_ranks(std::string_view text) {
  return Fault(
      FaultKind::kBadInput, "CC1",
      cat("Groups of ranks are lists of whole numbers, each rank in one list, as [[0, 1], [2, 3]]; not ", text, "."));
}

Result<RankLists> parse_ranks(std::string_view text, bool may_repeat) {
  RankLists out;
  std::set<int> seen;
  int depth = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '[') {
      if (++depth == 2) out.emplace_back();
      ++i;
    } else if (c == ']') {
      --depth;
      ++i;
    } else if (c == ',' || c == ' ') {
      ++i;
    } else {
      int rank = -1;
      const auto read = std::from_chars(text.data() + i, text.data() + text.size(), rank);
      if (read.ec != std::errc() || rank < 0 || depth != 2) return bad_ranks(text);
      if (!seen.insert(rank).second && !may_repeat) return bad_ranks(text);
      out.back().push_back(rank);
      i = static_cast<size_t>(read.ptr - text.data());
    }
  }
  if (depth != 0 || out.empty()) return bad_ranks(text);
  return out;
}

std::vector<int> list_of(const RankLists& lists, int rank) {
  for (const auto& list : lists)
    if (std::find(list.begin(), list.end(), rank) != list.end()) return list;
  return {};
}

}  // namespace sterna::collectives
