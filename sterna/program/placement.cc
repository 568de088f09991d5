// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/placement.h"

#include <algorithm>
#include <map>

#include "sterna/base/text.h"
#include "sterna/isa/control.h"

namespace sterna {
namespace {

constexpr int64_t kAlign = 4;  // no document asks for more

struct Range {
  int64_t begin, end;
};

/// Ranges of live tensors with an address, sorted by begin; what a hole must avoid beyond the tensors placed here.
using Ranges = std::vector<Range>;

/// Free bytes of one partition as disjoint segments.
class FreeList {
 public:
  explicit FreeList(int64_t capacity) : capacity_(capacity) { free_[0] = capacity; }

  /// First place at or after `from` (then from 0) for `bytes` at a multiple of `align` that avoids `blocked`; -1 if there is none. With
  /// `inside`, a place does not cross a multiple of it.
  int64_t find(int64_t from, int64_t bytes, int64_t align, int64_t inside, const Ranges& blocked) const {
    auto at = free_.upper_bound(from);
    if (at != free_.begin()) --at;
    for (auto s = at; s != free_.end(); ++s) {
      const int64_t found = fit({std::max(s->first, from), s->second}, bytes, align, inside, blocked);
      if (found >= 0) return found;
    }
    for (auto s = free_.begin(); s != free_.end() && s->first < from; ++s) {
      const int64_t found = fit({s->first, s->second}, bytes, align, inside, blocked);
      if (found >= 0) return found;
    }
    return -1;
  }

  void take(Range r) {
    auto s = std::prev(free_.upper_bound(r.begin));
    const int64_t end = s->second;
    if (s->first == r.begin)
      free_.erase(s);
    else
      s->second = r.begin;
    if (r.end < end) free_[r.end] = end;
  }

  void give(Range r) {
    auto next = free_.lower_bound(r.begin);
    if (next != free_.end() && next->first == r.end) {
      r.end = next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      auto before = std::prev(next);
      if (before->second == r.begin) {
        before->second = r.end;
        return;
      }
    }
    free_[r.begin] = r.end;
  }

  int64_t capacity() const { return capacity_; }

 private:
  static int64_t fit(Range hole, int64_t bytes, int64_t align, int64_t inside, const Ranges& blocked) {
    int64_t at = round_up(hole.begin, align);
    if (inside > 0 && at / inside != (at + bytes - 1) / inside) at = round_up(at, inside);
    for (const Range& b : blocked) {
      if (b.begin >= at + bytes) break;
      if (b.end > at) {
        at = round_up(b.end, align);
        if (inside > 0 && at / inside != (at + bytes - 1) / inside) at = round_up(at, inside);
      }
    }
    return at + bytes <= hole.end ? at : -1;
  }
  static int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

  int64_t capacity_;
  std::map<int64_t, int64_t> free_;  // begin -> end
};

/// How many live tensors with addresses cover each block of bytes: tensors may share an address, so lengths do not add up.
class Coverage {
 public:
  explicit Coverage(int64_t capacity) : counts_(static_cast<size_t>((capacity + kBlock - 1) / kBlock)) {}
  void add(Range r, int change) {
    for (int64_t b = r.begin / kBlock; b * kBlock < r.end; ++b) {
      int32_t& count = counts_[static_cast<size_t>(b)];
      if (change > 0 && count == 0) bytes_ += kBlock;
      count += change;
      if (change < 0 && count == 0) bytes_ -= kBlock;
    }
  }
  int64_t bytes() const { return bytes_; }

 private:
  static constexpr int64_t kBlock = 32;
  std::vector<int32_t> counts_;
  int64_t bytes_ = 0;
};

struct Life {
  uint32_t tensor, from, until;
};

/// Places the tensors of one memory.
class Placer {
 public:
  Placer(const Program& program, const Chip& chip, Memory memory, Placement& out)
      : program_(program),
        memory_(memory),
        unit_(memory == Memory::kPsum ? int64_t{chip.psum.bank_bytes} : 0),
        free_(memory == Memory::kPsum ? chip.psum_partition_bytes() : chip.sbuf_usable_bytes()),
        coverage_(free_.capacity()),
        out_(out) {}

