// SPDX-License-Identifier: Apache-2.0
// The binary form of a trace:
//
//   "STERNATRACE\n"  version  sections...  check
//
// A section is its number, its length and its bytes, so a reader can step over what it does not need. The check is
// eight bytes over all that stands before it.
#pragma once

#include <cstdint>
#include <string_view>

namespace sterna {

inline constexpr std::string_view kTraceMagic = "STERNATRACE\n";

enum class TraceSection : uint8_t {
  kPath = 1,
  kSummary,
  kNames,
  kSites,
  kQueues,
  kInstructions,
  kTensors,
  kMetrics,
  kReport
};

/// FNV-1a, 64 bits.
constexpr uint64_t trace_check(std::string_view bytes) {
  uint64_t h = 14695981039346656037u;
  for (char c : bytes) h = (h ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return h;
}

}  // namespace sterna
