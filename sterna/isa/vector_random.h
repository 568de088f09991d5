// SPDX-License-Identifier: Apache-2.0
// Random numbers: instructions of the vector engine, some of which the GpSimd engine has too. Each lane (partition) has
// a generator of its own, and its elements draw in ascending order: machine/generators.h says which and how.
#pragma once

#include <cmath>

#include "sterna/base/text.h"
#include "sterna/isa/rules.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna::vector_engine {

inline Fault random_fault(std::string_view rule, std::string message) {
  return Fault(FaultKind::kRuleBroken, std::string(rule), std::move(message));
}

/// Which engine draws, `usual` where the program leaves it open. RND3: it has a generator that the instruction reaches
/// (whose state it reaches, with `state`). ENG1, ENG2 as for others.
inline Status check_random_engine(const Rules& r, EngineId& engine, EngineId usual, bool state, const View& view) {
  if (engine == EngineId::kUnknown) engine = usual;
  STERNA_TRY(check_engine(r, engine, {EngineId::kVector, EngineId::kGpSimd}, {&view}));
  const Features& has = r.chip->features;
  if (engine == EngineId::kGpSimd && !has.gpsimd_random)
    return random_fault("RND3", cat("The GpSimd engine of ", r.chip->name, " has no random generator."));
  if (state && engine == EngineId::kVector && !has.xorwow)
    return random_fault("RND3", cat("The state of the vector engine's generator cannot be set or read on ",
                                    r.chip->name, "; set_rng_seed seeds it, and the GpSimd engine has a state."));
  return {};
}

/// Draws the words of each row of `d` in turn and hands them on: use(row, words). Rows are shared among threads.
template <class Use>
void draw_rows(Machine& m, const Operand& d, EngineId engine, bool xorwow, const Use& use) {
  Generators& random = m.generators();
  over_rows(
      m, d.rows, d.cols,
      [&](int64_t begin, int64_t end) {
        std::vector<uint32_t> words(static_cast<size_t>(d.cols));
        for (int64_t r = begin; r < end; ++r) {
          if (engine == EngineId::kGpSimd)
            random.gpsimd_words(lane_of(d, r), words.data(), d.cols);
          else
            random.vector_words(xorwow, lane_of(d, r), words.data(), d.cols);
          use(r, words);
        }
      },
      rows_may_meet(d));
}

/// dst = random bits: of each 32-bit word the low bits that dst's elements hold.
///
/// Rules   P1 P2 ENG1 ENG2 RND1 (an integer type) RND3 (an engine with a generator)
/// Source  nki.isa.rng (SDK 2.32); algorithm: LFSR or XORWOW as the chip has it, details assumed (generators.h)
struct Rng {
  static constexpr Info info{"rng", 0x30, "dst = random bits", "nki.isa.rng"};
  View dst;
  EngineId engine = EngineId::kVector;
  bool xorwow = false;  ///< the vector engine's algorithm: check() asks the chip

  static constexpr auto fields() {
    return std::tuple{out("dst", &Rng::dst, "result tile of an integer type"),
                      option("engine", &Rng::engine, "vector or gpsimd")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_random_engine(r, engine, EngineId::kVector, false, dst));
    if (!is_integer(dst.dtype) || dst.dtype == DType::kBool)
      return random_fault("RND1",
                          cat("rng writes int8, int16, int32, uint8, uint16 or uint32, not ", name(dst.dtype), "."));
    xorwow = r.chip->features.xorwow;
    return {};
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    draw_rows(m, d, engine, xorwow,
              [&](int64_t row, const std::vector<uint32_t>& words) { store_bits(d, row, 0, d.cols, words.data()); });
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, engine, {&dst}); }
};

/// dst = min + u * (max - min), u = the upper 24 bits of a word times 2^-24: uniform from min to max.
///
/// Types   fp32, each step rounded once, converted to dst
/// Rules   P1 P2 SHAPE3 ARG2 RND2 (dst's type) RND4 (min below max, both finite, and their distance too)
/// Source  nki.isa.rand2 (SDK 2.32); how a word becomes a number: assumed
struct Rand2 {
  static constexpr Info info{"rand2", 0x31, "dst = uniform random numbers from min to max", "nki.isa.rand2"};
  View dst;
  Scalar min, max;
  bool xorwow = true;  ///< as in Rng

