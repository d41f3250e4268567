// SPDX-License-Identifier: Apache-2.0
#include "reference/calibration.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/errors.h"

namespace softmoe::reference {

std::vector<double> CalibrationRatios(const RouterSettings& settings,
                                      const Matrix& scores) {
  const RouterSaved routed = RouterForward(settings, scores);
  const double uniform =
      settings.mean_active / static_cast<double>(scores.cols());
  std::vector<double> ratios;
  for (Eigen::Index t = 0; t < scores.rows(); ++t) {
    // Larger scores have larger weights, so these are the capped experts' p.
    Vector weights = routed.soft_weights.row(t);
    std::sort(weights.begin(), weights.end(), std::greater<double>());
    for (int64_t rank = 0; rank < settings.max_active; ++rank) {
      ratios.push_back(weights[rank] / uniform);
    }
  }
  return ratios;
}

double CalibrateTau(std::vector<double> ratios, double mean_active_experts,
                    int64_t num_tokens) {
  const int64_t count = static_cast<int64_t>(ratios.size());
  if (count < 2) {
    throw ConfigError(fmt::format(
        "tau calibration: {} ratios; it needs at least two: give it "
        "more tokens, or a larger expansion_factor",
        count));
  }
  const int64_t wanted =
      std::llround(mean_active_experts * static_cast<double>(num_tokens));
  const int64_t n = std::clamp<int64_t>(wanted, 1, count - 1);
  std::sort(ratios.begin(), ratios.end(), std::greater<double>());
  // [first, last): the ratios that equal the n-th.
  const auto [first, last] = std::equal_range(
      ratios.begin(), ratios.end(), ratios[n - 1], std::greater<double>());
  if (last == ratios.begin() + n) return 0.5 * (ratios[n - 1] + ratios[n]);
  const int64_t above = first - ratios.begin();
  const int64_t at_least = last - ratios.begin();
  if (above > 0 && (*first == 0 || n - above < at_least - n)) {
    return 0.5 * (*(first - 1) + *first);
  }
  return 0.5 * (*first + (last == ratios.end() ? 0 : *last));
}

}  // namespace softmoe::reference
