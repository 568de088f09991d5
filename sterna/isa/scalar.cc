// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/scalar.h"

namespace sterna {

std::vector<TableRow> scalar_part() { return make_part(scalar_engine::Instructions{}); }

}  // namespace sterna
