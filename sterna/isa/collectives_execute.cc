// SPDX-License-Identifier: Apache-2.0
// The values of collectives: each is executed once for all its ranks. Everything is read before anything is written,
// since a rank's dst may be its src.
#include <algorithm>
#include <cstring>

#include "sterna/base/text.h"
#include "sterna/isa/collectives.h"
#include "sterna/isa/parcel.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna::collectives {
namespace {

template <class I>
const I& of(const Part& part) {
  return *static_cast<const I*>(part.record);
}

/// Part i of n of `view` along `dim`.
View part_of(const View& view, int dim, int64_t i, int64_t n) {
  View out = view;
  Dim& d = out.dims[dim];
  d.count = static_cast<int32_t>(d.count / n);
  const int64_t from = i * d.count;
  if (dim == 0 && view.on_chip())
    out.partition += static_cast<int32_t>(from * d.stride);
  else
    out.offset += from * d.stride;
  return out;
}

Fault sizes_differ(const View& to, const View& from) {
  return Fault(FaultKind::kRuleBroken, "CC5",
               cat("A rank sends ", name(from.dtype), ' ', shape_text(from), ", another receives ", name(to.dtype), ' ',
                   shape_text(to), "."));
}

Status deliver(const Parcel& parcel, const View& from, const View& to, Machine& m) {
  if (to.elements() != from.elements() || to.dtype != from.dtype) return sizes_differ(to, from);
  return parcel.deliver(to, m, "dst");
}

// --- reductions

/// The running result of a reduction; whole numbers of 32 bits as bits, anything else as fp32.
struct Sum {
  DType dtype;
  int64_t rows = 0, cols = 0;
  std::vector<float> values;
  std::vector<uint32_t> words;

