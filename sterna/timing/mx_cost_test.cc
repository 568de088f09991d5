// SPDX-License-Identifier: Apache-2.0
// What block-scaled instructions cost on trn3, against the rates that the Trainium3 architecture guide states.
#include <gtest/gtest.h>

#include "sterna/hardware/catalog.h"
#include "sterna/isa/tensor.h"
#include "sterna/isa/vector.h"
#include "sterna/timing/formulas.h"

namespace sterna {
namespace {

class MxCost : public ::testing::Test {
 protected:
  void SetUp() override {
    auto found = find_chip("trn3");
    ASSERT_TRUE(found) << found.error().text();
    chip_ = std::move(*found);
    rules_.chip = &chip_;
  }
  static View tile(DType type, int32_t rows, int32_t cols, Memory memory = Memory::kSbuf) {
    View v;
    v.tensor = 0;
    v.dtype = type;
    v.memory = memory;
    v.ndim = 2;
    v.dims[0] = {1, rows};
    v.dims[1] = {1, cols};
    return v;
  }
  double ns(const Work& work, std::string_view mnemonic) {
    return engine_ns(work, *chip_.instruction_cost(mnemonic), chip_, false);
  }
  Chip chip_;
  Rules rules_{};
};

TEST_F(MxCost, MatmulReaches315Teraflops) {
  tensor_engine::NcMatmulMx mx;
  mx.dst = tile(DType::kFloat32, 128, 512, Memory::kPsum);
  mx.stationary = tile(DType::kFloat8E4M3FNx4, 128, 128);
  mx.moving = tile(DType::kFloat8E4M3FNx4, 128, 512);
  mx.stationary_scale = tile(DType::kUInt8, 128, 128);
  mx.moving_scale = tile(DType::kUInt8, 128, 512);
  const Work work = mx.work(rules_);
  EXPECT_NEAR(2e-3 * work.multiply_adds / ns(work, "nc_matmul_mx"), 315, 1);
}

TEST_F(MxCost, FourTimesTheRateOfBfloat16) {
  tensor_engine::NcMatmul dense;
  dense.dst = tile(DType::kFloat32, 128, 512, Memory::kPsum);
  dense.stationary = tile(DType::kBFloat16, 128, 128);
  dense.moving = tile(DType::kBFloat16, 128, 512);
  const Work work = dense.work(rules_);
  EXPECT_NEAR(2e-3 * work.multiply_adds / ns(work, "nc_matmul"), 79, 0.5);
}

TEST_F(MxCost, QuantisesFourElementsACycle) {
  vector_engine::QuantizeMx quantize;
  quantize.dst = tile(DType::kFloat8E4M3FNx4, 128, 512);
  quantize.src = tile(DType::kBFloat16, 128, 2048);
  quantize.dst_scale = tile(DType::kUInt8, 128, 512);
  const Work work = quantize.work(rules_);
  const double cycles = ns(work, "quantize_mx") * chip_.vector.clock - chip_.vector.fixed;
  EXPECT_DOUBLE_EQ(cycles, 2048 / 4);
}

}  // namespace
}  // namespace sterna
