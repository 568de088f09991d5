// SPDX-License-Identifier: Apache-2.0
// A number of a chip file together with where it comes from. A result names the uncertain numbers it used, so a number
// never travels without its source and its trust.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sterna/base/result.h"

namespace sterna {

/// How far to believe a number. The order is from best to worst.
enum class Trust : uint8_t {
  kDocumented,  ///< the maker's documents: text, table or figure
  kMeasured,    ///< published measurement by someone who describes the method
  kClaimed,     ///< announced without a method
  kEstimated,   ///< derived or fitted from the above
  kAssumed,     ///< nothing public says; a stated guess
};
inline constexpr std::string_view kTrustNames[] = {"documented", "measured", "claimed", "estimated", "assumed"};

constexpr std::string_view name(Trust trust) { return kTrustNames[static_cast<size_t>(trust)]; }
constexpr std::optional<Trust> parse_trust(std::string_view text) {
  for (size_t i = 0; i < std::size(kTrustNames); ++i)
    if (kTrustNames[i] == text) return static_cast<Trust>(i);
  return std::nullopt;
}

struct Number {
  double value = 0;         ///< in base units: ns, bytes, bytes/ns, cycles/ns (GHz), cycles, elements, counts
  double stated_value = 0;  ///< as the file says it, in `unit`
  std::string key;          ///< "engine.tensor.clock"
  std::string unit;         ///< "GHz"
  std::string source_id;    ///< "A2"
  std::string source;       ///< the text of that source
  std::string chip;         ///< the chip whose file states it; another name than the chip's own if inherited
  Trust trust = Trust::kAssumed;
  bool stated = false;  ///< false: the chip has no such thing and `value` is the neutral default
  Place place;          ///< file, line and column of the statement

  /// True if a prediction that used this number should say so.
  bool is_uncertain() const { return stated && trust >= Trust::kClaimed; }
  /// "2.4 GHz"
  std::string text() const;
};

/// A quantity read as double, in base units.
struct Real : Number {
  operator double() const { return value; }
};

/// A whole number: counts, bytes, limits. The loader refuses fractions.
struct Count : Number {
  operator int64_t() const { return static_cast<int64_t>(value); }
};

/// A yes or no that has a source like any number.
struct Flag : Number {
  operator bool() const { return value != 0; }
};

}  // namespace sterna
