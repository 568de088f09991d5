// SPDX-License-Identifier: Apache-2.0
// The checker of a Program that did not come from this process's Builder: its structure, then every rule of its
// instructions.
#pragma once

#include <vector>

#include "sterna/base/result.h"
#include "sterna/hardware/chip.h"
#include "sterna/program/program.h"

namespace sterna {

/// Everything that is wrong, in the order of the program; empty if it may run. Rules of the structure:
///   PRG1 a name or site that is not in its table       PRG2 a tensor that cannot be
///   PRG3 parameters and results                        PRG4 a record that is not an instruction
///   PRG5 a field with a value that has no meaning      PRG6 a tensor used before it is allocated
///   REGION1, REGION2 (nesting)  IDX4, DYN4, TI1 to TI3, TI6, TI7 (views)     PRG7 edges
/// and those of the instructions themselves.
std::vector<Fault> check_program(const Program& program, const Chip& chip);

/// The same for a program that was read from its binary form, which has what the user gave and not what check() adds:
/// completes the records that are right.
std::vector<Fault> complete_program(Program& program, const Chip& chip);

/// ALIAS2: a destination that is a broadcast writes one place several times; the last element in row-major order stays.
/// Kernels use that to throw a result away, so it is a remark, or a fault when strict.
Status check_written_once(const Rules& rules, const View& view, Role role);

/// LNC6: the view's tensor is shared by the cores, or this core's own.
Status check_core(const Program& program, const View& view, int core);

/// The view has a tensor, stays inside it (IDX4), and what it adds at run time can be found (DYN4).
Status check_view(const Program& program, const View& view);

}  // namespace sterna