  static constexpr auto fields() {
    return std::tuple{out("dst", &Rand2::dst, "result tile"), in("min", &Rand2::min, "immediate or (P, 1)"),
                      in("max", &Rand2::max, "immediate or (P, 1)")};
  }
  static Status check_range(float low, float high) {
    if (low < high && std::isfinite(high - low)) return {};
    return random_fault("RND4", cat("rand2 needs min below max, both finite and at a distance that fp32 holds, not ",
                                    low, " and ", high, "."));
  }
  static bool takes(DType t) {
    switch (t) {
      case DType::kFloat8E4M3:
      case DType::kFloat8E5M2:
      case DType::kFloat16:
      case DType::kBFloat16:
      case DType::kFloat32:
      case DType::kTFloat32: return true;
      default: return is_integer(t) && t != DType::kBool;
    }
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    for (auto [scalar, what] : {std::pair{&min, "min"}, {&max, "max"}}) {
      if (scalar->is_none) return Fault(FaultKind::kWrongType, "ARG2", cat("'", what, "' of rand2 is missing."));
      STERNA_TRY(fit_scalar(r, *scalar, dst, what));
    }
    if (!takes(dst.dtype)) return random_fault("RND2", cat("rand2 does not write ", name(dst.dtype), "."));
    if (!min.is_view && !max.is_view)
      STERNA_TRY(check_range(static_cast<float>(min.value), static_cast<float>(max.value)));
    xorwow = r.chip->features.xorwow;
    return {};
  }
  Status execute(Machine& m) const {
    float low_buffer[kMaxPartitions], high_buffer[kMaxPartitions], span[kMaxPartitions], low[kMaxPartitions];
    STERNA_ASSIGN(const Machine::Values a, m.read_scalar(min, dst.rows(), low_buffer, "min"));
    STERNA_ASSIGN(const Machine::Values b, m.read_scalar(max, dst.rows(), high_buffer, "max"));
    for (int64_t r = 0; r < dst.rows(); ++r) {
      low[r] = a.data[r * a.pitch];
      const float high = b.data[r * b.pitch];
      STERNA_TRY(check_range(low[r], high));
      span[r] = high - low[r];
    }
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    draw_rows(m, d, EngineId::kVector, xorwow, [&](int64_t row, const std::vector<uint32_t>& words) {
      std::vector<float> values(words.size());
      for (size_t i = 0; i < words.size(); ++i) {
        const float scaled = random_fraction(words[i]) * span[row];
        values[i] = low[row] + scaled;
      }
      store_row(d, row, 0, d.cols, values.data());
    });
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kVector, {&dst}); }
};

/// Seeds the vector engine's generator: every lane, from one 32-bit number.
///
/// Rules   P1 P2 RND5 (one element of 32 bits)
/// Source  nki.isa.set_rng_seed (SDK 2.32); how the seed is spread over lanes: assumed (generators.h)
struct SetRngSeed {
  static constexpr Info info{"set_rng_seed", 0x32, "seeds the vector engine's generator", "nki.isa.set_rng_seed"};
  View src_seeds;

  static constexpr auto fields() { return std::tuple{in("src_seeds", &SetRngSeed::src_seeds, "[1, 1] of 32 bits")}; }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, src_seeds, "src_seeds"));
    if (src_seeds.elements() == 1 && size_of(src_seeds.dtype) == 4) return {};
    return random_fault("RND5", cat("'src_seeds' must be one element of 32 bits, [1, 1], not ", shape_text(src_seeds),
                                    " ", name(src_seeds.dtype), "."));
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand s, m.read(src_seeds, "src_seeds"));
    uint32_t seed = 0;
    load_bits(s, 0, 0, 1, &seed);
    m.generators().seed_vector(seed);
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kVector, {&src_seeds}); }
};

/// What rand_set_state and rand_get_state ask of their engine and their tile. RND6: uint32, and as many words a lane as
/// the engine's generator has: 6 (GpSimd), or 4 states of 6 (vector).
inline Status check_states(const Rules& r, const View& view, EngineId& engine, std::string_view what) {
  STERNA_TRY(check_random_engine(r, engine, EngineId::kGpSimd, true, view));
  STERNA_TRY(check_tile(r, view, what));
  const int words = Xorwow::kWords * (engine == EngineId::kVector ? Generators::kVectorStates : 1);
  if (view.dtype == DType::kUInt32 && view.cols() == words) return {};
  return random_fault("RND6", cat("'", what, "' must be uint32 [P, ", words, "] for the ", name(engine),
                                  " engine, not ", shape_text(view), " ", name(view.dtype), "."));
}

/// f(state, its words): for each state of the lane that row `r` lies in.
template <class F>
void for_each_state(Machine& m, EngineId engine, int64_t lane, std::vector<uint32_t>& words, const F& f) {
  if (engine == EngineId::kGpSimd) return f(m.generators().gpsimd_state(lane), words.data());
  uint32_t* at = words.data();
  for (Xorwow& state : m.generators().vector_states(lane)) {
    f(state, at);
    at += Xorwow::kWords;
  }
}

/// Each partition's words become the state of its lane's generator. Order of a state's words: x, y, z, w, v, d.
///
/// Rules   P1 P2 ENG1 RND3 RND6 RND7 (in SBUF)
/// Source  nki.isa.rand_set_state (SDK 2.32); the order of the words: assumed
struct RandSetState {
  static constexpr Info info{"rand_set_state", 0x33, "sets the states of a generator", "nki.isa.rand_set_state"};
  View src_seeds;
  EngineId engine = EngineId::kGpSimd;

