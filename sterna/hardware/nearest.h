// SPDX-License-Identifier: Apache-2.0
// "did you mean": the nearest of a list of names by edit distance.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sterna {

/// `; did you mean "x"?` for the nearest name within a third of its letters, else "; the names are ..." if they are
/// few, else nothing.
std::string nearest_hint(std::string_view word, const std::vector<std::string>& names);

}  // namespace sterna