  bool exact() const { return dtype == DType::kInt32 || dtype == DType::kUInt32; }
};

Status load(const View& view, Machine& m, Sum& out) {
  STERNA_ASSIGN(const Operand o, m.read(view, "src"));
  out.dtype = o.dtype;
  out.rows = o.rows;
  out.cols = o.cols;
  const auto n = static_cast<size_t>(o.rows * o.cols);
  if (out.exact()) {
    out.words.resize(n);
    for (int64_t r = 0; r < o.rows; ++r) load_bits(o, r, 0, o.cols, out.words.data() + r * o.cols);
  } else {
    out.values.resize(n);
    for (int64_t r = 0; r < o.rows; ++r) load_row(o, r, 0, o.cols, out.values.data() + r * o.cols);
  }
  return {};
}

Status add(AluOp op, const View& view, Machine& m, Sum& sum) {
  Sum next;
  STERNA_TRY(load(view, m, next));
  if (next.dtype != sum.dtype || next.rows * next.cols != sum.rows * sum.cols)
    return Fault(FaultKind::kRuleBroken, "CC5", "The ranks reduce tensors of different sizes or types.");
  if (sum.exact()) {
    alu_int_block(op, {sum.words.data()}, {next.words.data()}, sum.words.data(),
                  static_cast<ptrdiff_t>(sum.words.size()), sum.dtype == DType::kInt32);
  } else {
    const auto n = static_cast<ptrdiff_t>(sum.values.size());
    alu_block(op, {sum.values.data(), n}, {next.values.data(), n}, {sum.values.data(), n}, 1, n);
  }
  return {};
}

Status store(const Sum& sum, const View& view, Machine& m) {
  if (view.elements() != sum.rows * sum.cols)
    return Fault(FaultKind::kRuleBroken, "CC5",
                 cat("The result of a reduction does not fit dst ", shape_text(view), "."));
  STERNA_ASSIGN(Operand o, m.write(view, "dst"));
  o.rounding = nullptr;  // to nearest: every rank gets the same
  for (int64_t r = 0; r < o.rows; ++r) {
    if (sum.exact())
      store_bits(o, r, 0, o.cols, sum.words.data() + r * o.cols);
    else
      store_row(o, r, 0, o.cols, sum.values.data() + r * o.cols);
  }
  return {};
}

// --- the collectives

Status all_reduce(Parts parts) {
  Sum sum;
  for (size_t i = 0; i < parts.size(); ++i) {
    const AllReduce& a = of<AllReduce>(parts[i]);
    STERNA_TRY(i == 0 ? load(a.src, *parts[i].machine, sum) : add(a.op, a.src, *parts[i].machine, sum));
  }
  for (const Part& p : parts) STERNA_TRY(store(sum, of<AllReduce>(p).dst, *p.machine));
  return {};
}

Status reduce_scatter(Parts parts) {
  const auto n = static_cast<int64_t>(parts.size());
  std::vector<Sum> sums(parts.size());
  for (int64_t chunk = 0; chunk < n; ++chunk)
    for (int64_t i = 0; i < n; ++i) {
      const Part& p = parts[static_cast<size_t>(i)];
      const ReduceScatter& a = of<ReduceScatter>(p);
      STERNA_TRY(check_divides(a.src, a.dim, n));
      const View from = part_of(a.src, a.dim, chunk, n);
      Sum& sum = sums[static_cast<size_t>(chunk)];
      STERNA_TRY(i == 0 ? load(from, *p.machine, sum) : add(a.op, from, *p.machine, sum));
    }
  for (size_t i = 0; i < parts.size(); ++i)
    STERNA_TRY(store(sums[i], of<ReduceScatter>(parts[i]).dst, *parts[i].machine));
  return {};
}

template <class I>
Result<std::vector<Parcel>> pack_all(Parts parts) {
  std::vector<Parcel> parcels(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) STERNA_TRY(parcels[i].pack(of<I>(parts[i]).src, *parts[i].machine, "src"));
  return parcels;
}

Status all_gather(Parts parts) {
  const auto n = static_cast<int64_t>(parts.size());
  STERNA_ASSIGN(const std::vector<Parcel> parcels, pack_all<AllGather>(parts));
  for (const Part& p : parts) {
    const AllGather& a = of<AllGather>(p);
    STERNA_TRY(check_divides(a.dst, a.dim, n));
    for (int64_t i = 0; i < n; ++i)
      STERNA_TRY(deliver(parcels[static_cast<size_t>(i)], of<AllGather>(parts[static_cast<size_t>(i)]).src,
                         part_of(a.dst, a.dim, i, n), *p.machine));
  }
  return {};
}

Status all_to_all(Parts parts) {
  const auto n = static_cast<int64_t>(parts.size());
  std::vector<Parcel> parcels(parts.size() * parts.size());  // [from][to]
  const auto parcel = [&](int64_t from, int64_t to) -> Parcel& { return parcels[static_cast<size_t>(from * n + to)]; };
  for (int64_t from = 0; from < n; ++from) {
    const Part& p = parts[static_cast<size_t>(from)];
    const AllToAll& a = of<AllToAll>(p);
    STERNA_TRY(check_divides(a.src, a.dim, n));
    STERNA_TRY(check_divides(a.dst, a.dim, n));
    for (int64_t to = 0; to < n; ++to)
      STERNA_TRY(parcel(from, to).pack(part_of(a.src, a.dim, to, n), *p.machine, "src"));
  }
  for (int64_t to = 0; to < n; ++to) {
    const Part& p = parts[static_cast<size_t>(to)];
    const AllToAll& a = of<AllToAll>(p);
    for (int64_t from = 0; from < n; ++from) {
      const AllToAll& sender = of<AllToAll>(parts[static_cast<size_t>(from)]);
      STERNA_TRY(deliver(parcel(from, to), part_of(sender.src, sender.dim, to, n), part_of(a.dst, a.dim, from, n),
                         *p.machine));
    }
  }
  return {};
}

Status permute_ring(Parts parts) {
  const size_t n = parts.size();
  const PermuteRing& first = of<PermuteRing>(parts[0]);
  if (first.src1.empty()) {
    STERNA_ASSIGN(const std::vector<Parcel> parcels, pack_all<PermuteRing>(parts));
    for (size_t i = 0; i < n; ++i)
      STERNA_TRY(deliver(parcels[i], of<PermuteRing>(parts[i]).src, of<PermuteRing>(parts[(i + 1) % n]).dst,
                         *parts[(i + 1) % n].machine));
    return {};
  }
  std::vector<Sum> sums(n);
  for (size_t i = 0; i < n; ++i) {
    const PermuteRing& a = of<PermuteRing>(parts[i]);
    if (a.src1.empty()) return Fault(FaultKind::kRuleBroken, "CC5", "Some ranks of the ring reduce, others do not.");
    STERNA_TRY(load(a.src, *parts[i].machine, sums[i]));
    STERNA_TRY(add(a.op, a.src1, *parts[i].machine, sums[i]));
  }
  for (size_t i = 0; i < n; ++i)
    STERNA_TRY(store(sums[i], of<PermuteRing>(parts[(i + 1) % n]).dst, *parts[(i + 1) % n].machine));
  return {};
}

Status permute(Parts parts) {
  const Permute& first = of<Permute>(parts[0]);
  STERNA_ASSIGN(const RankLists pairs, parse_ranks(parts[0].machine->text(first.pairs.id), true));
  const auto part = [&](int rank) -> const Part& {
    return *std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.machine->rank() == rank; });
  };
  std::vector<Parcel> parcels(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Part& from = part(pairs[i][0]);
    STERNA_TRY(parcels[i].pack(of<Permute>(from).src, *from.machine, "src"));
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Part& to = part(pairs[i][1]);
    STERNA_TRY(deliver(parcels[i], of<Permute>(part(pairs[i][0])).src, of<Permute>(to).dst, *to.machine));
  }
  return {};
}

