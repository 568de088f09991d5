// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/program.h"

#include "sterna/base/text.h"

namespace sterna {

RecordHeader* Stream::reserve(size_t bytes) {
  const size_t words = (sizeof(RecordHeader) + bytes + 7) / 8;
  if (used_ + words > kBlockWords) {
    blocks_.emplace_back(new uint64_t[kBlockWords]);
    used_ = 0;
  }
  auto* header = new (blocks_.back().get() + used_) RecordHeader;
  header->words = static_cast<uint16_t>(words);
  return header;
}

void Stream::push(RecordHeader* record) {
  used_ += record->words;
  index_.push_back(record);
}

Place Program::place(uint32_t site) const {
  const Site& s = sites[site];
  return {names[s.file], s.line, 0, names[s.function]};
}

void Program::locate(Fault& fault) const {
  if (fault.where.file.empty() && fault.site != 0) fault.where = place(fault.site);
}

std::string Program::tensor_name(uint32_t id) const {
  const TensorInfo& t = tensors[id];
  if (t.name != 0) return names[t.name];
  return cat("t", id);
}

}  // namespace sterna
