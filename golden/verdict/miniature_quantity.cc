// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature_quantity.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "golden/verdict/statistics.h"

namespace softmoe::golden {
namespace {

using Values = std::vector<double>;

double Sum(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// The number of last layers, the share rounded up; 0.3 * 10 may be slightly
// above 3.
double NumLate(double layers, double share_of_layers) {
  return std::ceil(share_of_layers * layers - 1e-6);
}

// Share of the last layers, minus their share if all were equal.
double LateShare(const Values& allocation, double share_of_layers) {
  const auto layers = static_cast<double>(allocation.size());
  const double late = NumLate(layers, share_of_layers);
  const auto first = allocation.end() - static_cast<std::ptrdiff_t>(late);
  return std::accumulate(first, allocation.end(), 0.0) / Sum(allocation) -
         late / layers;
}

double NumPairs(size_t layers) {
  const auto n = static_cast<double>(layers);
  return n * (n - 1) / 2;
}

// Kendall's tau of k_l and depth; equal k_l count as neither order.
double DepthOrder(const Values& allocation) {
  int64_t balance = 0;
  for (size_t i = 0; i < allocation.size(); ++i) {
    for (size_t j = i + 1; j < allocation.size(); ++j) {
      balance +=
          (allocation[i] < allocation[j]) - (allocation[i] > allocation[j]);
    }
  }
  return static_cast<double>(balance) / NumPairs(allocation.size());
}

double Distance(const Values& a, const Values& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum;
}

// Every layer starts with the same k_l.
Values FirstAllocation(const MiniatureRun& run) {
  const Values& final = run.allocation.back().allocation;
  return Values(final.size(), Mean(final));
}

// The run at that share of its steps, linear between recorded steps.
AllocationPoint PointAt(const MiniatureRun& run, double share_of_steps) {
  const AllocationPoint& last = run.allocation.back();
  const double when = share_of_steps * static_cast<double>(last.step);
  AllocationPoint before{0, FirstAllocation(run)};
  for (const AllocationPoint& after : run.allocation) {
    if (static_cast<double>(after.step) >= when) {
      const auto begin = static_cast<double>(before.step);
      const auto end = static_cast<double>(after.step);
      const double part = end > begin ? (when - begin) / (end - begin) : 1;
      for (size_t l = 0; l < before.allocation.size(); ++l) {
        before.allocation[l] +=
            part * (after.allocation[l] - before.allocation[l]);
      }
      before.learning_rate_sum +=
          part * (after.learning_rate_sum - before.learning_rate_sum);
      return before;
    }
    before = after;
  }
  return last;  // not reached: `when` is before the last step
}

// 1 - (distance to the final allocation at that share of the steps) / (whole
// distance).
double EarlyMovement(const MiniatureRun& run, double share_of_steps) {
  const Values& last = run.allocation.back().allocation;
  return 1 - Distance(PointAt(run, share_of_steps).allocation, last) /
                 Distance(FirstAllocation(run), last);
}

// Loss at half the active experts minus loss at the trained tau.
QuantityValue HalvingCost(const MiniatureRun& run) {
  const auto trained =
      std::find_if(run.at_tau.begin(), run.at_tau.end(),
                   [](const TauPoint& point) { return point.factor == 1; });
  if (trained == run.at_tau.end()) {
    return {.problem = "was not evaluated at other tau"};
  }
  const double half = trained->infer_ae / 2;
  for (auto more = trained, fewer = trained + 1; fewer != run.at_tau.end();
       more = fewer++) {
    if (fewer->infer_ae > half) continue;
    const double part =
        (more->infer_ae - half) / (more->infer_ae - fewer->infer_ae);
    return {more->loss + part * (fewer->loss - more->loss) - trained->loss, ""};
  }
  return {.problem = fmt::format(
              "keeps {:.2f} of {:.2f} active experts at {:g} times the trained "
              "tau, more than half",
              run.at_tau.back().infer_ae, trained->infer_ae,
              run.at_tau.back().factor)};
}

QuantityValue OfAllocation(const MiniatureMeasure& measure,
                           const MiniatureRun& run) {
  if (run.allocation.empty() || run.allocation.back().allocation.size() < 2) {
    return {.problem = "has no learned allocation over two layers or more"};
  }
  const Values& final = run.allocation.back().allocation;
  if (!std::isfinite(Sum(final))) return {.problem = "gave no number"};
  if (measure.quantity == Quantity::kLateShare) {
    return {LateShare(final, measure.share_of_layers), ""};
  }
  if (measure.quantity == Quantity::kDepthOrder) return {DepthOrder(final), ""};
  if (MovementOf(run) == 0) {
    return {.problem = "has an allocation that never moved"};
  }
  return {EarlyMovement(run, measure.share_of_steps), ""};
}

}  // namespace

double MovementOf(const MiniatureRun& run) {
  const Values& final = run.allocation.back().allocation;
  return Distance(FirstAllocation(run), final) / 2 / Sum(final);
}

double LearningRateSum(const MiniatureRun& run, double share_of_steps) {
  return PointAt(run, share_of_steps).learning_rate_sum;
}

double LearningRateNeeded(const MiniatureMeasure& measure,
                          const MiniatureRun& run) {
  const Values& final = run.allocation.back().allocation;
  const auto layers = static_cast<double>(final.size());
  const double late = NumLate(layers, measure.share_of_layers);
  const double budget = Sum(final);
  // k_l = 1 + (budget - layers) softmax_l; this is the late layers' total
  // softmax.
  const double late_softmax =
      (measure.final_share * budget - late) / (budget - layers);
  if (!(late_softmax > 0 && late_softmax < 1)) {
    return std::numeric_limits<double>::infinity();
  }
  auto on_the_way = [&](double final_softmax) {
    return 1 / layers +
           measure.share_of_movement * (final_softmax - 1 / layers);
  };
  return std::log(on_the_way(late_softmax / late) /
                  on_the_way((1 - late_softmax) / (layers - late))) /
         2;
}

double DepthOrderStep(size_t layers) { return 2 / NumPairs(layers); }

QuantityValue ReadQuantity(const MiniatureMeasure& measure,
                           const MiniatureRun& run) {
  // No number of a diverged run is usable.
  if (!std::isfinite(run.loss)) return {.problem = "gave no number"};
  QuantityValue result;
  switch (measure.quantity) {
    case Quantity::kLoss:
      result.value = run.loss;
      break;
    case Quantity::kInferAe:
      result.value = run.infer_ae;
      break;
    case Quantity::kLogLoadVariance:
      if (run.load_variance <= 0) {
        return {.problem = "has a load variance without a logarithm"};
      }
      result.value = std::log(run.load_variance);
      break;
    case Quantity::kHellaswag:
      if (!run.hellaswag) return {.problem = "has no accuracy"};
      result.value = *run.hellaswag;
      break;
    case Quantity::kLateShare:
    case Quantity::kDepthOrder:
    case Quantity::kEarlyMovement:
      result = OfAllocation(measure, run);
      break;
    case Quantity::kHalvingCost:
      result = HalvingCost(run);
      break;
    case Quantity::kLogThroughput:
      return {.problem = "is not a benchmark"};
  }
  if (result.problem.empty() && !std::isfinite(result.value)) {
    result.problem = "gave no number";
  }
  return result;
}

}  // namespace softmoe::golden
