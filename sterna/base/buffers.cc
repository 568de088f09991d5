// SPDX-License-Identifier: Apache-2.0
#include "sterna/base/buffers.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

namespace sterna {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

/// Four classes for each power of two, so that at most a quarter is wasted.
size_t class_size(size_t bytes) {
  bytes = std::max<size_t>(bytes, 256);
  const size_t step = std::bit_ceil(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

size_t class_index(size_t capacity) {
  const auto power = static_cast<size_t>(std::bit_width(capacity - 1));
  const size_t step = (size_t{1} << power) / 8;
  return power * 8 + capacity / step;
}

std::byte* from_system(size_t capacity, Touched touched) {
  if (touched == Touched::kSparse) {
    void* at = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
  }
  const size_t alignment = capacity >= kHugePage ? kHugePage : 64;
  void* at = std::aligned_alloc(alignment, (capacity + alignment - 1) / alignment * alignment);
  if (at != nullptr && capacity >= kHugePage) madvise(at, capacity, MADV_HUGEPAGE);  // a wish, not a need
  return static_cast<std::byte*>(at);
}

void to_system(std::byte* data, size_t capacity, Touched touched) {
  if (touched == Touched::kSparse)
    munmap(data, capacity);
  else
    std::free(data);
}

constexpr size_t kClasses = 64 * 8 + 16;

}  // namespace

struct BufferPool::State {
  struct Free {
    std::byte* data;
    size_t capacity;
  };
  std::mutex mutex;
  std::vector<std::vector<Free>> free[2];  // by Touched
  size_t kept = 0, most = 0;
};

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      touched_(other.touched_),
      home_(std::move(other.home_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  data_ = std::exchange(other.data_, nullptr);
  capacity_ = std::exchange(other.capacity_, 0);
  touched_ = other.touched_;
  home_ = std::move(other.home_);
  return *this;
}

void Buffer::reset() {
  if (data_ == nullptr) return;
  home_->give_back(*this);
  data_ = nullptr;
  capacity_ = 0;
  home_.reset();
}

std::shared_ptr<BufferPool> BufferPool::make(size_t most) { return std::shared_ptr<BufferPool>(new BufferPool(most)); }

BufferPool::BufferPool(size_t most) : state_(new State) {
  state_->most = most;
  for (auto& lists : state_->free) lists.resize(kClasses);
}

BufferPool::~BufferPool() {
  for (const Touched touched : {Touched::kAll, Touched::kSparse})
    for (auto& list : state_->free[static_cast<size_t>(touched)])
      for (const State::Free& f : list) to_system(f.data, f.capacity, touched);
}

Buffer BufferPool::take(size_t bytes, Touched touched) {
  Buffer buffer;
  buffer.touched_ = touched;
  buffer.capacity_ = class_size(bytes);
  {
    std::lock_guard lock(state_->mutex);
    auto& list = state_->free[static_cast<size_t>(touched)][class_index(buffer.capacity_)];
    if (!list.empty()) {
      buffer.data_ = list.back().data;
      list.pop_back();
      state_->kept -= buffer.capacity_;
    }
  }
  if (buffer.data_ == nullptr) buffer.data_ = from_system(buffer.capacity_, touched);
  if (buffer.data_ == nullptr)
    buffer.capacity_ = 0;
  else
    buffer.home_ = shared_from_this();
  return buffer;
}

void BufferPool::give_back(const Buffer& buffer) {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->kept + buffer.capacity_ <= state_->most) {
      auto& lists = state_->free[static_cast<size_t>(buffer.touched_)];
      lists[class_index(buffer.capacity_)].push_back({buffer.data_, buffer.capacity_});
      state_->kept += buffer.capacity_;
      return;
    }
  }
  to_system(buffer.data_, buffer.capacity_, buffer.touched_);
}

}  // namespace sterna
