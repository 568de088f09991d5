// SPDX-License-Identifier: Apache-2.0
// Lists of ranks as text, "[[0, 1], [2, 3]]": how the front end writes into the program's texts who communicates.
#pragma once

#include <string_view>
#include <vector>

#include "sterna/base/result.h"

namespace sterna::collectives {

using RankLists = std::vector<std::vector<int>>;

/// CC1: not such a text, or a rank in two lists.
Result<RankLists> parse_ranks(std::string_view text, bool may_repeat = false);
Fault bad_ranks(std::string_view text);
/// The list that has `rank`; empty if none.
std::vector<int> list_of(const RankLists& lists, int rank);

}  // namespace sterna::collectives
