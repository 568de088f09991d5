// SPDX-License-Identifier: Apache-2.0
#include "sterna/machine/generators.h"

namespace sterna {
namespace {

/// One SplitMix64 seed for each state of a core: the program's seed above, who draws and which state below.
enum class Who : uint32_t { kVector = 0, kGpSimd = 1, kRounding = 2 };
uint64_t seed_of(uint32_t seed, Who who, int64_t state) {
  return static_cast<uint64_t>(seed) << 32 | static_cast<uint32_t>(who) << 30 | static_cast<uint32_t>(state);
}

}  // namespace

Generators::Generators(int core) {
  seed_vector(static_cast<uint32_t>(core));
  for (size_t lane = 0; lane < gpsimd_.size(); ++lane)
    gpsimd_[lane] = Xorwow::seeded(seed_of(static_cast<uint32_t>(core), Who::kGpSimd, static_cast<int64_t>(lane)));
}

void Generators::seed_vector(uint32_t seed) {
  for (size_t lane = 0; lane < vector_.size(); ++lane) {
    const auto first = static_cast<int64_t>(lane) * kVectorStates;
    lfsr_[lane] = Lfsr::seeded(seed_of(seed, Who::kVector, first));
    for (size_t k = 0; k < kVectorStates; ++k)
      vector_[lane][k] = Xorwow::seeded(seed_of(seed, Who::kVector, first + static_cast<int64_t>(k)));
  }
}

void Generators::vector_words(bool xorwow, int64_t lane, uint32_t* out, int64_t n) {
  if (!xorwow) {
    Lfsr state = lfsr_[at(lane)];
    for (int64_t i = 0; i < n; ++i) out[i] = state.next();
    lfsr_[at(lane)] = state;
    return;
  }
  auto states = vector_[at(lane)];
  for (int64_t i = 0; i < n; ++i) out[i] = states[static_cast<size_t>(i % kVectorStates)].next();
  vector_[at(lane)] = states;
}

void Generators::gpsimd_words(int64_t lane, uint32_t* out, int64_t n) {
  Xorwow state = gpsimd_[at(lane)];
  for (int64_t i = 0; i < n; ++i) out[i] = state.next();
  gpsimd_[at(lane)] = state;
}

RoundingGenerator::RoundingGenerator(uint32_t seed, int core) {
  const auto first = static_cast<int64_t>(core) * int64_t{kMaxPartitions};
  for (size_t lane = 0; lane < lanes_.size(); ++lane)
    lanes_[lane] = Xorwow::seeded(seed_of(seed, Who::kRounding, first + static_cast<int64_t>(lane)));
}

}  // namespace sterna
