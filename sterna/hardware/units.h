// SPDX-License-Identifier: Apache-2.0
// Units of measurement: "GHz", "B/ns", "elements/cycle". A unit is a dimension and a factor to the base units
// ns, byte, cycle, element, count, lane; so GHz is cycles per ns and GB/s is bytes per ns, both with factor 1.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "sterna/base/result.h"

namespace sterna {

/// Powers of the base units. A pure ratio has none.
struct Dimension {
  enum Base { kTime, kByte, kCycle, kElement, kCount, kLane, kBases };
  std::array<int8_t, kBases> powers{};

  constexpr bool operator==(const Dimension&) const = default;
};

namespace dimension {
inline constexpr Dimension kRatio{};
inline constexpr Dimension kTime{{1, 0, 0, 0, 0, 0}};
inline constexpr Dimension kBytes{{0, 1, 0, 0, 0, 0}};
inline constexpr Dimension kCycles{{0, 0, 1, 0, 0, 0}};
inline constexpr Dimension kElements{{0, 0, 0, 1, 0, 0}};
inline constexpr Dimension kCount{{0, 0, 0, 0, 1, 0}};
inline constexpr Dimension kLanes{{0, 0, 0, 0, 0, 1}};
inline constexpr Dimension kFrequency{{-1, 0, 1, 0, 0, 0}};
inline constexpr Dimension kByteRate{{-1, 1, 0, 0, 0, 0}};
inline constexpr Dimension kCyclesPerElement{{0, 0, 1, -1, 0, 0}};
}  // namespace dimension

struct Unit {
  Dimension dimension;
  double scale = 1;  ///< value in this unit × scale = value in base units
};

/// Reads "atom", "atom/atom", "atom*atom/atom". Atoms: s ms us ns, B kB MB GB TB KiB MiB GiB TiB, Hz kHz MHz GHz,
/// cycle(s), element(s), count, lane(s), 1, %.
Result<Unit> parse_unit(std::string_view text);

/// What a person should write for this dimension: "a time, such as ns or us".
std::string describe(const Dimension& dimension);

}  // namespace sterna
