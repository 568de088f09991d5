// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/regions.h"

#include <algorithm>

#include "sterna/isa/control.h"

namespace sterna {
namespace {

bool any(const Stream& stream) {
  const WorkClasses& classes = stream.work_classes();
  for (uint32_t id = 0; id < classes.size(); ++id)
    if (control::opens_region(classes.example(id).opcode)) return true;
  return false;
}

}  // namespace

Regions::Regions(const Stream& stream) {
  if (!any(stream)) return;
  for (uint32_t i = 0; i < stream.size(); ++i) add(i, stream[i].opcode);
}

bool Regions::add(uint32_t at, uint8_t opcode) {
  if (control::opens_region(opcode)) {
    list_.push_back({at, kNone, innermost_});
    innermost_ = static_cast<uint32_t>(list_.size() - 1);
    ++depth_;
  } else if (opcode == control::End::info.opcode) {
    if (innermost_ == kNone) return false;
    list_[innermost_].last = at;
    innermost_ = list_[innermost_].parent;
    --depth_;
  }
  return true;
}

/// The first region that begins after `record`.
std::vector<Regions::Region>::const_iterator Regions::after(uint32_t record) const {
  return std::upper_bound(list_.begin(), list_.end(), record,
                          [](uint32_t value, const Region& region) { return value < region.first; });
}

bool Regions::open_until(uint32_t producer, uint32_t consumer) const {
  auto at = after(producer);
  uint32_t holder = at == list_.begin() ? kNone : static_cast<uint32_t>(at - list_.begin() - 1);
  while (holder != kNone && list_[holder].last <= producer) holder = list_[holder].parent;
  return holder == kNone || list_[holder].last >= consumer;  // those around it end later still
}

uint32_t Regions::retract(uint32_t allocated, uint32_t first) const {
  for (auto at = after(allocated); at != list_.end() && at->first <= first; ++at)
    if (at->last >= first) return at->first;
  return first;
}

uint32_t Regions::extend(uint32_t from, uint32_t until) const {
  for (auto at = after(from); at != list_.end() && at->first <= until; ++at)
    if (at->last >= until) return at->last;
  return until;
}

Status check_edge(const Stream& stream, const Regions& regions, uint32_t producer, uint32_t consumer) {
  Status status;
  if (consumer >= stream.size() || producer >= consumer)
    status = Fault(
        FaultKind::kBadInput, "SCHED2",
        "An instruction can only wait for one that comes before it in the program; Sterna keeps each engine's order.");
  else if (!regions.open_until(producer, consumer))
    status = Fault(
        FaultKind::kRuleBroken, "SCHED3",
        "An instruction cannot wait for one in a dynamic loop (nl.fori_loop, nl.while_loop) that it is not in "
        "itself: how often that one runs is not known. Wait from inside that loop, or for an instruction after it.");
  if (!status && consumer < stream.size()) status.error().site = stream[consumer].site;
  return status;
}

}  // namespace sterna
