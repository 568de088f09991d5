// SPDX-License-Identifier: Apache-2.0
#include "sterna/base/result.h"

namespace sterna {

std::string_view name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kBadInput: return "bad input";
    case FaultKind::kWrongType: return "wrong type";
    case FaultKind::kOutOfBounds: return "out of bounds";
    case FaultKind::kRuleBroken: return "rule broken";
    case FaultKind::kNotOnThisChip: return "not on this chip";
    case FaultKind::kNotImplemented: return "not implemented";
    case FaultKind::kUnknownBehaviour: return "unknown behaviour";
    case FaultKind::kBug: return "bug in Sterna";
  }
  return "fault";
}

std::string Fault::text() const {
  std::string out = "[" + std::string(name(kind));
  if (!rule.empty()) out += ", rule " + rule;
  out += "] " + message;
  if (!where.file.empty()) {
    out += " (" + where.file + ":" + std::to_string(where.line);
    if (where.column > 0) out += ":" + std::to_string(where.column);
    out += ")";
  }
  return out;
}

}  // namespace sterna
