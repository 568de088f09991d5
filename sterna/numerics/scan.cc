// SPDX-License-Identifier: Apache-2.0
// Scans along rows: r[i] = (d0[i] op0 r[i-1]) op1 d1[i]. Each element waits for the one before it, so the only
// parallelism is between rows: four advance together. There is no SIMD form; every target runs this code.
#include <cmath>

#include "sterna/numerics/alu.h"

namespace sterna {
namespace {

// A step maps the running value and the data element to the next running value. NaN keeps any payload on the way (no
// operator's result depends on it) and becomes canonical when it is stored.
struct Add {
  float operator()(float r, float x) const { return x + r; }
};
struct DataMinusRunning {
  float operator()(float r, float x) const { return x - r; }
};
struct RunningMinusData {
  float operator()(float r, float x) const { return r - x; }
};
struct Multiply {
  float operator()(float r, float x) const { return x * r; }
};
struct Maximum {
  float operator()(float r, float x) const { return r > x ? r : x > r ? x : alu(AluOp::kMaximum, x, r); }
};
struct Minimum {
  float operator()(float r, float x) const { return r < x ? r : x < r ? x : alu(AluOp::kMinimum, x, r); }
};
/// Any operator, by its definition.
struct AnyOp {
  AluOp op;
  bool running_first;
  float operator()(float r, float x) const { return running_first ? alu(op, r, x) : alu(op, x, r); }
};

struct Rows {
  ConstBlock d0, d1;
  const float* initial;
  ptrdiff_t initial_pitch;
  Block out;
  ptrdiff_t cols;
};

template <int kRows, class Step0, class Step1>
void scan_rows(const Rows& s, ptrdiff_t first, Step0 step0, Step1 step1) {
  const float* d0 = s.d0.data + first * s.d0.pitch;
  const float* d1 = s.d1.data + first * s.d1.pitch;
  float* out = s.out.data + first * s.out.pitch;
  const ptrdiff_t pitch0 = s.d0.pitch, pitch1 = s.d1.pitch, out_pitch = s.out.pitch;
  float running[kRows];
  for (int k = 0; k < kRows; ++k) running[k] = s.initial[(first + k) * s.initial_pitch];
  for (ptrdiff_t c = 0; c < s.cols; ++c) {
#pragma GCC unroll 4
    for (int k = 0; k < kRows; ++k) {
      const float r = step1(step0(running[k], d0[k * pitch0 + c]), d1[k * pitch1 + c]);
      running[k] = r;
      out[k * out_pitch + c] = std::isnan(r) ? __builtin_nanf("") : r;
    }
  }
}

template <class Step0, class Step1>
void scan_with(const Rows& s, ptrdiff_t rows, Step0 step0, Step1 step1) {
  ptrdiff_t r = 0;
  for (; r + 4 <= rows; r += 4) scan_rows<4>(s, r, step0, step1);
  for (; r < rows; ++r) scan_rows<1>(s, r, step0, step1);
}

/// Calls `run` with the step for `op`. `running_first`: the running value is the left operand.
template <class Run>
void with_step(AluOp op, bool running_first, const Run& run) {
  switch (op) {
    case AluOp::kAdd: return run(Add());
    case AluOp::kMultiply: return run(Multiply());
    case AluOp::kMaximum: return run(Maximum());
    case AluOp::kMinimum: return run(Minimum());
    case AluOp::kSubtract: return running_first ? run(RunningMinusData()) : run(DataMinusRunning());
    default: return run(AnyOp{op, running_first});
  }
}

}  // namespace

void scan_block(AluOp op0, AluOp op1, bool reverse0, bool reverse1, ConstBlock d0, ConstBlock d1, const float* initial,
                ptrdiff_t initial_pitch, Block out, ptrdiff_t rows, ptrdiff_t cols) {
  const Rows s{d0, d1, initial, initial_pitch, out, cols};
  // Step 0 has the data on the left, step 1 the running value, unless reversed.
  with_step(op0, reverse0,
            [&](auto step0) { with_step(op1, !reverse1, [&](auto step1) { scan_with(s, rows, step0, step1); }); });
}

void scan_row(AluOp op0, AluOp op1, bool reverse0, bool reverse1, const float* d0, const float* d1, float initial,
              float* out, ptrdiff_t cols) {
  scan_block(op0, op1, reverse0, reverse1, {d0, 0}, {d1, 0}, &initial, 0, {out, 0}, 1, cols);
}

}  // namespace sterna
