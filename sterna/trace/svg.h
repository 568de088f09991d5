// SPDX-License-Identifier: Apache-2.0
// A trace as one still picture: a lane for each queue that did something, over time, with what each was busy with, what
// it waited for, and where the critical path lies. The file stands alone, follows the viewer's light or dark scheme,
// and has at most kSvgLimit bytes however many instructions ran; the same trace gives the same bytes.
#pragma once

#include <cstddef>
#include <iosfwd>

#include "sterna/trace/trace.h"

namespace sterna {

inline constexpr int kSvgWidth = 1000, kSvgLeastWidth = 640, kSvgMostWidth = 4000;
inline constexpr size_t kSvgLimit = 140'000;

/// `width` in pixels; taken to the nearest of the two bounds above if outside them.
void write_svg(std::ostream& out, const Trace& trace, int width = kSvgWidth);

}  // namespace sterna
