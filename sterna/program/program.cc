// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/program.h"

#include "sterna/base/text.h"

namespace sterna {

Buffer Stream::block(size_t bytes) {
  if (!pool_) pool_ = BufferPool::make();
  return pool_->take(bytes);
}

RecordHeader* Stream::reserve(size_t bytes) {
  const size_t words = (sizeof(RecordHeader) + bytes + 7) / 8;
  if (used_ + words > kBlockWords) {
    blocks_.push_back(block(kBlockWords * 8));
    used_ = 0;
  }
  auto* header = new (reinterpret_cast<uint64_t*>(blocks_.back().data()) + used_) RecordHeader;
  header->words = static_cast<uint16_t>(words);
  return header;
}

void Stream::push(RecordHeader* record) {
  const size_t word = (blocks_.size() - 1) * kBlockWords + used_;
  used_ += record->words;
  if (size_ % kIndexBlock == 0) index_.push_back(block(kIndexBlock * sizeof(Entry)));
  auto* entries = reinterpret_cast<Entry*>(index_.back().data());
  entries[size_ % kIndexBlock] = {static_cast<uint32_t>(word), work_classes_.find(*record)};
  ++size_;
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
