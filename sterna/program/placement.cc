// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/placement.h"

#include <algorithm>
#include <array>
#include <deque>

#include "sterna/base/text.h"
#include "sterna/program/pack_lives.h"
#include "sterna/program/regions.h"

namespace sterna {
namespace {

constexpr int64_t kAlign = 4;  // no document asks for more

struct Range {
  int64_t begin, end;
};

/// Ranges of live tensors with an address, sorted by begin; what a hole must avoid beyond the tensors placed here.
using Ranges = std::vector<Range>;

/// Free bytes of one partition as disjoint segments. Bytes that a tensor gave back rest until they are needed, and
/// those that rested longest are used first: the instructions that used them last are then most likely done when their
/// place is written again.
class FreeList {
 public:
  explicit FreeList(int64_t capacity) : capacity_(capacity), free_{{0, capacity}} {}

  struct Request {
    int64_t bytes, align;
    int64_t inside;  ///< the place does not cross a multiple of it; 0 = may
    const Ranges& blocked;
  };
  /// First place at or after `from`, then from 0; -1 if there is none even after all bytes are back.
  int64_t find(int64_t from, const Request& request) {
    for (;;) {
      const int64_t at = find_rested(from, request);
      if (at >= 0 || resting_.empty()) return at;
      give(resting_.front());
      resting_.pop_front();
    }
  }

  void take(Range r) {
    auto s = std::prev(after(r.begin));
    const Range old = *s;
    if (old.begin == r.begin && old.end == r.end) {
      free_.erase(s);
    } else if (old.begin == r.begin) {
      s->begin = r.end;
    } else {
      s->end = r.begin;
      if (r.end < old.end) free_.insert(s + 1, {r.end, old.end});
    }
  }

  void give_back(Range r) { resting_.push_back(r); }

  int64_t capacity() const { return capacity_; }

 private:
  std::vector<Range>::iterator after(int64_t begin) {
    return std::upper_bound(free_.begin(), free_.end(), begin, [](int64_t x, const Range& r) { return x < r.begin; });
  }

  int64_t find_rested(int64_t from, const Request& request) {
    auto at = after(from);
    if (at != free_.begin()) --at;
    for (auto s = at; s != free_.end(); ++s) {
      const int64_t found = fit({std::max(s->begin, from), s->end}, request);
      if (found >= 0) return found;
    }
    for (auto s = free_.begin(); s != free_.end() && s->begin < from; ++s) {
      const int64_t found = fit(*s, request);
      if (found >= 0) return found;
    }
    return -1;
  }

  void give(Range r) {
    auto next = after(r.begin);
    const bool joins_next = next != free_.end() && next->begin == r.end;
    const bool joins_before = next != free_.begin() && std::prev(next)->end == r.begin;
    if (joins_before && joins_next) {
      std::prev(next)->end = next->end;
      free_.erase(next);
    } else if (joins_before) {
      std::prev(next)->end = r.end;
    } else if (joins_next) {
      next->begin = r.begin;
    } else {
      free_.insert(next, r);
    }
  }

  static int64_t fit(Range hole, const Request& request) {
    int64_t at = align(hole.begin, request);
    for (const Range& b : request.blocked) {
      if (b.begin >= at + request.bytes) break;
      if (b.end > at) at = align(b.end, request);
    }
    return at + request.bytes <= hole.end ? at : -1;
  }
  static int64_t align(int64_t at, const Request& request) {
    at = round_up(at, request.align);
    if (request.inside > 0 && at / request.inside != (at + request.bytes - 1) / request.inside)
      at = round_up(at, request.inside);
    return at;
  }
  static int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

  int64_t capacity_;
  std::vector<Range> free_;  // by begin
  std::deque<Range> resting_;
};

/// How many live tensors with addresses cover each block of bytes: tensors may share an address, so lengths do not add
/// up.
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

  /// `lives` in order of `from`. In program order first; where that leaves too many small holes, with all lives in
  /// view.
  Status run(const std::vector<Life>& lives, int64_t* peak) {
    Status placed = Placer(*this).in_order(lives, peak);
    if (placed || !pack(lives)) return placed;
    packed_ = true;
    return in_order(lives, peak);
  }

 private:
  /// Finds places for all tensors without one at once; false when they do not fit.
  bool pack(const std::vector<Life>& lives) const {
    std::vector<LiveBytes> all;
    for (const Life& life : lives) {
      const TensorInfo& t = info(life);
      const int64_t bytes = t.free_bytes();
      if (t.has_address && t.address_byte + bytes > free_.capacity()) return false;
      all.push_back(
          {life.from, life.until, bytes, t.has_address ? int64_t{t.address_byte} : -1, bytes <= unit_ ? unit_ : 0});
    }
    if (!pack_lives(all, free_.capacity(), kAlign)) return false;
    for (size_t i = 0; i < lives.size(); ++i) out_.byte[lives[i].tensor] = static_cast<uint32_t>(all[i].at);
    return true;
  }

