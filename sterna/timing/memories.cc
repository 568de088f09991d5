// SPDX-License-Identifier: Apache-2.0
#include "sterna/timing/memories.h"

#include <algorithm>
#include <cstdlib>

namespace sterna {
namespace {

uint32_t clamp(int64_t x, int64_t most) { return static_cast<uint32_t>(std::clamp<int64_t>(x, 0, most)); }

int64_t up(int64_t x, int64_t unit) { return (x + unit - 1) / unit; }

}  // namespace

Memories::Memories(const Program& program, const Chip& chip, const Placement& placement)
    : program_(program),
      placement_(placement),
      partitions_(chip.sbuf.partitions),
      sbuf_columns_(chip.sbuf.partition_bytes / kUnit),
      psum_columns_(chip.psum_partition_bytes() / kUnit),
      sbuf_(static_cast<uint32_t>(partitions_), static_cast<uint32_t>(sbuf_columns_)),
      psum_(static_cast<uint32_t>(partitions_), static_cast<uint32_t>(psum_columns_)),
      hbm_(program.tensors.size()) {}

void Memories::track_hbm(uint32_t tensor) {
  const TensorInfo& t = program_.tensors[tensor];
  const int64_t bytes = std::max<int64_t>(1, t.bytes());
  int64_t pitch = t.ndim > 0 ? std::max<int64_t>(1, t.shape[t.ndim - 1]) * size_of(t.dtype) : bytes;
  if (pitch == bytes) pitch = std::min<int64_t>(bytes, 1 << 15);  // a vector is cut into rows
  int64_t unit = 1;
  while (pitch / unit > 32768) unit *= 2;
  hbm_[tensor] = std::make_unique<Hbm>(
      Hbm{pitch, unit, AccessMap(static_cast<uint32_t>(up(bytes, pitch)), static_cast<uint32_t>(up(pitch, unit)))});
}

void Memories::allocate(uint32_t tensor) {
  const TensorInfo& t = program_.tensors[tensor];
  // Tensors placed by the user may share bytes on purpose: their contents stay.
  if (!t.on_chip() || t.has_address) return;
  const int64_t begin = placement_.byte[tensor];
  (t.memory == Memory::kPsum ? psum_ : sbuf_)
      .reset(static_cast<uint32_t>(begin / kUnit), static_cast<uint32_t>(up(begin + t.free_bytes(), kUnit)));
}

AccessMap* Memories::find(const Access& access, Box* box) {
  const View& v = *access.view;
  switch (v.memory) {
    case Memory::kSbuf: *box = chip_box(access, sbuf_columns_); return &sbuf_;
    case Memory::kPsum: *box = chip_box(access, psum_columns_); return &psum_;
    case Memory::kHbm: break;
  }
  Hbm* hbm = hbm_[v.tensor].get();
  if (hbm == nullptr) return nullptr;
  *box = hbm_box(access, *hbm);
  return &hbm->map;
}

Box Memories::chip_box(const Access& access, int64_t columns) const {
  const View& v = *access.view;
  const int64_t size = size_of(v.dtype), base = placement_.byte[v.tensor];
  int64_t low = v.offset + access.extra, high = low;
  for (int d = 1; d < v.ndim; ++d) {
    const int64_t reach = int64_t{v.dims[d].count - 1} * v.dims[d].stride;
    (reach < 0 ? low : high) += reach;
  }
  int64_t begin = base + low * size, end = base + (high + 1) * size;
  if (access.whole) {
    begin = base;
    end = base + program_.tensors[v.tensor].free_bytes();
  }
  const int64_t row = placement_.partition[v.tensor] + v.partition;
  const int64_t rows = int64_t{v.rows() - 1} * v.dims[0].stride + 1;
  return {clamp(row, partitions_), clamp(row + rows, partitions_), clamp(begin / kUnit, columns),
          clamp(up(end, kUnit), columns)};
}

/// A view that does not fit the tensor's grid of rows takes whole rows.
Box Memories::hbm_box(const Access& access, const Hbm& hbm) const {
  const View& v = *access.view;
  const TensorInfo& t = program_.tensors[v.tensor];
  const int64_t size = size_of(v.dtype), all_rows = up(t.bytes(), hbm.pitch), all_columns = up(hbm.pitch, hbm.unit);
  const auto box = [&](int64_t row, int64_t row_end, int64_t begin, int64_t end) {
    return Box{clamp(row, all_rows), clamp(row_end, all_rows), clamp(begin / hbm.unit, all_columns),
               clamp(up(end, hbm.unit), all_columns)};
  };
  if (access.whole) return box(0, all_rows, 0, hbm.pitch);
  int64_t low = (v.offset + access.extra) * size, high = low, rows = 0, columns = 0;
  bool on_grid = true;
  for (int d = 0; d < v.ndim; ++d) {
    if (v.dims[d].count <= 1) continue;
    const int64_t stride = v.dims[d].stride * size, reach = int64_t{v.dims[d].count - 1} * stride;
    (reach < 0 ? low : high) += reach;
    if (std::abs(stride) < hbm.pitch)
      columns += std::abs(reach);
    else if (stride % hbm.pitch == 0)
      rows += std::abs(reach) / hbm.pitch;
    else
      on_grid = false;
  }
  const int64_t row = low / hbm.pitch, begin = low % hbm.pitch;
  if (!on_grid || begin + columns + size > hbm.pitch) return box(row, (high + size - 1) / hbm.pitch + 1, 0, hbm.pitch);
  return box(row, row + rows + 1, begin, begin + columns + size);
}

}  // namespace sterna
