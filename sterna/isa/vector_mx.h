// SPDX-License-Identifier: Apache-2.0
// The vector engine's quantisation to block-scaled (MX) formats.
#pragma once

#include "sterna/base/text.h"
#include "sterna/isa/mx_scales.h"
#include "sterna/isa/rules.h"
#include "sterna/machine/view_ops.h"

namespace sterna::vector_engine {

/// dst = src in blocks of 8 partitions x 4 elements, each divided by its scale, which goes to dst_scale.
///
/// Shapes  src [P, N], dst [P, N / 4] of x4 elements, dst_scale [.., N / 4]: see mx_scales.h. Of dst_scale only its own
///         four rows in each quadrant are written; zero_padding (NKI before 0.6, whose simulator wrote all rows): other
///         rows of the view that were never written become 0
/// Types   the scale is 2^(floor(log2 amax) - (Emax - 1)), Emax 8 (e4m3fn) or 15 (e5m2), at least 2^-127, the scale of
///         zeros; ocp_scale (NKI before 0.5): Emax in place of Emax - 1. Quotients beyond the largest number saturate;
///         infinity and NaN count as 2^128 in amax, NaN stays NaN (as the published references do; the documents are
///         silent)
/// Rules   MX1 MX2 MX3 MX4 MX5 MX6 QMX1 (src type) QMX2 (N a multiple of 4) QMX3 (dst type, shape)
/// Source  nki.isa.quantize_mx (SDK 2.32); NKI 0.5 release note: "a block scale two times larger than the sample
///         conversion algorithm"
struct QuantizeMx {
  static constexpr Info info{"quantize_mx", 0x28, "dst, dst_scale = src in block-scaled form", "nki.isa.quantize_mx"};
  View dst, src, dst_scale;
  bool ocp_scale = false, zero_padding = false;

  static constexpr auto fields() {
    using I = QuantizeMx;
    return std::tuple{out("dst", &I::dst, "SBUF tile [P, N / 4] of x4 elements"),
                      in("src", &I::src, "SBUF tile [P, N], float16 or bfloat16"),
                      out("dst_scale", &I::dst_scale, "scales, in the quadrants of their data"),
                      option("ocp_scale", &I::ocp_scale, "the scale of NKI before 0.5: OCP's sample algorithm"),
                      option("zero_padding", &I::zero_padding, "rows between scales become 0: NKI before 0.6")};
  }
  Status check(const Rules& r);
  Status execute(Machine& m) const;
  Status write_padding(Machine& m) const;
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kVector, {&dst, &src});
    w.elements = static_cast<double>(src.cols());
    return w;
  }
};

using BlockScaled = InstructionList<QuantizeMx>;

}  // namespace sterna::vector_engine
