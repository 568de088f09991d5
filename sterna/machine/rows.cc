// SPDX-License-Identifier: Apache-2.0
#include "sterna/machine/rows.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "sterna/numerics/convert.h"
#include "sterna/numerics/words.h"

namespace sterna {
namespace {

/// Calls f(address, stride_bytes, element_index, count) for each run of elements [col, col+n) of one row.
template <class F>
void for_runs(const Operand& o, int64_t r, int64_t col, int64_t n, const F& f) {
  std::byte* row = o.row(r);
  const int64_t size = size_of(o.dtype);
  if (o.unit) {
    f(row + col * size, size, int64_t{0}, n);
    return;
  }
  if (o.col_offsets != nullptr) {
    const int64_t* at = o.col_offsets + r / o.group_rows * o.cols + col;
    for (int64_t i = 0, run; i < n; i += run) {
      for (run = 1; i + run < n && at[i + run] == at[i] + run * size;) ++run;
      f(row + at[i], size, i, run);
    }
    return;
  }
  if (o.nfree == 0) {
    f(row, size, int64_t{0}, n);
    return;
  }
  const auto& inner = o.free[o.nfree - 1];
  int64_t done = 0;
  while (done < n) {
    // Place of element col+done: peel off the outer dims.
    int64_t index = col + done;
    const int64_t within = index % inner.count;
    index /= inner.count;
    int64_t offset = within * inner.stride;
    for (int d = o.nfree - 2; d >= 0; --d) {
      offset += (index % o.free[d].count) * o.free[d].stride;
      index /= o.free[d].count;
    }
    const int64_t count = std::min(inner.count - within, n - done);
    f(row + offset, inner.stride, done, count);
    done += count;
  }
}

bool same_place(const Operand& a, const Operand& b) {
  if (a.base != b.base || a.dtype != b.dtype || a.rows != b.rows || a.cols != b.cols || a.row_pitch != b.row_pitch ||
      a.row_offsets != b.row_offsets || a.col_offsets != nullptr || b.col_offsets != nullptr || a.unit != b.unit)
    return false;  // places that an index names may repeat, so such operands are never the same
  if (a.unit) return true;
  if (a.nfree != b.nfree) return false;
  for (int d = 0; d < a.nfree; ++d)
    if (a.free[d].stride != b.free[d].stride || a.free[d].count != b.free[d].count) return false;
  return true;
}

/// Where the bytes of an operand lie: of its first row, and of all.
struct Extent {
  const std::byte *row_low, *row_high, *low, *high;
};

void row_extent(const Operand& o, int64_t& low, int64_t& high) {
  low = 0;
  high = size_of(o.dtype);
  if (o.unit) {
    high = o.cols * size_of(o.dtype);
  } else if (o.col_offsets != nullptr && o.cols > 0) {
    const int64_t count = (o.rows + o.group_rows - 1) / o.group_rows * o.cols;
    const auto [least, most] = std::minmax_element(o.col_offsets, o.col_offsets + count);
    low = *least;
    high += *most;
  } else {
    for (int d = 0; d < o.nfree; ++d) {
      const int64_t span = o.free[d].stride * (o.free[d].count - 1);
      (span < 0 ? low : high) += span;
    }
  }
}

Extent extent(const Operand& o) {
  int64_t low, high, first = 0, last = 0;
  row_extent(o, low, high);
  if (o.row_offsets == nullptr) {
    const ptrdiff_t span = (o.rows - 1) * o.row_pitch;
    (span < 0 ? first : last) = span;
  } else {
    // Skipped rows (-1) lie nowhere; counting them as row 0 only widens the extent.
    const auto [least, most] = std::minmax_element(o.row_offsets, o.row_offsets + o.rows);
    first = std::max<int64_t>(0, *least);
    last = std::max<int64_t>(0, *most);
  }
  return {o.base + low, o.base + high, o.base + low + first, o.base + high + last};
}

}  // namespace

void load_row(const Operand& operand, int64_t r, int64_t col, int64_t n, float* out) {
  for_runs(operand, r, col, n, [&](const std::byte* at, int64_t stride, int64_t done, int64_t count) {
    decode_row(operand.dtype, at, stride, out + done, count);
  });
}

namespace {

/// One random word of the row's lane for each element, in order.
void store_row_stochastically(const Operand& operand, int64_t r, int64_t col, int64_t n, const float* in) {
  Xorwow& lane = operand.rounding->lane(lane_of(operand, r));
  Xorwow random = lane;
  const auto size = static_cast<size_t>(size_of(operand.dtype));
  for_runs(operand, r, col, n, [&](std::byte* at, int64_t stride, int64_t done, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t bits = from_float_stochastic_bits(operand.dtype, in[done + i], random.next());
      std::memcpy(at + i * stride, &bits, size);
    }
  });
  lane = random;
}

}  // namespace

