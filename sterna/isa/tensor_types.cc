// SPDX-License-Identifier: Apache-2.0
// Source: nki.isa.nc_matmul (SDK 2.32), data types; float8_e3m4 from the Trainium2 architecture guide, which keeps it.
#include "sterna/isa/tensor_types.h"

#include "sterna/base/text.h"

namespace sterna {
namespace {

bool is_wide(DType t) { return t == DType::kFloat32 || t == DType::kTFloat32; }

bool is_input(DType t) {
  return is_wide(t) || t == DType::kBFloat16 || t == DType::kFloat16 || is_double_row_type(t) ||
         t == DType::kFloat8E3M4;
}

}  // namespace

bool is_double_row_type(DType t) {
  return t == DType::kFloat8E4M3 || t == DType::kFloat8E4M3FN || t == DType::kFloat8E5M2;
}

bool is_matmul_result(const Chip& chip, DType t) {
  return t == DType::kFloat32 || (t == DType::kBFloat16 && chip.features.psum_bfloat16);
}

Status check_matmul_types(DType stationary, DType moving, const char* rule) {
  auto broken = [&](std::string text) { return Fault(FaultKind::kRuleBroken, rule, std::move(text)); };
  for (DType t : {stationary, moving})
    if (!is_input(t))
      return broken(
          cat("A matmul does not take ", name(t),
              is_packed(t) ? "; nc_matmul_mx multiplies x4 elements." : "; it takes floats of 8 to 32 bits."));
  if (is_wide(stationary) != is_wide(moving))
    return broken(cat("fp32 goes with fp32 only: stationary is ", name(stationary), ", moving ", name(moving), "."));
  auto pair = [&](DType a, DType b) { return (stationary == a && moving == b) || (stationary == b && moving == a); };
  if (pair(DType::kFloat8E4M3, DType::kFloat8E4M3FN))
    return broken("float8_e4m3 and float8_e4m3fn cannot be mixed in one matmul.");
  return {};
}

}  // namespace sterna
