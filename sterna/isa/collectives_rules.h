// SPDX-License-Identifier: Apache-2.0
// Rules that several collectives share.
#pragma once

#include "sterna/isa/rules.h"

namespace sterna::collectives {

/// CC2: both in HBM or both in SBUF (SBUF where `sbuf`). CC3: equal types.
Status check_places(const View& dst, const View& src, bool sbuf);
/// CC4: dim is 0, or 1 for SBUF where `free_dim`.
Status check_dim(const View& view, int32_t dim, bool free_dim);
/// CC5: dst has as many elements as src.
Status check_same(const View& dst, const View& src);
/// CC5: n equal parts along `dim`, one for each rank of the group.
Status check_divides(const View& view, int dim, int64_t n);
/// CC5: in SBUF of two dimensions; along the dimensions other than `dim`, dst is as src. In HBM another number of
/// dimensions, as of a dst with one for the ranks, is a view of the same elements.
Status check_joined(const View& dst, const View& src, int dim);
/// CC17, the documents' "current limitations" of chunks: `uniform` (all_gather_v) on two cores and without places;
/// places on some chips only.
Status check_chunks(const Rules& rules, bool has_places, bool uniform);
/// CC16: a channel of the ring.
Status check_channel(const Rules& rules, int32_t channel);
/// CC6: add, minimum or maximum.
Status check_reduction(AluOp op);
/// CC2: the elements of a buffer of chunks adjoin. CC7: `metadata` holds uint32.
Status check_flat(const View& view, std::string_view what);
Status check_metadata(const View& metadata);

}  // namespace sterna::collectives
