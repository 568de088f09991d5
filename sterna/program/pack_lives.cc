// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/pack_lives.h"

#include <algorithm>
#include <numeric>

namespace sterna {
namespace {

int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

/// The tensors that have a place, by the stretches of time that they live in.
class Placed {
 public:
  explicit Placed(const std::vector<LiveBytes>& tensors) : tensors_(tensors), seen_(tensors.size(), 0) {
    uint32_t end = 0;
    for (const LiveBytes& t : tensors) end = std::max(end, t.until);
    width_ = end / kStretches + 1;
    stretches_.resize(kStretches);
  }

  void add(uint32_t id) {
    const LiveBytes& t = tensors_[id];
    for (uint32_t s = t.from / width_; s <= t.until / width_; ++s) stretches_[s].push_back(id);
  }

  struct Range {
    int64_t begin, end;
  };
  /// The bytes that are taken at some time of a life, by begin.
  const std::vector<Range>& taken(const LiveBytes& t) {
    ranges_.clear();
    ++stamp_;
    for (uint32_t s = t.from / width_; s <= t.until / width_; ++s)
      for (uint32_t id : stretches_[s]) {
        const LiveBytes& other = tensors_[id];
        if (other.from > t.until || other.until < t.from || seen_[id] == stamp_) continue;
        seen_[id] = stamp_;
        ranges_.push_back({other.at, other.at + other.bytes});
      }
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    return ranges_;
  }

 private:
  static constexpr uint32_t kStretches = 512;
  const std::vector<LiveBytes>& tensors_;
  uint32_t width_ = 1, stamp_ = 0;
  std::vector<std::vector<uint32_t>> stretches_;
  std::vector<uint32_t> seen_;
  std::vector<Range> ranges_;
};

/// The lowest place that holds the tensor; -1 without one.
int64_t lowest(const LiveBytes& t, const std::vector<Placed::Range>& taken, int64_t capacity, int64_t align) {
  const auto start = [&](int64_t at) {
    at = round_up(at, align);
    return t.inside > 0 && at / t.inside != (at + t.bytes - 1) / t.inside ? round_up(at, t.inside) : at;
  };
  int64_t at = start(0);
  for (const Placed::Range& range : taken) {
    if (range.begin >= at + t.bytes) break;
    if (range.end > at) at = start(range.end);
  }
  return at + t.bytes <= capacity ? at : -1;
}

bool pack_in_order(std::vector<LiveBytes>& tensors, const std::vector<uint32_t>& order, int64_t capacity,
                   int64_t align) {
  Placed placed(tensors);
  for (uint32_t id = 0; id < tensors.size(); ++id)
    if (tensors[id].at >= 0) placed.add(id);
  for (uint32_t id : order) {
    LiveBytes& t = tensors[id];
    t.at = lowest(t, placed.taken(t), capacity, align);
    if (t.at < 0) return false;
    placed.add(id);
  }
  return true;
}

}  // namespace

bool pack_lives(std::vector<LiveBytes>& tensors, int64_t capacity, int64_t align) {
  std::vector<uint32_t> order;
  for (uint32_t id = 0; id < tensors.size(); ++id)
    if (tensors[id].at < 0) order.push_back(id);
  const auto by = [&](auto key) {  // the larger key first; equal keys as they begin
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return key(tensors[a]) > key(tensors[b]); });
    if (pack_in_order(tensors, order, capacity, align)) return true;
    for (uint32_t id : order) tensors[id].at = -1;
    return false;
  };
  return by([](const LiveBytes& t) { return t.bytes; }) ||
         by([](const LiveBytes& t) { return t.bytes * (int64_t{t.until} - t.from + 1); }) ||
         by([](const LiveBytes& t) { return -int64_t{t.from}; });
}

}  // namespace sterna
