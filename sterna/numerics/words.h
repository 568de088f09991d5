// SPDX-License-Identifier: Apache-2.0
// Contiguous integers of 1, 2 or 4 bytes as 32-bit words and back, bits kept.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sterna {

/// out[i] = element i of `bytes` (1, 2 or 4) bytes, sign- or zero-extended.
void widen_words(const std::byte* from, int bytes, bool is_signed, uint32_t* out, ptrdiff_t n);
/// The low `bytes` bytes of each word, one element behind the other.
void narrow_words(const uint32_t* in, std::byte* to, int bytes, ptrdiff_t n);

}  // namespace sterna
