// SPDX-License-Identifier: Apache-2.0
// Choosing between two rows of 32-bit words: what predicated and selecting instructions share. Bits are kept.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sterna {

/// out[i] = (where[i] != 0) != invert ? yes[i] : no[i * no_step], with no_step 1, or 0 for one word. out may be any of
/// the rows exactly. As fp32, a true `where` is any pattern but +0.
void select_row(const uint32_t* where, const uint32_t* yes, const uint32_t* no, ptrdiff_t no_step, bool invert,
                uint32_t* out, ptrdiff_t n);

}  // namespace sterna
