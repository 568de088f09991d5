// SPDX-License-Identifier: Apache-2.0
#include "sterna/machine/machine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "sterna/machine/test_fixture.h"

namespace sterna {
namespace {

TEST_F(MachineTest, UndefinedReadsNameTensorPlaceAndRemedy) {
  const View v = make({4, 8});
  fill(part(v, 0, 4, 0, 5), 1);
  EXPECT_TRUE(m_.read(part(v, 0, 4, 0, 5), "data"));
  const auto r = m_.read(part(v, 1, 4, 2, 8), "data");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().rule, "UNINIT1");
  for (const char* text : {"'data'", "[4, 8]", "float32", "partition 1", "element 5", "memset"})
    EXPECT_NE(r.error().message.find(text), std::string::npos) << r.error().message;
  const View h = make({3, 4, 5}, DType::kBFloat16, Memory::kHbm);
  const auto s = m_.read(h, "src");
  ASSERT_FALSE(s);
  EXPECT_NE(s.error().message.find("index [0, 0, 0]"), std::string::npos) << s.error().message;
}

TEST_F(MachineTest, FillPolicyGivesTheFillValueAndKeepsWhatIsDefined) {
  Machine::Options o = options();
  o.uninit = UninitPolicy::kWarn;
  Machine m(o, &pool_, &tensors_, &dynamics_);
  const uint32_t f = add({2, 3}), i = add({1, 2}, DType::kInt16);
  ASSERT_TRUE(m.allocate(f));
  ASSERT_TRUE(m.allocate(i));
  const View vf = whole_view(f, tensors_[f]), vi = whole_view(i, tensors_[i]);
  const float seven = 7;
  auto w = m.write(part(vf, 1, 2, 1, 2), "test");
  store_row(*w, 0, 0, 1, &seven);
  auto r = m.read(vf, "data");
  ASSERT_TRUE(r);
  float row[3];
  load_row(*r, 1, 0, 3, row);
  EXPECT_TRUE(std::isnan(row[0]));
  EXPECT_EQ(row[1], 7);
  EXPECT_TRUE(std::isnan(row[2]));
  auto q = m.read(vi, "data");
  load_row(*q, 0, 0, 1, row);
  EXPECT_EQ(row[0], 4);
  ASSERT_EQ(m.warnings().size(), 1u);  // one for each rule and site
  EXPECT_EQ(m.warnings()[0].rule, "UNINIT1");
}

TEST_F(MachineTest, PlacedTensorsAliasByAddress) {
  const View a = placed({4, 16}, 2, 64), b = placed({2, 8}, 3, 64 + 32), c = placed({4, 8}, 2, 256);
  for (const View& v : {a, b, c}) ASSERT_TRUE(m_.allocate(v.tensor));
  fill(a, 1);
  EXPECT_EQ(first(b), 1);  // partition 3, bytes 96..128: a's partition 1, elements 8..16
  EXPECT_TRUE(m_.is_defined(b));
  EXPECT_FALSE(m_.is_defined(c));
  fill(b, 5);
  EXPECT_EQ(first(part(a, 1, 2, 8, 9)), 5);
  EXPECT_EQ(first(part(a, 1, 2, 7, 8)), 1);
  EXPECT_EQ(first(part(a, 3, 4, 8, 9)), 1);
  ASSERT_TRUE(m_.allocate(b.tensor));  // again: its bytes are undefined, in a too
  EXPECT_FALSE(m_.is_defined(a));
  EXPECT_TRUE(m_.is_defined(part(a, 0, 1, 0, 16)));
  EXPECT_TRUE(m_.is_defined(part(a, 1, 2, 0, 8)));
  const auto r = m_.read(a, "data");
  EXPECT_NE(r.error().message.find("partition 1, byte 32"), std::string::npos) << r.error().message;
  EXPECT_EQ(rule_of(m_.allocate(placed({4, 16}, 126, 0).tensor)), "ADDR1");
  EXPECT_EQ(rule_of(m_.allocate(placed({4, 16}, 0, 4096 - 32).tensor)), "ADDR1");
}

TEST_F(MachineTest, BoundParametersAreBorrowedAndGuarded) {
  float data[6] = {0, 1, 2, 3, 4, 5};
  const uint32_t id = add({2, 3}, DType::kFloat32, Memory::kHbm);
  ASSERT_TRUE(m_.bind(id, data, true));
  const View v = whole_view(id, tensors_[id]);
  EXPECT_TRUE(m_.is_defined(v));
  fill(part(v, 1, 2, 0, 3), 9);
  EXPECT_EQ(data[4], 9);
  ASSERT_TRUE(m_.bind(id, data, false));
  EXPECT_EQ(rule_of(m_.write(v, "dst")), "ARG1");
  EXPECT_FALSE(m_.storage(id).written);
}

TEST_F(MachineTest, StorageComesAndGoes) {
  const View v = make({2, 3});
  fill(v, 1);
  m_.release(v.tensor);
  EXPECT_EQ(rule_of(m_.read(v, "data")), "MEM2");
  ASSERT_TRUE(m_.allocate(v.tensor));
  EXPECT_FALSE(m_.is_defined(v));
  const View h = make({4}, DType::kInt32, Memory::kHbm);
  fill(h, 3);
  const auto bytes = m_.take(h.tensor);
  ASSERT_TRUE(static_cast<bool>(bytes));
  int32_t got[4];
  std::memcpy(got, bytes.data(), 16);
  EXPECT_EQ(got[3], 3);
}

TEST_F(MachineTest, DefinednessOfViewsAgreesWithOneFlagAnElement) {
  std::mt19937 random(11);
  auto below = [&](int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); };
  for (Memory memory : {Memory::kSbuf, Memory::kHbm})
    for (int round = 0; round < 30; ++round) {
      const Shape shape = {1 + below(5), 1 + below(5), 1 + below(7)};
      const View v = make(shape, round % 2 ? DType::kBFloat16 : DType::kFloat32, memory);
      const View dst = make(shape, DType::kFloat32, memory == Memory::kHbm ? Memory::kSbuf : Memory::kHbm);
      std::vector<bool> flags(static_cast<size_t>(v.elements()), false);
      for (int step = 0; step < 12; ++step) {
        std::vector<IndexItem> items;
        for (int64_t size : shape) {
          const int64_t start = below(size);
          items.push_back({IndexItem::Kind::kSlice, start, start + 1 + below(size - start), 1 + below(2)});
        }
        const View some = *index_view(v, items);
        size_t e = 0;
        bool all = true;
        for (int64_t i = 0; i < shape[0]; ++i)
          for (int64_t j = 0; j < shape[1]; ++j)
            for (int64_t k = 0; k < shape[2]; ++k, ++e) {
              const int64_t index[3] = {i, j, k};
              bool inside = true;
              for (size_t d = 0; d < 3; ++d)
                inside = inside && index[d] >= items[d].start && index[d] < items[d].stop &&
                         (index[d] - items[d].start) % items[d].step == 0;
              if (!inside) continue;
              all = all && flags[e];
              if (step % 3 != 2) flags[e] = true;
            }
        ASSERT_EQ(m_.is_defined(some), all);
        if (step % 3 != 2) m_.mark_defined(some);
        const auto states = m_.element_states(v);
        for (size_t i = 0; i < flags.size(); ++i)
          ASSERT_EQ(states[i] == ElementState::kDefined, flags[i]) << "element " << i;
      }
      m_.copy_definedness(dst, v);
      const auto states = m_.element_states(dst);
      for (size_t i = 0; i < flags.size(); ++i) ASSERT_EQ(states[i] == ElementState::kDefined, flags[i]);
    }
}

