// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/dma.h"

namespace sterna {

std::vector<TableRow> dma_part() { return make_part(dma_engine::Instructions{}); }

}  // namespace sterna
