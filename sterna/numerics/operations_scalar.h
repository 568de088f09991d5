// SPDX-License-Identifier: Apache-2.0
// The operation set of functions_formulas-inl.h on plain C++ values.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace sterna {

/// Plain C++ operations, each rounded once (the build forbids contraction).
struct ScalarOps {
  using F = float;
  using U = uint32_t;
  using D = double;
  using Q = uint64_t;

  static F f(float v) { return v; }
  static U u(uint32_t v) { return v; }
  static D d(double v) { return v; }
  static Q q(uint64_t v) { return v; }

  template <class T>
  static T add(T a, T b) {
    return a + b;
  }
  template <class T>
  static T sub(T a, T b) {
    return a - b;
  }
  template <class T>
  static T mul(T a, T b) {
    return a * b;
  }
  template <class T>
  static T div(T a, T b) {
    return a / b;
  }
  template <class T>
  static T fma(T a, T b, T c) {
    return std::fma(a, b, c);
  }
  template <class T>
  static T fnma(T a, T b, T c) {
    return std::fma(-a, b, c);
  }
  template <class T>
  static T sqrt(T a) {
    return std::sqrt(a);
  }
  template <class T>
  static T min(T a, T b) {
    return a < b ? a : b;
  }
  template <class T>
  static T max(T a, T b) {
    return a > b ? a : b;
  }
  template <class T>
  static T abs(T a) {
    return std::fabs(a);
  }
  template <class T>
  static T copy_sign(T magnitude, T sign) {
    return std::copysign(magnitude, sign);
  }
  template <class T>
  static bool lt(T a, T b) {
    return a < b;
  }
  template <class T>
  static bool eq(T a, T b) {
    return a == b;
  }
  template <class T>
  static bool is_nan(T a) {
    return a != a;
  }
  template <class T>
  static T select(bool condition, T yes, T no) {
    return condition ? yes : no;
  }
  static D select_if_odd(Q n, D odd, D even) { return n & 1 ? odd : even; }

  static U bits(F v) { return std::bit_cast<U>(v); }
  static Q bits(D v) { return std::bit_cast<Q>(v); }
  static F from_bits(U v) { return std::bit_cast<F>(v); }
  static D from_bits(Q v) { return std::bit_cast<D>(v); }
  template <class T>
  static T iadd(T a, T b) {
    return a + b;
  }
  template <class T>
  static T isub(T a, T b) {
    return a - b;
  }
  template <class T>
  static T iand(T a, T b) {
    return a & b;
  }
  template <class T>
  static T ixor(T a, T b) {
    return a ^ b;
  }
  template <int n, class T>
  static T shl(T a) {
    return a << n;
  }
  template <int n, class T>
  static T shr(T a) {
    return a >> n;
  }
  template <int n>
  static U sar(U a) {
    return static_cast<U>(static_cast<int32_t>(a) >> n);
  }

  template <class Formula>
  static F wide(F x) {
    return static_cast<F>(Formula::template apply<ScalarOps>(static_cast<D>(x)));
  }
  template <class Formula>
  static F wide(F x, F y) {
    return static_cast<F>(Formula::template apply<ScalarOps>(static_cast<D>(x), static_cast<D>(y)));
  }
};

}  // namespace sterna