TEST_F(MachineTest, CopyElementsAgreesWithElementByElement) {
  std::mt19937 random(5);
  auto below = [&](int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); };
  for (int round = 0; round < 100; ++round) {
    const View t = make({6, 40});
    auto whole = m_.write(t, "test");
    std::vector<float> before(240);
    for (size_t i = 0; i < 240; ++i) before[i] = static_cast<float>(i);
    for (int64_t r = 0; r < 6; ++r) store_row(*whole, r, 0, 40, before.data() + r * 40);
    const int64_t rows = 1 + below(4), cols = 1 + below(18), step = 1 + below(2), step2 = 1 + below(2);
    const int64_t r0 = below(7 - rows), r1 = below(7 - rows), c0 = below(41 - cols * 2), c1 = below(41 - cols * 2);
    const View dst = part(t, r0, r0 + rows, c0, c0 + (cols - 1) * step + 1, step),
               src = part(t, r1, r1 + rows, c1, c1 + (cols - 1) * step2 + 1, step2);
    std::vector<float> want = before;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c)
        want[static_cast<size_t>((r0 + r) * 40 + c0 + c * step)] =
            before[static_cast<size_t>((r1 + r) * 40 + c1 + c * step2)];
    auto s = m_.read_any(src, "src");
    auto d = m_.open(dst, "dst");
    ASSERT_TRUE(copy_elements(m_, *d, *s));
    std::vector<float> got(240);
    for (int64_t r = 0; r < 6; ++r) load_row(*whole, r, 0, 40, got.data() + r * 40);
    ASSERT_EQ(got, want) << "round " << round;
  }
}

TEST_F(MachineTest, ByMatmulIsForgottenWhenSomethingElseWrites) {
  const View p = make({2, 8}, DType::kFloat32, Memory::kPsum);
  bool mixed = true;
  EXPECT_FALSE(m_.by_matmul(p, &mixed));
  EXPECT_FALSE(mixed);
  m_.mark_matmul_result(p);
  EXPECT_TRUE(m_.by_matmul(p, &mixed));
  m_.mark_defined(part(p, 1, 2, 0, 4));
  EXPECT_FALSE(m_.by_matmul(p, &mixed));
  EXPECT_TRUE(mixed);
  EXPECT_TRUE(m_.by_matmul(part(p, 0, 1, 0, 8), &mixed));
  EXPECT_FALSE(m_.by_matmul(part(p, 1, 2, 0, 4), &mixed));
  EXPECT_FALSE(mixed);
}

