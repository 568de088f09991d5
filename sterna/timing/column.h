// SPDX-License-Identifier: Apache-2.0
// Column: a growing array of plain values whose memory comes from a pool, so that one prediction after another finds
// its pages ready.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "sterna/base/buffers.h"

namespace sterna {

template <class T>
class Column {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Column() = default;
  explicit Column(std::shared_ptr<BufferPool> pool) : pool_(std::move(pool)) {}
  Column(Column&& other) noexcept
      : pool_(other.pool_), buffer_(std::move(other.buffer_)), size_(std::exchange(other.size_, 0)) {}
  Column& operator=(Column&& other) noexcept {
    pool_ = other.pool_;
    buffer_ = std::move(other.buffer_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  void reserve(size_t n) {
    if (n > capacity()) move_to(n);
  }
  /// New values are whatever was there.
  void resize(size_t n) {
    reserve(n);
    size_ = n;
  }
  T& push_back(const T& value) {
    if (size_ == capacity()) move_to(std::max<size_t>(256, 2 * size_));
    return *new (data() + size_++) T(value);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return reinterpret_cast<T*>(buffer_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(buffer_.data()); }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  const T& front() const { return data()[0]; }
  const T& back() const { return data()[size_ - 1]; }

 private:
  size_t capacity() const { return buffer_.capacity() / sizeof(T); }
  void move_to(size_t n) {
    if (!pool_) pool_ = BufferPool::make();
    Buffer larger = pool_->take(n * sizeof(T));
    if (!larger) (void)std::allocator<T>().allocate(SIZE_MAX / sizeof(T));  // out of memory: ends as std::vector does
    if (size_ > 0) std::memcpy(larger.data(), buffer_.data(), size_ * sizeof(T));
    buffer_ = std::move(larger);
  }

  std::shared_ptr<BufferPool> pool_;
  Buffer buffer_;
  size_t size_ = 0;
};

}  // namespace sterna
