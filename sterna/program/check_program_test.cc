// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/check_program.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "sterna/hardware/catalog.h"
#include "sterna/isa/control.h"
#include "sterna/isa/vector.h"
#include "sterna/program/text.h"

namespace sterna {
namespace {

const Chip& trn2() {
  static const Result<Chip> chip = find_chip("trn2");
  return *chip;
}

/// A sound program: a parameter, a tile, a loop with a dynamic copy, a result.
Program sound() {
  TextOptions options;
  options.chip = &trn2();
  Result<Program> p = parse_program(R"(sterna program 1
target trn2
registers 1
site 1 "k.py":3 in kernel
param %x hbm float32 [4, 8] read_only
tensor %y hbm float32 [4, 8] shared
tensor %a sbuf float32 [4, 8]
dma_copy dst=%a src=%x
loop reg=$0 high=4
  dma_copy dst=%y[0:1, 0:8] src=%x[0:1, 0:8]+($0 * 8 < 4)
end
tensor_scalar dst=%a data=%a op0=add operand0=1 @1
dma_copy dst=%y src=%a
result %y
)",
                                    "test.sterna", options);
  EXPECT_TRUE(p) << p.error().text();
  return std::move(*p);
}
constexpr size_t kCopyIn = 2, kLoop = 3, kDynamicCopy = 4, kEnd = 5, kScalar = 6;

template <class I>
I& record(Program& p, size_t at) {
  return *static_cast<I*>(p.cores[0].at(at).body());
}

TEST(CheckProgram, ASoundProgramIsFine) {
  const auto faults = check_program(sound(), trn2());
  EXPECT_TRUE(faults.empty()) << faults[0].text();
}

struct Damage {
  const char* rule;
  std::function<void(Program&)> apply;
};

TEST(CheckProgram, EachDamageIsNamed) {
  const std::vector<Damage> cases = {
      {"PRG1", [](Program& p) { p.cores[0].at(kCopyIn).site = 99; }},
      {"PRG1", [](Program& p) { p.cores[0].at(kCopyIn).label = 99; }},
      {"PRG1", [](Program& p) { p.tensors[0].name = 99; }},
      {"PRG2", [](Program& p) { p.tensors[2].ndim = 9; }},
      {"PRG2", [](Program& p) { p.tensors[2].ndim = 1; }},
      {"PRG2", [](Program& p) { p.tensors[2].shape[0] = -1; }},
      {"PRG2", [](Program& p) { p.tensors[2].shape[0] = 129; }},
      {"PRG2", [](Program& p) { p.tensors[1].shape[0] = p.tensors[1].shape[1] = INT32_MAX; }},
      {"PRG2", [](Program& p) { p.tensors[2].dtype = static_cast<DType>(77); }},
      {"PRG3", [](Program& p) { p.parameters.clear(); }},
      {"PRG3", [](Program& p) { p.tensors[1].role = TensorRole::kParameter; }},
      {"PRG3", [](Program& p) { p.results.push_back(42); }},
      {"PRG3", [](Program& p) { p.results.push_back(2); }},
      {"PRG3", [](Program& p) { p.tensors[1].shared = false; }},
      {"PRG4", [](Program& p) { p.cores[0].at(kCopyIn).opcode = 255; }},
      {"PRG4", [](Program& p) { p.cores[0].at(kCopyIn).words = 3; }},
      {"PRG4", [](Program& p) { p.cores[0].at(kDynamicCopy).flags = 0; }},
      {"PRG5", [](Program& p) { record<vector_engine::TensorScalar>(p, kScalar).op0 = static_cast<AluOp>(200); }},
      {"PRG5", [](Program& p) { record<vector_engine::TensorScalar>(p, kScalar).engine = static_cast<EngineId>(200); }},
      {"PRG5", [](Program& p) { record<vector_engine::TensorScalar>(p, kScalar).data.tensor = 17; }},
      {"PRG5", [](Program& p) { record<vector_engine::TensorScalar>(p, kScalar).data.ndim = 1; }},
      {"PRG5", [](Program& p) { record<vector_engine::TensorScalar>(p, kScalar).data.dims[1].count = -1; }},
      {"PRG5", [](Program& p) { record<vector_engine::TensorScalar>(p, kScalar).data.memory = Memory::kPsum; }},
      {"PRG5", [](Program& p) { record<control::Loop>(p, kLoop).reg.id = 7; }},
      {"PRG6", [](Program& p) { record<control::Alloc>(p, 1).tensor.id = 1; }},
      {"PRG7", [](Program& p) { p.edges.push_back({3, 3}); }},
      {"PRG7", [](Program& p) { p.edges.push_back({3, 99}); }},
      {"PRG7", [](Program& p) { p.edges.push_back({0, 1, 3}); }},
      {"SCHED3", [](Program& p) { p.edges.push_back({kDynamicCopy, kScalar}); }},
      {"IDX4", [](Program& p) { record<vector_engine::TensorScalar>(p, kScalar).data.dims[1].count = 9; }},
      {"IDX4", [](Program& p) { record<vector_engine::TensorScalar>(p, kScalar).data.partition = 1; }},
      {"DYN4", [](Program& p) { p.dynamics[1].reg = 3; }},
      {"DYN4", [](Program& p) { p.dynamics[1].limit = -1; }},
      {"DYN4", [](Program& p) { p.dynamics.resize(1); }},
      {"REGION1",
       [](Program& p) {
         p.cores[0].at(kLoop).opcode = control::End::info.opcode,
         p.cores[0].at(kLoop).words = p.cores[0].at(kEnd).words;
       }},
      {"REG2", [](Program& p) { record<control::Loop>(p, kLoop).reg.id = UINT32_MAX; }},
      {"SHAPE2", [](Program& p) { record<vector_engine::TensorScalar>(p, kScalar).data.dims[1].count = 4; }},
      {"OPS1", [](Program& p) { record<vector_engine::TensorScalar>(p, kScalar).op1 = AluOp::kBitwiseAnd; }},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    Program p = sound();
    cases[i].apply(p);
    const auto faults = check_program(p, trn2());
    ASSERT_FALSE(faults.empty()) << "case " << i << ", " << cases[i].rule;
    EXPECT_EQ(faults[0].rule, cases[i].rule) << "case " << i << ": " << faults[0].text();
    print_program(p);  // prints what it can
  }
}

TEST(CheckProgram, AnOpenRegionIsFound) {
  Program p = sound();
  Stream cut;
  for (size_t i = 0; i <= kLoop; ++i) {
    const RecordHeader& from = p.cores[0][i];
    RecordHeader* to = cut.reserve(instruction_table()[from.opcode].bytes);
    std::memcpy(static_cast<void*>(to), &from, size_t{from.words} * 8);
    cut.push(to);
  }
  p.cores[0] = std::move(cut);
  const auto faults = check_program(p, trn2());
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].rule, "REGION2");
}

TEST(CheckProgram, FaultsHaveTheUsersPlace) {
  Program p = sound();
  record<vector_engine::TensorScalar>(p, kScalar).data.partition = 1;
  const auto faults = check_program(p, trn2());
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].where.file, "k.py");
  EXPECT_EQ(faults[0].where.line, 3);
}

}  // namespace
}  // namespace sterna
