// SPDX-License-Identifier: Apache-2.0
#include "sterna/timing/collective.h"

#include <algorithm>

namespace sterna {
namespace {

using collectives::list_of;
using collectives::parse_ranks;
using collectives::RankLists;

struct Parts {
  const View* dst;
  const View* src;
  uint32_t group;
};

template <class I>
Parts parts_of(const void* record) {
  const I& i = *static_cast<const I*>(record);
  if constexpr (requires { i.pairs; })
    return {&i.dst, &i.src, i.pairs.id};
  else
    return {&i.dst, &i.src, i.group.id};
}

Parts parts_of(uint8_t opcode, const void* record) {
  switch (opcode) {
    case collectives::AllReduce::info.opcode: return parts_of<collectives::AllReduce>(record);
    case collectives::AllGather::info.opcode: return parts_of<collectives::AllGather>(record);
    case collectives::ReduceScatter::info.opcode: return parts_of<collectives::ReduceScatter>(record);
    case collectives::AllToAll::info.opcode: return parts_of<collectives::AllToAll>(record);
    case collectives::AllToAllV::info.opcode: return parts_of<collectives::AllToAllV>(record);
    case collectives::Permute::info.opcode: return parts_of<collectives::Permute>(record);
    default: return parts_of<collectives::PermuteRing>(record);
  }
}

double bytes_of(const View& v) { return static_cast<double>(v.elements() * size_of(v.dtype)); }

/// A permutation moves as far as the farthest of the pairs that the rank is in.
void follow_pairs(const RankLists& pairs, int rank, int64_t ranks_of_chip, Collective& out) {
  for (const auto& pair : pairs) {
    if (pair.size() != 2 || (pair[0] != rank && pair[1] != rank)) continue;
    out.ranks = 2;
    out.several_chips = out.several_chips || pair[0] / ranks_of_chip != pair[1] / ranks_of_chip;
  }
}

}  // namespace

Result<Collective> find_collective(const Program& program, const RecordHeader& header, int rank, const Chip& chip) {
  const Parts parts = parts_of(header.opcode, header.body());
  Collective out;
  out.group = parts.group;
  out.in_hbm = parts.dst->memory == Memory::kHbm;
  out.bytes = std::max(bytes_of(*parts.dst), bytes_of(*parts.src));
  const int64_t ranks_of_chip = std::max<int64_t>(1, chip.cores / static_cast<int64_t>(program.cores.size()));
  const bool permutes = header.opcode == collectives::Permute::info.opcode;
  auto lists = parse_ranks(program.names[parts.group], permutes);
  if (!lists) {
    lists.error().site = header.site;
    program.locate(lists.error());
    return lists.error();
  }
  if (permutes) {
    follow_pairs(*lists, rank, ranks_of_chip, out);
    return out;
  }
  const std::vector<int> group = list_of(*lists, rank);
  out.ranks = static_cast<int>(group.size());
  for (int other : group) out.several_chips = out.several_chips || other / ranks_of_chip != rank / ranks_of_chip;
  return out;
}

}  // namespace sterna