// --- variable sizes

/// A run of elements of a flat buffer.
View flat(const View& view, int64_t from, int64_t count) {
  View out = view;
  out.ndim = 2;
  out.dims[0] = {static_cast<int32_t>(count), 1};
  out.dims[1] = {1, static_cast<int32_t>(count)};
  out.offset += from;
  return out;
}

/// Columns of the metadata of one rank.
class Counts {
 public:
  Counts() = default;
  static Result<Counts> of_part(const Part& part, int64_t ranks) {
    const AllToAllV& a = of<AllToAllV>(part);
    Counts out(a, ranks);
    if (a.metadata.elements() < (a.has_places ? 4 : 3) * ranks)
      return Fault(FaultKind::kRuleBroken, "CC7",
                   cat("The metadata ", shape_text(a.metadata), " of ", a.uniform ? "all_gather_v" : "all_to_all_v",
                       " needs ", a.has_places ? 4 : 3, " rows of ", ranks, " ranks."));
    // The row of received counts is an output; the others must be there.
    for (int64_t row : {0, 1, 3}) {
      if (row == 3 && !a.has_places) continue;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        STERNA_ASSIGN(const Operand o, part.machine->read(cell(a.metadata, row * ranks + rank), "metadata"));
        load_bits(o, 0, 0, 1, &out.at(row, rank));
      }
    }
    return out;
  }
  int64_t count(int64_t to) const { return words_[static_cast<size_t>(a_->uniform ? 0 : to)]; }
  int64_t place(int64_t to) const { return words_[static_cast<size_t>(ranks_ + (a_->uniform ? 0 : to))]; }
  /// Where in dst the chunk of `from` goes.
  int64_t slot(int64_t from) const {
    return a_->has_places ? words_[static_cast<size_t>(3 * ranks_ + from)] : a_->dst.elements() / ranks_ * from;
  }
  /// One number of the metadata, whatever its shape.
  static View cell(const View& metadata, int64_t index) {
    View out = metadata;
    for (int d = metadata.ndim - 1; d >= 0; --d) {
      const int64_t count = metadata.dims[d].count, at = index % count;
      index /= count;
      if (d == 0 && metadata.on_chip())
        out.partition += static_cast<int32_t>(at * metadata.dims[d].stride);
      else
        out.offset += at * metadata.dims[d].stride;
      out.dims[d].count = 1;
    }
    return out;
  }

 private:
  Counts(const AllToAllV& a, int64_t ranks) : a_(&a), ranks_(ranks), words_(static_cast<size_t>(4 * ranks)) {}
  uint32_t& at(int64_t row, int64_t rank) { return words_[static_cast<size_t>(row * ranks_ + rank)]; }
  const AllToAllV* a_ = nullptr;
  int64_t ranks_ = 0;
  std::vector<uint32_t> words_;
};

