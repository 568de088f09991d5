// SPDX-License-Identifier: Apache-2.0
// What the tests of instructions share: a machine of one chip, tensors made on the fly, values in and out.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "sterna/hardware/catalog.h"
#include "sterna/isa/instruction.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

// Tests name the first fields of an instruction and leave the others at their defaults.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace sterna {

class IsaTest : public ::testing::Test {
 protected:
  using Shape = std::vector<int64_t>;
  using Values = std::vector<float>;
  using Words = std::vector<uint32_t>;

  void SetUp() override { use_chip("trn2"); }
  void use_chip(std::string_view name) {
    auto found = find_chip(name);
    ASSERT_TRUE(found) << found.error().text();
    chip_ = std::move(*found);
  }

  /// A new tensor; nothing of it is defined.
  View make(const Shape& shape, DType dtype = DType::kFloat32, Memory memory = Memory::kSbuf) {
    TensorInfo info;
    info.dtype = dtype;
    info.memory = memory;
    info.ndim = static_cast<uint8_t>(shape.size());
    std::copy(shape.begin(), shape.end(), info.shape);
    tensors_.push_back(info);
    const auto id = static_cast<uint32_t>(tensors_.size() - 1);
    EXPECT_TRUE(m_.allocate(id));
    return whole_view(id, info);
  }
  /// A new tensor that holds these values, row-major.
  View with(const Shape& shape, const Values& values, DType dtype = DType::kFloat32, Memory memory = Memory::kSbuf) {
    const View v = make(shape, dtype, memory);
    set(v, values);
    return v;
  }
  View with_bits(const Shape& shape, const Words& words, DType dtype, Memory memory = Memory::kSbuf) {
    const View v = make(shape, dtype, memory);
    auto o = m_.write(v, "test");
    for (int64_t r = 0; r < o->rows; ++r) store_bits(*o, r, 0, o->cols, words.data() + r * o->cols);
    return v;
  }
  void set(const View& v, const Values& values) {
    ASSERT_EQ(static_cast<int64_t>(values.size()), v.elements());
    auto o = m_.write(v, "test");
    ASSERT_TRUE(o);
    for (int64_t r = 0; r < o->rows; ++r) store_row(*o, r, 0, o->cols, values.data() + r * o->cols);
  }
  Values get(const View& v) {
    auto o = m_.read_any(v, "test");
    Values out(static_cast<size_t>(v.elements()));
    for (int64_t r = 0; r < o->rows; ++r) load_row(*o, r, 0, o->cols, out.data() + r * o->cols);
    return out;
  }
  Words get_bits(const View& v) {
    auto o = m_.read_any(v, "test");
    Words out(static_cast<size_t>(v.elements()));
    for (int64_t r = 0; r < o->rows; ++r) load_bits(*o, r, 0, o->cols, out.data() + r * o->cols);
    return out;
  }
  /// Which elements are defined, row-major.
  std::vector<bool> defined(const View& v) {
    std::vector<bool> out;
    for (ElementState s : m_.element_states(v)) out.push_back(s == ElementState::kDefined);
    return out;
  }

  /// v[r0:r1, c0:c1]
  static View part(const View& v, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    const IndexItem items[2] = {{IndexItem::Kind::kSlice, r0, r1, 1}, {IndexItem::Kind::kSlice, c0, c1, 1}};
    return *index_view(v, items);
  }
  /// The view of HBM rows named by `indices`, as ap(vector_offset=...) makes it.
  View indirect(const View& v, const View& indices) {
    View out = v;
    out.kind = ViewKind::kIndirect;
    out.dims[0].count = static_cast<int32_t>(indices.elements());
    const int64_t rows = v.dims[0].count;
    dynamics_.push_back({DynamicOffset::Source::kTensor, 0, indices, v.dims[0].stride, rows});
    out.dynamic = static_cast<uint32_t>(dynamics_.size() - 1);
    return out;
  }

  Rules rules() {
    Rules r{&chip_, &tensors_, &dynamics_, strict_};
    r.remark = [](void* self, std::string_view rule, std::string_view) {
      static_cast<IsaTest*>(self)->remarks_.emplace_back(rule);
    };
    r.context = this;
    return r;
  }
  template <class I>
  Status run(I instruction) {
    STERNA_TRY(instruction.check(rules()));
    m_.begin_instruction(++site_);
    return instruction.execute(m_);
  }
  template <class I>
  Work work(I instruction) {
    EXPECT_TRUE(instruction.check(rules()));
    return instruction.work(rules());
  }
  static std::string rule_of(const Status& s) { return s ? "none" : s.error().rule; }
  static std::string text_of(const Status& s) { return s ? "no fault" : s.error().text(); }
  bool warned(std::string_view rule) const {
    for (const Warning& w : const_cast<Machine&>(m_).warnings())
      if (w.rule == rule) return true;
    return std::find(remarks_.begin(), remarks_.end(), rule) != remarks_.end();
  }

  static Values ramp(size_t n, float start = 0, float step = 1) {
    Values out(n);
    for (size_t i = 0; i < n; ++i) out[i] = start + static_cast<float>(i) * step;
    return out;
  }
  Values random(size_t n, float low = -4, float high = 4) {
    std::uniform_real_distribution<float> d(low, high);
    Values out(n);
    for (float& x : out) x = d(generator_);
    return out;
  }
  /// The order of sums of the vector engine (alu.h), written plainly.
  static float ordered(AluOp op, const float* x, int64_t n, int64_t stride = 1) {
    float p[16];
    std::fill_n(p, 16, reduction_identity(op));
    for (int64_t i = 0; i < n; ++i) p[i % 16] = alu(op, p[i % 16], x[i * stride]);
    for (int step : {8, 4, 2, 1})
      for (int j = 0; j < step; ++j) p[j] = alu(op, p[j], p[j + step]);
    return p[0];
  }

  static Machine::Options options() {
    Machine::Options o;
    o.sbuf_partition_bytes = 192 * 1024;
    o.psum_partition_bytes = 16 * 1024;
    return o;
  }

  Chip chip_;
  bool strict_ = false;
  std::vector<TensorInfo> tensors_;
  std::vector<DynamicOffset> dynamics_;
  ThreadPool pool_{1};
  Machine m_{options(), &pool_, &tensors_, &dynamics_};
  std::vector<std::string> remarks_;
  uint32_t site_ = 0;
  std::mt19937 generator_{7};
};

#define EXPECT_RUNS(instruction)              \
  do {                                        \
    const auto status_ = run(instruction);    \
    EXPECT_TRUE(status_) << text_of(status_); \
  } while (false)
#define EXPECT_REFUSED(id, instruction)                  \
  do {                                                   \
    const auto status_ = run(instruction);               \
    EXPECT_EQ(rule_of(status_), id) << text_of(status_); \
  } while (false)

inline constexpr DType kF32 = DType::kFloat32;
inline constexpr DType kBf16 = DType::kBFloat16;
inline constexpr DType kI32 = DType::kInt32;
inline constexpr DType kU32 = DType::kUInt32;

}  // namespace sterna
