// SPDX-License-Identifier: Apache-2.0
// A short way to write instruction streams in tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sterna/hardware/catalog.h"
#include "sterna/isa/control.h"
#include "sterna/isa/dma.h"
#include "sterna/isa/gpsimd.h"
#include "sterna/isa/scalar.h"
#include "sterna/isa/tensor.h"
#include "sterna/isa/vector.h"
#include "sterna/program/builder.h"
#include "sterna/timing/model.h"

namespace sterna {

inline Chip chip_for_test(std::string_view name) {
  auto chip = find_chip(name);
  if (!chip) ADD_FAILURE() << chip.error().text();
  return chip ? std::move(*chip) : Chip{};
}

class KernelForTest {
 public:
  explicit KernelForTest(const Chip& chip) : builder(chip, false) {}

  /// The site of what follows: a line of kernel.py.
  void line(int number) {
    Program& p = builder.program();
    builder.set_site(p.sites.intern(p.names.intern("kernel.py"), p.names.intern("kernel"), number, 0));
  }

  View tensor(Memory memory, std::vector<int64_t> shape, DType dtype, bool parameter = false) {
    TensorInfo info;
    info.memory = memory;
    info.dtype = dtype;
    info.ndim = static_cast<uint8_t>(shape.size());
    if (parameter) info.role = TensorRole::kParameter;
    std::copy(shape.begin(), shape.end(), info.shape);
    return add(info);
  }
  View sbuf(std::vector<int64_t> shape, DType dtype) { return tensor(Memory::kSbuf, std::move(shape), dtype); }
  View psum(std::vector<int64_t> shape, DType dtype = DType::kFloat32) {
    return tensor(Memory::kPsum, std::move(shape), dtype);
  }
  View hbm(std::vector<int64_t> shape, DType dtype) { return tensor(Memory::kHbm, std::move(shape), dtype, true); }
  View at_address(Memory memory, std::vector<int64_t> shape, DType dtype, uint32_t partition, uint32_t byte) {
    TensorInfo info;
    info.memory = memory;
    info.dtype = dtype;
    info.ndim = static_cast<uint8_t>(shape.size());
    std::copy(shape.begin(), shape.end(), info.shape);
    info.has_address = true;
    info.address_partition = partition;
    info.address_byte = byte;
    return add(info);
  }

  /// rows [r, r + rows) and columns [c, c + cols) of a two-dimensional view.
  static View slice(View v, int64_t r, int64_t rows, int64_t c, int64_t cols) {
    if (v.on_chip())
      v.partition += static_cast<int32_t>(r);
    else
      v.offset += r * v.dims[0].stride;
    v.offset += c * v.dims[1].stride;
    v.dims[0].count = static_cast<int32_t>(rows);
    v.dims[1].count = static_cast<int32_t>(cols);
    return v;
  }
  static View columns(const View& v, int64_t c, int64_t cols) { return slice(v, 0, v.rows(), c, cols); }

  template <class I>
  void record(const I& instruction) {
    auto status = builder.record(instruction);
    if (!status) ADD_FAILURE() << status.error().text();
  }
  void copy(const View& dst, const View& src) {
    dma_engine::DmaCopy dma;
    dma.dst = dst;
    dma.src = src;
    record(dma);
  }
  void matmul(const View& dst, const View& stationary, const View& moving) {
    tensor_engine::NcMatmul m;
    m.dst = dst;
    m.stationary = stationary;
    m.moving = moving;
    record(m);
  }
  void add(const View& dst, const View& a, const View& b) {
    vector_engine::TensorTensor t;
    t.dst = dst;
    t.data1 = a;
    t.data2 = b;
    record(t);
  }
  void move(const View& dst, const View& src, EngineId engine = EngineId::kVector) {
    vector_engine::TensorCopy t;
    t.dst = dst;
    t.src = src;
    t.engine = engine;
    record(t);
  }
  void fill(const View& dst, EngineId engine = EngineId::kUnknown) {
    vector_engine::Memset m;
    m.dst = dst;
    m.engine = engine;
    record(m);
  }
  void activate(const View& dst, const View& src) {
    scalar_engine::Activation a;
    a.dst = dst;
    a.data = src;
    a.op = Function::kExp;
    record(a);
  }

  Timing time(const TimingOptions& options = {}) const { return time(builder.chip(), options); }
  Timing time(const Chip& chip, const TimingOptions& options = {}) const {
    auto timing = predict(builder.program(), Path(), chip, options);
    if (!timing) ADD_FAILURE() << timing.error().text();
    return timing ? std::move(*timing) : Timing{};
  }

  Builder builder;

 private:
  View add(const TensorInfo& info) {
    auto id = builder.add_tensor(info);
    if (!id) ADD_FAILURE() << id.error().text();
    return id ? whole_view(*id, builder.tensor(*id)) : View{};
  }
};

}  // namespace sterna
