// SPDX-License-Identifier: Apache-2.0
// Collectives: what ranks (kernels on different cores and chips) do together. A rank that comes first waits; when all
// of a group are there, each collective is executed once for all (run_collective). Who waits for whom is in
// execute/fabric.h.
//
// Order of the values: sums, minima and maxima take the ranks in the order of their group, the first two first, each
// step rounded to fp32 (int32 and uint32 exactly, wrapping), and convert once to the type of dst. Everything else keeps
// bits.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sterna/isa/collectives_ranks.h"
#include "sterna/isa/collectives_rules.h"
#include "sterna/isa/rules.h"

namespace sterna::collectives {

/// One rank's part.
struct Part {
  const void* record;
  Machine* machine;
};
using Parts = std::span<const Part>;

/// What every collective I that moves data has: it goes from `src` of some ranks to `dst` of others. I adds its fields
/// and a check_more(). This base holds none of the fields itself, since the table asks for structs of standard layout,
/// which have all their fields in one class.
template <class I, bool kSbuf>
struct Exchange {
  template <class... More>
  static constexpr auto fields_with(std::string_view dst, std::string_view src, const More&... more) {
    return std::tuple{out("dst", &I::dst, dst), in("src", &I::src, src), more...,
                      option("priority", &I::priority, "queue priority, -1: none")};
  }
  static constexpr auto group_field(std::string_view doc = "lists of ranks") { return option("group", &I::group, doc); }
  static constexpr auto op_field() { return option("op", &I::op, "add, minimum or maximum"); }

  Status check(const Rules& r) const {
    if constexpr (requires(I i) { i.op; }) STERNA_TRY(check_reduction(self().op));
    STERNA_TRY(check_priority(r, self().priority));
    STERNA_TRY(check_places(self().dst, self().src, kSbuf));
    return self().check_more(r);
  }
  /// A collective is executed for all its ranks at once, never by one of them.
  Status execute(Machine&) const {
    return Fault(FaultKind::kBug, "CC0", "A collective was executed without its partners.");
  }
  Work work(const Rules& r) const { return count_dma(r, self().dst, self().src); }

