// SPDX-License-Identifier: Apache-2.0
// Rules that several collectives share.
#pragma once

#include "sterna/isa/instruction.h"

namespace sterna::collectives {

/// CC2: both in HBM or both in SBUF (SBUF where `sbuf`). CC3: equal types.
Status check_places(const View& dst, const View& src, bool sbuf);
/// CC4: dim is 0, or 1 for SBUF where `free_dim`.
Status check_dim(const View& view, int32_t dim, bool free_dim);
/// CC5: dst has as many elements as src.
Status check_same(const View& dst, const View& src);
/// CC5: n equal parts along `dim`, one for each rank of the group.
Status check_divides(const View& view, int dim, int64_t n);
/// CC6: add, minimum or maximum.
Status check_reduction(AluOp op);
/// CC2: the elements of a buffer of chunks adjoin. CC7: `metadata` holds uint32.
Status check_flat(const View& view, std::string_view what);
Status check_metadata(const View& metadata);

}  // namespace sterna::collectives
