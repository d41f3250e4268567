// SPDX-License-Identifier: Apache-2.0
#include "reference/testing/lapsum_oracle.h"

#include "core/errors.h"

namespace softmoe::reference::testing {

// S(x) - k = whole + lower - upper; dS/dx = -(lower + upper)/T.
struct LapSumOracle::Parts {
  Mpfr lower = 0.0;  // sum over u <= 0 of e^u / 2
  Mpfr upper = 0.0;  // sum over u > 0 of e^-u / 2
  Mpfr whole = 0.0;  // m - k

  Mpfr Residual() const { return whole + (lower - upper); }
  // S - k as the difference of two sums of terms >= 0.
  Mpfr Positive() const { return whole.Sign() > 0 ? lower + whole : lower; }
  Mpfr Negative() const { return whole.Sign() < 0 ? upper - whole : upper; }
};

LapSumOracle::LapSumOracle(const std::vector<double>& scores,
                           const Mpfr& temperature)
    : scores_(scores.size()),
      origin_(scores.at(0)),
      temperature_(temperature),
      up_(scores.size()),
      down_(scores.size()) {
  for (size_t i = 0; i < scores.size(); ++i) SetScore(i, scores[i]);
}

void LapSumOracle::SetScore(size_t i, const Mpfr& score) {
  const Mpfr e = Exp((score - origin_) / temperature_);
  scores_[i] = score;
  up_[i] = Scale(e, -1);
  down_[i] = Scale(Mpfr(1.0) / e, -1);
}

LapSumOracle LapSumOracle::WithScoreChanged(size_t i,
                                            const Mpfr& change) const {
  LapSumOracle changed = *this;
  changed.SetScore(i, scores_.at(i) + change);
  return changed;
}

LapSumOracle::Parts LapSumOracle::Evaluate(const OracleMeanActive& k,
                                           const Mpfr& x) const {
  const Mpfr shift = Exp((origin_ - x) / temperature_);
  Parts parts;
  double above = 0;
  for (size_t i = 0; i < scores_.size(); ++i) {
    if (scores_[i] > x) {
      ++above;
      parts.upper += down_[i];
    } else {
      parts.lower += up_[i];
    }
  }
  parts.lower *= shift;
  parts.upper /= shift;
  // First the difference of the two doubles, exact in 320 bits.
  parts.whole = (Mpfr(above) - Mpfr(k.value)) - k.shift;
  return parts;
}

Mpfr LapSumOracle::Residual(const OracleMeanActive& k, const Mpfr& x) const {
  return Evaluate(k, x).Residual();
}

OracleSolution LapSumOracle::Solution(const Mpfr& x) const {
  const Mpfr shift = Exp((origin_ - x) / temperature_);
  const Mpfr inverse = Mpfr(1.0) / shift;
  OracleSolution solution;
  solution.root = x;
  for (size_t i = 0; i < scores_.size(); ++i) {
    const bool above = scores_[i] > x;
    const Mpfr density = above ? down_[i] * inverse : up_[i] * shift;
    solution.above.push_back(above);
    solution.densities.push_back(density);
    solution.weights.push_back(above ? Mpfr(1.0) - density : density);
  }
  return solution;
}

// A step on ln(positive/negative), which is nearly linear in x where S falls
// off exponentially and Newton on S itself would crawl.
std::optional<Mpfr> LapSumOracle::NewtonStep(const Parts& parts,
                                             const Mpfr& x) const {
  const Mpfr positive = parts.Positive();
  const Mpfr negative = parts.Negative();
  if (positive.Sign() <= 0 || negative.Sign() <= 0) return std::nullopt;
  const Mpfr slope =
      (parts.lower / positive + parts.upper / negative) / temperature_;
  if (slope.Sign() <= 0) return std::nullopt;
  return x + Log(positive / negative) / slope;
}

OracleSolution LapSumOracle::Solve(const OracleMeanActive& k,
                                   const Mpfr& guess) const {
  const auto sign = [&](const Mpfr& x) { return Residual(k, x).Sign(); };
  // A bracket: S(low) >= k >= S(high).
  Mpfr width = temperature_;
  Mpfr low = guess - width;
  for (; sign(low) < 0; low -= width) width = Scale(width, 1);
  width = temperature_;
  Mpfr high = guess + width;
  for (; sign(high) > 0; high += width) width = Scale(width, 1);

  const Mpfr tolerance = Scale(temperature_, -kRootBits);
  Mpfr x = guess;
  Mpfr last_step = high - low;
  for (int iteration = 0; iteration < 2000; ++iteration) {
    const Parts parts = Evaluate(k, x);
    const int residual_sign = parts.Residual().Sign();
    if (residual_sign == 0) return Solution(x);
    (residual_sign > 0 ? low : high) = x;
    // A step that leaves the bracket, or is not half the one before, is
    // replaced by bisection, so the steps shrink at least geometrically.
    Mpfr next = Scale(low + high, -1);
    const std::optional<Mpfr> newton = NewtonStep(parts, x);
    if (newton && low <= *newton && *newton <= high &&
        Abs(*newton - x) <= Scale(last_step, -1)) {
      next = *newton;
    }
    last_step = Abs(next - x);
    x = next;
    if (last_step < Scale(tolerance, -5)) {
      SOFTMOE_CHECK(sign(x - tolerance) > 0 && sign(x + tolerance) < 0)
          << "the root is not where the iteration stopped";
      return Solution(x);
    }
  }
  SOFTMOE_CHECK(false) << "no convergence in 2000 steps";
  return {};
}

}  // namespace softmoe::reference::testing
