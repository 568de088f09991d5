// SPDX-License-Identifier: Apache-2.0
#include "sterna/hardware/units.h"

#include <optional>

#include "sterna/base/text.h"

namespace sterna {
namespace {

struct Atom {
  std::string_view name;
  Dimension dimension;
  double scale;
};

// Scales below one would round (0.001 is not a binary fraction), but every value is multiplied exactly once, so the
// result is the correctly rounded product of the two nearest doubles: good to one part in 2^52.
constexpr Atom kAtoms[] = {
    {"1", dimension::kRatio, 1},
    {"%", dimension::kRatio, 0.01},
    {"s", dimension::kTime, 1e9},
    {"ms", dimension::kTime, 1e6},
    {"us", dimension::kTime, 1e3},
    {"ns", dimension::kTime, 1},
    {"B", dimension::kBytes, 1},
    {"kB", dimension::kBytes, 1e3},
    {"MB", dimension::kBytes, 1e6},
    {"GB", dimension::kBytes, 1e9},
    {"TB", dimension::kBytes, 1e12},
    {"KiB", dimension::kBytes, 1024.0},
    {"MiB", dimension::kBytes, 1048576.0},
    {"GiB", dimension::kBytes, 1073741824.0},
    {"TiB", dimension::kBytes, 1099511627776.0},
    {"Hz", dimension::kFrequency, 1e-9},
    {"kHz", dimension::kFrequency, 1e-6},
    {"MHz", dimension::kFrequency, 1e-3},
    {"GHz", dimension::kFrequency, 1},
    {"cycle", dimension::kCycles, 1},
    {"cycles", dimension::kCycles, 1},
    {"element", dimension::kElements, 1},
    {"elements", dimension::kElements, 1},
    {"count", dimension::kCount, 1},
    {"lane", dimension::kLanes, 1},
    {"lanes", dimension::kLanes, 1},
};

std::optional<Atom> find_atom(std::string_view name) {
  for (const Atom& atom : kAtoms)
    if (atom.name == name) return atom;
  return std::nullopt;
}

}  // namespace

Result<Unit> parse_unit(std::string_view text) {
  Unit unit;
  double numerator = 1, denominator = 1;
  bool divide = false;
  for (size_t start = 0;;) {
    const size_t end = text.find_first_of("*/", start);
    const std::string_view name = text.substr(start, end == std::string_view::npos ? end : end - start);
    const auto atom = find_atom(name);
    if (!atom)
      return Fault(FaultKind::kBadInput, "",
                   cat("the unit \"", text, "\" is not known at \"", name,
                       "\"; use atoms such as ns, us, B, KiB, GiB, GHz, cycles, elements, lanes, count, 1, joined by "
                       "* and /"));
    for (size_t i = 0; i < atom->dimension.powers.size(); ++i) {
      const int sum = unit.dimension.powers[i] + (divide ? -1 : 1) * atom->dimension.powers[i];
      unit.dimension.powers[i] = static_cast<int8_t>(sum);
    }
    (divide ? denominator : numerator) *= atom->scale;
    if (end == std::string_view::npos) break;
    divide = text[end] == '/';
    start = end + 1;
  }
  unit.scale = numerator / denominator;
  return unit;
}

std::string describe(const Dimension& d) {
  if (d == dimension::kRatio) return "a ratio, unit 1 or %";
  if (d == dimension::kTime) return "a time, such as ns or us";
  if (d == dimension::kBytes) return "a size, such as B, KiB or GiB";
  if (d == dimension::kCycles) return "a number of clock cycles, unit cycles";
  if (d == dimension::kElements) return "a number of elements, unit elements";
  if (d == dimension::kCount) return "a count, unit count";
  if (d == dimension::kLanes) return "a number of lanes, unit lanes";
  if (d == dimension::kFrequency) return "a frequency, such as GHz or MHz";
  if (d == dimension::kByteRate) return "a data rate, such as B/ns or GB/s";
  if (d == dimension::kCyclesPerElement) return "cycles per element, unit cycles/element";
  static constexpr std::string_view kNames[] = {"ns", "B", "cycle", "element", "count", "lane"};
  std::string out = "a quantity in";
  for (size_t i = 0; i < d.powers.size(); ++i)
    if (d.powers[i] != 0) out += cat(" ", kNames[i], "^", static_cast<int>(d.powers[i]));
  return out;
}

}  // namespace sterna