  /// `lives` in order of `from`.
  Status run(const std::vector<Life>& lives, int64_t* peak) {
    for (const Life& life : lives)
      if (info(life).has_address) addressed_.push_back(life);
    for (const Life& life : lives) {
      retire(life.from);
      if (info(life).has_address)
        STERNA_TRY(put_addressed(life));
      else
        STERNA_TRY(put(life));
      *peak = std::max(*peak, placed_bytes_ + coverage_.bytes());
    }
    return {};
  }

 private:
  const TensorInfo& info(const Life& life) const { return program_.tensors[life.tensor]; }
  Range range(const Life& life) const {
    const int64_t begin = out_.byte[life.tensor];
    return {begin, begin + info(life).free_bytes()};
  }

  /// Frees what ended before record `now`.
  void retire(uint32_t now) {
    while (!ends_.empty() && ends_.begin()->first < now) {
      const Life life = ends_.begin()->second;
      ends_.erase(ends_.begin());
      const Range r = range(life);
      if (r.begin == r.end) continue;
      if (info(life).has_address) {
        coverage_.add(r, -1);
      } else {
        placed_bytes_ -= r.end - r.begin;
        free_.give(r);
      }
    }
  }

  Status put_addressed(const Life& life) {
    const TensorInfo& t = info(life);
    if (t.address_byte + t.free_bytes() > free_.capacity())
      return fault(life, cat("Tensor '", program_.tensor_name(life.tensor), "' has the address ", t.address_byte, " and ", t.free_bytes(),
                             " bytes in each partition; ", sterna::name(memory_), " ends at ", free_.capacity(), "."));
    coverage_.add(range(life), 1);
    ends_.emplace(life.until, life);
    ++addressed_seen_;
    return {};
  }

  Status put(const Life& life) {
    const int64_t bytes = info(life).free_bytes();
    ends_.emplace(life.until, life);
    if (bytes == 0) return {};
    const Ranges blocked = blocked_for(life);
    int64_t at = -1;
    if (unit_ > 0) {  // whole banks first, so that a matmul and a copy do not meet in one
      const int64_t banks = (bytes + unit_ - 1) / unit_ * unit_;
      at = free_.find(next_, banks, unit_, 0, blocked);
      if (at >= 0) next_ = (at + banks) % free_.capacity();
    }
    if (at < 0) {
      at = free_.find(unit_ > 0 ? 0 : next_, bytes, kAlign, bytes <= unit_ ? unit_ : 0, blocked);
      if (at < 0) return does_not_fit(life, bytes);
      if (unit_ == 0) next_ = at + bytes;
    }
    out_.byte[life.tensor] = static_cast<uint32_t>(at);
    free_.take({at, at + bytes});
    placed_bytes_ += bytes;
    return {};
  }

