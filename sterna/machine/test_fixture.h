// SPDX-License-Identifier: Apache-2.0
// What the tests of the machine share: tensors made on the fly, values in and out.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sterna/machine/machine.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna {

using Shape = std::vector<int64_t>;

class MachineTest : public ::testing::Test {
 protected:
  uint32_t add(const Shape& shape, DType dtype = DType::kFloat32, Memory memory = Memory::kSbuf) {
    TensorInfo info;
    info.dtype = dtype;
    info.memory = memory;
    info.ndim = static_cast<uint8_t>(shape.size());
    std::copy(shape.begin(), shape.end(), info.shape);
    tensors_.push_back(info);
    return static_cast<uint32_t>(tensors_.size() - 1);
  }
  View make(const Shape& shape, DType dtype = DType::kFloat32, Memory memory = Memory::kSbuf) {
    const uint32_t id = add(shape, dtype, memory);
    EXPECT_TRUE(m_.allocate(id));
    return whole_view(id, tensors_[id]);
  }
  View placed(const Shape& shape, uint32_t partition, uint32_t byte, DType dtype = DType::kFloat32,
              Memory memory = Memory::kSbuf) {
    const uint32_t id = add(shape, dtype, memory);
    tensors_[id].has_address = true;
    tensors_[id].address_partition = partition;
    tensors_[id].address_byte = byte;
    return whole_view(id, tensors_[id]);
  }
  void fill(const View& v, float value) {
    auto o = m_.write(v, "test");
    ASSERT_TRUE(o);
    std::vector<float> row(static_cast<size_t>(o->cols), value);
    for (int64_t r = 0; r < o->rows; ++r) store_row(*o, r, 0, o->cols, row.data());
  }
  float first(const View& v) {
    auto o = m_.read_any(v, "test");
    float x = 0;
    load_row(*o, 0, 0, 1, &x);
    return x;
  }
  static View part(const View& v, int64_t r0, int64_t r1, int64_t c0, int64_t c1, int64_t step = 1) {
    const IndexItem items[2] = {{IndexItem::Kind::kSlice, r0, r1, 1}, {IndexItem::Kind::kSlice, c0, c1, step}};
    return *index_view(v, items);
  }
  template <class T>
  static std::string rule_of(const Result<T>& r) {
    return r ? "none" : r.error().rule;
  }
  static std::string rule_of(const Status& s) { return s ? "none" : s.error().rule; }
  /// 0, 1, 2, ... into the view, row-major.
  void ramp(const View& v) {
    auto o = m_.write(v, "test");
    ASSERT_TRUE(o);
    std::vector<float> row(static_cast<size_t>(o->cols));
    for (int64_t r = 0; r < o->rows; ++r) {
      for (int64_t c = 0; c < o->cols; ++c) row[static_cast<size_t>(c)] = static_cast<float>(r * o->cols + c);
      store_row(*o, r, 0, o->cols, row.data());
    }
  }
  std::vector<float> values(const View& v) {
    auto o = m_.read_any(v, "test");
    std::vector<float> out(static_cast<size_t>(v.elements()));
    for (int64_t r = 0; r < o->rows; ++r) load_row(*o, r, 0, o->cols, out.data() + r * o->cols);
    return out;
  }
  /// The rows of `v` that `indices` names.
  View rows_at(const View& v, const std::vector<uint32_t>& indices) {
    const auto n = static_cast<int64_t>(indices.size());
    const View index = make({n, 1}, DType::kInt32);
    auto o = m_.write(index, "index");
    for (int64_t r = 0; r < n; ++r) store_bits(*o, r, 0, 1, &indices[static_cast<size_t>(r)]);
    View out = v;
    out.kind = ViewKind::kIndirect;
    out.dims[0].count = static_cast<int32_t>(n);
    dynamics_.push_back({DynamicOffset::Source::kTensor, 0, index, v.dims[0].stride, v.dims[0].count});
    out.dynamic = static_cast<uint32_t>(dynamics_.size() - 1);
    return out;
  }
  /// An HBM view of any strides, in elements.
  static View strided(const View& tensor, int64_t offset, const std::vector<Dim>& dims) {
    View v = tensor;
    v.offset = offset;
    v.ndim = static_cast<uint8_t>(dims.size());
    for (size_t d = 0; d < kMaxDims; ++d) v.dims[d] = d < dims.size() ? dims[d] : Dim{};
    return v;
  }

  static Machine::Options options() {
    Machine::Options o;
    o.sbuf_partition_bytes = 4096;
    o.psum_partition_bytes = 2048;
    return o;
  }
  std::vector<TensorInfo> tensors_;
  std::vector<DynamicOffset> dynamics_;
  ThreadPool pool_{1};
  Machine m_{options(), &pool_, &tensors_, &dynamics_};
};

}  // namespace sterna
