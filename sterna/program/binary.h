// SPDX-License-Identifier: Apache-2.0
// The binary form of a Program (`.sternab`): what the text form says, in a tenth of the space, for caches and for
// programs too long to read. It says itself how it is made: for each instruction that occurs it lists the fields by
// name and kind, so a Sterna whose instructions have got further fields still reads it; those get their defaults.
//
//   "sterna\x01b"  version  sections, each with its length: head, names, sites, tensors, dynamics, instructions, then
//   one section of records a core, edges, and a checksum (64-bit FNV-1a of everything before it)
//
// Numbers are variable-length (sterna/trace/varint.h); a record names its instruction by its place in the list, then
// site, iteration and label as differences from the record before, then the fields that differ from the last record of
// that instruction.
#pragma once

#include <string>
#include <string_view>

#include "sterna/base/result.h"
#include "sterna/program/program.h"

namespace sterna {

std::string write_program(const Program& program);

/// Faults: PRGB1 (not a binary program), PRGB2 (another version, or instructions or fields that this Sterna has not),
/// PRGB3 (damaged or cut short). What a sound file says may still be no program, and records have only what the user
/// gave: complete_program() comes next, before anything runs.
Result<Program> read_program(std::string_view bytes, std::shared_ptr<BufferPool> pool = nullptr);
/// True for bytes that begin as the binary form does.
bool is_binary_program(std::string_view bytes);

Status save_program(const Program& program, const std::string& path);
Result<Program> load_program(const std::string& path);

}  // namespace sterna
