// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/binary_fields.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sterna::binary {
namespace {

template <class T>
const T& as(const void* at) {
  return *static_cast<const T*>(at);
}
template <class T>
T& as(void* at) {
  return *static_cast<T*>(at);
}

int32_t read_int32(ByteReader& in) {
  const int64_t x = in.signed_number();
  if (x < INT32_MIN || x > INT32_MAX) in.damaged = true;
  return static_cast<int32_t>(x);
}

void write_ints(ByteWriter& out, const Ints& list) {
  const int32_t n = std::clamp(list.n, 0, 4);
  out.number(static_cast<uint64_t>(n));
  for (int32_t i = 0; i < n; ++i) out.signed_number(list.value[i]);
}

/// A length of a list of at most 4.
int32_t read_length(ByteReader& in) {
  const uint64_t n = in.number();
  if (n > 4) in.damaged = true;
  return in.damaged ? 0 : static_cast<int32_t>(n);
}

void write_pattern(ByteWriter& out, const Pattern& p) {
  const int32_t n = std::clamp(p.n, 0, 4);
  out.number(static_cast<uint64_t>(n));
  for (int32_t i = 0; i < n; ++i) {
    out.signed_number(p.steps[i].step);
    out.signed_number(p.steps[i].count);
  }
}

}  // namespace

size_t field_bytes(FieldType type) {
  switch (type) {
    case FieldType::kView: return sizeof(View);
    case FieldType::kScalar: return sizeof(Scalar);
    case FieldType::kInt: return sizeof(int32_t);
    case FieldType::kFloat: return sizeof(float);
    case FieldType::kPattern: return sizeof(Pattern);
    case FieldType::kLanes32: return sizeof(Lanes32);
    case FieldType::kInts: return sizeof(Ints);
    case FieldType::kRegister: return sizeof(RegisterRef);
    case FieldType::kTensor: return sizeof(TensorRef);
    case FieldType::kName: return sizeof(NameRef);
    default: return 1;  // enumerators and bool
  }
}

void write_view(ByteWriter& out, const View& v) {
  out.number((uint64_t{v.tensor} + 1) & UINT32_MAX);  // kNoTensor is 0
  if (v.tensor == kNoTensor) return;
  const int ndim = std::min<int>(v.ndim, kMaxDims);
  out.number(static_cast<uint64_t>(v.dtype) << 8 | static_cast<uint64_t>(ndim) << 4 |
             static_cast<uint64_t>(v.memory) << 2 | static_cast<uint64_t>(v.kind));
  out.signed_number(v.partition);
  out.number(v.dynamic);
  out.signed_number(v.offset);
  for (int d = 0; d < ndim; ++d) {
    out.signed_number(v.dims[d].stride);
    out.signed_number(v.dims[d].count);
  }
}

View read_view(ByteReader& in) {
  View v;
  const uint64_t tensor = in.number();
  if (tensor == 0 || tensor > UINT32_MAX) {
    in.damaged = in.damaged || tensor != 0;
    return v;
  }
  v.tensor = static_cast<uint32_t>(tensor - 1);
  const uint64_t head = in.number();
  const uint64_t ndim = head >> 4 & 15;
  if (head >> 8 >= kDTypeCount || ndim > kMaxDims || (head >> 2 & 3) > 2 || (head & 3) > 2) in.damaged = true;
  if (in.damaged) return {};
  v.dtype = static_cast<DType>(head >> 8);
  v.ndim = static_cast<uint8_t>(ndim);
  v.memory = static_cast<Memory>(head >> 2 & 3);
  v.kind = static_cast<ViewKind>(head & 3);
  v.partition = read_int32(in);
  v.dynamic = in.fitting<uint32_t>();
  v.offset = in.signed_number();
  for (uint64_t d = 0; d < ndim; ++d) {
    v.dims[d].stride = read_int32(in);
    v.dims[d].count = read_int32(in);
  }
  return v;
}

void write_field(ByteWriter& out, FieldType type, const void* at) {
  switch (type) {
    case FieldType::kView: return write_view(out, as<View>(at));
    case FieldType::kScalar: {
      const Scalar& s = as<Scalar>(at);
      out.number(s.is_view ? 2 : s.is_none ? 0 : 1);
      if (s.is_view)
        write_view(out, s.view);
      else if (!s.is_none)
        out.real(s.value);
      return;
    }
    case FieldType::kInt: return out.signed_number(as<int32_t>(at));
    case FieldType::kFloat: return out.number(std::bit_cast<uint32_t>(as<float>(at)));
    case FieldType::kPattern: return write_pattern(out, as<Pattern>(at));
    case FieldType::kLanes32: return out.raw({reinterpret_cast<const char*>(as<Lanes32>(at).lane), sizeof(Lanes32)});
    case FieldType::kInts: return write_ints(out, as<Ints>(at));
    case FieldType::kRegister: return out.number((uint64_t{as<RegisterRef>(at).id} + 1) & UINT32_MAX);
    case FieldType::kTensor: return out.number((uint64_t{as<TensorRef>(at).id} + 1) & UINT32_MAX);
    case FieldType::kName: return out.number(as<NameRef>(at).id);
    default: return out.number(as<uint8_t>(at));
  }
}

void read_field(ByteReader& in, FieldType type, void* at) {
  switch (type) {
    case FieldType::kView: as<View>(at) = read_view(in); return;
    case FieldType::kScalar: {
      Scalar& s = as<Scalar>(at);
      s = {};
      const uint64_t kind = in.number();
      if (kind > 2) in.damaged = true;
      if (kind == 2) s = Scalar::of(read_view(in));
      if (kind == 1) s = Scalar::of(in.real());
      return;
    }
    case FieldType::kInt: as<int32_t>(at) = read_int32(in); return;
    case FieldType::kFloat: as<float>(at) = std::bit_cast<float>(in.fitting<uint32_t>()); return;
    case FieldType::kPattern: {
      Pattern& p = as<Pattern>(at);
      p = {};
      p.n = read_length(in);
      for (int32_t i = 0; i < p.n; ++i) p.steps[i] = {read_int32(in), read_int32(in)};
      return;
    }
    case FieldType::kLanes32:
      for (uint8_t& lane : as<Lanes32>(at).lane) lane = in.byte();
      return;
    case FieldType::kInts: {
      Ints& list = as<Ints>(at);
      list = {};
      list.n = read_length(in);
      for (int32_t i = 0; i < list.n; ++i) list.value[i] = read_int32(in);
      return;
    }
    case FieldType::kRegister: as<RegisterRef>(at).id = in.fitting<uint32_t>() - 1; return;
    case FieldType::kTensor: as<TensorRef>(at).id = in.fitting<uint32_t>() - 1; return;
    case FieldType::kName: as<NameRef>(at).id = in.fitting<uint32_t>(); return;
    default: as<uint8_t>(at) = in.fitting<uint8_t>(); return;
  }
}

bool same_field(FieldType type, const void* a, const void* b) {
  if (type == FieldType::kView) return as<View>(a) == as<View>(b);
  if (type != FieldType::kScalar) return std::memcmp(a, b, field_bytes(type)) == 0;
  const Scalar &x = as<Scalar>(a), &y = as<Scalar>(b);
  if (x.is_view != y.is_view || x.is_none != y.is_none) return false;
  return x.is_view ? x.view == y.view : std::bit_cast<uint64_t>(x.value) == std::bit_cast<uint64_t>(y.value);
}

}  // namespace sterna::binary
