// SPDX-License-Identifier: Apache-2.0
// Instructions of the vector engine (some also run on the scalar or GpSimd engine), by subject.
#pragma once

#include "sterna/isa/vector_elementwise.h"
#include "sterna/isa/vector_exponential.h"
#include "sterna/isa/vector_move.h"
#include "sterna/isa/vector_mx.h"
#include "sterna/isa/vector_random.h"
#include "sterna/isa/vector_reduce.h"
#include "sterna/isa/vector_scan.h"
#include "sterna/isa/vector_search.h"
#include "sterna/isa/vector_select.h"
#include "sterna/isa/vector_statistics.h"

namespace sterna::vector_engine {

using Instructions =
    Joined<Elementwise, Moves, Reductions, Scans, Selections, Searches, Statistics, BlockScaled, Random, Exponentials>;

}  // namespace sterna::vector_engine
