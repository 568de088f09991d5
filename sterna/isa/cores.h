// SPDX-License-Identifier: Apache-2.0
// Instructions in which the cores of one kernel meet. A core that comes first waits; what happens when both are there
// stands here, who waits for whom in execute/meeting.h.
#pragma once

#include <algorithm>

#include "sterna/base/text.h"
#include "sterna/isa/rules.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna::cores {

/// LNC3: a rank is a core of this kernel.
inline Status check_rank(const Rules& r, int32_t rank, std::string_view what) {
  if (rank >= 0 && rank < r.cores) return {};
  return Fault(FaultKind::kRuleBroken, "LNC3",
               cat("'", what, "' is core ", rank, "; this kernel runs on ", r.cores, r.cores == 1 ? " core" : " cores",
                   ", counted from 0. kernel[2] runs on two."));
}

/// What core `send_to_rank` receives is src; dst takes what core `recv_from_rank` sends on the same pipe.
///
/// Shapes  src, dst: equal; the sender's src and the receiver's dst too
/// Types   equal, bits are kept
/// Rules   SR1 (both in SBUF) SR2 (shapes) SR3 (types) SR4 (size by gpsimd_dma) SR5 (the two sides agree)
///         SR6 (engine) LNC3 (ranks)
/// Source  nki.isa.sendrecv (SDK 2.32)
struct SendRecv {
  static constexpr Info info{"sendrecv", 0x90, "two cores exchange tiles", "nki.isa.sendrecv"};
  View src, dst;
  int32_t send_to_rank = 0, recv_from_rank = 0, pipe_id = 0;
  TransferEngine dma_engine = TransferEngine::kDma;

  static constexpr auto fields() {
    using I = SendRecv;
    return std::tuple{in("src", &I::src, "tile to send"),
                      out("dst", &I::dst, "where the other's tile goes"),
                      option("send_to_rank", &I::send_to_rank, "core that gets src"),
                      option("recv_from_rank", &I::recv_from_rank, "core that fills dst"),
                      option("pipe_id", &I::pipe_id, "which exchange of the two cores this is"),
                      option("dma_engine", &I::dma_engine, "whose DMA moves the data: dma or gpsimd_dma")};
  }
  Status check(const Rules& r) {
    for (const auto& [view, what] : {std::pair(&src, "src"), std::pair(&dst, "dst")})
      if (view->empty() || view->memory != Memory::kSbuf)
        return Fault(FaultKind::kRuleBroken, "SR1",
                     cat("'", what, "' of sendrecv must be in SBUF. Copy it there first."));
    if (dma_engine == TransferEngine::kNone)
      return Fault(FaultKind::kBadInput, "SR6", "'dma_engine' is none; give nki.isa.dma_engine.dma or .gpsimd_dma.");
    STERNA_TRY(check_rank(r, send_to_rank, "send_to_rank"));
    STERNA_TRY(check_rank(r, recv_from_rank, "recv_from_rank"));
    if (src.rows() != dst.rows() || src.cols() != dst.cols())
      return Fault(FaultKind::kRuleBroken, "SR2",
                   cat("src ", shape_text(src), " and dst ", shape_text(dst), " of sendrecv have different shapes."));
    if (src.dtype != dst.dtype)
      return Fault(
          FaultKind::kRuleBroken, "SR3",
          cat("src is ", name(src.dtype), ", dst ", name(dst.dtype), ": sendrecv keeps bits, types must match."));
    return check_size(r);
  }
  Status check_size(const Rules& r) const {
    if (dma_engine != TransferEngine::kGpSimdDma) return {};
    const int64_t most = r.chip->limits.gpsimd_send_elements;
    if (src.cols() <= most) return {};
    return Fault(FaultKind::kRuleBroken, "SR4",
                 cat("GpSimd's DMA sends at most ", most, " elements a partition; src ", shape_text(src),
                     " is larger. Use dma_engine.dma."));
  }
  /// A core by itself never gets here: the meeting executes both sides.
  Status execute(Machine&) const {
    return Fault(FaultKind::kBug, "LNC4", "sendrecv was executed without its partner.");
  }
  Work work(const Rules& r) const {
    Work w = count_dma(r, dst, src);
    if (dma_engine == TransferEngine::kGpSimdDma) w.engine = EngineId::kGpSimd;
    return w;
  }

  /// True if this, of core `self`, and `other`, of core `rank`, are the two sides of one exchange.
  bool meets(int self, const SendRecv& other, int rank) const {
    return send_to_rank == rank && recv_from_rank == rank && other.send_to_rank == self &&
           other.recv_from_rank == self && pipe_id == other.pipe_id;
  }
};

/// The cores listed wait for each other: what any of them wrote to `data` before is there for all after.
///
/// Rules   CB1 (cores: all of this kernel, two or more, each once) CB2 (data in shared HBM) ENG1
/// Source  nki.isa.core_barrier (SDK 2.32)
struct CoreBarrier {
  static constexpr Info info{"core_barrier", 0x91, "cores wait for each other", "nki.isa.core_barrier"};
  View data;
  Ints cores;
  EngineId engine = EngineId::kUnknown;

  static constexpr auto fields() {
    using I = CoreBarrier;
    return std::tuple{inout("data", &I::data, "tensor in shared HBM that they share"),
                      option("cores", &I::cores, "which cores"), option("engine", &I::engine, "engine that waits")};
  }
  Status check(const Rules& r) {
    bool good = cores.n > 0;
    for (int i = 0; i < cores.n; ++i) {
      STERNA_TRY(check_rank(r, cores.value[i], "cores"));
      good = good && std::find(cores.value, cores.value + i, cores.value[i]) == cores.value + i;
    }
    if (!good)
      return Fault(FaultKind::kRuleBroken, "CB1",
                   "'cores' of core_barrier lists each core that waits once, as (0, 1).");
    STERNA_TRY(check_all_cores(r));
    if (engine == EngineId::kUnknown) engine = EngineId::kGpSimd;
    STERNA_TRY(check_engine(
        r, engine, {EngineId::kGpSimd, EngineId::kTensor, EngineId::kScalar, EngineId::kVector, EngineId::kSync}, {}));
    if (data.empty() || !r.tensor(data).of_every_core())
      return r.compat("CB2", "'data' of core_barrier should be in nl.shared_hbm: other memory is not shared by cores.");
    return {};
  }
  /// "Currently only cores=(0, 1) is supported." Kernels for one or two cores name core 0 alone on one.
  Status check_all_cores(const Rules& r) const {
    if (r.cores == 1)
      return r.compat("CB1", "core_barrier is of kernels on two cores (kernel[2]); on one there is none to wait for.");
    if (cores.n == r.cores) return {};
    return Fault(
        FaultKind::kRuleBroken, "CB1",
        cat("'cores' of core_barrier names ", cores.n, " of this kernel's ", r.cores, " cores; it must name all."));
  }
  Status execute(Machine&) const { return {}; }
  Work work(const Rules&) const {
    Work w;
    w.engine = engine;
    return w;
  }
  bool lists(int core) const { return std::find(cores.value, cores.value + cores.n, core) != cores.value + cores.n; }
};

/// Executes both sides of one exchange: a's src into b's dst, b's src into a's dst.
Status exchange(const SendRecv& a, Machine& of_a, const SendRecv& b, Machine& of_b);

using Instructions = InstructionList<SendRecv, CoreBarrier>;

}  // namespace sterna::cores
