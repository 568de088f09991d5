// SPDX-License-Identifier: Apache-2.0
// The data paths of the tensor engine's instructions, apart from their rules because they are tuned.
#pragma once

#include "sterna/isa/instruction.h"

namespace sterna {

struct MatmulOperands {
  const View *dst, *stationary, *moving;
  AccumulateFlag accumulate;
  bool double_row;
  bool exact_transpose;  ///< keeps the stationary operand's bits when the moving one is the identity
};

Status execute_matmul(Machine& m, const MatmulOperands& operands);
/// `by_tensor_engine`: the result counts as a matmul's, to which later matmuls add.
Status execute_transpose(Machine& m, const View& dst, const View& data, bool by_tensor_engine);

}  // namespace sterna
