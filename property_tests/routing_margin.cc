// SPDX-License-Identifier: Apache-2.0
#include "property_tests/routing_margin.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/testing/bounded.h"

namespace softmoe::property_tests {
namespace {

using reference::BoolMatrix;
using reference::Matrix;
using reference::RouterSaved;
using reference::RouterSettings;

// The `count`-th and the next largest score of a row; -inf past the end.
struct Boundary {
  double last_in, first_out;
};
Boundary TopBoundary(const Matrix& scores, int64_t token, int64_t count) {
  std::vector<double> row(scores.row(token).begin(), scores.row(token).end());
  std::sort(row.begin(), row.end(), std::greater<>());
  const size_t c = static_cast<size_t>(count);
  return {row[c - 1], c < row.size() ? row[c] : -HUGE_VAL};
}

// True if a change of the scores by `error` can move `score` over the boundary.
bool AtBoundary(double score, const Boundary& boundary, double error) {
  return boundary.last_in - boundary.first_out <= 2 * error &&
         score >= boundary.first_out - 2 * error &&
         score <= boundary.last_in + 2 * error;
}

// How far an expert's soft weight may be off: d p_i / d r_j = f_i/T (delta_ij -
// q_j), so scores with error e move p_i by at most 2 e f_i/T, f_i = min(p_i, 1
// - p_i).
double WeightError(const RouterSettings& settings, double weight,
                   double score_error, double weight_error) {
  const double density = std::min(weight, 1 - weight);
  return 2 * score_error * density / settings.temperature +
         weight_error * weight;
}

}  // namespace

SelectionCheck CheckSelection(const RouterSettings& settings,
                              const Matrix& scores, const BoolMatrix& got,
                              double score_error, double weight_error) {
  const RouterSaved own = reference::RouterForward(settings, scores);
  const bool soft = settings.kind != RouterKind::kSparse;
  SelectionCheck check;
  for (Eigen::Index t = 0; t < scores.rows(); ++t) {
    const Boundary cap = TopBoundary(scores, t, settings.max_active);
    const Boundary top1 = TopBoundary(scores, t, 1);
    bool differs = false;
    for (Eigen::Index e = 0; e < scores.cols(); ++e) {
      if (own.active(t, e) == got(t, e)) continue;
      differs = true;
      const double weight = own.soft_weights(t, e);
      // A weight that float flushes to 0 matters for a cutoff of 0.
      const bool at_cutoff =
          soft && std::abs(weight - settings.cutoff) <=
                      WeightError(settings, weight, score_error, weight_error) +
                          0x1p-23 * settings.cutoff + FloatRounding::kUnderflow;
      // The fallback takes the largest score if nothing reached the cutoff.
      const bool at_top1 = settings.fallback == Fallback::kTop1 &&
                           AtBoundary(scores(t, e), top1, score_error);
      if (at_cutoff || at_top1 || AtBoundary(scores(t, e), cap, score_error)) {
        continue;
      }
      if (check.defect.empty()) {
        check.defect = fmt::format(
            "token {}, expert {} is {}active: score {:.9g} (cap between {:.9g} "
            "and {:.9g}, +-{:.2g}), soft weight {:.9g}, cutoff {:.9g}",
            t, e, got(t, e) ? "" : "not ", scores(t, e), cap.last_in,
            cap.first_out, score_error, weight, settings.cutoff);
      }
    }
    check.ambiguous += differs;
  }
  return check;
}

int64_t AmbiguousTop(const Matrix& scores, int64_t top, double score_error) {
  int64_t ambiguous = 0;
  for (Eigen::Index t = 0; t < scores.rows(); ++t) {
    const Boundary boundary = TopBoundary(scores, t, top);
    ambiguous += boundary.last_in - boundary.first_out <= 2 * score_error;
  }
  return ambiguous;
}

}  // namespace softmoe::property_tests