 private:
  const I& self() const { return static_cast<const I&>(*this); }
};
inline constexpr bool kHbmOnly = false, kHbmOrSbuf = true;

/// dst = op over the ranks' src.
struct AllReduce : Exchange<AllReduce, kHbmOrSbuf> {
  static constexpr Info info{"all_reduce", 0x98, "dst = reduction of the ranks' src", "nki.collectives.all_reduce"};
  View dst, src;
  NameRef group;
  AluOp op = AluOp::kAdd;
  int32_t priority = kNoPriority;
  static constexpr auto fields() { return fields_with("result", "this rank's part", group_field(), op_field()); }
  Status check_more(const Rules&) const { return check_same(dst, src); }
};

/// dst = the ranks' src one behind the other along `dim`.
struct AllGather : Exchange<AllGather, kHbmOrSbuf> {
  static constexpr Info info{"all_gather", 0x99, "dst = the ranks' src in a row", "nki.collectives.all_gather"};
  View dst, src;
  NameRef group;
  int32_t dim = 0, priority = kNoPriority;
  static constexpr auto fields() {
    return fields_with("result", "this rank's part", group_field(),
                       option("dim", &AllGather::dim, "dimension that grows"));
  }
  Status check_more(const Rules&) const {
    STERNA_TRY(check_dim(dst, dim, true));
    return check_joined(dst, src, dim);
  }
};

/// dst = this rank's part along `dim` of the reduction of the ranks' src.
struct ReduceScatter : Exchange<ReduceScatter, kHbmOrSbuf> {
  static constexpr Info info{"reduce_scatter", 0x9a, "dst = a part of the reduction of the ranks' src",
                             "nki.collectives.reduce_scatter"};
  View dst, src;
  NameRef group;
  AluOp op = AluOp::kAdd;
  int32_t dim = 0, priority = kNoPriority;
  static constexpr auto fields() {
    return fields_with("result", "this rank's operand", group_field(), op_field(),
                       option("dim", &ReduceScatter::dim, "dimension that is split"));
  }
  Status check_more(const Rules&) const { return check_dim(src, dim, false); }
};

/// Part j of rank i's dst along `dim` = part i of rank j's src.
struct AllToAll : Exchange<AllToAll, kHbmOnly> {
  static constexpr Info info{"all_to_all", 0x9b, "ranks exchange parts", "nki.collectives.all_to_all"};
  View dst, src;
  NameRef group;
  int32_t dim = 0, priority = kNoPriority;
  static constexpr auto fields() {
    return fields_with("result", "this rank's parts", group_field(),
                       option("dim", &AllToAll::dim, "dimension that is split"));
  }
  Status check_more(const Rules&) const {
    STERNA_TRY(check_dim(src, dim, false));
    return check_same(dst, src);
  }
};

/// The same for flat buffers and counts known at run time: rows of `metadata` (uint32, one column a rank) are how many
/// elements go to each rank, from where in src, how many came from each (written unless `counts_known`), and where in
/// dst they go (with `has_places`; else to equal slots). With `uniform` only the first column of the first two is read:
/// each rank sends one chunk to all (all_gather_v).
struct AllToAllV : Exchange<AllToAllV, kHbmOnly> {
  static constexpr Info info{"all_to_all_v", 0x9c, "ranks exchange chunks of sizes known at run time",
                             "nki.collectives.all_to_all_v"};
  View dst, src, metadata;
  NameRef group;
  bool counts_known = false, has_places = false, uniform = false;
  int32_t priority = kNoPriority;
  static constexpr auto fields() {
    using I = AllToAllV;
    return fields_with("receive buffer", "send buffer", inout("metadata", &I::metadata, "uint32: counts and places"),
                       group_field(), option("counts_known", &I::counts_known, "the received counts are not written"),
                       option("has_places", &I::has_places, "the fourth row says where chunks go"),
                       option("uniform", &I::uniform, "every rank gets the same chunk (all_gather_v)"));
  }
  Status check_more(const Rules& r) const {
    STERNA_TRY(check_chunks(r, has_places, uniform));
    STERNA_TRY(check_flat(dst, "dst"));
    STERNA_TRY(check_flat(src, "src"));
    return check_metadata(metadata);
  }
};

/// dst of the target = src of the source, for each pair of ranks.
struct Permute : Exchange<Permute, kHbmOnly> {
  static constexpr Info info{"collective_permute", 0x9d, "tensors go from rank to rank by a list of pairs",
                             "nki.collectives.collective_permute"};
  View dst, src;
  NameRef pairs;
  int32_t priority = kNoPriority;
  static constexpr auto fields() {
    return fields_with("where the source's tensor goes", "what the target gets",
                       option("pairs", &Permute::pairs, "[source, target] ranks"));
  }
  Status check_more(const Rules&) const { return check_same(dst, src); }
};

/// dst of a rank's successor in its list = src, or src op src1.
struct PermuteRing : Exchange<PermuteRing, kHbmOrSbuf> {
  static constexpr Info info{"collective_permute_implicit", 0x9e, "tensors go once round the ring of ranks",
                             "nki.collectives.collective_permute_implicit"};
  View dst, src, src1;
  NameRef group;
  AluOp op = AluOp::kAdd;
  int32_t channel = 0, priority = kNoPriority;
  static constexpr auto fields() {
    using I = PermuteRing;
    return fields_with("where the predecessor's tensor goes", "what the successor gets",
                       in("src1", &I::src1, "reduced with src first, or none"),
                       group_field("lists of ranks, each a ring"), op_field(),
                       option("channel", &I::channel, "channel of the ring"));
  }
  Status check_more(const Rules& r) const {
    STERNA_TRY(check_channel(r, channel));
    if (!src1.empty()) {
      STERNA_TRY(check_places(src1, src, true));
      STERNA_TRY(check_same(src1, src));
    }
    return check_same(dst, src);
  }
};

/// dst = this rank.
struct RankId {
  static constexpr Info info{"rank_id", 0x0a, "dst = this rank", "nki.collectives.rank_id"};
  RegisterRef dst;
  static constexpr auto fields() { return std::tuple{option("dst", &RankId::dst, "register")}; }
  Status check(const Rules&);
  Status execute(Machine& m) const {
    m.set_reg(dst.id, m.rank());
    return {};
  }
  Work work(const Rules&) const { return {}; }
};

/// dst = the rank whose data is here after `iteration` turns of the ring: this rank, then its predecessors.
struct RingRankId {
  static constexpr Info info{"ring_rank_id", 0x0b, "dst = the rank whose data a turn of the ring brought",
                             "nki.collectives.collective_permute_implicit_current_processing_rank_id"};
  RegisterRef dst;
  NameRef group;
  int32_t iteration = 0, channel = 0;
  static constexpr auto fields() {
    using I = RingRankId;
    return std::tuple{option("dst", &I::dst, "register"), option("group", &I::group, "lists of ranks, each a ring"),
                      option("iteration", &I::iteration, "turns so far"),
                      option("channel", &I::channel, "channel of the ring")};
  }
  Status check(const Rules&);
  Status execute(Machine& m) const;
  Work work(const Rules&) const { return {}; }
};

using Instructions =
    InstructionList<AllReduce, AllGather, ReduceScatter, AllToAll, AllToAllV, Permute, PermuteRing, RankId, RingRankId>;

/// True for the opcodes that ranks execute together.
constexpr bool is_collective(uint8_t opcode) {
  return opcode >= AllReduce::info.opcode && opcode <= PermuteRing::info.opcode;
}
/// The ranks that take part with `rank`, in their order; empty if `rank` does not (it goes on at once). Faults: CC1.
Result<std::vector<int>> partners(uint8_t opcode, const void* record, const Machine& machine);
/// Executes a collective for all its ranks, given in the order of partners().
Status run_collective(uint8_t opcode, Parts parts);

}  // namespace sterna::collectives
