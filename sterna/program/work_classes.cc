// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/work_classes.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "sterna/program/program.h"

namespace sterna {
namespace {

/// What of an instruction's struct decides its work, as a mask of its bits.
using Mask = std::vector<uint64_t>;

class MaskMaker {
 public:
  explicit MaskMaker(const TableRow& row) : words_((row.bytes + 7u) / 8), bytes_(words_ * 8) {
    find_padding(row);
    for (const FieldSpec& field : row.field_list()) {
      switch (field.type) {
        case FieldType::kView:
        case FieldType::kScalar: ignore_place(field.offset); break;
        case FieldType::kRegister: ignore(field.offset, sizeof(RegisterRef)); break;
        case FieldType::kTensor: ignore(field.offset, sizeof(TensorRef)); break;
        case FieldType::kName: ignore(field.offset, sizeof(NameRef)); break;
        default: break;
      }
    }
  }

  Mask mask() const {
    Mask out(words_);
    std::memcpy(out.data(), bytes_.data(), bytes_.size());
    return out;
  }

 private:
  /// Padding holds whatever was there: what the constructor does not write.
  void find_padding(const TableRow& row) {
    std::vector<uint64_t> zeros(words_, 0), ones(words_, ~uint64_t{0});
    row.construct(zeros.data());
    row.construct(ones.data());
    const auto* a = reinterpret_cast<const unsigned char*>(zeros.data());
    const auto* b = reinterpret_cast<const unsigned char*>(ones.data());
    for (size_t i = 0; i < row.bytes; ++i) bytes_[i] = a[i] == 0 && b[i] == 0xff ? 0 : 0xff;
  }
  void ignore(size_t offset, size_t size) { std::memset(&bytes_[offset], 0, size); }
  void ignore_place(size_t view) {
    static_assert(offsetof(Scalar, view) == 0 && kNoTensor == UINT32_MAX);
    // The highest bit stays: it tells a view that is not given from one that is.
    const uint32_t given = uint32_t{1} << 31;
    std::memcpy(&bytes_[view + offsetof(View, tensor)], &given, sizeof given);
    ignore(view + offsetof(View, partition), sizeof(View::partition));
    ignore(view + offsetof(View, dynamic), sizeof(View::dynamic));
    ignore(view + offsetof(View, offset), sizeof(View::offset));
  }

  size_t words_;
  std::vector<unsigned char> bytes_;
};

const std::array<Mask, 256>& masks() {
  static const auto all = [] {
    std::array<Mask, 256> out;
    for (const TableRow& row : instruction_table())
      if (row.construct != nullptr) out[row.info.opcode] = MaskMaker(row).mask();
    return out;
  }();
  return all;
}

uint64_t word(const RecordHeader& record, size_t i) {
  uint64_t out;
  std::memcpy(&out, static_cast<const char*>(record.body()) + i * sizeof out, sizeof out);
  return out;
}

bool alike(const RecordHeader& a, const RecordHeader& b, const Mask& mask) {
  if (a.opcode != b.opcode) return false;
  uint64_t differ = 0;
  for (size_t i = 0, n = mask.size(); i < n; ++i) differ |= (word(a, i) ^ word(b, i)) & mask[i];
  return differ == 0;
}

uint32_t hash(const RecordHeader& record, const Mask& mask) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  const auto mix = [](uint64_t h, uint64_t x) { return (std::rotl(h, 29) ^ x) * kOdd; };
  uint64_t even = record.opcode, odd = 0;
  size_t i = 0;
  for (; i + 1 < mask.size(); i += 2) {  // two chains, since a multiplication takes its time
    even = mix(even, word(record, i) & mask[i]);
    odd = mix(odd, word(record, i + 1) & mask[i + 1]);
  }
  if (i < mask.size()) even = mix(even, word(record, i) & mask[i]);
  return static_cast<uint32_t>(mix(even, odd) >> 32);
}

}  // namespace

uint32_t WorkClasses::find(const RecordHeader& record) {
  uint32_t& recent = recent_[(record.site ^ record.opcode) % recent_.size()];
  if (recent < examples_.size() && alike(*examples_[recent], record, masks()[record.opcode])) return recent;
  return recent = look_up(record);
}

uint32_t WorkClasses::look_up(const RecordHeader& record) {
  if (examples_.size() * 2 >= slots_.size()) grow();
  const Mask& mask = masks()[record.opcode];
  const uint32_t key = hash(record, mask);
  const size_t last = slots_.size() - 1;
  for (size_t at = key & last; slots_[at].id != kFree; at = (at + 1) & last)
    if (slots_[at].hash == key && alike(*examples_[slots_[at].id], record, mask)) return slots_[at].id;
  free_slot(key) = {key, size()};
  examples_.push_back(&record);
  return size() - 1;
}

WorkClasses::Slot& WorkClasses::free_slot(uint32_t key) {
  const size_t last = slots_.size() - 1;
  size_t at = key & last;
  while (slots_[at].id != kFree) at = (at + 1) & last;
  return slots_[at];
}

void WorkClasses::grow() {
  std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(std::max<size_t>(64, 2 * slots_.size())));
  for (const Slot& slot : old)
    if (slot.id != kFree) free_slot(slot.hash) = slot;
}

}  // namespace sterna
