// SPDX-License-Identifier: Apache-2.0
#include "property_tests/routing_margin.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "core/testing/bounded.h"
#include "reference/lapsum.h"

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

// Whether a change of the scores by `error` can move `score` over the boundary.
bool AtBoundary(double score, const Boundary& boundary, double error) {
  return boundary.last_in - boundary.first_out <= 2 * error &&
         score >= boundary.first_out - 2 * error &&
         score <= boundary.last_in + 2 * error;
}

// The experts of a row, by descending score and then by index.
std::vector<int64_t> Order(const Matrix& scores, int64_t row) {
  std::vector<int64_t> order(scores.cols());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    return scores(row, a) > scores(row, b);
  });
  return order;
}

// How far an expert's soft weight may be off: d p_i / d r_j = f_i/T (delta_ij -
// q_j), so scores with error e move p_i by at most 2 e f_i/T, f_i = min(p_i, 1
// - p_i).
double WeightError(const RouterSettings& settings, const Bounded& weight,
                   double score_error) {
  const double density = std::min(weight.value, 1 - weight.value);
  return 2 * score_error * density / settings.temperature + weight.error;
}

// The first difference of token `t` from `own` that nothing excuses, or "".
std::string RowDefect(const RouterSettings& settings, const Matrix& scores,
                      const RouterSaved& own, const BoolMatrix& got,
                      double score_error, Eigen::Index t) {
  const bool soft = settings.kind != RouterKind::kSparse;
  const std::vector<Bounded> bounds =
      soft ? SoftWeightBounds(settings, scores.row(t)) : std::vector<Bounded>();
  const Boundary cap = TopBoundary(scores, t, settings.max_active);
  const Boundary top1 = TopBoundary(scores, t, 1);
  bool any_at_cutoff = false;
  for (Eigen::Index e = 0; e < scores.cols(); ++e) {
    const double weight = own.soft_weights(t, e);
    bool at_cutoff = false, may_count = true;
    if (soft) {
      // A weight that float flushes to 0 matters for a cutoff of 0.
      const double margin = WeightError(settings, bounds[e], score_error) +
                            0x1p-23 * settings.cutoff +
                            FloatRounding::kUnderflow;
      // Negated: a margin that is NaN has no limit.
      at_cutoff = !(std::abs(weight - settings.cutoff) > margin);
      may_count = !(weight + margin <= settings.cutoff);
    }
    any_at_cutoff |= at_cutoff;
    if (own.active(t, e) == got(t, e)) continue;
    // The fallback takes the largest score if nothing reached the cutoff.
    const bool at_top1 = settings.fallback == Fallback::kTop1 &&
                         AtBoundary(scores(t, e), top1, score_error);
    const bool at_cap = may_count && AtBoundary(scores(t, e), cap, score_error);
    if (at_cutoff || at_top1 || at_cap) continue;
    return fmt::format(
        "token {}, expert {} is {}active: score {:.9g} (cap between {:.9g} "
        "and {:.9g}, +-{:.2g}), soft weight {:.9g}, cutoff {:.9g}",
        t, e, got(t, e) ? "" : "not ", scores(t, e), cap.last_in, cap.first_out,
        score_error, weight, settings.cutoff);
  }
  // At the cap and at top-1, experts change places.
  const auto count = got.row(t).count(), wanted = own.active.row(t).count();
  if (any_at_cutoff || count == wanted) return "";
  return fmt::format(
      "token {}: {} active experts instead of {}, and no soft weight is at the "
      "cutoff",
      t, count, wanted);
}

}  // namespace

SelectionCheck CheckSelection(const RouterSettings& settings,
                              const Matrix& scores, const BoolMatrix& got,
                              double score_error) {
  const RouterSaved own = reference::RouterForward(settings, scores);
  SelectionCheck check;
  for (Eigen::Index t = 0; t < scores.rows(); ++t) {
    if (own.active.row(t) == got.row(t)) continue;
    ++check.ambiguous;
    if (check.defect.empty()) {
      check.defect = RowDefect(settings, scores, own, got, score_error, t);
    }
  }
  return check;
}

std::vector<Bounded> SoftWeightBounds(const RouterSettings& settings,
                                      const reference::Vector& scores) {
  const auto experts = static_cast<size_t>(scores.size());
  // If mean_active is num_experts or more, every weight is 1 (kernels/router.h)
  // up to what floats allow: they solve for the float below num_experts.
  if (settings.mean_active >= static_cast<double>(experts)) {
    const auto unit = static_cast<double>(std::bit_ceil(experts)) * kFloatUnit;
    return std::vector<Bounded>(experts, Bounded(1, unit));
  }
  std::vector<Bounded> weights;
  for (const Bounded& u : LapSumArguments(reference::SolveLapSum(
           scores, settings.mean_active, settings.temperature))) {
    weights.push_back(reference::LaplaceCdfOf(u));
  }
  return weights;
}

BoolMatrix OwnSelection(const RouterSettings& settings, const Matrix& scores,
                        const Matrix& weights) {
  const bool soft = settings.kind != RouterKind::kSparse;
  BoolMatrix wanted = BoolMatrix::Constant(scores.rows(), scores.cols(), false);
  for (int64_t t = 0; t < scores.rows(); ++t) {
    const std::vector<int64_t> order = Order(scores, t);
    for (int64_t i = 0; i < settings.max_active; ++i) {
      wanted(t, order[i]) = !soft || weights(t, order[i]) > settings.cutoff;
    }
    if (settings.fallback == Fallback::kTop1 && !wanted.row(t).any()) {
      wanted(t, order[0]) = true;
    }
  }
  return wanted;
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
