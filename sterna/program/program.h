// SPDX-License-Identifier: Apache-2.0
// Program: what crosses from front ends to execution, timing and checks. One append-only stream of records for each
// core, tensors, dynamic offsets, names and sites. No record holds a host pointer, so a Program can be kept, printed
// and run again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sterna/base/buffers.h"
#include "sterna/base/result.h"
#include "sterna/isa/instruction.h"
#include "sterna/machine/tensor.h"
#include "sterna/program/site.h"
#include "sterna/program/work_classes.h"

namespace sterna {

inline constexpr int kProgramVersion = 1;

/// Stands before each instruction's struct in the stream.
struct RecordHeader {
  uint8_t opcode = 0;
  uint8_t flags = 0;   ///< kHasDynamic
  uint16_t words = 0;  ///< of 8 bytes, header and struct together
  uint32_t site = 0;
  uint32_t iteration = 0;  ///< how often this site was reached before
  uint32_t label = 0;      ///< name= of the instruction; 0 = none
  static constexpr uint8_t kHasDynamic = 1;

  const void* body() const { return this + 1; }
  void* body() { return this + 1; }
};
static_assert(sizeof(RecordHeader) == 16);

/// An append-only arena of records. Addresses stay valid. Beside each record stands its work class, so that what only
/// counts work need not read the records.
class Stream {
 public:
  /// Memory comes from `pool`; from one of its own when empty.
  explicit Stream(std::shared_ptr<BufferPool> pool = nullptr) : pool_(std::move(pool)) {}

  /// Room for one more record of `bytes` after its header; not part of the stream until push().
  RecordHeader* reserve(size_t bytes);
  /// The record that was reserved last joins the stream. Its struct does not change from here on.
  void push(RecordHeader* record);
  size_t size() const { return size_; }
  const RecordHeader& operator[](size_t i) const { return *slot(i); }
  RecordHeader& at(size_t i) { return *slot(i); }
  uint32_t work_class(size_t i) const { return entry(i).work_class; }
  const WorkClasses& work_classes() const { return work_classes_; }
  size_t bytes() const { return blocks_.size() * kBlockWords * 8 + index_.size() * kIndexBlock * sizeof(Entry); }
  const std::shared_ptr<BufferPool>& pool() const { return pool_; }

 private:
  static constexpr size_t kBlockWords = 1 << 15;
  static constexpr size_t kIndexBlock = 1 << 14;
  struct Entry {
    uint32_t word;  ///< where the record begins, counted over all blocks
    uint32_t work_class;
  };
  const Entry& entry(size_t i) const {
    return reinterpret_cast<const Entry*>(index_[i / kIndexBlock].data())[i % kIndexBlock];
  }
  RecordHeader* slot(size_t i) const {
    const size_t word = entry(i).word;
    return reinterpret_cast<RecordHeader*>(blocks_[word / kBlockWords].data() + word % kBlockWords * 8);
  }
  Buffer block(size_t bytes);

  std::shared_ptr<BufferPool> pool_;
  std::vector<Buffer> blocks_;  // the records
  std::vector<Buffer> index_;   // their entries
  WorkClasses work_classes_;
  size_t used_ = kBlockWords, size_ = 0;
};

/// An edge that the user asked for: `consumer` waits for `producer` (indices into one core's stream).
struct ExtraEdge {
  uint32_t producer, consumer;
  uint32_t core = 0;
};

struct Program {
  Program() { cores.emplace_back(); }
  explicit Program(std::shared_ptr<BufferPool> pool) { cores.emplace_back(std::move(pool)); }

  std::string name;    ///< of the kernel
  std::string target;  ///< chip it was recorded for
  std::string nki_version = "0.6";
  std::vector<TensorInfo> tensors;
  std::vector<DynamicOffset> dynamics = {DynamicOffset{}};  ///< row 0 is unused
  NameTable names;
  SiteTable sites;
  std::vector<Stream> cores;         ///< one at least
  std::vector<uint32_t> parameters;  ///< tensor ids in the order of the arguments
  std::vector<uint32_t> results;     ///< tensor ids in the order of the results
  std::vector<ExtraEdge> edges;
  uint32_t register_count = 0;

  Place place(uint32_t site) const;
  /// Fills fault.where from fault.site.
  void locate(Fault& fault) const;
  std::string tensor_name(uint32_t id) const;
};

}  // namespace sterna
