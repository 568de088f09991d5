// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/tensor.h"

namespace sterna {

std::vector<TableRow> tensor_part() { return make_part(tensor_engine::Instructions{}); }

}  // namespace sterna
