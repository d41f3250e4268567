// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/examples/soft_topk.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

namespace soft_topk {
namespace {

double Quantile(double y) {  // F^-1
  return y < 0.5 ? std::log(2 * y) : -std::log(2 * (1 - y));
}

// Positive if the weights at x sum to more than k.
double Excess(const std::vector<double>& scores, double k, double temperature,
              double x) {
  double above = 0, nearest = -HUGE_VAL;
  for (const double score : scores) {
    above += score >= x;
    nearest = std::max(nearest, -std::abs(score - x) / temperature);
  }
  // Where exactly k scores are above x, what their weights lack to 1 must
  // balance the other weights, however small both are: compare them scaled.
  const double scale = above == k ? nearest : 0;
  double tails = 0;
  for (const double score : scores) {
    const double tail =
        0.5 * std::exp(-std::abs(score - x) / temperature - scale);
    tails += score >= x ? -tail : tail;
  }
  return above == k ? tails : above - k + tails;
}

double Threshold(const std::vector<double>& scores, double k,
                 double temperature) {
  const double shift =
      temperature * Quantile(k / static_cast<double>(scores.size()));
  const auto [least, largest] =
      std::minmax_element(scores.begin(), scores.end());
  double low = *least - shift,
         high = *largest - shift;  // all weights >=, <= k/n
  while (true) {
    const double middle = low + (high - low) / 2;
    if (!(middle > low && middle < high)) return middle;
    (Excess(scores, k, temperature, middle) > 0 ? low : high) = middle;
  }
}

}  // namespace

Bug PlantedBug() {
  const char* name = std::getenv("SOFT_TOPK_BUG");
  const std::string bug = name == nullptr ? "" : name;
  if (bug == "temperature") return Bug::kTemperature;
  if (bug == "unrolled") return Bug::kUnrolled;
  return bug == "crash" ? Bug::kCrash : Bug::kNone;
}

void Run(const Problem& problem, Bug bug, const Result& result) {
  if (bug == Bug::kCrash && problem.rows > 20) std::abort();
  const int64_t n = problem.columns;
  const int64_t written = bug == Bug::kUnrolled ? n / 4 * 4 : n;
  const double temperature = problem.temperature;
  double d_k = 0, d_temperature = 0;
  for (int64_t t = 0; t < problem.rows; ++t) {
    const std::vector<double> scores(problem.scores + t * n,
                                     problem.scores + (t + 1) * n);
    const float* v = problem.d_weights + t * n;
    const double x = Threshold(scores, problem.k, temperature);

    // The share of each score in a change of x: its density over their sum. The
    // largest is factored out, because on a plateau all of them underflow.
    std::vector<double> u(n), share(n);
    double nearest = HUGE_VAL, total = 0, mean_v = 0, mean_u = 0;
    for (int64_t i = 0; i < n; ++i) {
      u[i] = (scores[i] - x) / temperature;
      nearest = std::min(nearest, std::abs(u[i]));
    }
    for (int64_t i = 0; i < n; ++i) {
      share[i] = std::exp(nearest - std::abs(u[i]));
      total += share[i];
    }
    for (int64_t i = 0; i < n; ++i) {
      mean_v += share[i] / total * v[i];
      mean_u += share[i] / total * u[i];
    }
    for (int64_t i = 0; i < n; ++i) {
      const double density = 0.5 * std::exp(-std::abs(u[i]));
      const double slope =
          bug == Bug::kTemperature ? density : density / temperature;
      if (i < written) {
        result.weights[t * n + i] =
            static_cast<float>(u[i] < 0 ? density : 1 - density);
        result.d_scores[t * n + i] =
            static_cast<float>(slope * (v[i] - mean_v));
      }
      d_temperature -= density * (u[i] - mean_u) * v[i] / temperature;
    }
    d_k += mean_v;
  }
  *result.d_k = static_cast<float>(d_k);
  *result.d_temperature = static_cast<float>(d_temperature);
}

}  // namespace soft_topk
