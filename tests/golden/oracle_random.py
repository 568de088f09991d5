# SPDX-License-Identifier: Apache-2.0
"""The random generators in plain Python, from their published definitions (docs/decisions/0016-random.md)."""

import numpy as np

_MASK = 0xFFFFFFFF
VECTOR, GPSIMD, ROUNDING = 0, 1, 2
STATES = 4  # XORWOW states of a lane of the vector engine


def splitmix64(seed):
    """SplitMix64: endless 64-bit words."""
    mask = (1 << 64) - 1
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = seed
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        yield z ^ (z >> 31)


def seed_of(seed, who, state):
    return seed << 32 | who << 30 | state


class Xorwow:
    """Marsaglia, Xorshift RNGs (2003): words x, y, z, w, v, d."""

    def __init__(self, words):
        self.words = [int(w) for w in words]

    @classmethod
    def seeded(cls, seed):
        source = splitmix64(seed)
        words = []
        for _ in range(3):
            two = next(source)
            words += [two & _MASK, two >> 32]
        return cls(words)

    def __call__(self):
        x, y, z, w, v, d = self.words
        t = x ^ (x >> 2)
        new = (v ^ (v << 4) ^ t ^ (t << 1)) & _MASK
        d = (d + 362437) & _MASK
        self.words = [y, z, w, v, new, d]
        return (d + new) & _MASK


class Lfsr:
    """Multiplication by x modulo x^32 + x^22 + x^2 + x + 1, 32 times a word, one bit after the other."""

    def __init__(self, state):
        self.state = state

    @classmethod
    def seeded(cls, seed):
        two = next(splitmix64(seed))
        return cls(two & _MASK or two >> 32 or 1)

    def __call__(self):
        for _ in range(32):
            top = self.state >> 31
            self.state = (self.state << 1) & _MASK
            if top:
                self.state ^= 1 << 22 | 1 << 2 | 1 << 1 | 1
        return self.state


class VectorLane:
    """A lane of the vector engine: LFSR, or four XORWOW states in turn, from the first in each instruction."""

    def __init__(self, lane, seed=0, xorwow=False):
        first = lane * STATES
        if xorwow:
            self.states = [Xorwow.seeded(seed_of(seed, VECTOR, first + k)) for k in range(STATES)]
        else:
            self.states = [Lfsr.seeded(seed_of(seed, VECTOR, first))]

    def draw(self, n):
        return [self.states[i % len(self.states)]() for i in range(n)]


def vector_words(lanes, n, seed=0, xorwow=False):
    """What the first instruction after seeding draws: uint32 [lanes, n]."""
    return np.array([VectorLane(lane, seed, xorwow).draw(n) for lane in range(lanes)], np.uint32)


def gpsimd_words(lanes, n, core=0):
    out = []
    for lane in range(lanes):
        state = Xorwow.seeded(seed_of(core, GPSIMD, lane))
        out.append([state() for _ in range(n)])
    return np.array(out, np.uint32)


def rounding_words(lanes, n, seed):
    out = []
    for lane in range(lanes):
        state = Xorwow.seeded(seed_of(seed, ROUNDING, lane))
        out.append([state() for _ in range(n)])
    return np.array(out, np.uint32)


def fraction(words):
    """In [0, 1): the upper 24 bits."""
    return (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def round_to_bfloat16(values, words):
    """Away from zero where the word, as a fraction, is below the part that bfloat16 drops."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    up = words.astype(np.uint64) < (bits & 0xFFFF) << 16
    return ((bits >> 16) + up).astype(np.uint16)
