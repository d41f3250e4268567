// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/rank_midpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "core/errors.h"

namespace softmoe::trainer {

RankMidpoint FindRankMidpoint(std::span<float> values, int64_t rank) {
  for (const float value : values) {
    if (value >= 0.0f && !std::isinf(value)) continue;
    throw NumericsError(fmt::format(
        "calibrating tau: a soft weight ratio is {}, expected a finite number "
        ">= 0; the initial parameters or the router are broken",
        value));
  }
  if (values.size() < 2) {
    throw DataError(fmt::format(
        "calibrating tau needs at least 2 soft weights, found {}; use more "
        "calibration_batches or longer sequences",
        values.size()));
  }
  RankMidpoint result;
  result.rank = std::clamp<int64_t>(rank, 1, std::ssize(values) - 1);
  const auto nth = values.begin() + (result.rank - 1);
  std::nth_element(values.begin(), nth, values.end(), std::greater<>());
  result.larger = *nth;
  result.smaller = *std::max_element(nth + 1, values.end());
  result.midpoint = 0.5 * (static_cast<double>(result.larger) +
                           static_cast<double>(result.smaller));
  return result;
}

}  // namespace softmoe::trainer
