// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/work_classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "sterna/hardware/catalog.h"
#include "sterna/isa/control.h"
#include "sterna/isa/scalar.h"
#include "sterna/isa/vector.h"
#include "sterna/program/builder.h"
#include "sterna/program/text.h"

namespace sterna {
namespace {

const Chip& trn2() {
  static const Chip chip = *find_chip("trn2");
  return chip;
}

class WorkClassesTest : public ::testing::Test {
 protected:
  View tensor(int64_t cols, DType dtype = DType::kFloat32) {
    TensorInfo info;
    info.memory = Memory::kSbuf;
    info.dtype = dtype;
    info.ndim = 2;
    info.shape[0] = 128;
    info.shape[1] = cols;
    const uint32_t id = *builder_.add_tensor(info);
    return whole_view(id, builder_.tensor(id));
  }
  static View part(View v, int row, int rows, int64_t col, int cols) {
    v.partition += row;
    v.offset += col;
    v.dims[0].count = rows;
    v.dims[1].count = cols;
    return v;
  }
  /// The class of the record that this instruction becomes, as if recorded at `site`.
  template <class I>
  uint32_t class_of(const I& instruction, uint32_t site = 0) {
    builder_.set_site(site);
    const auto status = builder_.record(instruction);
    EXPECT_TRUE(bool(status)) << status.error().text();
    const Stream& stream = builder_.program().cores[0];
    return stream.work_class(stream.size() - 1);
  }
  static vector_engine::TensorTensor add(const View& dst, const View& a, const View& b) {
    vector_engine::TensorTensor out;
    out.dst = dst;
    out.data1 = a;
    out.data2 = b;
    return out;
  }
  static vector_engine::Memset fill(const View& dst, double value) {
    vector_engine::Memset out;
    out.dst = dst;
    out.value = Scalar::of(value);
    return out;
  }

  Builder builder_{trn2(), false};
};

TEST_F(WorkClassesTest, PlacesAndTensorsMakeNoDifference) {
  const View a = tensor(512), b = tensor(512);
  const View left = part(a, 0, 64, 0, 16), right = part(a, 64, 64, 32, 16), other = part(b, 0, 64, 100, 16);
  const uint32_t first = class_of(add(left, left, left));
  EXPECT_EQ(class_of(add(right, other, left)), first);
  EXPECT_EQ(class_of(add(other, other, other), 7), first);
}

TEST_F(WorkClassesTest, WhatCountsMakesADifference) {
  const View a = tensor(512), h = tensor(512, DType::kBFloat16);
  const View x = part(a, 0, 64, 0, 16);
  scalar_engine::Activation plain, summed;
  plain.dst = plain.data = x;
  plain.op = Function::kExp;
  summed = plain;
  summed.reduce_res = part(a, 0, 64, 0, 1);
  const uint32_t classes[] = {
      class_of(add(x, x, x)),
      class_of(add(part(a, 0, 32, 0, 16), part(a, 0, 32, 0, 16), part(a, 0, 32, 0, 16))),  // rows
      class_of(add(part(a, 0, 64, 0, 8), part(a, 0, 64, 0, 8), part(a, 0, 64, 0, 8))),     // columns
      class_of(add(x, x, part(h, 0, 64, 0, 16))),                                          // a type
      class_of(fill(x, 0)),                                                                // an instruction
      class_of(fill(x, 1)),                                                                // an immediate
      class_of(plain),
      class_of(summed),  // an operand that is not given
  };
  EXPECT_EQ(std::set<uint32_t>(std::begin(classes), std::end(classes)).size(), std::size(classes));
}

TEST_F(WorkClassesTest, LinesOfOneSlotKeepTheirClasses) {
  // Sites 0 and 64 meet in the table of recent classes.
  const View a = tensor(512);
  const View narrow = part(a, 0, 128, 0, 16), wide = part(a, 0, 128, 0, 64);
  const uint32_t n = class_of(add(narrow, narrow, narrow), 0), w = class_of(add(wide, wide, wide), 64);
  EXPECT_NE(n, w);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(class_of(add(narrow, narrow, narrow), 0), n);
    EXPECT_EQ(class_of(add(wide, wide, wide), 64), w);
  }
}

TEST_F(WorkClassesTest, ManyClassesAreFoundAgain) {
  const View a = tensor(512);
  std::vector<uint32_t> ids;
  for (int i = 0; i < 2000; ++i) ids.push_back(class_of(fill(a, i)));
  EXPECT_EQ(std::set<uint32_t>(ids.begin(), ids.end()).size(), ids.size());
  for (int i = 0; i < 2000; ++i) EXPECT_EQ(class_of(fill(a, i)), ids[static_cast<size_t>(i)]) << i;
}

TEST_F(WorkClassesTest, TheExampleIsTheFirstRecord) {
  const View a = tensor(512);
  const uint32_t id = class_of(fill(a, 3));
  class_of(fill(part(a, 0, 128, 0, 512), 3));
  const Stream& stream = builder_.program().cores[0];
  EXPECT_EQ(&stream.work_classes().example(id), &stream[stream.size() - 2]);
}

/// Other tensors, places, registers and names in every field of the record.
void move_elsewhere(const TableRow& row, char* body) {
  const auto move = [](View& v) {
    v.tensor ^= 5;
    v.partition += 3;
    v.dynamic += 7;
    v.offset += 1000;
  };
  for (const FieldSpec& field : row.field_list()) {
    char* at = body + field.offset;
    switch (field.type) {
      case FieldType::kView:
        if (auto& v = *reinterpret_cast<View*>(at); !v.empty()) move(v);
        break;
      case FieldType::kScalar:
        if (auto& s = *reinterpret_cast<Scalar*>(at); s.is_view) move(s.view);
        break;
      case FieldType::kRegister: reinterpret_cast<RegisterRef*>(at)->id ^= 5; break;
      case FieldType::kTensor: reinterpret_cast<TensorRef*>(at)->id ^= 5; break;
      case FieldType::kName: reinterpret_cast<NameRef*>(at)->id ^= 5; break;
      default: break;
    }
  }
}

TEST(WorkClasses, WorkDoesNotLookAtWhatClassesLeaveOut) {
  // Rules without tables: work() that looked a tensor up would not get far.
  const Rules rules{&trn2(), nullptr, nullptr};
  std::set<uint8_t> seen;
  for (const auto& file : std::filesystem::recursive_directory_iterator("tests/golden/isa")) {
    if (file.path().extension() != ".sterna") continue;
    std::stringstream text;
    text << std::ifstream(file.path()).rdbuf();
    const auto program = parse_program(text.str(), file.path().string());
    if (!program) continue;  // some are there to be refused
    const Stream& stream = program->cores[0];
    for (size_t i = 0; i < stream.size(); ++i) {
      const TableRow& row = instruction_table()[stream[i].opcode];
      std::vector<uint64_t> moved(row.bytes / 8 + 1);
      std::memcpy(moved.data(), stream[i].body(), row.bytes);
      move_elsewhere(row, reinterpret_cast<char*>(moved.data()));
      EXPECT_EQ(row.work(moved.data(), rules), row.work(stream[i].body(), rules)) << file.path() << " record " << i;
      seen.insert(row.info.opcode);
    }
  }
  EXPECT_GT(seen.size(), 40u);
}

}  // namespace
}  // namespace sterna
