// SPDX-License-Identifier: Apache-2.0
// Small text helpers. `cat(a, b, ...)` joins anything printable; it is what messages are built with.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

namespace sterna {

/// Shortest decimal text that reads back to the same value ("inf", "-inf", "nan" otherwise).
std::string number_text(double value);
std::string number_text(float value);

namespace detail {
inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, char c) { out += c; }
template <class T>
  requires std::is_arithmetic_v<T>
void append(std::string& out, T value) {
  if constexpr (std::is_same_v<T, bool>)
    out += value ? "true" : "false";
  else if constexpr (std::is_floating_point_v<T>)
    out += number_text(value);
  else
    out += std::to_string(value);
}
}  // namespace detail

template <class... T>
std::string cat(const T&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

/// "[128, 512]"
template <class Range>
std::string shape_text(const Range& shape) {
  std::string out = "[";
  bool first = true;
  for (auto n : shape) {
    if (!first) out += ", ";
    out += std::to_string(n);
    first = false;
  }
  return out + "]";
}

}  // namespace sterna
