// SPDX-License-Identifier: Apache-2.0
// A run that uses a plan leaves what a run without one leaves: bytes, definedness, remarks, faults.
#include "sterna/execute/plan.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "sterna/base/text.h"
#include "sterna/execute/run.h"
#include "sterna/hardware/catalog.h"
#include "sterna/isa/vector.h"
#include "sterna/machine/view_ops.h"
#include "sterna/program/text.h"

namespace sterna {
namespace {

const Chip& trn2() {
  static const Result<Chip> chip = find_chip("trn2");
  return *chip;
}

Program parse(const std::string& text) {
  TextOptions options;
  options.chip = &trn2();
  Result<Program> p = parse_program(text, "test.sterna", options);
  EXPECT_TRUE(p) << p.error().text() << '\n' << text;
  return std::move(*p);
}

using Bytes = std::vector<std::byte>;

/// What a run leaves behind, as text and bytes that can be compared.
struct Outcome {
  std::string fault;
  std::vector<std::string> warnings;
  std::vector<Bytes> defined;  // of each tensor of each core: its elements, undefined ones as zero
  std::vector<std::vector<ElementState>> states;
  std::vector<bool> written;
  uint64_t executed = 0;
  bool operator==(const Outcome&) const = default;
};

void look_at(Machine& m, uint32_t id, const TensorInfo& info, Outcome& out) {
  if (!m.has_storage(id)) return;
  const View all = whole_view(id, info);
  auto o = m.read_any(all, "test");
  auto states = m.element_states(all);
  const auto size = static_cast<size_t>(size_of(info.dtype));
  Bytes bytes(states.size() * size);
  for (size_t i = 0; i < states.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / o->cols, col = static_cast<int64_t>(i) % o->cols;
    if (states[i] == ElementState::kDefined)
      std::memcpy(&bytes[i * size], o->row(row) + col * static_cast<int64_t>(size), size);
  }
  out.defined.push_back(std::move(bytes));
  out.states.push_back(std::move(states));
  out.written.push_back(m.storage(id).written);
}

/// Runs `p` with arguments made from `seed`; with a plan when one is given.
Outcome outcome(const Program& p, unsigned seed, Plan* plan, int threads = 1,
                UninitPolicy uninit = UninitPolicy::kFill) {
  ThreadPool pool(threads);
  Executor::Options options;
  options.uninit = uninit;
  Run run(p, trn2(), &pool, options);
  if (plan != nullptr) run.use(plan);
  Outcome out;
  std::mt19937 random(seed);
  std::vector<Bytes> arguments;
  for (uint32_t id : p.parameters) {
    const TensorInfo& info = p.tensors[id];
    Bytes& bytes = arguments.emplace_back(static_cast<size_t>(info.bytes()));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random() % 2);
    if (info.dtype == DType::kFloat32)
      for (size_t i = 0; i < bytes.size(); i += 4) {
        const float value = static_cast<float>(static_cast<int>(random() % 64) - 24) / 8;
        std::memcpy(&bytes[i], &value, 4);
      }
  }
  for (size_t i = 0; i < p.parameters.size(); ++i) EXPECT_TRUE(run.bind(p.parameters[i], arguments[i].data(), true));
  Fault fault;
  if (run.finish(&fault, Run::Memory::kKeep) == Executor::State::kFault) out.fault = fault.text();
  for (int core = 0; core < run.cores(); ++core) {
    for (const Warning& w : run.machine(core).warnings()) out.warnings.push_back(cat(w.rule, w.site, w.message));
    for (uint32_t id = 0; id < p.tensors.size(); ++id) look_at(run.machine(core), id, p.tensors[id], out);
  }
  out.executed = run.executed();
  return out;
}

size_t steps(const Plan& plan) {
  size_t n = 0;
  for (const CorePlan& core : plan) n += core.steps.size();
  return n;
}

// --- random programs

class Writer {
 public:
  explicit Writer(unsigned seed) : random_(seed) {}

