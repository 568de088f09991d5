// SPDX-License-Identifier: Apache-2.0
// The data paths of the tensor engine's instructions, apart from their rules because they are tuned.
#pragma once

#include "sterna/isa/instruction.h"

namespace sterna {

struct MatmulOperands {
  const View *dst, *stationary, *moving;
  AccumulateFlag accumulate;
  bool double_row, is_transpose;
};

Status execute_matmul(Machine& m, const MatmulOperands& operands);
Status execute_transpose(Machine& m, const View& dst, const View& data);

}  // namespace sterna
