// SPDX-License-Identifier: Apache-2.0
// One field of a record in the binary form.
#pragma once

#include "sterna/isa/instruction.h"
#include "sterna/trace/varint.h"

namespace sterna::binary {

/// Bytes that a field takes in its struct.
size_t field_bytes(FieldType type);
void write_view(ByteWriter& out, const View& view);
View read_view(ByteReader& in);
void write_field(ByteWriter& out, FieldType type, const void* at);
void read_field(ByteReader& in, FieldType type, void* at);
/// Equal in what write_field writes; padding does not count.
bool same_field(FieldType type, const void* a, const void* b);

}  // namespace sterna::binary
