// SPDX-License-Identifier: Apache-2.0
// The random generators of a core: state for each lane (partition) of the vector and the GpSimd engine, and of
// stochastic rounding. NKI (SDK 2.32) names the algorithms, LFSR and XORWOW, and counts their state words; polynomial,
// seeding and order are not public, so they are chosen here from published definitions (docs/decisions/0016-random.md;
// trust: assumed). A lane's words depend on nothing but its own state, so threads that share out lanes change nothing.
#pragma once

#include <array>
#include <cstdint>

#include "sterna/hardware/chip.h"

namespace sterna {

/// SplitMix64 (Steele, Lea, Flood 2014): a 64-bit counter and a mixing function. It only spreads seeds.
class SplitMix64 {
 public:
  explicit constexpr SplitMix64(uint64_t seed) : state_(seed) {}
  constexpr uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }

 private:
  uint64_t state_;
};

/// XORWOW (Marsaglia, Xorshift RNGs, 2003, section 3): five words of xorshift plus a counter that goes up by 362437.
struct Xorwow {
  static constexpr int kWords = 6;
  std::array<uint32_t, kWords> word{};  ///< x, y, z, w, v, d: the order in which a state is saved

  static constexpr Xorwow seeded(uint64_t seed) {
    SplitMix64 from(seed);
    Xorwow made;
    for (size_t i = 0; i < kWords; i += 2) {
      const uint64_t two = from.next();
      made.word[i] = static_cast<uint32_t>(two);
      made.word[i + 1] = static_cast<uint32_t>(two >> 32);
    }
    return made;
  }
  constexpr uint32_t next() {
    auto& [x, y, z, w, v, d] = word;
    const uint32_t t = x ^ x >> 2;
    x = y;
    y = z;
    z = w;
    w = v;
    v = (v ^ v << 4) ^ (t ^ t << 1);
    d += 362437;
    return d + v;
  }
};

/// x^22 + x^2 + x + 1: with x^32, the polynomial of the LFSR. It is primitive (taps 32, 22, 2, 1 of Xilinx XAPP 052).
inline constexpr uint32_t kLfsrTaps = 0x00400007;
/// What eight steps of the LFSR (multiplications by x) make of the bits that leave at the top.
constexpr std::array<uint32_t, 256> lfsr_eight_steps() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t s = i << 24;
    for (int k = 0; k < 8; ++k) s = s << 1 ^ (s >> 31 != 0 ? kLfsrTaps : 0);
    table[i] = s;
  }
  return table;
}
inline constexpr std::array<uint32_t, 256> kLfsrEightSteps = lfsr_eight_steps();

/// A 32-bit LFSR in Galois form, of period 2^32 - 1. A word takes 32 steps, and is the state after them. Never zero.
struct Lfsr {
  uint32_t state = 1;

  static constexpr Lfsr seeded(uint64_t seed) {
    const uint64_t two = SplitMix64(seed).next();
    const auto low = static_cast<uint32_t>(two), high = static_cast<uint32_t>(two >> 32);
    return {low != 0 ? low : (high != 0 ? high : 1)};
  }
  constexpr uint32_t next() {
    for (int i = 0; i < 4; ++i) state = state << 8 ^ kLfsrEightSteps[state >> 24];
    return state;
  }
};

/// A word as a fraction: its upper 24 bits, which fp32 holds exactly, times 2^-24. In [0, 1).
constexpr float random_fraction(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// The generators that instructions draw from, draw by draw in program order.
class Generators {
 public:
  /// XORWOW states of a lane of the vector engine: it makes four words a cycle (trn3 architecture guide).
  static constexpr int kVectorStates = 4;
  /// Until the program seeds them, as if seeded with the core's number.
  explicit Generators(int core);
  /// nki.isa.set_rng_seed: every lane of the vector engine anew.
  void seed_vector(uint32_t seed);
  /// The next n words of a lane of the vector engine. XORWOW: word i comes from state i mod 4, starting at state 0 in
  /// every instruction, so that the four states are all there is to save.
  void vector_words(bool xorwow, int64_t lane, uint32_t* out, int64_t n);
  void gpsimd_words(int64_t lane, uint32_t* out, int64_t n);
  std::array<Xorwow, kVectorStates>& vector_states(int64_t lane) { return vector_[at(lane)]; }
  Xorwow& gpsimd_state(int64_t lane) { return gpsimd_[at(lane)]; }

 private:
  static size_t at(int64_t lane) { return static_cast<size_t>(lane); }
  std::array<Lfsr, kMaxPartitions> lfsr_;
  std::array<std::array<Xorwow, kVectorStates>, kMaxPartitions> vector_;
  std::array<Xorwow, kMaxPartitions> gpsimd_;
};

/// The generator of stochastic rounding: one state a lane, one word for each element that an engine stores in a float
/// format below fp32, in the order of the elements in the row.
class RoundingGenerator {
 public:
  RoundingGenerator(uint32_t seed, int core);
  Xorwow& lane(int64_t lane) { return lanes_[static_cast<size_t>(lane) % lanes_.size()]; }

 private:
  std::array<Xorwow, kMaxPartitions> lanes_;
};

}  // namespace sterna
