// SPDX-License-Identifier: Apache-2.0
// Memory that outlives one run. A kernel call needs the same large buffers again and again; getting them fresh from the
// system each time costs a page fault for every 4 KiB, which is more than the arithmetic of a small kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace sterna {

class BufferPool;

/// How much of a buffer its user touches. What is kSparse has small pages, and those that nobody touches cost nothing.
enum class Touched : uint8_t { kAll, kSparse };

/// A block of bytes on a 64-byte boundary; goes back to its pool. Contents are whatever was there.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { reset(); }

  std::byte* data() const { return data_; }
  size_t capacity() const { return capacity_; }
  explicit operator bool() const { return data_ != nullptr; }
  void reset();

 private:
  friend class BufferPool;
  std::byte* data_ = nullptr;
  size_t capacity_ = 0;
  Touched touched_ = Touched::kAll;
  std::shared_ptr<BufferPool> home_;
};

/// Free lists by size class, shared by the runs of a process; safe from any thread.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  /// Keeps at most `most` bytes of free memory; more goes back to the system.
  static std::shared_ptr<BufferPool> make(size_t most = size_t{1} << 30);
  ~BufferPool();

  /// At least `bytes` bytes; an empty Buffer when the system has no memory.
  Buffer take(size_t bytes, Touched touched = Touched::kAll);

 private:
  explicit BufferPool(size_t most);
  friend class Buffer;
  void give_back(const Buffer& buffer);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sterna