  static constexpr auto fields() {
    return std::tuple{in("src_seeds", &RandSetState::src_seeds, "uint32 [P, 6] (GpSimd) or [P, 24] (vector), in SBUF"),
                      option("engine", &RandSetState::engine, "gpsimd or vector")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_states(r, src_seeds, engine, "src_seeds"));
    if (src_seeds.memory == Memory::kSbuf) return {};
    return random_fault("RND7", "'src_seeds' of rand_set_state must be in SBUF.");
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand s, m.read(src_seeds, "src_seeds"));
    std::vector<uint32_t> words(static_cast<size_t>(s.cols));
    for (int64_t r = 0; r < s.rows; ++r) {
      load_bits(s, r, 0, s.cols, words.data());
      for_each_state(m, engine, lane_of(s, r), words,
                     [](Xorwow& state, uint32_t* at) { std::copy_n(at, Xorwow::kWords, state.word.begin()); });
    }
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, engine, {&src_seeds}); }
};

/// The states of the generator, lane by lane, as rand_set_state takes them.
///
/// Rules   P1 P2 ENG1 ENG2 RND3 RND6
/// Source  nki.isa.rand_get_state (SDK 2.32)
struct RandGetState {
  static constexpr Info info{"rand_get_state", 0x34, "dst = the states of a generator", "nki.isa.rand_get_state"};
  View dst;
  EngineId engine = EngineId::kGpSimd;

  static constexpr auto fields() {
    return std::tuple{out("dst", &RandGetState::dst, "uint32 [P, 6] (GpSimd) or [P, 24] (vector)"),
                      option("engine", &RandGetState::engine, "gpsimd or vector")};
  }
  Status check(const Rules& r) { return check_states(r, dst, engine, "dst"); }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    std::vector<uint32_t> words(static_cast<size_t>(d.cols));
    for (int64_t r = 0; r < d.rows; ++r) {
      for_each_state(m, engine, lane_of(d, r), words,
                     [](Xorwow& state, uint32_t* at) { std::copy_n(state.word.begin(), Xorwow::kWords, at); });
      store_bits(d, r, 0, d.cols, words.data());
    }
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, engine, {&dst}); }
};

/// dst = data, with elements replaced by zero at random: where u < prob, u as in rand2 with bounds 0 and 1. Kept
/// elements keep their bits and are not scaled.
///
/// Rules   P1 P2 SHAPE1 SHAPE2 SHAPE3 ARG2 DRP1 (dst has data's type) DRP2 (type of prob) DRP3 (a remark: 0 to 1)
/// Source  nki.isa.dropout (SDK 2.32); one word of the vector engine's generator for each element: assumed
struct Dropout {
  static constexpr Info info{"dropout", 0x35, "dst = data with random elements zero", "nki.isa.dropout"};
  View dst, data;
  Scalar prob;
  bool xorwow = false;  ///< as in Rng

  static constexpr auto fields() {
    using I = Dropout;
    return std::tuple{out("dst", &I::dst, "result tile"), in("data", &I::data, "input tile"),
                      in("prob", &I::prob, "probability of zero: immediate or (P, 1)")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data, "data"));
    STERNA_TRY(fit(r, data, dst, "data"));
    STERNA_TRY(fit_scalar(r, prob, dst, "prob"));
    if (prob.is_none) return Fault(FaultKind::kWrongType, "ARG2", "'prob' of dropout is missing.");
    if (dst.dtype != data.dtype)
      return random_fault("DRP1",
                          cat("dropout does not convert: dst is ", name(dst.dtype), ", data ", name(data.dtype), "."));
    if (prob.is_view && (is_integer(data.dtype) ? prob.view.dtype != DType::kFloat32 : is_integer(prob.view.dtype)))
      return random_fault("DRP2", cat("'prob' is ", name(prob.view.dtype),
                                      ": float32 for data of an integer type, any "
                                      "float type for others."));
    if (!prob.is_view && !(prob.value >= 0 && prob.value <= 1))
      r.warn("DRP3", cat("'prob' is ", prob.value, ", which is no probability."));
    xorwow = r.chip->features.xorwow;
    return {};
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand a, m.read(data, "data"));
    float buffer[kMaxPartitions];
    STERNA_ASSIGN(Machine::Values p, m.read_scalar(prob, a.rows, buffer, "prob"));
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    p = kept_apart(d, p, a.rows, buffer);
    draw_rows(m, d, EngineId::kVector, xorwow, [&](int64_t row, const std::vector<uint32_t>& words) {
      std::vector<uint32_t> kept(words.size());
      load_bits(a, row, 0, a.cols, kept.data());
      const float bound = p.data[row * p.pitch];
      for (size_t i = 0; i < words.size(); ++i)
        if (random_fraction(words[i]) < bound) kept[i] = 0;
      store_bits(d, row, 0, d.cols, kept.data());
    });
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kVector, {&dst, &data}); }
};

using Random = InstructionList<Rng, Rand2, SetRngSeed, RandSetState, RandGetState, Dropout>;

}  // namespace sterna::vector_engine
