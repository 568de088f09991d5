// SPDX-License-Identifier: Apache-2.0
// `sterna program`: reads a program in the text form, checks it, and prints, counts or runs it.
#pragma once

#include "sterna/cli/command.h"

namespace sterna::cli {

Command program_command();

}  // namespace sterna::cli