TEST_F(MachineTest, TilesThatTakeTurnsInOnePlaceEachHaveAFirstWrite) {
  // Two tiles are allocated at one address before either is written, as kernels do that place their PSUM themselves.
  const View a = placed({4, 8}, 0, 32, DType::kFloat32, Memory::kPsum);
  const View b = placed({2, 8}, 0, 32, DType::kFloat32, Memory::kPsum);
  ASSERT_TRUE(m_.allocate(a.tensor) && m_.allocate(b.tensor));
  bool mixed = true;
  m_.mark_matmul_result(a);
  EXPECT_TRUE(m_.by_matmul(a, &mixed)) << "the second write to a tile accumulates";
  EXPECT_FALSE(m_.by_matmul(b, &mixed)) << "the first write to another tile in its place overwrites";
  EXPECT_FALSE(mixed);
  m_.mark_matmul_result(b);
  EXPECT_TRUE(m_.by_matmul(b, &mixed));
  EXPECT_FALSE(m_.by_matmul(a, &mixed)) << "b lies over two rows of a";
  EXPECT_TRUE(mixed);
  EXPECT_TRUE(m_.by_matmul(part(a, 2, 4, 0, 8), &mixed));
  m_.mark_defined(a);
  EXPECT_FALSE(m_.by_matmul(b, &mixed)) << "a copy into a is a write over b as well";
}

TEST_F(MachineTest, MarkElementsSetsClearsAndKeeps) {
  const View v = make({2, 3});
  fill(part(v, 0, 1, 0, 3), 1);
  using E = ElementState;
  m_.mark_elements(v, {E::kKeep, E::kUndefined, E::kDefined, E::kKeep, E::kUndefined, E::kDefined});
  EXPECT_EQ(m_.element_states(v),
            (std::vector<E>{E::kDefined, E::kUndefined, E::kDefined, E::kUndefined, E::kUndefined, E::kDefined}));
  EXPECT_TRUE(m_.has_element_states(v));
  m_.mark_elements(v, std::vector<E>(6, E::kDefined));
  EXPECT_FALSE(m_.has_element_states(v));
  EXPECT_TRUE(m_.element_states_if_partial(v).empty());
}

TEST_F(MachineTest, IndicesComeRowByRowOrColumnByColumn) {
  const View v = make({2, 3}, DType::kInt32);
  auto o = m_.write(v, "test");
  const uint32_t words[6] = {0, 1, 2, 10, 11, static_cast<uint32_t>(-12)};
  store_bits(*o, 0, 0, 3, words);
  store_bits(*o, 1, 0, 3, words + 3);
  const DynamicOffset d{DynamicOffset::Source::kTensor, 0, v, 1, 100};
  std::vector<int64_t> rows(6), columns(5);
  ASSERT_TRUE(m_.read_indices(d, Machine::IndexOrder::kRows, rows));
  ASSERT_TRUE(m_.read_indices(d, Machine::IndexOrder::kColumns, columns));
  EXPECT_EQ(rows, (std::vector<int64_t>{0, 1, 2, 10, 11, -12}));
  EXPECT_EQ(columns, (std::vector<int64_t>{0, 10, 1, 11, 2}));
  std::vector<int64_t> many(7);
  EXPECT_EQ(rule_of(m_.read_indices(d, Machine::IndexOrder::kRows, many)), "DYN3");
  EXPECT_EQ(*m_.read_index(d, 4), 11);
  m_.set_reg(9, -5);
  EXPECT_EQ(*m_.read_index({DynamicOffset::Source::kRegister, 9, {}, 1, 0}, 0), -5);
  EXPECT_EQ(rule_of(m_.read_reg(1000)), "UNINIT2");
  EXPECT_EQ(rule_of(m_.read_reg(3)), "UNINIT2");
}

TEST_F(MachineTest, SnapshotsKeepBits) {
  const View v = make({1, 8}, DType::kInt32);
  auto o = m_.write(v, "test");
  uint32_t words[8] = {16777217, 2, 3, 4, 5, 6, 7, 8};
  store_bits(*o, 0, 0, 8, words);
  auto dst = m_.open(part(v, 0, 1, 1, 4), "dst");
  Operand src = *m_.read(part(v, 0, 1, 0, 3), "src");
  Snapshot snapshot;
  EXPECT_TRUE(snapshot.take(*dst, src));
  words[0] = 0;
  store_bits(*o, 0, 0, 8, words);
  uint32_t got;
  load_bits(src, 0, 0, 1, &got);
  EXPECT_EQ(got, 16777217u);
  Operand apart = *m_.read(part(v, 0, 1, 4, 7), "src");
  Snapshot none;
  EXPECT_FALSE(none.take(*dst, apart));
}

}  // namespace
}  // namespace sterna
