// SPDX-License-Identifier: Apache-2.0
#include "sterna/execute/meeting.h"

#include <algorithm>

#include "sterna/base/text.h"
#include "sterna/isa/cores.h"

namespace sterna {
namespace {

constexpr uint8_t kSendRecv = cores::SendRecv::info.opcode;
constexpr uint8_t kBarrier = cores::CoreBarrier::info.opcode;

const cores::SendRecv& send(const RecordHeader& record) { return *static_cast<const cores::SendRecv*>(record.body()); }
const cores::CoreBarrier& barrier(const RecordHeader& record) {
  return *static_cast<const cores::CoreBarrier*>(record.body());
}

}  // namespace

Result<bool> Meeting::arrive(int core, const RecordHeader& record, Machine& machine) {
  if (collectives::is_collective(record.opcode)) return fabric_->arrive(rank_, core, record, *program_, machine);
  Post& mine = posts_[static_cast<size_t>(core)];
  if (mine.record == nullptr) mine = {&record, &machine, false};
  if (!mine.met) {
    if (record.opcode == kSendRecv) {
      STERNA_ASSIGN(mine.met, exchange(core));
    } else {
      mine.met = pass_barrier(core);
    }
  }
  if (!mine.met) return false;
  mine = {};
  return true;
}

Result<bool> Meeting::exchange(int core) {
  Post& mine = posts_[static_cast<size_t>(core)];
  const cores::SendRecv& one = send(*mine.record);
  for (size_t other = 0; other < posts_.size(); ++other) {
    Post& theirs = posts_[other];
    if (theirs.record == nullptr || theirs.met || theirs.record->opcode != kSendRecv) continue;
    const cores::SendRecv& two = send(*theirs.record);
    if (!one.meets(core, two, static_cast<int>(other))) continue;
    STERNA_TRY(cores::exchange(one, *mine.machine, two, *theirs.machine));
    theirs.met = true;
    return true;
  }
  return false;
}

/// The last of a barrier's cores opens it for all.
bool Meeting::pass_barrier(int core) {
  const cores::CoreBarrier& one = barrier(*posts_[static_cast<size_t>(core)].record);
  if (!one.lists(core)) return true;
  for (int i = 0; i < one.cores.n; ++i) {
    const Post& theirs = post(one.cores.value[i]);
    if (theirs.record == nullptr || theirs.met || theirs.record->opcode != kBarrier ||
        !barrier(*theirs.record).lists(core))
      return false;
  }
  for (int i = 0; i < one.cores.n; ++i) posts_[static_cast<size_t>(one.cores.value[i])].met = true;
  return true;
}

std::string Meeting::describe(int core) const {
  const Post& p = post(core);
  if (fabric_->waits(rank_, core)) return fabric_->describe(rank_, core);
  if (p.record == nullptr) return cat("core ", core, " has ended and comes to no further meeting");
  const Place at = program_->place(p.record->site);
  const std::string where = at.file.empty() ? std::string() : cat(" at ", at.file, ':', at.line);
  if (p.record->opcode == kBarrier) {
    const cores::CoreBarrier& b = barrier(*p.record);
    return cat("core ", core, where, " waits in a core_barrier of cores ",
               shape_text(std::vector<int32_t>(b.cores.value, b.cores.value + b.cores.n)));
  }
  const cores::SendRecv& s = send(*p.record);
  return cat("core ", core, where, " waits in a sendrecv on pipe ", s.pipe_id, ", to core ", s.send_to_rank,
             " and from core ", s.recv_from_rank);
}

std::string Meeting::describe() const {
  std::string text;
  for (int core = 0; core < static_cast<int>(posts_.size()); ++core) text += cat(core ? "; " : "", describe(core));
  return text;
}

Fault Meeting::deadlock() const {
  Fault fault(FaultKind::kRuleBroken, "LNC7",
              cat("Deadlock: ", describe(),
                  ". Both sides of a sendrecv name each other and the same pipe, and every core of a barrier and every "
                  "rank of a collective reaches it."));
  for (const Post& p : posts_)
    if (p.record != nullptr && fault.site == 0) fault.site = p.record->site;
  program_->locate(fault);
  return fault;
}

}  // namespace sterna