void store_row(const Operand& operand, int64_t r, int64_t col, int64_t n, const float* in) {
  if (operand.rounding != nullptr) [[unlikely]]
    return store_row_stochastically(operand, r, col, n, in);
  for_runs(operand, r, col, n, [&](std::byte* at, int64_t stride, int64_t done, int64_t count) {
    encode_row(operand.dtype, in + done, at, stride, count);
  });
}

namespace {

template <class T>
void load_words(const std::byte* at, int64_t stride, uint32_t* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i, at += stride) {
    T value;
    std::memcpy(&value, at, sizeof(T));
    out[i] = static_cast<uint32_t>(static_cast<int32_t>(value));
  }
}

template <class T>
void store_words(const uint32_t* in, std::byte* at, int64_t stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i, at += stride) {
    const auto value = static_cast<T>(in[i]);
    std::memcpy(at, &value, sizeof(T));
  }
}

}  // namespace

void load_bits(const Operand& operand, int64_t r, int64_t col, int64_t n, uint32_t* out) {
  const bool sign = is_integer(operand.dtype) && info(operand.dtype).is_signed;
  const int size = size_of(operand.dtype);
  for_runs(operand, r, col, n, [&](const std::byte* at, int64_t stride, int64_t done, int64_t count) {
    if (stride == size)
      widen_words(at, size, sign, out + done, count);
    else if (size == 4)
      load_words<uint32_t>(at, stride, out + done, count);
    else if (size == 2 && sign)
      load_words<int16_t>(at, stride, out + done, count);
    else if (size == 2)
      load_words<uint16_t>(at, stride, out + done, count);
    else if (sign)
      load_words<int8_t>(at, stride, out + done, count);
    else
      load_words<uint8_t>(at, stride, out + done, count);
  });
}

void store_bits(const Operand& operand, int64_t r, int64_t col, int64_t n, const uint32_t* in) {
  const int size = size_of(operand.dtype);
  for_runs(operand, r, col, n, [&](std::byte* at, int64_t stride, int64_t done, int64_t count) {
    if (stride == size)
      narrow_words(in + done, at, size, count);
    else if (size == 4)
      store_words<uint32_t>(in + done, at, stride, count);
    else if (size == 2)
      store_words<uint16_t>(in + done, at, stride, count);
    else
      store_words<uint8_t>(in + done, at, stride, count);
  });
}

bool overlaps_shifted(const Operand& dst, const Operand& src) {
  if (dst.storage != src.storage && dst.storage->defined != src.storage->defined) return false;
  if (same_place(dst, src)) return false;
  if (dst.rows == 0 || src.rows == 0) return false;
  const Extent d = extent(dst), s = extent(src);
  if (d.high <= s.low || s.high <= d.low) return false;
  // Same partitions, disjoint columns: no element is shared.
  const ptrdiff_t pitch = dst.row_pitch;
  if (pitch == src.row_pitch && pitch > 0 && dst.row_offsets == nullptr && src.row_offsets == nullptr) {
    const ptrdiff_t shift = ((s.row_low - d.row_low) % pitch + pitch) % pitch;
    const ptrdiff_t dw = d.row_high - d.row_low, sw = s.row_high - s.row_low;
    if (shift >= dw && shift + sw <= pitch) return false;
  }
  return true;
}

bool rows_may_meet(const Operand& dst) {
  if (dst.rows < 2) return false;
  if (dst.row_offsets != nullptr) return true;  // indices may repeat
  int64_t low, high;
  row_extent(dst, low, high);
  return std::abs(dst.row_pitch) < high - low;
}

float* piece_scratch(int slot) {
  struct alignas(64) Scratch {
    float data[8][kPiece];
  };
  static thread_local std::unique_ptr<Scratch> scratch(new Scratch);
  return scratch->data[slot];
}

