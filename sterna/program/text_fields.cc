// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/text_fields.h"

#include <algorithm>

#include "sterna/base/text.h"
#include "sterna/machine/view_ops.h"
#include "sterna/program/text_names.h"

namespace sterna::text {
namespace {

constexpr int kMaxNesting = 4;                       // of offset tensors that are themselves dynamic
constexpr int64_t kMostElements = int64_t{1} << 40;  // of one view; keeps every product below overflow
constexpr int64_t kFarthest = int64_t{1} << 44;      // offset of a view

}  // namespace

Result<Reference> reference(Cursor& c) {
  STERNA_TRY(c.expect('%'));
  Reference out;
  const char next = c.peek();
  if (next >= '0' && next <= '9') {
    STERNA_ASSIGN(const int64_t id, c.integer(0, UINT32_MAX, "The number of a tensor"));
    out.key = cat('%', id);
    return out;
  }
  STERNA_ASSIGN(out.name, c.text("The name of a tensor"));
  out.key = cat('%', quoted_if_needed(out.name));
  if (c.take_adjoining('.')) {
    STERNA_ASSIGN(const int64_t id, c.integer(0, UINT32_MAX, "The number of a tensor"));
    out.key += cat('.', id);
  }
  return out;
}

Result<DType> dtype(Cursor& c) {
  Cursor before = c;
  if (const auto found = parse_dtype(c.word())) return *found;
  return before.fault("TEXT3", "The name of a number format expected here, such as float32 or bfloat16.");
}

Result<uint32_t> FieldReader::tensor(Cursor& c) {
  Cursor before = c;
  STERNA_ASSIGN(const Reference ref, reference(c));
  const auto at = tensors_.find(ref.key);
  if (at == tensors_.end()) return before.fault("TEXT3", cat("There is no tensor ", ref.key, " above."));
  return at->second;
}

Result<View> FieldReader::view(Cursor& c, int nesting) {
  if (c.take_word("none")) return View{};
  Cursor before = c;
  STERNA_ASSIGN(const uint32_t id, tensor(c));
  const TensorInfo& info = builder_.tensor(id);
  View out = whole_view(id, info);
  if (c.take_adjoining('['))
    STERNA_TRY(slices(c, &out, info));
  else if (c.take_adjoining('{'))
    STERNA_TRY(pattern_of(c, &out));
  int64_t elements = 1;
  for (int d = 0; d < out.ndim; ++d) {
    if (out.dims[d].count > kMostElements / elements)
      return before.fault("TEXT4", cat("A view has at most ", kMostElements, " elements."));
    elements *= std::max(out.dims[d].count, 1);
  }
  if (out.on_chip() && out.ndim < 2)
    return before.fault("TEXT4", "A view of SBUF or PSUM has two dimensions or more, the partition first.");
  if (c.take_adjoining('+')) STERNA_TRY(dynamic(c, &out, nesting));
  return out;
}

/// `0:128, 16:32:2, 5]`, after the bracket. Ends may be left out; trailing dimensions too.
Status FieldReader::slices(Cursor& c, View* view, const TensorInfo& info) {
  IndexItem items[kMaxDims];
  size_t n = 0;
  while (!c.take(']')) {
    if (n > 0) STERNA_TRY(c.expect(','));
    if (n == info.ndim)
      return c.fault("IDX2", cat("The tensor has ", int{info.ndim}, " dimensions."), FaultKind::kOutOfBounds);
    const int64_t size = info.shape[n];
    IndexItem& item = items[n++];
    item = {IndexItem::Kind::kSlice, 0, size, 1};
    const auto outside = [&](int64_t at) {
      return c.fault("IDX1", cat("Index ", at, " is outside dimension ", n - 1, " of size ", size, "."),
                     FaultKind::kOutOfBounds);
    };
    if (c.peek() != ':') {
      STERNA_ASSIGN(item.start, c.integer(0, INT32_MAX, "An index"));
    }
    if (!c.take(':')) {
      item.kind = IndexItem::Kind::kInt;
      if (item.start >= size) return outside(item.start);
      continue;
    }
    if (const char next = c.peek(); next != ':' && next != ',' && next != ']') {
      STERNA_ASSIGN(item.stop, c.integer(0, INT32_MAX, "The end of a slice"));
    }
    if (c.take(':')) {
      STERNA_ASSIGN(item.step, c.integer(1, INT32_MAX, "The step of a slice"));
    }
    if (item.stop > size) return outside(item.stop);
    if (item.start > item.stop)
      return c.fault("TEXT4", cat("The slice ", item.start, ':', item.stop, " ends before it begins."));
    if (item.step > 1 && view->dims[n - 1].stride > INT32_MAX / item.step)
      return c.fault("TEXT4", cat("The step ", item.step, " is too large."));
  }
  auto made = index_view(*view, {items, n});
  if (!made) return c.fault(made.error().rule, made.error().message, made.error().kind);
  *view = *made;
  return {};
}

/// `bfloat16, partition 1, offset 16, [1, 128], [2, 8]}`, after the brace.
Status FieldReader::pattern_of(Cursor& c, View* view) {
  view->ndim = 0;
  view->offset = 0;
  std::fill_n(view->dims, kMaxDims, Dim{});
  bool first = true;
  while (!c.take('}')) {
    if (!first) STERNA_TRY(c.expect(','));
    first = false;
    if (c.take('[')) {
      if (view->ndim == kMaxDims) return c.fault("TEXT4", cat("A view has at most ", kMaxDims, " dimensions."));
      STERNA_ASSIGN(const int64_t stride, c.integer(INT32_MIN, INT32_MAX, "A stride"));
      STERNA_TRY(c.expect(','));
      STERNA_ASSIGN(const int64_t count, c.integer(0, INT32_MAX, "A count"));
      STERNA_TRY(c.expect(']'));
      view->dims[view->ndim++] = {static_cast<int32_t>(stride), static_cast<int32_t>(count)};
    } else if (c.take_word("partition")) {
      STERNA_ASSIGN(const int64_t partition, c.integer(0, view->on_chip() ? INT32_MAX : 0, "The partition"));
      view->partition = static_cast<int32_t>(partition);
    } else if (c.take_word("offset")) {
      STERNA_ASSIGN(view->offset, c.integer(-kFarthest, kFarthest, "The offset"));
    } else {
      STERNA_ASSIGN(view->dtype, dtype(c));
    }
  }
  return {};
}

/// `($0 * 512 < 4)`, `rows(%index * 512 < 64)` in HBM, or `columns(%index * 1 < 64 by 16)` on chip, after the plus.
Status FieldReader::dynamic(Cursor& c, View* view, int nesting) {
  if (nesting >= kMaxNesting) return c.fault("TEXT4", "Offset tensors are nested too deeply.");
  const bool columns = view->on_chip() && c.take_word("columns");
  view->kind = columns || c.take_word("rows") ? ViewKind::kIndirect : ViewKind::kDynamic;
  STERNA_TRY(c.expect('('));
  DynamicOffset out;
  if (c.peek() == '$') {
    STERNA_ASSIGN(out.reg, reg(c));
  } else {
    out.source = DynamicOffset::Source::kTensor;
    Cursor before = c;
    STERNA_ASSIGN(out.index, this->view(c, nesting + 1));
    if (out.index.empty()) return before.fault("TEXT1", "A register or a tensor expected here.");
  }
  STERNA_TRY(c.expect('*'));
  STERNA_ASSIGN(out.multiplier, c.integer(INT32_MIN, INT32_MAX, "The factor"));
  STERNA_TRY(c.expect('<'));
  STERNA_ASSIGN(out.limit, c.integer(0, INT32_MAX, "The limit"));
  if (columns) {
    if (!c.take_word("by")) return c.fault("TEXT1", "'by' and the partitions of a group expected here.");
    STERNA_ASSIGN(const int64_t group, c.integer(1, kMaxPartitions, "The group"));
    out.group = static_cast<int32_t>(group);
  }
  STERNA_TRY(c.expect(')'));
  view->dynamic = builder_.share_dynamic(out);
  return {};
}

Result<uint32_t> FieldReader::reg(Cursor& c) {
  if (c.take_word("none")) return uint32_t{UINT32_MAX};
  STERNA_TRY(c.expect('$'));
  const int64_t count = builder_.program().register_count;
  if (count == 0) return c.fault("TEXT3", "The program has no registers; write 'registers 1' above.");
  STERNA_ASSIGN(const int64_t id, c.integer(0, count - 1, "The number of a register"));
  return static_cast<uint32_t>(id);
}

Result<Scalar> FieldReader::scalar(Cursor& c) {
  if (c.take_word("none")) return Scalar{};
  if (c.peek() != '%') {
    STERNA_ASSIGN(const double value, c.real("A number or a tensor"));
    return Scalar::of(value);
  }
  STERNA_ASSIGN(const View v, view(c, 0));
  return Scalar::of(v);
}

template <class Parse>
auto FieldReader::named(Cursor& c, std::string_view what, const Parse& parse)
    -> Result<typename decltype(parse(std::string_view()))::value_type> {
  Cursor before = c;
  const std::string_view word = c.word();
  if (const auto found = parse(word)) return *found;
  return before.fault("TEXT3", cat("'", word, "' is not the name of ", what, "."));
}

/// `[1, 2, 3]` of up to `most` numbers.
template <class T>
Status FieldReader::list(Cursor& c, T* out, int most, int64_t low, int64_t high, int32_t* count) {
  STERNA_TRY(c.expect('['));
  *count = 0;
  while (!c.take(']')) {
    if (*count > 0) STERNA_TRY(c.expect(','));
    if (*count == most) return c.fault("TEXT4", cat("A list of at most ", most, " numbers expected here."));
    STERNA_ASSIGN(const int64_t value, c.integer(low, high, "A number of the list"));
    out[(*count)++] = static_cast<T>(value);
  }
  return {};
}

/// `[[step, count], ...]`
Status FieldReader::pattern(Cursor& c, Pattern* out) {
  *out = {};
  STERNA_TRY(c.expect('['));
  int64_t elements = 1;
  while (!c.take(']')) {
    if (out->n > 0) STERNA_TRY(c.expect(','));
    if (out->n == 4) return c.fault("TEXT4", "A pattern has at most four pairs.");
    STERNA_TRY(c.expect('['));
    STERNA_ASSIGN(const int64_t step, c.integer(INT32_MIN, INT32_MAX, "A step"));
    STERNA_TRY(c.expect(','));
    STERNA_ASSIGN(const int64_t count, c.integer(0, INT32_MAX, "A count"));
    STERNA_TRY(c.expect(']'));
    if (count > kMostElements / elements)
      return c.fault("TEXT4", cat("A pattern covers at most ", kMostElements, " elements."));
    elements *= std::max<int64_t>(count, 1);
    out->steps[out->n++] = {static_cast<int32_t>(step), static_cast<int32_t>(count)};
  }
  return {};
}

Status FieldReader::field(Cursor& c, const FieldSpec& spec, void* body) {
  void* at = static_cast<char*>(body) + spec.offset;
  const auto set = [at](auto&& result) -> Status {
    if (!result) return std::move(result.error());
    *static_cast<std::remove_cvref_t<decltype(*result)>*>(at) = *result;
    return {};
  };
  if (const auto names = spellings(spec.type); !names.empty()) {
    Cursor before = c;
    const std::string_view word = c.word();
    const auto found = std::find(names.begin(), names.end(), word);
    std::string list;
    for (std::string_view n : names) list += cat(list.empty() || n.empty() ? "" : ", ", n);
    if (word.empty() || found == names.end())
      return before.fault("TEXT3", cat("'", spec.name, "' is one of: ", list, "."));
    *static_cast<uint8_t*>(at) = static_cast<uint8_t>(found - names.begin());
    return {};
  }
  switch (spec.type) {
    case FieldType::kView: return set(view(c, 0));
    case FieldType::kScalar: return set(scalar(c));
    case FieldType::kAluOp: return set(named(c, "an operator", parse_alu_op));
    case FieldType::kFunction: return set(named(c, "a function", parse_function));
    case FieldType::kDType: return set(dtype(c));
    case FieldType::kFloat: return set(c.real32(spec.name));
    case FieldType::kPattern: return pattern(c, static_cast<Pattern*>(at));
    case FieldType::kInt: {
      STERNA_ASSIGN(const int64_t value, c.integer(INT32_MIN, INT32_MAX, spec.name));
      *static_cast<int32_t*>(at) = static_cast<int32_t>(value);
      return {};
    }
    case FieldType::kLanes32: {
      int32_t count = 0;
      STERNA_TRY(list(c, static_cast<Lanes32*>(at)->lane, 32, 0, 255, &count));
      if (count != 32) return c.fault("TEXT4", cat("'", spec.name, "' lists 32 numbers, not ", count, "."));
      return {};
    }
    case FieldType::kInts: {
      auto* ints = static_cast<Ints*>(at);
      return list(c, ints->value, 4, INT32_MIN, INT32_MAX, &ints->n);
    }
    case FieldType::kRegister: {
      STERNA_ASSIGN(const uint32_t id, reg(c));
      *static_cast<RegisterRef*>(at) = {id};
      return {};
    }
    case FieldType::kTensor: {
      STERNA_ASSIGN(const uint32_t id, tensor(c));
      *static_cast<TensorRef*>(at) = {id};
      return {};
    }
    case FieldType::kName: {
      STERNA_ASSIGN(const std::string value, c.text(spec.name));
      *static_cast<NameRef*>(at) = {builder_.program().names.intern(value)};
      return {};
    }
    default: return c.fault("", cat("The text form cannot write '", spec.name, "'."), FaultKind::kBug);
  }
}

}  // namespace sterna::text
