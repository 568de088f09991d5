// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/gpsimd.h"

namespace sterna {

std::vector<TableRow> gpsimd_part() { return make_part(gpsimd_engine::Instructions{}); }

}  // namespace sterna
