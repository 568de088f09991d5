// SPDX-License-Identifier: Apache-2.0
// `sterna run ...`: kernels are Python, so this hands over to the interpreter.
#pragma once

#include "sterna/cli/command.h"

namespace sterna::cli {

Command run_command();

}  // namespace sterna::cli