namespace {

/// Copies element e.. of src to dst as long runs as both allow. Used for equal types.
void copy_bits_rows(const Operand& dst, const Operand& src, int64_t begin, int64_t end) {
  const int64_t size = size_of(dst.dtype);
  int64_t e = begin;
  while (e < end) {
    const int64_t dr = e / dst.cols, dc = e % dst.cols, sr = e / src.cols, sc = e % src.cols;
    const int64_t n = std::min({end - e, dst.cols - dc, src.cols - sc});
    if ((dst.row_offsets && dst.row_offsets[dr] < 0) || (src.row_offsets && src.row_offsets[sr] < 0)) {
      e += n;
      continue;
    }
    for_runs(dst, dr, dc, n, [&](std::byte* to, int64_t to_stride, int64_t done, int64_t count) {
      for_runs(src, sr, sc + done, count, [&](const std::byte* from, int64_t from_stride, int64_t more, int64_t k) {
        std::byte* t = to + more * to_stride;
        if (to_stride == size && from_stride == size) {
          std::memcpy(t, from, static_cast<size_t>(k * size));
        } else if (size == 4) {
          for (int64_t i = 0; i < k; ++i) std::memcpy(t + i * to_stride, from + i * from_stride, 4);
        } else if (size == 2) {
          for (int64_t i = 0; i < k; ++i) std::memcpy(t + i * to_stride, from + i * from_stride, 2);
        } else {
          for (int64_t i = 0; i < k; ++i) t[i * to_stride] = from[i * from_stride];
        }
      });
    });
    e += n;
  }
}

/// `bytes` of each row. Small ones with 64-byte steps that the compiler expands in place, since a call for each short
/// row would cost more than its bytes.
void copy_rows(std::byte* to, ptrdiff_t to_pitch, const std::byte* from, ptrdiff_t from_pitch, int64_t rows,
               int64_t bytes) {
  if (bytes == to_pitch && bytes == from_pitch) {
    std::memcpy(to, from, static_cast<size_t>(bytes * rows));
    return;
  }
  for (int64_t r = 0; r < rows; ++r, to += to_pitch, from += from_pitch) {
    if (bytes % 64 == 0 && bytes <= 512)
      for (int64_t b = 0; b < bytes; b += 64) std::memcpy(to + b, from + b, 64);
    else
      std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

/// Rows of adjoining bytes that do not overlap: what most copies are.
bool copy_plain_rows(const Operand& dst, const Operand& src) {
  if (!dst.unit || !src.unit || dst.rows != src.rows || dst.row_offsets != nullptr || src.row_offsets != nullptr ||
      dst.rows * dst.cols >= kThreadWorth)
    return false;
  if (same_place(dst, src)) return true;
  if (overlaps_shifted(dst, src)) return false;
  copy_rows(dst.base, dst.row_pitch, src.base, src.row_pitch, dst.rows, dst.cols * size_of(dst.dtype));
  return true;
}

/// f(dst row, dst col, src row, src col, n) for the pieces of elements [begin, end) that both have in one row; rows
/// that an index skips are left out.
template <class F>
void for_pieces(const Operand& dst, const Operand& src, int64_t begin, int64_t end, const F& f) {
  int64_t e = begin;
  while (e < end) {
    const int64_t dr = e / dst.cols, dc = e % dst.cols, sr = e / src.cols, sc = e % src.cols;
    const int64_t n = std::min({end - e, dst.cols - dc, src.cols - sc, kPiece});
    const bool skip = (dst.row_offsets && dst.row_offsets[dr] < 0) || (src.row_offsets && src.row_offsets[sr] < 0);
    if (!skip) f(dr, dc, sr, sc, n);
    e += n;
  }
}

void convert_rows(const Operand& dst, const Operand& src, int64_t begin, int64_t end) {
  float* scratch = piece_scratch(0);
  for_pieces(dst, src, begin, end, [&](int64_t dr, int64_t dc, int64_t sr, int64_t sc, int64_t n) {
    load_row(src, sr, sc, n, scratch);
    store_row(dst, dr, dc, n, scratch);
  });
}

void convert_integer_rows(const Operand& dst, const Operand& src, int64_t begin, int64_t end) {
  auto* words = reinterpret_cast<uint32_t*>(piece_scratch(0));
  for_pieces(dst, src, begin, end, [&](int64_t dr, int64_t dc, int64_t sr, int64_t sc, int64_t n) {
    load_bits(src, sr, sc, n, words);
    convert_integers(src.dtype, dst.dtype, words, words, n);
    store_bits(dst, dr, dc, n, words);
  });
}

/// The step of a copy.
struct RowCopy {
  int32_t row_bytes;  // 0: onto itself
  static void run(const ReplayStep& step, const std::byte* const (&in)[1], std::byte* out) {
    const auto& copy = *reinterpret_cast<const RowCopy*>(step.body);
    if (copy.row_bytes != 0) copy_rows(out, step.out.pitch, in[0], step.in[0].pitch, step.rows, copy.row_bytes);
  }
};

}  // namespace

void note_copy(Machine& m, const Opened& dst, const Opened& src) {
  const Operand &d = dst.operand, &s = src.operand;
  if (m.noted_step() == nullptr) return;
  if (d.dtype != s.dtype || !d.unit || !s.unit || d.rows != s.rows || d.cols != s.cols ||
      d.rows * d.cols >= kThreadWorth || overlaps_shifted(d, s))
    return;
  const int64_t row_bytes = same_place(d, s) ? 0 : d.cols * size_of(d.dtype);
  note_step<RowCopy, 1>(m, dst, {&src}, RowCopy{static_cast<int32_t>(row_bytes)});
}

void warn_aliased(Machine& m) {
  m.warn("ALIAS1",
         "source and destination share bytes, but not element for element in one type; everything is read before "
         "anything is written.");
}

void Snapshot::copy(Operand& operand) {
  const int64_t row_bytes = operand.cols * size_of(operand.dtype);
  data_.reset(new std::byte[static_cast<size_t>(std::max<int64_t>(1, operand.rows * row_bytes))]);
  Operand to = operand;
  to.base = data_.get();
  to.row_pitch = row_bytes;
  to.row_offsets = nullptr;
  to.col_offsets = nullptr;
  to.unit = true;
  copy_bits_rows(to, operand, 0, operand.rows * operand.cols);
  if (operand.row_offsets != nullptr) {
    row_offsets_.resize(static_cast<size_t>(operand.rows));
    for (int64_t r = 0; r < operand.rows; ++r)
      row_offsets_[static_cast<size_t>(r)] = operand.row_offsets[r] < 0 ? -1 : r * row_bytes;
    to.row_offsets = row_offsets_.data();
  }
  operand = to;
}

void convert_integers(DType from, DType to, const uint32_t* words, uint32_t* out, int64_t n) {
  if (to == DType::kBool) {
    for (int64_t i = 0; i < n; ++i) out[i] = words[i] != 0;
    return;
  }
  const int bits = 8 * size_of(to);
  const bool to_signed = info(to).is_signed;
  const uint32_t most = UINT32_MAX >> (32 - bits + (to_signed ? 1 : 0));
  if (!info(from).is_signed) {
    for (int64_t i = 0; i < n; ++i) out[i] = std::min(words[i], most);
    return;
  }
  const auto high = static_cast<int32_t>(std::min<uint32_t>(most, INT32_MAX));
  const int32_t low = to_signed ? -high - 1 : 0;
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint32_t>(std::clamp(static_cast<int32_t>(words[i]), low, high));
}

Status copy_elements(Machine& m, const Operand& dst, const Operand& src) {
  const int64_t total = dst.rows * dst.cols;
  if (total == 0) return {};
  const bool same = dst.dtype == src.dtype, integers = is_integer(dst.dtype) && is_integer(src.dtype);
  const bool alone = total < kThreadWorth || m.pool().threads() == 1 || rows_may_meet(dst);
  if (same && copy_plain_rows(dst, src)) return {};
  Operand from = src;
  Snapshot snapshot;
  if (snapshot.take(dst, from)) warn_aliased(m);
  auto run = [&](ptrdiff_t b, ptrdiff_t e) {
    const int64_t begin = b * dst.cols, end = e * dst.cols;
    if (same)
      copy_bits_rows(dst, from, begin, end);
    else if (integers)
      convert_integer_rows(dst, from, begin, end);
    else
      convert_rows(dst, from, begin, end);
  };
  if (alone)
    run(0, dst.rows);
  else
    m.pool().run_shares(dst.rows, run);
  return {};
}

}  // namespace sterna
