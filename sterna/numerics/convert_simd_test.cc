// SPDX-License-Identifier: Apache-2.0
// decode_row and encode_row on each SIMD target against the scalar definitions, bit for bit.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "sterna/numerics/convert.h"
#include "sterna/numerics/convert_test_oracle.h"
#include "sterna/numerics/dispatch.h"

namespace sterna {
namespace {

using namespace convert_oracle;

/// Runs the test body once for each SIMD target.
class Rows : public testing::TestWithParam<SimdTarget> {
 protected:
  void SetUp() override {
    before_ = simd_target();
    ASSERT_TRUE(set_simd_target(GetParam()));
  }
  void TearDown() override { ASSERT_TRUE(set_simd_target(before_)); }

 private:
  SimdTarget before_ = SimdTarget::kScalar;
};

uint32_t load_element(const uint8_t* p, int bytes) {
  uint32_t out = 0;
  std::memcpy(&out, p, static_cast<size_t>(bytes));
  return out;
}

void expect_decodes(DType t, const std::vector<uint8_t>& data) {
  const int bytes = size_of(t);
  const ptrdiff_t count = static_cast<ptrdiff_t>(data.size()) / bytes;
  std::vector<float> out(static_cast<size_t>(count));
  decode_row(t, data.data(), bytes, out.data(), count);
  for (ptrdiff_t i = 0; i < count; ++i) {
    const uint32_t bits = load_element(data.data() + i * bytes, bytes);
    ASSERT_EQ(bits_of(out[static_cast<size_t>(i)]), bits_of(to_float_bits(t, bits)))
        << name(t) << " " << std::hex << bits;
  }
}

void expect_encodes(DType t, const std::vector<float>& in) {
  const int bytes = size_of(t);
  std::vector<uint8_t> out(in.size() * static_cast<size_t>(bytes));
  encode_row(t, in.data(), out.data(), bytes, static_cast<ptrdiff_t>(in.size()));
  for (size_t i = 0; i < in.size(); ++i)
    ASSERT_EQ(load_element(out.data() + i * static_cast<size_t>(bytes), bytes), from_float_bits(t, in[i]))
        << name(t) << " " << in[i] << " " << std::hex << bits_of(in[i]);
}

std::vector<float> random_patterns(size_t count) {
  std::mt19937 random(20240607);
  std::vector<float> out(count);
  for (float& v : out) v = float_of(static_cast<uint32_t>(random()));
  return out;
}

TEST_P(Rows, DecodeEveryPattern) {
  for (const DType t : unpacked_types()) {
    std::vector<uint8_t> data;
    if (size_of(t) == 1) {
      data.resize(256);
      std::iota(data.begin(), data.end(), static_cast<uint8_t>(0));
    } else if (size_of(t) == 2) {
      data.resize(2 << 16);
      for (uint32_t i = 0; i < 1 << 16; ++i) {
        const uint16_t bits = static_cast<uint16_t>(i);
        std::memcpy(&data[2 * i], &bits, 2);
      }
    } else {
      const std::vector<float> patterns = random_patterns(1 << 20);
      data.resize(4 << 20);
      std::memcpy(data.data(), patterns.data(), data.size());
      for (uint32_t i = 0; i < 64; ++i) {  // the ends, the sign change and the last exact integers
        const uint32_t edges[4] = {i, 0u - 1 - i, 0x80000000u - 32 + i, (1u << 24) - 32 + i};
        std::memcpy(&data[16 * i], edges, 16);
      }
    }
    expect_decodes(t, data);
  }
}

TEST_P(Rows, EncodeWidenedSixteenBitPatterns) {
  std::vector<float> in(1 << 16);
  for (uint32_t i = 0; i < 1 << 16; ++i) in[i] = float_of(i << 16);
  for (const DType t : unpacked_types()) expect_encodes(t, in);
  for (uint32_t i = 0; i < 1 << 16; ++i) in[i] = to_float_bits(DType::kFloat16, i);
  for (const DType t : unpacked_types()) expect_encodes(t, in);
}

TEST_P(Rows, EncodeEveryBoundary) {
  for (const DType from : kSmallFloats) {
    const std::vector<float> in = boundaries(Oracle(from));
    for (const DType t : unpacked_types()) expect_encodes(t, in);
  }
  std::vector<float> in;
  for (int exponent = -1; exponent <= 33;
       ++exponent)  // halves of integers about the powers of two, where integer types end
    for (int k = -64; k <= 64; ++k) in.push_back(static_cast<float>(std::ldexp(1.0, exponent) + 0.25 * k));
  for (uint32_t exponent = 0; exponent < 512; ++exponent)  // ties of e8m0 and tfloat32, the fp32 subnormals
    for (const uint32_t mantissa :
         {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x3000u, 0x3fffffu, 0x400000u, 0x400001u, 0x5fffffu, 0x600000u, 0x7fffffu})
      in.push_back(float_of(exponent << 23 | mantissa));
  const size_t n = in.size();
  for (size_t i = 0; i < n; ++i)
    for (const float towards : {kInfinity, -kInfinity}) in.push_back(std::nextafter(in[i], towards));
  for (const DType t : unpacked_types()) expect_encodes(t, in);
}

TEST_P(Rows, EncodeRandomPatterns) {
  const std::vector<float> in = random_patterns(1 << 22);
  for (const DType t : unpacked_types()) expect_encodes(t, in);
}

TEST_P(Rows, EncodeRandomValuesNearOne) {
  // Most random patterns are beyond the small formats: take moderate exponents as well.
  std::vector<float> in = random_patterns(1 << 20);
  for (float& v : in) v = float_of((bits_of(v) & 0x87ffffff) | 0x38000000);
  for (const DType t : unpacked_types()) expect_encodes(t, in);
}

TEST_P(Rows, EveryLengthAndOffsetTouchesOnlyItsOwnBytes) {
  const std::vector<float> in = random_patterns(80);
  for (const DType t : unpacked_types()) {
    const int bytes = size_of(t);
    for (const int gap : {0, 1, 4}) {
      const int stride = bytes + gap;
      for (int count = 0; count <= 37; ++count) {
        const size_t offset = 3;  // misaligned
        std::vector<uint8_t> memory(offset + static_cast<size_t>(count * stride) + 64, 0xa5);
        std::vector<uint8_t> want = memory;
        for (int i = 0; i < count; ++i) {
          const uint32_t bits = from_float_bits(t, in[static_cast<size_t>(i)]);
          std::memcpy(want.data() + offset + i * stride, &bits, static_cast<size_t>(bytes));
        }
        encode_row(t, in.data(), memory.data() + offset, stride, count);
        ASSERT_EQ(memory, want) << name(t) << " stride " << stride << " count " << count;

        std::vector<float> out(static_cast<size_t>(count) + 20, -7.0f);
        std::vector<float> want_out = out;
        for (int i = 0; i < count; ++i)
          want_out[static_cast<size_t>(i)] = to_float(t, memory.data() + offset + i * stride);
        decode_row(t, memory.data() + offset, stride, out.data(), count);
        ASSERT_EQ(std::memcmp(out.data(), want_out.data(), out.size() * 4), 0)
            << name(t) << " stride " << stride << " count " << count;
      }
    }
  }
}

TEST_P(Rows, LongStridedRows) {
  const std::vector<float> in = random_patterns(1500);  // several internal pieces and a rest
  for (const DType t : unpacked_types()) {
    const int bytes = size_of(t), stride = 3 * bytes;
    std::vector<uint8_t> memory(in.size() * static_cast<size_t>(stride), 0xa5);
    std::vector<float> out(in.size());
    encode_row(t, in.data(), memory.data(), stride, static_cast<ptrdiff_t>(in.size()));
    decode_row(t, memory.data(), stride, out.data(), static_cast<ptrdiff_t>(in.size()));
    for (size_t i = 0; i < in.size(); ++i) {
      const uint8_t* element = memory.data() + i * static_cast<size_t>(stride);
      ASSERT_EQ(load_element(element, bytes), from_float_bits(t, in[i])) << name(t) << " " << i;
      for (int k = bytes; k < stride; ++k) ASSERT_EQ(element[k], 0xa5) << name(t) << " " << i;
      ASSERT_EQ(bits_of(out[i]), bits_of(to_float(t, element))) << name(t) << " " << i;
    }
  }
}

TEST_P(Rows, StrideMayBeZeroOrNegative) {
  const uint16_t data[3] = {0x3f80, 0x4000, 0x4040};  // 1, 2, 3
  float out[3];
  decode_row(DType::kBFloat16, data + 2, -2, out, 3);
  EXPECT_EQ(std::vector<float>(out, out + 3), (std::vector<float>{3, 2, 1}));
  decode_row(DType::kBFloat16, data + 1, 0, out, 3);
  EXPECT_EQ(std::vector<float>(out, out + 3), (std::vector<float>{2, 2, 2}));
}

INSTANTIATE_TEST_SUITE_P(Targets, Rows, testing::ValuesIn(simd_targets()),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

}  // namespace
}  // namespace sterna
