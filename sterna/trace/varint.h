// SPDX-License-Identifier: Apache-2.0
// The bytes of a trace: numbers of seven bits a byte, columns as differences from the entry before.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sterna {

class ByteWriter {
 public:
  void number(uint64_t x) {
    for (; x >= 128; x >>= 7) bytes_ += static_cast<char>(x | 128);
    bytes_ += static_cast<char>(x);
  }
  /// Small in either direction is short.
  void signed_number(int64_t x) { number(static_cast<uint64_t>(x) << 1 ^ static_cast<uint64_t>(x >> 63)); }
  void real(double x) {
    const auto bits = std::bit_cast<uint64_t>(x);
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(bits >> (8 * i));
  }
  void text(std::string_view s) {
    number(s.size());
    bytes_ += s;
  }
  void raw(std::string_view s) { bytes_ += s; }
  template <class T>
  void column(const std::vector<T>& values) {
    number(values.size());
    uint64_t before = 0;
    for (T value : values) {
      const auto now = static_cast<uint64_t>(static_cast<int64_t>(value));
      signed_number(static_cast<int64_t>(now - before));
      before = now;
    }
  }
  std::string take() { return std::move(bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads what ByteWriter wrote. Past the end, or on a value that does not fit, everything is zero and `damaged` is set.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
  bool damaged = false;
  bool at_end() const { return at_ == bytes_.size(); }
  size_t left() const { return bytes_.size() - at_; }

  uint64_t number() {
    uint64_t x = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= bytes_.size()) return fail();
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      if (shift == 63 && byte > 1) return fail();
      x |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return x;
    }
    return fail();
  }
  int64_t signed_number() {
    const uint64_t x = number();
    return static_cast<int64_t>(x >> 1 ^ (~(x & 1) + 1));
  }
  double real() {
    if (left() < 8) return static_cast<double>(fail());
    uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits |= uint64_t{static_cast<uint8_t>(bytes_[at_++])} << (8 * i);
    return std::bit_cast<double>(bits);
  }
  uint8_t byte() { return at_ < bytes_.size() ? static_cast<uint8_t>(bytes_[at_++]) : static_cast<uint8_t>(fail()); }
  std::string_view view() {
    const uint64_t n = number();
    if (n > left()) return fail(), std::string_view();
    const std::string_view out = bytes_.substr(at_, n);
    at_ += n;
    return out;
  }
  std::string text() { return std::string(view()); }
  /// How many entries follow; each takes at least one byte, so a damaged count cannot ask for more memory than the file
  /// is long.
  size_t count() {
    const uint64_t n = number();
    return n > left() ? fail() : n;
  }
  template <class T>
  T fitting() {
    const uint64_t x = number();
    return x > static_cast<uint64_t>(static_cast<T>(-1)) ? static_cast<T>(fail()) : static_cast<T>(x);
  }
  template <class T>
  std::vector<T> column() {
    const size_t n = count();
    std::vector<T> out;
    out.reserve(n);
    uint64_t now = 0;
    for (size_t i = 0; i < n && !damaged; ++i) {
      now += static_cast<uint64_t>(signed_number());
      const auto value = static_cast<T>(now);
      if (static_cast<uint64_t>(static_cast<int64_t>(value)) != now) fail();
      out.push_back(value);
    }
    return out;
  }

 private:
  uint64_t fail() {
    damaged = true;
    at_ = bytes_.size();
    return 0;
  }
  std::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace sterna
