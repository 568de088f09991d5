// SPDX-License-Identifier: Apache-2.0
// Views with .indirect(): columns found by an index tensor, as every instruction's cursor sees them.
#include "sterna/isa/scalar.h"
#include "sterna/isa/test_fixture.h"
#include "sterna/isa/vector.h"

namespace sterna {
namespace {

using vector_engine::TensorCopy;
using vector_engine::TensorReduce;

class IndirectColumns : public IsaTest {
 protected:
  static constexpr int32_t kGroup = 16;

  void SetUp() override { use_chip("trn3"); }
  /// v's columns at `index`, as NkiTensor.indirect makes them.
  View columns(const View& v, const View& index, int64_t count) {
    View out = v;
    out.kind = ViewKind::kIndirect;
    out.dims[1] = {1, static_cast<int32_t>(count)};
    dynamics_.push_back({DynamicOffset::Source::kTensor, 0, index, v.dims[1].stride, v.dims[1].count, kGroup});
    out.dynamic = static_cast<uint32_t>(dynamics_.size() - 1);
    return out;
  }
  /// 64 x 3 random places below `limit`; place(r, i) is the i-th of row r.
  View places(uint32_t limit) {
    index_.resize(64 * 3);
    for (uint32_t& i : index_) i = static_cast<uint32_t>(generator_() % limit);
    return with_bits({64, 3}, index_, DType::kUInt16);
  }
  size_t place(size_t r, size_t i) const { return index_[(r - r % kGroup + i % kGroup) * 3 + i / kGroup]; }

  Words index_;
};

TEST_F(IndirectColumns, GatherReadsEachGroupsOwnListInSnakeOrder) {
  for (const DType type : {kF32, kBf16, kI32}) {
    const Values x = ramp(64 * 100);
    const View src = with({64, 100}, x, type), d = make({64, 45}, type);
    const Values held = get(src);
    EXPECT_RUNS((TensorCopy{d, columns(src, places(100), 45)}));
    const Values got = get(d);
    for (size_t r = 0; r < 64; ++r)
      for (size_t i = 0; i < 45; ++i) ASSERT_EQ(got[r * 45 + i], held[r * 100 + place(r, i)]) << r << " " << i;
  }
}

TEST_F(IndirectColumns, PlacesMoveByTheStrideOfTheView) {
  const Values x = ramp(64 * 100);
  View src = part(with({64, 100}, x), 0, 64, 1, 100);
  const IndexItem items[2] = {{IndexItem::Kind::kSlice, 0, 64, 1}, {IndexItem::Kind::kSlice, 0, 99, 3}};
  src = *index_view(src, items);  // columns 1, 4, 7, ...: 33 of them
  const View d = make({64, 20});
  EXPECT_RUNS((TensorCopy{d, columns(src, places(33), 20)}));
  const Values got = get(d);
  for (size_t r = 0; r < 64; ++r)
    for (size_t i = 0; i < 20; ++i) ASSERT_EQ(got[r * 20 + i], x[r * 100 + 1 + 3 * place(r, i)]);
}

TEST_F(IndirectColumns, ReductionsTakeThemInTheOrderOfTheList) {
  const Values x = random(64 * 100);
  const View src = with({64, 100}, x), d = make({64, 1});
  TensorReduce i{d, AluOp::kAdd, columns(src, places(100), 48)};
  i.axis = {1, {1}};
  EXPECT_RUNS(i);
  const Values got = get(d);
  for (size_t r = 0; r < 64; ++r) {
    Values row(48);
    for (size_t k = 0; k < 48; ++k) row[k] = x[r * 100 + place(r, k)];
    EXPECT_EQ(got[r], ordered(AluOp::kAdd, row.data(), 48));
  }
}

TEST_F(IndirectColumns, ScatterDefinesWhatItWritesAndNothingElse) {
  const View index = with_bits({32, 1}, Words(32, 0), DType::kUInt32), d = make({32, 4});
  auto o = m_.write(index, "test");
  for (uint32_t r = 0; r < 32; ++r) {
    const uint32_t at = r < 16 ? 2 : 3;
    store_bits(*o, r, 0, 1, &at);
  }
  EXPECT_RUNS((TensorCopy{columns(d, index, 1), with({32, 1}, ramp(32))}));
  const auto is = defined(d);
  for (size_t r = 0; r < 32; ++r)
    for (size_t c = 0; c < 4; ++c) EXPECT_EQ(is[r * 4 + c], c == (r < 16 ? 2 : 3)) << r << " " << c;
  EXPECT_RUNS((scalar_engine::Activation{make({32, 1}), Function::kSquare, columns(d, index, 1)}));
  EXPECT_REFUSED("UNINIT1", (scalar_engine::Activation{make({32, 4}), Function::kSquare, d}));
}

TEST_F(IndirectColumns, FaultsOfTheIndex) {
  const View x = with({32, 8}, Values(32 * 8, 1)), d = make({32, 2});
  EXPECT_REFUSED("DYN1", (TensorCopy{d, columns(x, with_bits({32, 1}, Words(32, 8), kU32), 2)}));
  EXPECT_REFUSED("UNINIT1", (TensorCopy{d, columns(x, make({32, 1}, kU32), 2)}));
  // Of an index that is defined in part only what is used counts: two numbers of each group.
  const View partial = make({32, 1}, kU32);
  for (const int64_t r : {0, 16}) set(part(partial, r, r + 2, 0, 1), {0, 7});
  EXPECT_RUNS((TensorCopy{d, columns(x, partial, 2)}));
}

TEST_F(IndirectColumns, WorkIsDynamicAndNotContiguous) {
  const Work w = work(TensorCopy{make({64, 45}), columns(with({64, 100}, ramp(6400)), places(100), 45)});
  EXPECT_TRUE(w.dynamic);
  EXPECT_FALSE(w.contiguous);
  EXPECT_EQ(w.elements, 45);
}

}  // namespace
}  // namespace sterna
