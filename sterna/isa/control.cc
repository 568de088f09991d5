// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/control.h"

namespace sterna {

std::vector<TableRow> control_part() { return make_part(control::Instructions{}); }

}  // namespace sterna
