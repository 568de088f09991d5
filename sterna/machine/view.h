// SPDX-License-Identifier: Apache-2.0
// View: which elements of which tensor an instruction touches. Trivially copyable; it lives inside records.
#pragma once

#include <cstdint>
#include <string>

#include "sterna/numerics/dtype.h"

namespace sterna {

enum class Memory : uint8_t { kHbm, kSbuf, kPsum };
std::string_view name(Memory memory);

inline constexpr uint32_t kNoTensor = UINT32_MAX;
inline constexpr int kMaxDims = 5;        // NKI: a view has up to five dimensions
inline constexpr int kMaxTensorDims = 8;  // of a tensor in HBM, as kernels see it; a program holds it in kMaxDims

/// `stride` counts elements of the view's dtype (partitions, in dims[0] of an on-chip view).
struct Dim {
  int32_t stride = 0;
  int32_t count = 0;
  bool operator==(const Dim&) const = default;
};

/// How the place of an element is found beyond the strided pattern.
enum class ViewKind : uint8_t {
  kStrided,   ///< the pattern alone
  kDynamic,   ///< plus an offset known when the program runs: a register or a (1,1) tensor
  kIndirect,  ///< HBM: plus one row index for each row of dims[0], from an offset tensor. On chip: plus one place in
              ///< the partition for each column of dims[1] (DynamicOffset::group)
};

/// On chip (SBUF, PSUM): dims[0] walks partitions from `partition`; `offset` and the other dims walk elements inside
/// a partition. In HBM: `partition` is 0 and everything walks elements of the whole tensor.
template <int kMost>
struct BasicView {
  static constexpr int kDims = kMost;
  uint32_t tensor = kNoTensor;
  DType dtype = DType::kFloat32;
  uint8_t ndim = 0;
  Memory memory = Memory::kHbm;
  ViewKind kind = ViewKind::kStrided;
  int32_t partition = 0;
  uint32_t dynamic = 0;  ///< row of the program's table of dynamic offsets, for kDynamic and kIndirect
  int64_t offset = 0;
  Dim dims[kMost] = {};

  bool empty() const { return tensor == kNoTensor; }
  bool on_chip() const { return memory != Memory::kHbm; }
  /// Rows an instruction sees: partitions on chip, dims[0] in HBM.
  int64_t rows() const { return ndim == 0 ? 1 : dims[0].count; }
  /// Elements in a row: the product of the free dims.
  int64_t cols() const {
    int64_t n = 1;
    for (int d = 1; d < ndim; ++d) n *= dims[d].count;
    return n;
  }
  int64_t elements() const { return rows() * cols(); }
  bool operator==(const BasicView& o) const {
    if (tensor != o.tensor || dtype != o.dtype || ndim != o.ndim || memory != o.memory || kind != o.kind ||
        partition != o.partition || dynamic != o.dynamic || offset != o.offset)
      return false;
    for (int d = 0; d < ndim; ++d)
      if (!(dims[d] == o.dims[d])) return false;
    return true;
  }
};
using View = BasicView<kMaxDims>;
static_assert(sizeof(View) == 64);
/// What a kernel may see of a tensor in HBM; instructions get the View that walks the same elements (merge_leading).
using WideView = BasicView<kMaxTensorDims>;

/// A value that is the same for all elements (immediate) or one for each partition (a (P,1) view).
struct Scalar {
  View view = {};
  double value = 0;  ///< exact for every 32-bit integer and fp32
  bool is_view = false;
  bool is_none = true;

  static Scalar of(double v) { return Scalar{{}, v, false, false}; }
  static Scalar of(const View& v) { return Scalar{v, 0, true, false}; }
};

/// What a kDynamic or kIndirect view adds to its place.
struct DynamicOffset {
  enum class Source : uint8_t { kRegister, kTensor };
  Source source = Source::kRegister;
  uint32_t reg = 0;        ///< kRegister
  View index = {};         ///< kTensor: (1,1) for kDynamic; the list for kIndirect
  int64_t multiplier = 1;  ///< elements that one step of the index moves
  int64_t limit = 0;       ///< indices 0 .. limit-1 are in bounds
  /// kIndirect on chip, else 0: so many partitions share a list of indices, which lies in their own partitions of the
  /// index tensor, number i in partition i mod group, column i / group (nki.language, NkiTensor.indirect: "snake").
  int32_t group = 0;
  bool operator==(const DynamicOffset&) const = default;
};

/// "[128, 512]"
template <int kMost>
std::string shape_text(const BasicView<kMost>& view);

}  // namespace sterna