Status check_range(const View& view, int64_t from, int64_t count, const char* what) {
  if (from >= 0 && count >= 0 && from + count <= view.elements()) return {};
  return Fault(
      FaultKind::kOutOfBounds, "CC8",
      cat("The metadata asks for elements ", from, " to ", from + count, " of ", what, ' ', shape_text(view), "."));
}

Status all_to_all_v(Parts parts) {
  const auto n = static_cast<int64_t>(parts.size());
  std::vector<Counts> counts;
  for (const Part& p : parts) {
    STERNA_ASSIGN(Counts one, Counts::of_part(p, n));
    counts.push_back(std::move(one));
  }
  std::vector<Parcel> parcels(parts.size() * parts.size());
  for (int64_t from = 0; from < n; ++from)
    for (int64_t to = 0; to < n; ++to) {
      const Part& p = parts[static_cast<size_t>(from)];
      const Counts& c = counts[static_cast<size_t>(from)];
      if (c.count(to) == 0) continue;
      STERNA_TRY(check_range(of<AllToAllV>(p).src, c.place(to), c.count(to), "src"));
      STERNA_TRY(parcels[static_cast<size_t>(from * n + to)].pack(flat(of<AllToAllV>(p).src, c.place(to), c.count(to)),
                                                                  *p.machine, "src"));
    }
  for (int64_t to = 0; to < n; ++to)
    for (int64_t from = 0; from < n; ++from) {
      const Part& p = parts[static_cast<size_t>(to)];
      const AllToAllV& a = of<AllToAllV>(p);
      const auto count = static_cast<uint32_t>(counts[static_cast<size_t>(from)].count(to));
      if (count > 0) {
        const int64_t slot = counts[static_cast<size_t>(to)].slot(from);
        STERNA_TRY(check_range(a.dst, slot, count, "dst"));
        STERNA_TRY(parcels[static_cast<size_t>(from * n + to)].deliver(flat(a.dst, slot, count), *p.machine, "dst"));
      }
      if (a.counts_known) continue;
      STERNA_ASSIGN(const Operand o, p.machine->write(Counts::cell(a.metadata, 2 * n + from), "metadata"));
      store_bits(o, 0, 0, 1, &count);
    }
  return {};
}

// --- all of them

/// CC13: the ranks ask for the same: every option but views and texts of ranks, which partners() has compared.
Status check_agreement(uint8_t opcode, Parts parts) {
  const TableRow& row = instruction_table()[opcode];
  const auto field = [&](const Part& p, const FieldSpec& spec) {
    return static_cast<const char*>(p.record) + spec.offset;
  };
  for (const Part& p : parts)
    for (const FieldSpec& spec : row.field_list()) {
      bool same = true;
      if (spec.type == FieldType::kView)
        same = reinterpret_cast<const View*>(field(p, spec))->empty() ==
               reinterpret_cast<const View*>(field(parts[0], spec))->empty();
      else if (spec.type == FieldType::kName)
        same = p.machine->text(reinterpret_cast<const NameRef*>(field(p, spec))->id) ==
               parts[0].machine->text(reinterpret_cast<const NameRef*>(field(parts[0], spec))->id);
      else
        same = std::memcmp(field(p, spec), field(parts[0], spec), spec.type == FieldType::kInt ? 4 : 1) == 0;
      if (!same)
        return Fault(
            FaultKind::kRuleBroken, "CC13",
            cat("Ranks ", parts[0].machine->rank(), " and ", p.machine->rank(), " come to ", row.info.mnemonic,
                " with a different '", spec.name, "'. All ranks of a group ask for the same, in the same order."));
    }
  return {};
}

}  // namespace

Status run_collective(uint8_t opcode, Parts parts) {
  STERNA_TRY(check_agreement(opcode, parts));
  switch (opcode) {
    case AllReduce::info.opcode: return all_reduce(parts);
    case AllGather::info.opcode: return all_gather(parts);
    case ReduceScatter::info.opcode: return reduce_scatter(parts);
    case AllToAll::info.opcode: return all_to_all(parts);
    case AllToAllV::info.opcode: return all_to_all_v(parts);
    case Permute::info.opcode: return permute(parts);
    default: return permute_ring(parts);
  }
}

}  // namespace sterna::collectives
