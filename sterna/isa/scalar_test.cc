// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/scalar.h"

#include <cmath>

#include "sterna/isa/test_fixture.h"

namespace sterna::scalar_engine {
namespace {

class ScalarEngine : public IsaTest {};

TEST_F(ScalarEngine, ActivationScalesThenAddsThenApplies) {
  const Values v = random(3 * 7);
  const View x = with({3, 7}, v), bias = with({3, 1}, {0.5, -1, 2}), scale = with({3, 1}, {1, 2, -0.5}),
             d = make({3, 7});
  for (Function f : {Function::kExp, Function::kTanh, Function::kSquare, Function::kCopy, Function::kRelu}) {
    EXPECT_RUNS((Activation{d, f, x, Scalar::of(bias), Scalar::of(scale)}));
    for (size_t i = 0; i < v.size(); ++i) {
      const float scaled = v[i] * get(scale)[i / 7];
      EXPECT_EQ(get(d)[i], evaluate(f, scaled + get(bias)[i / 7])) << name(f);
    }
  }
}

TEST_F(ScalarEngine, ActivationConvertsAndTakesImmediates) {
  const View x = with({2, 2}, {1, 2, 3, 4}, DType::kInt32), d = make({2, 2}, kBf16);
  EXPECT_RUNS((Activation{d, Function::kCopy, x, Scalar::of(0.25), Scalar::of(2.0)}));
  EXPECT_EQ(get(d), (Values{2.25, 4.25, 6.25, 8.25}));
}

TEST_F(ScalarEngine, ActivationAccumulatesAsTheCommandSays) {
  const View x = with({2, 3}, {1, 2, 3, 4, 5, 6}), d = make({2, 3}), res = make({2, 1});
  Activation i{d, Function::kCopy, x};
  i.reduce_op = AluOp::kAdd;
  i.reduce_res = res;
  i.reduce_cmd = ReduceCmd::kResetReduce;
  EXPECT_RUNS(i);
  EXPECT_EQ(get(res), (Values{6, 15}));
  i.reduce_cmd = ReduceCmd::kReduce;
  EXPECT_RUNS(i);
  EXPECT_EQ(get(res), (Values{12, 30}));
  i.reduce_cmd = ReduceCmd::kIdle;
  EXPECT_RUNS(i);
  EXPECT_EQ(get(res), (Values{12, 30}));
  i.reduce_cmd = ReduceCmd::kReset;
  EXPECT_RUNS(i);
  EXPECT_EQ(get(res), (Values{0, 0}));
  EXPECT_TRUE(work(i).accumulator_read);
  EXPECT_EQ(m_.vector_accumulator()[0], 0.0f);  // the vector engine has its own
}

// "128 registers ... corresponding to the 128 partitions of the input" (nki.isa.activation_reduce).
TEST_F(ScalarEngine, AnAccumulatorBelongsToAPartitionOfTheInput) {
  const View x = with({4, 3}, ramp(12)), d = make({4, 3}), two = make({2, 1}), four = make({4, 1});
  Activation i{part(d, 0, 2, 0, 3), Function::kCopy, part(x, 0, 2, 0, 3)};
  i.reduce_op = AluOp::kAdd;
  i.reduce_cmd = ReduceCmd::kResetReduce;
  EXPECT_RUNS(i);
  i.dst = part(d, 0, 2, 0, 3);  // the result may go elsewhere
  i.data = part(x, 2, 4, 0, 3);
  i.reduce_res = two;
  EXPECT_RUNS(i);
  const Values sums = get(two);
  i = {d, Function::kCopy, x};
  i.reduce_cmd = ReduceCmd::kIdle;
  i.reduce_res = four;
  EXPECT_RUNS(i);
  const Values all = get(four), elements = get(x);
  for (size_t row = 0; row < 4; ++row)
    EXPECT_EQ(all[row], elements[3 * row] + elements[3 * row + 1] + elements[3 * row + 2]) << row;
  EXPECT_EQ(sums, (Values{all[2], all[3]}));
}

TEST_F(ScalarEngine, ASumOfNothingIsZero) {
  const View x = with({2, 3}, ramp(6)), d = make({2, 3}), res = make({2, 1});
  EXPECT_RUNS((ActivationReduce{d, Function::kCopy, x, AluOp::kAdd, View{}}));
  EXPECT_RUNS((ActivationReduce{part(d, 0, 2, 1, 1), Function::kCopy, part(x, 0, 2, 1, 1), AluOp::kAdd, res}));
  EXPECT_EQ(get(res), (Values{0, 0}));
}

TEST_F(ScalarEngine, BiasAndScaleOfTheFirstChips) {
  const View x = with({2, 3}, ramp(6)), d = make({2, 3}), column = with({2, 1}, {1, 2});
  chip_.features.activation_bias_immediate = {};
  chip_.features.reciprocal_bias = {};
  EXPECT_RUNS((Activation{d, Function::kExp, x}));
  EXPECT_RUNS((Activation{d, Function::kExp, x, Scalar::of(column)}));
  EXPECT_REFUSED("ACT5", (Activation{d, Function::kExp, x, Scalar::of(1.0)}));
  EXPECT_REFUSED("ACT6", (Activation{d, Function::kReciprocal, x, Scalar::of(column)}));
  const View half = with({2, 1}, {1, 2}, kBf16);
  EXPECT_RUNS((Activation{d, Function::kExp, x, Scalar::of(half)}));
  EXPECT_RUNS((Activation{d, Function::kExp, x, Scalar::of(0.0), Scalar::of(half)}));
  EXPECT_TRUE(warned("ACT7"));
}

TEST_F(ScalarEngine, ActivationReadsItsColumnsBeforeItWritesThem) {
  const View t = with({2, 3}, {2, 10, 20, 3, 30, 40});
  EXPECT_RUNS((Activation{t, Function::kCopy, t, Scalar::of(part(t, 0, 2, 1, 2)), Scalar::of(part(t, 0, 2, 0, 1))}));
  EXPECT_EQ(get(t), (Values{14, 30, 50, 39, 120, 150}));
}

TEST_F(ScalarEngine, ReduceResMayLieInDst) {
  const View t = make({2, 4}), x = with({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_RUNS((ActivationReduce{part(t, 0, 2, 0, 3), Function::kCopy, x, AluOp::kAdd, part(t, 0, 2, 2, 3)}));
  EXPECT_EQ(get(part(t, 0, 2, 0, 3)), (Values{1, 2, 6, 4, 5, 15}));
}

TEST_F(ScalarEngine, ActivationReduceSumsInTheOrderOfTheEngine) {
  const Values v = random(2 * 100);
  const View x = with({2, 100}, v), d = make({2, 100}, kBf16), res = with({2, 1}, {5, 5});
  EXPECT_RUNS((ActivationReduce{d, Function::kSquare, x, AluOp::kAdd, res}));
  Values squares = v;
  for (float& s : squares) s *= s;
  for (size_t r = 0; r < 2; ++r) EXPECT_EQ(get(res)[r], 0.0f + ordered(AluOp::kAdd, squares.data() + r * 100, 100));
  EXPECT_EQ(work(ActivationReduce{d, Function::kSquare, x, AluOp::kAdd, res}).elements, 100);
}

// Source: nki.isa ("a bit-exact copy when types match", scalar engine from the second Trainium on); 16777217 is no fp32
// value.
TEST_F(ScalarEngine, PlainCopyOfEqualTypesKeepsBitsWhereTheChipDoes) {
  const Words words{16777217, 0x7fffffff, 5, 0xfffffffe};
  const View x = with_bits({2, 2}, words, kI32), d = make({2, 2}, kI32), res = make({2, 1});
  EXPECT_RUNS((Activation{d, Function::kCopy, x}));
  EXPECT_EQ(get_bits(d), words);
  const View d2 = make({2, 2}, kI32);
  EXPECT_RUNS((ActivationReduce{d2, Function::kCopy, x, AluOp::kAdd, res}));
  EXPECT_EQ(get_bits(d2), words);
  EXPECT_EQ(get(res), (Values{16777216.0f + 2147483648.0f, 3}));  // sums are of fp32 values
  const View nan = with_bits({1, 2}, {0xff91, 0x3f80}, kBf16), same = make({1, 2}, kBf16);
  EXPECT_RUNS((Activation{same, Function::kCopy, nan}));
  EXPECT_EQ(get_bits(same), (Words{0xff91, 0x3f80}));
  EXPECT_RUNS((Activation{d, Function::kCopy, x, {}, Scalar::of(2.0)}));  // not a plain copy
  EXPECT_EQ(get_bits(d), (Words{33554432, 0x7fffffff, 10, 0xfffffffc}));
  EXPECT_RUNS((Activation{d, Function::kAbs, x}));
  EXPECT_EQ(get_bits(d), (Words{16777216, 0x7fffffff, 5, 2}));
  use_chip("trn1");
  EXPECT_RUNS((Activation{d, Function::kCopy, x}));
  EXPECT_EQ(get_bits(d), (Words{16777216, 0x7fffffff, 5, 0xfffffffe}));
}

TEST_F(ScalarEngine, PlainCopyInPlaceAndShifted) {
  const View t = with_bits({1, 4}, {16777217, 2, 3, 4}, kI32);
  EXPECT_RUNS((Activation{t, Function::kCopy, t}));
  EXPECT_EQ(get_bits(t), (Words{16777217, 2, 3, 4}));
  EXPECT_RUNS((Activation{part(t, 0, 1, 1, 4), Function::kCopy, part(t, 0, 1, 0, 3)}));
  EXPECT_EQ(get_bits(t), (Words{16777217, 16777217, 2, 3}));
  EXPECT_TRUE(warned("ALIAS1"));
}

TEST_F(ScalarEngine, PreluIsRefusedSinceItsSlopeHasNoOperand) {
  const View x = with({2, 3}, ramp(6)), d = make({2, 3}), res = make({2, 1});
  EXPECT_REFUSED("ACT2", (Activation{d, Function::kPrelu, x}));
  EXPECT_REFUSED("ACT2", (ActivationReduce{d, Function::kPrelu, x, AluOp::kAdd, res}));
  EXPECT_EQ(run(Activation{d, Function::kPrelu, x}).error().kind, FaultKind::kUnknownBehaviour);
}

// "Supported Activation Functions": log is valid from 2^-64 to 2^64, rsqrt from 2^-87, sin in [-pi, pi].
TEST_F(ScalarEngine, AnInputOutsideTheDocumentedRangeIsRemarkedOnce) {
  Values v(4 * 3, 1.0f);
  v[5] = -1.0f;  // partition 1
  v[7] = 0.0f;
  const View x = with({4, 3}, v), d = make({4, 3});
  EXPECT_RUNS((Activation{d, Function::kLog, x}));
  ASSERT_EQ(m_.warnings().size(), 1u);
  EXPECT_EQ(m_.warnings()[0].rule, "ACT3");
  for (const char* piece : {"log", "-1", "partition 1"})
    EXPECT_NE(m_.warnings()[0].message.find(piece), std::string::npos) << piece << m_.warnings()[0].message;
  // What counts is the function's input: after scale and bias.
  m_.warnings().clear();
  EXPECT_RUNS((Activation{d, Function::kLog, x, Scalar::of(2.0)}));
  EXPECT_RUNS((Activation{d, Function::kSin, x, Scalar::of(2.125)}));
  EXPECT_TRUE(m_.warnings().empty());
  EXPECT_RUNS((Activation{d, Function::kSin, x, Scalar::of(2.25)}));
  EXPECT_TRUE(warned("ACT3"));
  m_.warnings().clear();
  for (Function f : {Function::kExp, Function::kCopy, Function::kTanh, Function::kSinFull})
    EXPECT_RUNS((Activation{d, f, with({4, 3}, Values(12, 1e30f))}));
  EXPECT_TRUE(m_.warnings().empty());
  // The reciprocal's range has a hole around zero.
  EXPECT_RUNS((Activation{d, Function::kReciprocal, with({4, 3}, Values(12, 0x1p-42f))}));
  EXPECT_TRUE(m_.warnings().empty());
  EXPECT_RUNS((Activation{d, Function::kReciprocal, x}));
  EXPECT_TRUE(warned("ACT3"));
}

TEST_F(ScalarEngine, TheRemarkOnTheRangeNamesTheFirstValueOnAnyNumberOfThreads) {
  const int64_t rows = 128, cols = 9000;
  Values v(static_cast<size_t>(rows * cols), 1.0f);
  for (size_t r = 3; r < 128; ++r) v[r * 9000 + 8999 - r] = -static_cast<float>(r);
  ThreadPool many{4};
  Machine m(options(), &many, &tensors_, &dynamics_);
  const View x = with({rows, cols}, v), d = make({rows, cols});
  for (uint32_t t = 0; t < tensors_.size(); ++t) ASSERT_TRUE(m.allocate(t));
  auto o = m.write(x, "test");
  for (int64_t r = 0; r < rows; ++r) store_row(*o, r, 0, cols, v.data() + r * cols);
  for (uint32_t i = 0; i < 8; ++i) {
    m.warnings().clear();
    m.begin_instruction(i);
    ASSERT_TRUE((Activation{d, Function::kSqrt, x}.execute(m)));
    ASSERT_EQ(m.warnings().size(), 1u);
    EXPECT_NE(m.warnings()[0].message.find("-3 in partition 3"), std::string::npos) << m.warnings()[0].message;
  }
}

TEST_F(ScalarEngine, Refusals) {
  const View x = with({2, 3}, ramp(6)), d = make({2, 3}), res = make({2, 1});
  EXPECT_REFUSED("ACT1", (ActivationReduce{d, Function::kExp, x, AluOp::kMaximum, res}));
  EXPECT_REFUSED("SHAPE3", (ActivationReduce{d, Function::kExp, x, AluOp::kAdd, d}));
  EXPECT_REFUSED("SHAPE3", (Activation{d, Function::kExp, x, Scalar::of(x)}));
  EXPECT_REFUSED("SHAPE2", (Activation{make({2, 4}), Function::kExp, x}));
  Activation load{d, Function::kExp, x};
  load.reduce_cmd = ReduceCmd::kLoadReduce;
  EXPECT_REFUSED("ACT4", load);
  EXPECT_REFUSED("UNINIT1", (Activation{x, Function::kExp, d}));
  EXPECT_REFUSED("UNINIT1", (Activation{d, Function::kExp, x, Scalar::of(make({2, 1}))}));
}

}  // namespace
}  // namespace sterna::scalar_engine
