// SPDX-License-Identifier: Apache-2.0
// Instructions on a made-up chip with more partitions than any real one: nothing may assume 128.
#include "sterna/hardware/loader.h"
#include "sterna/isa/scalar.h"
#include "sterna/isa/test_fixture.h"
#include "sterna/isa/vector.h"

namespace sterna {
namespace {

class WideChipTest : public IsaTest {
 protected:
  static constexpr int64_t kRows = kMaxPartitions;
  void SetUp() override {
    const std::string count = "partitions = { value = " + std::to_string(kRows) +
                              ", unit = \"count\", source = \"x\", trust = \"assumed\" }\n";
    auto chip = load_chip_text("name = \"wide\"\ntitle = \"Wide\"\ninherits = \"trn2\"\n[sbuf]\n" + count +
                                   "[limits]\n" + count + "[sources]\nx = \"a test\"\n",
                               "wide.toml", {"hardware"});
    ASSERT_TRUE(chip) << chip.error().text();
    chip_ = std::move(*chip);
    column_ = with({kRows, 1}, ramp(kRows), kBf16);  // not fp32, so that it goes through a buffer
    data_ = with({kRows, 4}, ramp(kRows * 4, 0, 0.25f));
  }
  View column_, data_;
};

TEST_F(WideChipTest, OneValueForEachPartition) {
  const View d = make({kRows, 4}), sums = make({kRows, 1});
  const Values column = get(column_), data = get(data_);
  EXPECT_RUNS((vector_engine::TensorScalar{d, data_, AluOp::kAdd, Scalar::of(column_)}));
  for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(get(d)[i], data[i] + column[i / 4]);
  scalar_engine::Activation a{d, Function::kCopy, data_, Scalar::of(column_)};
  a.reduce_op = AluOp::kAdd;
  a.reduce_cmd = ReduceCmd::kResetReduce;
  a.reduce_res = sums;
  EXPECT_RUNS(a);
  const Values got = get(sums), out = get(d);
  for (size_t r = 0; r < kRows; ++r) {
    ASSERT_EQ(out[4 * r], data[4 * r] + column[r]);
    ASSERT_EQ(got[r], ordered(AluOp::kAdd, out.data() + 4 * r, 4));
  }
}

TEST_F(WideChipTest, ReductionsAndAccumulators) {
  const View d = make({kRows, 4}), sums = make({kRows, 1});
  const Values data = get(data_);
  EXPECT_RUNS((vector_engine::TensorReduce{sums, AluOp::kAdd, data_, {1, {1}}}));
  for (size_t r = 0; r < kRows; ++r) ASSERT_EQ(get(sums)[r], ordered(AluOp::kAdd, data.data() + 4 * r, 4));
  vector_engine::TensorScalarReduce i{d, data_, AluOp::kAdd, Scalar::of(column_)};
  i.reduce_op = AluOp::kMaximum;
  i.reduce_cmd = ReduceCmd::kResetReduce;
  i.reduce_res = sums;
  EXPECT_RUNS(i);
  for (size_t r = 0; r < kRows; ++r) ASSERT_EQ(get(sums)[r], get(d)[4 * r + 3]);
}

}  // namespace
}  // namespace sterna
