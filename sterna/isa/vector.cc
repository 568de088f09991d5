// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/vector.h"

namespace sterna {

std::vector<TableRow> vector_part() { return make_part(vector_engine::Instructions{}); }

}  // namespace sterna