  /// Tensors with addresses that live at some time of `life`.
  Ranges blocked_for(const Life& life) const {
    Ranges out;
    if (addressed_.empty()) return out;
    for (const auto& [until, other] : ends_)
      if (info(other).has_address) out.push_back(range(other));
    for (size_t i = addressed_seen_; i < addressed_.size() && addressed_[i].from <= life.until; ++i) {
      const TensorInfo& t = info(addressed_[i]);
      out.push_back({t.address_byte, t.address_byte + t.free_bytes()});
    }
    std::sort(out.begin(), out.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    return out;
  }

  Status does_not_fit(const Life& life, int64_t bytes) const {
    std::vector<std::pair<int64_t, uint32_t>> live;
    for (const auto& [until, other] : ends_)
      if (other.tensor != life.tensor) live.emplace_back(info(other).free_bytes(), other.tensor);
    std::sort(live.begin(), live.end(), [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
    std::string list;
    for (size_t i = 0; i < live.size() && i < 8; ++i) {
      const Place at = program_.place(program_.tensors[live[i].second].site);
      list += cat(i == 0 ? " Live: " : "; ", "'", program_.tensor_name(live[i].second), "' ", live[i].first, " B");
      if (!at.file.empty()) list += cat(" (", at.file, ":", at.line, ")");
    }
    if (live.size() > 8) list += cat("; and ", live.size() - 8, " more");
    const int64_t used = placed_bytes_ + coverage_.bytes();
    return fault(life, cat("Tensor '", program_.tensor_name(life.tensor), "' needs ", bytes, " bytes in each partition of ", sterna::name(memory_), ", which has ",
                           free_.capacity(), " and holds ", used, used + bytes <= free_.capacity() ? " in pieces that leave no hole of that size." : ".", list,
                           list.empty() ? "" : "."));
  }

  Status fault(const Life& life, std::string message) const {
    Fault f(FaultKind::kRuleBroken, memory_ == Memory::kPsum ? "CAP2" : "CAP1", std::move(message));
    f.site = info(life).site;
    program_.locate(f);
    return f;
  }

  const Program& program_;
  Memory memory_;
  int64_t unit_;
  FreeList free_;
  Coverage coverage_;
  Placement& out_;
  std::multimap<uint32_t, Life> ends_;  // live tensors by their last record
  std::vector<Life> addressed_;
  size_t addressed_seen_ = 0;
  int64_t next_ = 0, placed_bytes_ = 0;
};

/// The regions of a stream, to find how far a tensor's life reaches when a region comes back to it.
class Regions {
 public:
  explicit Regions(const Stream& stream) {
    std::vector<uint32_t> open;
    for (uint32_t i = 0; i < stream.size(); ++i) {
      const uint8_t opcode = stream[i].opcode;
      if (opcode == control::Loop::info.opcode || opcode == control::While::info.opcode || opcode == control::If::info.opcode) {
        open.push_back(static_cast<uint32_t>(list_.size()));
        list_.push_back({i, UINT32_MAX});
      } else if (opcode == control::End::info.opcode && !open.empty()) {
        list_[open.back()].second = i;
        open.pop_back();
      }
    }
  }

  /// `until`, or the end of the outermost region that holds `until` and not `from`. A tensor allocated inside a region begins anew in
  /// each trip, so inside it its last use is enough.
  uint32_t extend(uint32_t from, uint32_t until) const {
    for (auto at = std::upper_bound(list_.begin(), list_.end(), std::pair{from, UINT32_MAX}); at != list_.end() && at->first <= until; ++at)
      if (at->second >= until) return at->second;
    return until;
  }

 private:
  std::vector<std::pair<uint32_t, uint32_t>> list_;  // first and last record, by first
};

}  // namespace

Result<Placement> place_tensors(const Program& program, const Chip& chip) {
  Placement out;
  const size_t n = program.tensors.size();
  out.byte.resize(n);
  out.partition.resize(n);
  out.until.resize(n);
  const Regions regions(program.cores[0]);
  std::vector<Life> lives[2];
  for (uint32_t id = 0; id < n; ++id) {
    const TensorInfo& t = program.tensors[id];
    out.until[id] = regions.extend(t.allocated_at, t.last_use);
    if (!t.on_chip()) continue;
    if (t.has_address) {
      out.byte[id] = t.address_byte;
      out.partition[id] = t.address_partition;
    }
    lives[t.memory == Memory::kPsum].push_back({id, t.allocated_at, out.until[id]});
  }
  for (auto& list : lives)
    std::stable_sort(list.begin(), list.end(), [](const Life& a, const Life& b) { return a.from < b.from; });
  STERNA_TRY(Placer(program, chip, Memory::kSbuf, out).run(lives[0], &out.sbuf_peak));
  STERNA_TRY(Placer(program, chip, Memory::kPsum, out).run(lives[1], &out.psum_peak));
  return out;
}

}  // namespace sterna
