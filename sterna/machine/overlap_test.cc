// SPDX-License-Identifier: Apache-2.0
// Operands of one instruction that lie in one tensor: everything is read before anything is written, and what is
// written twice keeps the last value.
#include <gtest/gtest.h>

#include "sterna/machine/test_fixture.h"

namespace sterna {
namespace {

using Floats = std::vector<float>;

class OverlapTest : public MachineTest {
 protected:
  Status copy(Machine& m, const View& dst, const View& src) {
    m.begin_instruction(1);
    STERNA_ASSIGN(Operand s, m.read_any(src, "src"));
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    return copy_elements(m, d, s);
  }
  /// An [8, cols] tensor in HBM whose row r holds r.
  View numbered(int64_t cols) {
    const View v = make({8, cols}, DType::kFloat32, Memory::kHbm);
    for (int64_t r = 0; r < 8; ++r) fill(part(v, r, r + 1, 0, cols), static_cast<float>(r));
    return v;
  }
  Floats first_column(const View& v) {
    const Floats all = values(v);
    Floats out;
    for (int64_t r = 0; r < v.rows(); ++r) out.push_back(all[static_cast<size_t>(r * v.cols())]);
    return out;
  }
};

TEST_F(OverlapTest, GatherReadsRowsOfTheTensorItWrites) {
  const View t = numbered(4);
  ASSERT_TRUE(copy(m_, part(t, 4, 8, 0, 4), rows_at(t, {7, 6, 5, 4})));
  EXPECT_EQ(first_column(t), (Floats{0, 1, 2, 3, 7, 6, 5, 4}));
}

TEST_F(OverlapTest, ScatterWritesRowsOfTheTensorItReads) {
  const View t = numbered(4);
  ASSERT_TRUE(copy(m_, rows_at(t, {7, 6, 5, 4}), part(t, 4, 8, 0, 4)));
  EXPECT_EQ(first_column(t), (Floats{0, 1, 2, 3, 7, 6, 5, 4}));
}

TEST_F(OverlapTest, GatherAndScatterInOneTensor) {
  const View t = numbered(4);
  ASSERT_TRUE(copy(m_, rows_at(t, {1, 2, 0}), rows_at(t, {0, 1, 2})));
  EXPECT_EQ(first_column(t), (Floats{2, 0, 1, 3, 4, 5, 6, 7}));
}

TEST_F(OverlapTest, RowsAgainstTheOrderOfMemory) {
  const View t = make({16}, DType::kFloat32, Memory::kHbm);
  ramp(t);
  ASSERT_TRUE(copy(m_, strided(t, 1, {{1, 8}}), strided(t, 7, {{-1, 8}})));
  EXPECT_EQ(values(t), (Floats{0, 7, 6, 5, 4, 3, 2, 1, 0, 9, 10, 11, 12, 13, 14, 15}));
  ramp(t);
  ASSERT_TRUE(copy(m_, strided(t, 9, {{-2, 3}, {1, 2}}), strided(t, 4, {{2, 3}, {1, 2}})));
  // Row r of the source, elements 4+2r and 5+2r, goes to 9-2r and 10-2r.
  EXPECT_EQ(values(t), (Floats{0, 1, 2, 3, 4, 8, 9, 6, 7, 4, 5, 11, 12, 13, 14, 15}));
}

TEST_F(OverlapTest, ScalarsOfAPlacedTensorAreReadFirst) {
  // Rows 63..94 and rows 64..95 of one memory: every write but the last overwrites the next row's value.
  const View big = placed({96, 8}, 0, 0);
  ASSERT_TRUE(m_.allocate(big.tensor));
  ramp(big);
  m_.begin_instruction(1);
  float buffer[kMaxPartitions];
  auto scalars = m_.read_scalar(Scalar::of(part(big, 63, 95, 0, 1)), 32, buffer, "operand0");
  ASSERT_TRUE(scalars);
  auto d = m_.open(part(big, 64, 96, 0, 8), "dst");
  ASSERT_TRUE(d);
  const Machine::Values kept = kept_apart(*d, *scalars, 32, buffer);
  fill(part(big, 64, 96, 0, 8), -1);
  for (int64_t r = 0; r < 32; ++r) EXPECT_EQ(kept.data[r * kept.pitch], static_cast<float>((63 + r) * 8));
}

TEST_F(OverlapTest, RowsThatMayMeetAreKnown) {
  const View hbm = make({64}, DType::kFloat32, Memory::kHbm), tile = make({4, 8});
  const auto meet = [&](const View& v) {
    m_.begin_instruction(1);
    return rows_may_meet(*m_.open(v, "dst"));
  };
  EXPECT_TRUE(meet(rows_at(numbered(4), {0, 1})));
  EXPECT_TRUE(meet(strided(hbm, 0, {{4, 3}, {1, 5}})));
  EXPECT_FALSE(meet(strided(hbm, 0, {{4, 3}, {1, 4}})));
  EXPECT_TRUE(meet(strided(hbm, 20, {{-4, 3}, {1, 5}})));
  EXPECT_FALSE(meet(strided(hbm, 20, {{-4, 3}, {-1, 4}})));
  EXPECT_TRUE(meet(strided(hbm, 0, {{0, 3}, {1, 4}})));
  EXPECT_FALSE(meet(strided(hbm, 0, {{0, 1}, {1, 4}})));
  EXPECT_FALSE(meet(tile));
}

TEST_F(OverlapTest, TheLastOfSeveralWritersWins) {
  ThreadPool pool(4);
  Machine m(options(), &pool, &tensors_, &dynamics_);
  const uint32_t from = add({128, 2048}), to = add({4, 2048}, DType::kFloat32, Memory::kHbm),
                 line = add({127 * 512 + 2048}, DType::kFloat32, Memory::kHbm), indices = add({128, 1}, DType::kInt32);
  for (uint32_t id : {from, to, line, indices}) ASSERT_TRUE(m.allocate(id));
  auto s = m.write(whole_view(from, tensors_[from]), "src");
  auto i = m.write(whole_view(indices, tensors_[indices]), "index");
  for (int64_t r = 0; r < 128; ++r) {
    const Floats row(2048, static_cast<float>(r));
    store_row(*s, r, 0, 2048, row.data());
    const auto index = static_cast<uint32_t>(r % 4);
    store_bits(*i, r, 0, 1, &index);
  }
  View scattered = whole_view(to, tensors_[to]);
  scattered.kind = ViewKind::kIndirect;
  scattered.dims[0].count = 128;
  dynamics_.push_back({DynamicOffset::Source::kTensor, 0, whole_view(indices, tensors_[indices]), 2048, 4});
  scattered.dynamic = static_cast<uint32_t>(dynamics_.size() - 1);
  const View steps = strided(whole_view(line, tensors_[line]), 0, {{512, 128}, {1, 2048}});
  for (int round = 0; round < 60; ++round) {
    ASSERT_TRUE(copy(m, scattered, whole_view(from, tensors_[from])));
    auto t = m.read_any(whole_view(to, tensors_[to]), "dst");
    Floats row(2048);
    for (int64_t r = 0; r < 4; ++r) {
      load_row(*t, r, 0, 2048, row.data());
      ASSERT_EQ(row, Floats(2048, static_cast<float>(124 + r))) << "round " << round << ", row " << r;
    }
    ASSERT_TRUE(copy(m, steps, whole_view(from, tensors_[from])));
    auto l = m.read_any(whole_view(line, tensors_[line]), "dst");
    const auto* got = reinterpret_cast<const float*>(l->base);
    for (int64_t at = 0; at < 127 * 512; ++at)
      ASSERT_EQ(got[at], static_cast<float>(at / 512)) << "round " << round << ", element " << at;
  }
}

TEST_F(OverlapTest, IntegersAreCopiedExactlyWithSaturation) {
  struct Case {
    DType from, to;
    std::vector<uint32_t> in, out;
  };
  const auto u = [](int64_t x) { return static_cast<uint32_t>(x); };
  const std::vector<Case> cases = {
      {DType::kInt32, DType::kUInt32, {16777217, u(-5), 2147483647}, {16777217, 0, 2147483647}},
      {DType::kUInt32, DType::kInt32, {16777217, 4294967295u, 2147483648u}, {16777217, 2147483647, 2147483647}},
      {DType::kInt32, DType::kInt8, {300, u(-300), u(-128)}, {127, u(-128), u(-128)}},
      {DType::kInt32, DType::kUInt8, {300, u(-300), 255}, {255, 0, 255}},
      {DType::kInt32, DType::kInt16, {70000, u(-70000), 5}, {32767, u(-32768), 5}},
      {DType::kInt32, DType::kUInt16, {70000, u(-1), 5}, {65535, 0, 5}},
      {DType::kInt8, DType::kUInt32, {u(-1), 127, u(-128)}, {0, 127, 0}},
      {DType::kInt8, DType::kInt32, {u(-1), 127, u(-128)}, {u(-1), 127, u(-128)}},
      {DType::kUInt8, DType::kInt8, {200, 127, 0}, {127, 127, 0}},
      {DType::kInt16, DType::kBool, {256, 0, u(-1)}, {1, 0, 1}},
      {DType::kBool, DType::kInt32, {1, 0, 1}, {1, 0, 1}}};
  for (const Case& c : cases)
    for (Memory memory : {Memory::kHbm, Memory::kSbuf}) {
      const View src = make({2, 3}, c.from, memory), dst = make({2, 3}, c.to);
      auto o = m_.write(src, "test");
      for (int64_t r = 0; r < 2; ++r) store_bits(*o, r, 0, 3, c.in.data());
      ASSERT_TRUE(copy(m_, dst, src));
      auto d = m_.read(dst, "test");
      std::vector<uint32_t> got(3);
      load_bits(*d, 1, 0, 3, got.data());
      EXPECT_EQ(got, c.out) << name(c.from) << " to " << name(c.to);
    }
}

}  // namespace
}  // namespace sterna
