// SPDX-License-Identifier: Apache-2.0
#include "golden/paper/percentage_counts.h"

#include <algorithm>
#include <cmath>

#include "core/errors.h"

namespace softmoe::golden {
namespace {

bool Prints(int64_t count, int64_t total, const Decimal& percent,
            Rounding rule) {
  return Decimal::Quotient(100 * count, total, percent.decimals(), rule) ==
         percent;
}

}  // namespace

std::vector<int64_t> CountsThatPrint(const Decimal& percent, int64_t total,
                                     Rounding rule) {
  SOFTMOE_CHECK(total > 0 && total <= 1'000'000'000) << total;
  // Both rules change a value by at most one unit of the last digit, which
  // limits the possible counts.
  const double unit = std::pow(10.0, -percent.decimals());
  const double scale = static_cast<double>(total) / 100;
  const double value = percent.ToDouble();
  const auto limit = static_cast<double>(total);
  const auto first = static_cast<int64_t>(
      std::clamp(std::floor((value - unit) * scale) - 1, 0.0, limit));
  const auto last = static_cast<int64_t>(
      std::clamp(std::ceil((value + unit) * scale) + 1, 0.0, limit));
  std::vector<int64_t> counts;
  for (int64_t count = first; count <= last; ++count) {
    const bool nearest = rule != Rounding::kTruncate &&
                         Prints(count, total, percent, Rounding::kNearest);
    const bool truncated = rule != Rounding::kNearest &&
                           Prints(count, total, percent, Rounding::kTruncate);
    if (nearest || truncated) counts.push_back(count);
  }
  return counts;
}

}  // namespace softmoe::golden