  std::string program(int cores) {
    text_ = cat("sterna program 1\ntarget trn2\ncores ", cores, "\nregisters 3\n",
                "param %in hbm float32 [16, 32]\nparam %out hbm float32 [16, 32]\nparam %mask hbm uint8 [16, 32]\n"
                "param %flag hbm uint8 [1, 1]\n");
    for (int core = 0; core < cores; ++core) {
      core_ = core;
      text_ += cat("core ", core, "\n");
      for (const char* name : {"a", "b", "c", "n"}) line("tensor ", tile(name), " sbuf float32 [16, 32]");
      line("tensor ", tile("h"), " sbuf bfloat16 [16, 32]");
      line("tensor ", tile("m"), " sbuf uint8 [16, 32]");
      line("tensor ", tile("p"), " psum float32 [16, 32]");
      line("tensor ", tile("q"), " sbuf float32 [16, 32] at (0, 64)");
      for (const char* name : {"a", "b"}) line("dma_copy dst=", tile(name), " src=%in");
      line("memset dst=", tile("c"), " value=0.75");
      line("dma_copy dst=", tile("m"), " src=%mask");
      line("register_load dst=$", core, " src=%flag");
    }
    for (int i = 0; i < 40; ++i) {
      if (cores > 1 && i % 5 == 0) text_ += cat("core ", core_ = pick(2), "\n");
      instruction(true);
    }
    if (cores > 1)
      for (core_ = 0; core_ < 2; ++core_) {
        text_ += cat("core ", core_, "\n");
        line("sendrecv src=", tile("a"), " dst=", tile("b"), " send_to_rank=", 1 - core_,
             " recv_from_rank=", 1 - core_);
        for (int i = 0; i < 10; ++i) instruction(true);
      }
    core_ = 0;
    text_ += "core 0\n";
    line("dma_copy dst=%out src=", tile("c"));
    return text_ + "result %out\n";
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string tile(std::string_view name) const { return cat('%', name, core_); }
  template <class... T>
  void line(const T&... parts) {
    text_ += cat(parts..., '\n');
  }
  std::string any() {
    return tile(std::array{"a", "b", "c", "n", "a", "b", "c", "h", "p", "q"}[static_cast<size_t>(pick(10))]);
  }
  std::string sbuf() { return tile(std::array{"a", "b", "c", "n", "q"}[static_cast<size_t>(pick(5))]); }
  /// The same rows and as many columns of each operand; often all, often shifted.
  void choose_shape() {
    whole_ = pick(2) == 0;
    rows_ = 1 + pick(16);
    cols_ = 1 + pick(16);
    row_ = pick(16 - rows_ + 1);
  }
  std::string part(const std::string& name) {
    if (whole_) return name;
    const int col = pick(4) == 0 ? pick(32 - cols_ + 1) : 0;
    return cat(name, '[', row_, ':', row_ + rows_, ", ", col, ':', col + cols_, ']');
  }
  void instruction(bool regions) {
    choose_shape();
    const std::string d = part(any()), s = part(any()), t = part(sbuf());
    switch (pick(regions ? 16 : 13)) {
      case 0:
      case 1:
        return line("tensor_tensor dst=", d, " data1=", part(sbuf()), " data2=", t,
                    " op=", pick(2) ? "add" : "maximum");
      case 2: return line("tensor_scalar dst=", d, " data=", s, " op0=subtract operand0=0.5 reverse0=true");
      case 3: return line("tensor_scalar dst=", d, " data=", s, " op0=multiply operand0=0.5 op1=add operand1=1");
      case 4: return line("activation dst=", d, " op=tanh data=", s, " scale=-0.5 bias=0.25");
      case 5: return line("activation dst=", d, " op=", pick(2) ? "log" : "relu", " data=", s);
      case 6: return line("reciprocal dst=", d, " data=", s);
      case 7:
      case 8: return line("tensor_copy dst=", d, " src=", s);
      case 9: return line("memset dst=", d, " value=1.5");
      case 10: return line("tensor_copy_predicated dst=", t, " src=", part(sbuf()), " predicate=", part(tile("m")));
      case 11: return line("dma_copy dst=", part(sbuf()), " src=", t);
      case 12: return line("nc_matmul dst=", tile("p"), " stationary=", tile("a"), "[0:16, 0:16] moving=", tile("b"));
      case 13: return line("alloc tensor=", tile(pick(2) ? "n" : "p"));
      case 14: line("loop reg=$2 high=2"); break;
      default: line("if reg=$", core_); break;
    }
    for (int i = 0; i < 3; ++i) instruction(false);
    line("end");
  }

  std::mt19937 random_;
  std::string text_;
  int core_ = 0, rows_ = 0, cols_ = 0, row_ = 0;
  bool whole_ = true;
};

void compare(int cores, unsigned seed, size_t* noted) {
  const Program p = parse(Writer(seed).program(cores));
  Plan plan;
  for (unsigned run = 0; run < 5; ++run) {
    const Outcome with = outcome(p, run % 3, &plan, run == 4 ? 3 : 1), without = outcome(p, run % 3, nullptr);
    ASSERT_TRUE(with == without) << "program " << seed << ", run " << run << ": " << with.fault << " / "
                                 << without.fault << '\n'
                                 << Writer(seed).program(cores);
  }
  *noted += steps(plan);
}

TEST(Plan, LeavesWhatRunsWithoutItLeave) {
  size_t noted = 0;
  for (unsigned seed = 0; seed < 300; ++seed) compare(1, seed, &noted);
  EXPECT_GT(noted, 300u * 3);  // else this compares nothing
}

TEST(Plan, OfTwoCores) {
  size_t noted = 0;
  for (unsigned seed = 1000; seed < 1150; ++seed) compare(2, seed, &noted);
  EXPECT_GT(noted, 150u * 3);
}

// --- one thing each

constexpr char kBegin[] = R"(sterna program 1
target trn2
registers 2
param %x hbm float32 [4, 16]
param %flag hbm uint8 [1, 1]
)";

int taken = 0;
bool count_only(const ReplayStep&, Machine&) {
  ++taken;
  return true;
}

TEST(Plan, StepsAreTakenInsteadOfRecords) {
  const Program p = parse(cat(kBegin, R"(tensor %a sbuf float32 [4, 16]
dma_copy dst=%a src=%x
tensor_tensor dst=%a data1=%a data2=%a op=add
activation dst=%a op=exp data=%a scale=-1
tensor_scalar dst=%a[0:4, 0:8] data=%a[0:4, 8:16] op0=multiply operand0=0.5
tensor_copy dst=%a[0:4, 4:8] src=%a[0:4, 0:4]
)"));
  Plan plan;
  const Outcome first = outcome(p, 0, &plan);
  EXPECT_EQ(first.fault, "");
  ASSERT_GE(steps(plan), 4u);
  for (ReplayStep& step : plan[0].steps) step.run = count_only;
  taken = 0;
  EXPECT_EQ(outcome(p, 0, &plan).executed, first.executed);
  EXPECT_EQ(taken, static_cast<int>(steps(plan)));
}

/// What an earlier run found defined need not be so in this one: a branch may depend on the arguments.
TEST(Plan, AsksWhatIsDefinedInEachRun) {
  const Program p = parse(cat(kBegin, R"(tensor %n sbuf float32 [4, 16]
tensor %d sbuf float32 [4, 16]
register_load dst=$0 src=%flag
if reg=$0
  memset dst=%n value=1
end
tensor_scalar dst=%d data=%n op0=add operand0=1
)"));
  unsigned yes = 0, no = 0;
  const auto faults = [&](unsigned seed) { return !outcome(p, seed, nullptr, 1, UninitPolicy::kError).fault.empty(); };
  while (faults(yes)) ++yes;
  while (!faults(no)) ++no;
  Plan plan;
  EXPECT_EQ(outcome(p, yes, &plan, 1, UninitPolicy::kError).fault, "");
  ASSERT_EQ(steps(plan), 1u);
  EXPECT_TRUE(outcome(p, no, &plan, 1, UninitPolicy::kError).fault.find("UNINIT1") != std::string::npos);
  EXPECT_EQ(outcome(p, yes, &plan, 1, UninitPolicy::kError).fault, "");
}

/// In the first trip the tile is not yet defined, in the second it is: nothing in a region is a step.
TEST(Plan, HasNothingOfRegions) {
  const Program p = parse(cat(kBegin, R"(tensor %a sbuf float32 [4, 16]
tensor %b sbuf float32 [4, 16]
memset dst=%b value=2
loop reg=$0 high=2
  tensor_scalar dst=%a data=%b op0=add operand0=1
  tensor_tensor dst=%b data1=%a data2=%b op=add
end
tensor_copy dst=%a src=%b
)"));
  Plan plan;
  const Outcome first = outcome(p, 0, &plan);
  EXPECT_TRUE(first == outcome(p, 0, &plan));
  EXPECT_TRUE(first == outcome(p, 0, nullptr));
  const size_t end = p.cores[0].size() - 1;
  for (const ReplayStep& step : plan[0].steps)
    EXPECT_TRUE(step.record == end || p.cores[0][step.record].opcode == vector_engine::Memset::info.opcode)
        << step.record;
  ASSERT_FALSE(plan[0].steps.empty());
  EXPECT_EQ(plan[0].steps.back().record, end);
}

/// A step writes behind the back of the matmul operands that are kept packed.
TEST(Plan, PackedOperandsSeeWhatAStepWrote) {
  const Program p = parse(cat(kBegin, R"(tensor %a sbuf float32 [4, 16]
tensor %p psum float32 [16, 16]
tensor %q psum float32 [16, 16]
dma_copy dst=%a src=%x
nc_matmul dst=%p stationary=%a moving=%a
tensor_scalar dst=%a data=%a op0=multiply operand0=2
nc_matmul dst=%q stationary=%a moving=%a
)"));
  Plan plan;
  for (unsigned run = 0; run < 3; ++run) EXPECT_TRUE(outcome(p, run, &plan) == outcome(p, run, nullptr)) << run;
  EXPECT_GE(steps(plan), 1u);
}

}  // namespace
}  // namespace sterna
