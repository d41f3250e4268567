// SPDX-License-Identifier: Apache-2.0
#include "reference/testing/lapsum_oracle.h"

#include <optional>

#include "core/errors.h"

namespace softmoe::reference::testing {
namespace {

// S(x) - k = whole + lower - upper; dS/dx = -(lower + upper)/T.
struct Parts {
  Mpfr lower = 0.0;  // sum over u <= 0 of e^u / 2
  Mpfr upper = 0.0;  // sum over u > 0 of e^-u / 2
  Mpfr whole = 0.0;  // m - k

  Mpfr Residual() const { return whole + (lower - upper); }
  // S - k as the difference of two sums of terms >= 0.
  Mpfr Positive() const { return whole.Sign() > 0 ? lower + whole : lower; }
  Mpfr Negative() const { return whole.Sign() < 0 ? upper - whole : upper; }
};

// Evaluates S - k at many x, at one exponential per x instead of one per score:
//   e^{(r_i - x)/T} = e^{(r_i - x_0)/T} e^{(x_0 - x)/T}
class Evaluator {
 public:
  Evaluator(const LapSumProblem& problem, const Mpfr& origin)
      : problem_(problem), origin_(origin) {
    for (const Mpfr& score : problem.scores) {
      const Mpfr e = Exp((score - origin) / problem.temperature);
      down_.push_back(Scale(Mpfr(1.0) / e, -1));
      up_.push_back(Scale(e, -1));
    }
  }

  // e^-|u_i| / 2 of every score.
  std::vector<Mpfr> Densities(const Mpfr& x) const {
    const Mpfr shift = Exp((origin_ - x) / problem_.temperature);
    const Mpfr inverse = Mpfr(1.0) / shift;
    std::vector<Mpfr> densities;
    densities.reserve(up_.size());
    for (size_t i = 0; i < up_.size(); ++i) {
      densities.push_back(problem_.scores[i] > x ? down_[i] * inverse
                                                 : up_[i] * shift);
    }
    return densities;
  }

  Parts Evaluate(const Mpfr& x) const {
    const std::vector<Mpfr> densities = Densities(x);
    Parts parts;
    double above = 0;
    for (size_t i = 0; i < densities.size(); ++i) {
      const bool is_above = problem_.scores[i] > x;
      above += is_above;
      (is_above ? parts.upper : parts.lower) += densities[i];
    }
    // First the difference of the two doubles, exact in 320 bits.
    parts.whole =
        (Mpfr(above) - Mpfr(problem_.mean_active)) - problem_.mean_active_shift;
    return parts;
  }

  OracleSolution Solution(const Mpfr& x) const {
    OracleSolution solution;
    solution.root = x;
    solution.densities = Densities(x);
    for (size_t i = 0; i < up_.size(); ++i) {
      const Mpfr& density = solution.densities[i];
      solution.above.push_back(problem_.scores[i] > x);
      solution.weights.push_back(solution.above[i] ? Mpfr(1.0) - density
                                                   : density);
    }
    return solution;
  }

 private:
  const LapSumProblem& problem_;
  Mpfr origin_;
  std::vector<Mpfr> up_;    // e^{(r_i - origin)/T} / 2
  std::vector<Mpfr> down_;  // e^{-(r_i - origin)/T} / 2
};

// x after a Newton step on ln(positive/negative), which is nearly linear in x
// where S falls off exponentially and Newton on S itself would crawl. Empty
// where there is no such step.
std::optional<Mpfr> NewtonStep(const Parts& parts, const Mpfr& x,
                               const Mpfr& temperature) {
  const Mpfr positive = parts.Positive();
  const Mpfr negative = parts.Negative();
  if (positive.Sign() <= 0 || negative.Sign() <= 0) return std::nullopt;
  const Mpfr slope =
      (parts.lower / positive + parts.upper / negative) / temperature;
  if (slope.Sign() <= 0) return std::nullopt;
  return x + Log(positive / negative) / slope;
}

}  // namespace

LapSumProblem MakeProblem(const std::vector<double>& scores, double mean_active,
                          double temperature) {
  LapSumProblem problem;
  for (double score : scores) problem.scores.emplace_back(score);
  problem.mean_active = mean_active;
  problem.temperature = temperature;
  return problem;
}

Mpfr ResidualOracle(const LapSumProblem& problem, const Mpfr& x) {
  return Evaluator(problem, x).Evaluate(x).Residual();
}

OracleSolution SolveOracle(const LapSumProblem& problem, const Mpfr& guess) {
  const Evaluator evaluator(problem, guess);
  const auto sign = [&](const Mpfr& x) {
    return evaluator.Evaluate(x).Residual().Sign();
  };
  // A bracket: S(low) >= k >= S(high).
  Mpfr width = problem.temperature;
  Mpfr low = guess - width;
  for (; sign(low) < 0; low -= width) width = Scale(width, 1);
  width = problem.temperature;
  Mpfr high = guess + width;
  for (; sign(high) > 0; high += width) width = Scale(width, 1);

  const Mpfr tolerance = Scale(problem.temperature, -kRootBits);
  Mpfr x = guess;
  Mpfr last_step = high - low;
  for (int iteration = 0; iteration < 2000; ++iteration) {
    const Parts parts = evaluator.Evaluate(x);
    const int residual_sign = parts.Residual().Sign();
    if (residual_sign == 0) return evaluator.Solution(x);
    (residual_sign > 0 ? low : high) = x;
    // A step that leaves the bracket, or is not half the one before, is
    // replaced by bisection, so the steps shrink at least geometrically.
    Mpfr next = Scale(low + high, -1);
    const std::optional<Mpfr> newton =
        NewtonStep(parts, x, problem.temperature);
    if (newton && low <= *newton && *newton <= high &&
        Abs(*newton - x) <= Scale(last_step, -1)) {
      next = *newton;
    }
    last_step = Abs(next - x);
    x = next;
    if (last_step < Scale(tolerance, -5)) {
      SOFTMOE_CHECK(sign(x - tolerance) > 0 && sign(x + tolerance) < 0)
          << "the root is not where the iteration stopped";
      return evaluator.Solution(x);
    }
  }
  SOFTMOE_CHECK(false) << "no convergence in 2000 steps";
  return {};
}

}  // namespace softmoe::reference::testing
