// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/mx_scales.h"

#include "sterna/base/text.h"
#include "sterna/isa/rules.h"
#include "sterna/machine/view_ops.h"

namespace sterna {
namespace {

Fault broken(const char* rule, std::string text) { return Fault(FaultKind::kRuleBroken, rule, std::move(text)); }

bool adjoin(const View& v) { return v.rows() <= 1 || v.dims[0].stride == 1; }

/// The quadrant in which a view starts, or -1: a tensor of 64 partitions and less may be placed in several.
int64_t quadrant_of(const Rules& r, const View& v) {
  const TensorInfo& t = r.tensor(v);
  if (t.has_address) return (t.address_partition + v.partition) / kQuadrant;
  return t.shape[0] > 2 * kQuadrant ? v.partition / kQuadrant : -1;
}

}  // namespace

Status check_mx_data(const Rules& r, const View& data, std::string_view what) {
  if (data.empty()) return Fault(FaultKind::kWrongType, "ARG2", cat("'", what, "' is missing."));
  if (data.memory != Memory::kSbuf)
    return broken("MX1", cat("'", what, "' is in ", name(data.memory), "; MX operands are in SBUF."));
  const int64_t most = r.chip->limits.partitions;
  if (data.rows() == 0 || data.rows() % kQuadrant != 0 || data.rows() > most || !adjoin(data) ||
      data.partition % kQuadrant != 0)
    return broken("MX2", cat("'", what, "' ", shape_text(data), " starts at partition ", data.partition,
                             "; MX data takes adjoining partitions, a multiple of ", kQuadrant, " and at most ", most,
                             ", from a multiple of ", kQuadrant, "."));
  return {};
}

Status check_mx_scales(const Rules& r, const View& scales, const View& data, std::string_view what) {
  if (scales.empty()) return Fault(FaultKind::kWrongType, "ARG2", cat("'", what, "' is missing."));
  if (scales.memory != Memory::kSbuf || (scales.dtype != DType::kFloat8E8M0 && scales.dtype != DType::kUInt8))
    return broken("MX3", cat("'", what, "' is a ", name(scales.dtype), " tile in ", name(scales.memory),
                             "; scales are float8_e8m0fnu (or uint8) in SBUF."));
  const int64_t quadrants = data.rows() / kQuadrant, least = kQuadrant * (quadrants - 1) + kScaleRows;
  const int64_t start = scales.partition % kQuadrant;
  if (!adjoin(scales) || start % kScaleRows != 0 || start > 3 * kScaleRows || scales.rows() < least)
    return broken(
        "MX4",
        cat("'", what, "' ", shape_text(scales), " starts at partition ", scales.partition, "; ", data.rows(),
            " partitions of data have 4 rows of scales in each quadrant of 32, from its partition 0, 4, 8 or 12: at "
            "least ",
            least, " adjoining partitions", quadrants > 1 ? " (they are not packed together)." : "."));
  if (scales.cols() != data.cols())
    return broken("MX5", cat("'", what, "' ", shape_text(scales), " has ", scales.cols(),
                             " scales in a partition, the data has ", data.cols(), " x4 elements."));
  const int64_t own = quadrant_of(r, data), theirs = quadrant_of(r, scales);
  if (own >= 0 && theirs >= 0 && own != theirs)
    return r.compat("MX6", cat("'", what, "' starts in quadrant ", theirs, " of SBUF, its data in quadrant ", own,
                               "; scales lie in the quadrant of their data."));
  return {};
}

View quadrant_scales(const View& scales, int64_t quadrant) {
  View out = scales;
  out.partition = static_cast<int32_t>(scales.partition + quadrant * kQuadrant);
  out.dims[0] = {1, static_cast<int32_t>(kScaleRows)};
  return out;
}

}  // namespace sterna
