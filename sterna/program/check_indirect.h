// SPDX-License-Identifier: Apache-2.0
// Rules of records with views that find their columns by an index tensor (NkiTensor.indirect). Source: "Tensor
// indirection" in nki.isa (SDK 2.32).
#pragma once

#include "sterna/base/result.h"
#include "sterna/isa/instruction.h"

namespace sterna {

/// The view is one with .indirect().
inline bool finds_columns(const View& v) { return v.kind == ViewKind::kIndirect && v.on_chip(); }

/// So many partitions share a list of columns in the engine of this instruction.
int32_t index_group(const Chip& chip, const Info& info);

/// Of a record with such a view: TI1 the chip has them; TI2 the operand takes one; TI6 its index is read as the engine
/// of the instruction reads it; TI7 manually placed tensors start where they must: the index at a multiple of 32
/// partitions, an operand that is read where its index does, and a scattered dst's index where the operand does if that
/// is in SBUF, or where the operand's index does if it is in PSUM and has one.
Status check_indirect(const Rules& rules, const TableRow& row, const void* body);

}  // namespace sterna