  Status in_order(const std::vector<Life>& lives, int64_t* peak) {
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

  const TensorInfo& info(const Life& life) const { return program_.tensors[life.tensor]; }
  Range range(const Life& life) const {
    const int64_t begin = out_.byte[life.tensor];
    return {begin, begin + info(life).free_bytes()};
  }

  /// Frees what ended before record `now`.
  void retire(uint32_t now) {
    while (!live_.empty() && live_.front().until < now) {
      std::pop_heap(live_.begin(), live_.end(), ends_later);
      const Life life = live_.back();
      live_.pop_back();
      const Range r = range(life);
      if (r.begin == r.end) continue;
      if (info(life).has_address) {
        coverage_.add(r, -1);
      } else {
        placed_bytes_ -= r.end - r.begin;
        if (!packed_) free_.give_back(r);
      }
    }
  }

  static bool ends_later(const Life& a, const Life& b) {
    return a.until != b.until ? a.until > b.until : a.tensor > b.tensor;
  }
  void note_live(const Life& life) {
    live_.push_back(life);
    std::push_heap(live_.begin(), live_.end(), ends_later);
  }

  Status put_addressed(const Life& life) {
    const TensorInfo& t = info(life);
    if (t.address_byte + t.free_bytes() > free_.capacity())
      return fault(life, cat("Tensor '", program_.tensor_name(life.tensor), "' has the address ", t.address_byte,
                             " and ", t.free_bytes(), " bytes in each partition; ", sterna::name(memory_), " ends at ",
                             free_.capacity(), "."));
    coverage_.add(range(life), 1);
    note_live(life);
    ++addressed_seen_;
    return {};
  }

  Status put(const Life& life) {
    const int64_t bytes = info(life).free_bytes();
    note_live(life);
    if (bytes == 0) return {};
    if (packed_) {
      placed_bytes_ += bytes;
      return {};
    }
    const Ranges blocked = blocked_for(life);
    int64_t at = -1;
    if (unit_ > 0) {  // whole banks first, so that a matmul and a copy do not meet in one
      const int64_t banks = (bytes + unit_ - 1) / unit_ * unit_;
      at = free_.find(next_, {banks, unit_, 0, blocked});
      if (at >= 0) next_ = (at + banks) % free_.capacity();
    }
    if (at < 0) {
      at = free_.find(unit_ > 0 ? 0 : next_, {bytes, kAlign, bytes <= unit_ ? unit_ : 0, blocked});
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
    for (const Life& other : live_)
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
    for (const Life& other : live_)
      if (other.tensor != life.tensor) live.emplace_back(info(other).free_bytes(), other.tensor);
    std::sort(live.begin(), live.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    std::string list;
    for (size_t i = 0; i < live.size() && i < 8; ++i) {
      const Place at = program_.place(program_.tensors[live[i].second].site);
      list += cat(i == 0 ? " Live: " : "; ", "'", program_.tensor_name(live[i].second), "' ", live[i].first, " B");
      if (!at.file.empty()) list += cat(" (", at.file, ":", at.line, ")");
    }
    if (live.size() > 8) list += cat("; and ", live.size() - 8, " more");
    const int64_t used = placed_bytes_ + coverage_.bytes();
    return fault(life,
                 cat("Tensor '", program_.tensor_name(life.tensor), "' needs ", bytes, " bytes in each partition of ",
                     sterna::name(memory_), ", which has ", free_.capacity(), " and holds ", used,
                     used + bytes <= free_.capacity() ? " in pieces that leave no hole of that size." : ".", list,
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
  std::vector<Life> live_;  // a heap: the first to end is in front
  std::vector<Life> addressed_;
  size_t addressed_seen_ = 0;
  bool packed_ = false;  ///< every tensor has its place already
  int64_t next_ = 0, placed_bytes_ = 0;
};

}  // namespace

Result<Placement> place_tensors(const Program& program, const Chip& chip) {
  Placement out;
  const size_t n = program.tensors.size(), cores = program.cores.size();
  out.byte.resize(n);
  out.partition.resize(n);
  out.until.resize(n);
  std::vector<Regions> regions;
  for (const Stream& stream : program.cores) regions.emplace_back(stream);
  std::vector<std::array<std::vector<Life>, 2>> lives(cores);  // of each core, in SBUF and in PSUM
  for (uint32_t id = 0; id < n; ++id) {
    const TensorInfo& t = program.tensors[id];
    const size_t core = t.core < cores ? t.core : 0;
    out.until[id] = regions[core].extend(t.allocated_at, t.last_use);
    if (!t.on_chip()) continue;
    if (t.has_address) {
      out.byte[id] = t.address_byte;
      out.partition[id] = t.address_partition;
    }
    const uint32_t from = regions[core].retract(t.allocated_at, t.first_use);
    lives[core][t.memory == Memory::kPsum].push_back({id, from, out.until[id]});
  }
  // A life begins with the first use: kernels make lists of tiles before a loop and use one in each trip.
  const auto earlier = [](const Life& a, const Life& b) {
    return a.from != b.from ? a.from < b.from : a.tensor < b.tensor;
  };
  for (auto& [sbuf, psum] : lives) {
    for (auto* list : {&sbuf, &psum})  // as recorded, tensors are in order
      if (!std::is_sorted(list->begin(), list->end(), earlier)) std::sort(list->begin(), list->end(), earlier);
    STERNA_TRY(Placer(program, chip, Memory::kSbuf, out).run(sbuf, &out.sbuf_peak));
    STERNA_TRY(Placer(program, chip, Memory::kPsum, out).run(psum, &out.psum_peak));
  }
  return out;
}

}  // namespace sterna
