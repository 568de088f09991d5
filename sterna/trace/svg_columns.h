// SPDX-License-Identifier: Apache-2.0
// A strip of the picture of a run. Time is cut into columns, of half a pixel unless the file would be too large. Of
// each column only shares are kept: how much of it each kind took. A column is drawn as high as its share, so
// instructions much narrower than a pixel still add up to the right area, and the file's size depends on the columns
// alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "sterna/base/text.h"

namespace sterna {

class SvgColumns {
 public:
  SvgColumns(size_t columns, size_t kinds, int64_t span)
      : columns_(columns),
        kinds_(kinds),
        scale_(static_cast<double>(columns) / static_cast<double>(span)),
        share_(columns * kinds) {}

  /// Intervals of one strip do not overlap.
  void add(int64_t from, int64_t to, size_t kind) {
    const double a = static_cast<double>(from) * scale_;
    const double b = std::max(static_cast<double>(to), static_cast<double>(from) + 1) * scale_;  // no interval is empty
    const size_t first = std::min(static_cast<size_t>(a), columns_ - 1);
    for (size_t c = first; c < columns_ && (c == first || static_cast<double>(c) < b); ++c)
      share_[c * kinds_ + kind] +=
          std::max(1e-9, std::min(b, static_cast<double>(c) + 1) - std::max(a, static_cast<double>(c)));
  }

  /// One outline for each kind, stacked. The x unit is a column, the y unit a tenth of a pixel, upwards.
  void draw(std::string& out, std::string_view css, int height) const {
    std::vector<int> tops(columns_ * kinds_);
    for (size_t c = 0; c < columns_; ++c) stack(&share_[c * kinds_], &tops[c * kinds_], height * kTenths);
    for (size_t k = kinds_; k-- > 0;) {  // the highest first: each covers the lower part of those before it
      std::string path;
      int at = 0;
      size_t run = 0;
      const auto go = [&] {
        path += run > 0 ? cat('h', run) : "";
        run = 0;
      };
      for (size_t c = 0; c < columns_; ++c, ++run) {
        const int top = tops[c * kinds_ + k];
        if (top == at) continue;
        go();
        path += cat('v', top - at);
        at = top;
      }
      go();
      if (path.find('v') != std::string::npos) out += cat("<path class='", css, k, "' d='M0 0", path, "V0z'/>\n");
    }
  }

 private:
  static constexpr int kTenths = 10;       // of a pixel: the unit of heights
  static constexpr int kLeastHeight = 10;  // of a column in which there is anything

  /// Heights of the kinds that are there, each with those below it. What is there at all is kLeastHeight high; each of
  /// its kinds has some of that, at the cost of the largest.
  void stack(const double* share, int* top, int full) const {
    const auto present = static_cast<int>(std::count_if(share, share + kinds_, [](double x) { return x > 0; }));
    if (present == 0) return;
    const int total = std::clamp(static_cast<int>(std::lround(std::accumulate(share, share + kinds_, 0.0) * full)),
                                 kLeastHeight, full);
    const int least = std::min(kLeastHeight, total / present);
    int sum = 0;
    for (size_t k = 0; k < kinds_; ++k)
      if (share[k] > 0) sum += top[k] = std::max(least, static_cast<int>(std::lround(share[k] * full)));
    while (sum != total) {
      int& most = *std::max_element(top, top + kinds_);
      const int change = std::max(total - sum, least - most);
      most += change;
      sum += change;
    }
    int below = 0;
    for (size_t k = 0; k < kinds_; ++k)
      if (share[k] > 0) below = top[k] += below;
  }

  size_t columns_, kinds_;
  double scale_;
  std::vector<double> share_;
};

}  // namespace sterna
