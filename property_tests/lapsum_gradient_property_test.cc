// SPDX-License-Identifier: Apache-2.0
//
// The laws of SPEC.md 1.5 that LapSum's derivatives and the budget obey: 7
// (shares), 10, 17, 18 and 20, at derived bounds (lapsum_bounds.h).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "property_tests/testing/generators.h"
#include "property_tests/testing/lapsum_bounds.h"
#include "reference/budget.h"
#include "reference/lapsum.h"
// After reference/matrix.h, which configures Eigen.
#include <eigen3/Eigen/Eigenvalues>

namespace softmoe::property_tests {
namespace {

using reference::LapSum;
using reference::LapSumGradient;
using reference::Matrix;
using reference::Vector;

// T dp/dr, column by column.
Matrix ScaledJacobian(const LapSum& solution) {
  const Eigen::Index n = solution.weights.size();
  Matrix jacobian(n, n);
  for (Eigen::Index j = 0; j < n; ++j) {
    jacobian.col(j) = solution.temperature *
                      reference::LapSumJvp(solution, Vector::Unit(n, j), 0, 0);
  }
  return jacobian;
}

// Law 7, shares: dp/dk = q sums to 1 and is positive where it does not
// underflow. Each share is an exponential over the same compensated sum.
RC_GTEST_PROP(LapSumLaw, Law07SharesArePositiveAndSumToOne, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  const LapSum s = Solve(c);
  // exp 2u and division u per share; the sum they are divided by errs by u.
  RC_ASSERT(std::abs(SumOf(s.shares) - 1) <= 4 * kDoubleUnit);
  const double nearest = s.arguments.cwiseAbs().minCoeff();
  for (int i = 0; i < c.n(); ++i) {
    RC_ASSERT(s.shares[i] >= 0);
    if (std::abs(s.arguments[i]) - nearest < 700) RC_ASSERT(s.shares[i] > 0);
  }
}

// Law 10. T J = diag(f) - f q^T where f = q sum f up to DensityShareBound; its
// entries are products of two numbers <= 1/2 and <= 1 that err by a few u.
RC_GTEST_PROP(LapSumLaw, Law10JacobianIsSymmetricAndSemidefinite, ()) {
  const LapSumCase c = *LapSumCases(24);
  Classify(c);
  const LapSum s = Solve(c);
  const Matrix J = ScaledJacobian(s);
  const double entry_bound = 2 * DensityShareBound(s) + 8 * kDoubleUnit;
  for (int i = 0; i < c.n(); ++i) {
    for (int j = 0; j < c.n(); ++j) {
      RC_ASSERT(std::abs(J(i, j) - J(j, i)) <= entry_bound);
      if (i != j) RC_ASSERT(J(i, j) <= 0.0);
    }
    // f_i (1 - sum_j q_j).
    const Vector row = J.row(i);
    RC_ASSERT(std::abs(SumOf(row)) <=
              (c.n() + 8) * kDoubleUnit * s.densities[i] + kTiny);
  }
  // Eigenvalues of the symmetric part: the solver errs by a modest multiple of
  // n u |J|, and |J| <= 2 max f.
  const double largest_density = s.densities.maxCoeff();
  const double eigen_bound =
      c.n() * (entry_bound + 16 * kDoubleUnit * largest_density);
  const Eigen::VectorXd eigenvalues =
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(
          (0.5 * (J + J.transpose())).eval())
          .eigenvalues();
  RC_ASSERT(eigenvalues.minCoeff() >= -eigen_bound);
  RC_ASSERT(eigenvalues.maxCoeff() <= largest_density + eigen_bound);
  RC_ASSERT(largest_density <= 0.5);
}

// x^T J x >= 0, for sizes at which eigenvalues are too slow.
RC_GTEST_PROP(LapSumLaw, Law10QuadraticFormIsNotNegative, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  const LapSum s = Solve(c);
  const Vector v = ToVector(*Directions(c.n()));
  const LapSumGradient gradient = reference::LapSumVjp(s, v);
  const double form = c.temperature * v.dot(gradient.d_scores);
  // sum f_i v_i (v_i - g), |v| <= 1: f and q disagree by DensityShareBound,
  // and the n products and their sum round by (n + 4)u each.
  const double bound = 2 * DensityShareBound(s) +
                       2 * (c.n() + 8) * kDoubleUnit * SumOf(s.densities);
  RC_ASSERT(form >= -bound);
  RC_ASSERT(form <= s.densities.maxCoeff() * v.squaredNorm() *
                            (1 + (c.n() + 8) * kDoubleUnit) +
                        bound);
}

// Law 17: sum_i dL/dr_i = 0, sum_i dp_i/dT = 0, and Euler's identity
// sum_i r_i dL/dr_i + T dL/dT = 0, written from the anchor (the gradient's sum
// is 0, so any origin will do; from 0 the bound would grow with |r|/T).
RC_GTEST_PROP(LapSumLaw, Law17GradientsAreShiftAndScaleFree, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  const LapSum s = Solve(c);
  const Vector v = ToVector(*Directions(c.n()));
  const double largest = v.cwiseAbs().maxCoeff();
  const double T = c.temperature;
  const LapSumGradient gradient = reference::LapSumVjp(s, v);
  const double mismatch = 2 * largest * DensityShareBound(s);
  RC_ASSERT(std::abs(T * SumOf(gradient.d_scores)) <= mismatch);

  // Every f_i meets an argument: |w_i|, |u_i|, |t| or |ubar|. The terms of
  // the identity are sums of f_i times two of these, v_i and g, each
  // rounded a few times, and f_i disagrees with q_i as above.
  double mean_argument = 0;
  for (int i = 0; i < c.n(); ++i) {
    if (s.shares[i] > 0) mean_argument += s.shares[i] * s.arguments[i];
  }
  double weighted = 0;
  Vector terms = Vector::Zero(c.n());
  for (int i = 0; i < c.n(); ++i) {
    const double f = s.densities[i];
    if (f == 0) continue;
    const double u = std::abs(s.arguments[i]);
    const double w = (c.scores[i] - s.anchor) / T;
    weighted +=
        f * (std::abs(w) + u + std::abs(s.offset) + std::abs(mean_argument)) *
        (2 * u + 2 * std::abs(s.offset) + 24);
    terms[i] = w * T * gradient.d_scores[i];
  }
  const double bound = 2 * largest * kDoubleUnit * weighted + mismatch + kTiny;
  RC_ASSERT(std::abs(SumOf(terms) + T * gradient.d_temperature) <= bound);

  const Vector by_temperature =
      reference::LapSumJvp(s, Vector::Zero(c.n()), 0, 1);
  RC_ASSERT(std::abs(T * SumOf(by_temperature)) <=
            2 * kDoubleUnit * weighted + DensityShareBound(s));
}

// Law 18: the budget is spent exactly, every layer has at least one expert, and
// the gradient of the logits sums to 0.
RC_GTEST_PROP(BudgetLaw, Law18BudgetIsSpentAndItsGradientSumsToZero, ()) {
  const int layers = static_cast<int>(*Uniform(1, 25));
  const double scale = *rc::gen::element(0.0, 0.1, 1.0, 30.0, 1e4);
  const Vector logits = scale * ToVector(*Directions(layers));
  const double budget =
      layers * (1 + *rc::gen::element(0.0, 0.25, 0.5, 1.0, 7.0));
  const Vector v = ToVector(*Directions(layers));
  const reference::Budget allocated = reference::AllocateBudget(budget, logits);
  const double slack = budget - layers;
  RC_TAG(scale > 10 ? "one layer takes all" : "shared");
  // Shares: exponential 2u, sum u, division u; then one product and one sum
  // per layer, of numbers whose total is the budget.
  RC_ASSERT(std::abs(SumOf(allocated.allocation) - budget) <=
            kDoubleUnit * (4 * slack + 2 * budget));
  for (int l = 0; l < layers; ++l) {
    RC_ASSERT(allocated.allocation[l] >= 1.0);
    // Strictly more, unless the extra vanishes beside the 1.
    if (slack * allocated.shares[l] > 4 * kDoubleUnit) {
      RC_ASSERT(allocated.allocation[l] > 1.0);
    }
  }
  const Vector gradient = reference::BudgetVjp(budget, allocated, v);
  // (K-L) sum pi_m (v_m - mean): as the shares, and the mean, and products.
  RC_ASSERT(std::abs(SumOf(gradient)) <=
            16 * kDoubleUnit * slack * v.cwiseAbs().maxCoeff());
}

// Law 20: the JVP is the central difference, away from kinks. In units of T,
// with |w| <= 1 and step eta: p = F(u(s)) has |u'| <= 2, |u''| <= 4 and
// |u'''| <= 32, so |p'''| <= (8 + 3*8 + 32)/2 = 32 and the truncation is
// 32 eta^2/6. The two values err by WeightBounds; r +- h w is rounded by u|r|,
// which moves p by u max|r|/T at either end, over 2 eta.
RC_GTEST_PROP(LapSumLaw, Law20DerivativeIsTheCentralDifference, ()) {
  const LapSumCase c = *LapSumCases();
  const double eta = 0x1p-17;
  const LapSum s = Solve(c);
  RC_PRE(s.arguments.cwiseAbs().minCoeff() > 10 * eta);
  Classify(c);
  const std::vector<double> direction = *Directions(c.n());
  LapSumCase plus = c, minus = c;
  double magnitude = 0;
  for (int i = 0; i < c.n(); ++i) {
    plus.scores[i] += eta * c.temperature * direction[i];
    minus.scores[i] -= eta * c.temperature * direction[i];
    magnitude = std::max(magnitude, std::abs(c.scores[i]) + c.temperature);
  }
  const LapSum p = Solve(plus), m = Solve(minus);
  const Vector exact =
      c.temperature * reference::LapSumJvp(s, ToVector(direction), 0, 0);
  const Vector values = WeightBounds(p) + WeightBounds(m);
  const double bound =
      32.0 / 6 * eta * eta +
      (kDoubleUnit * magnitude / c.temperature + kDoubleUnit) / eta;
  RC_CLASSIFY(bound < 1e-8, "sharp");
  for (int i = 0; i < c.n(); ++i) {
    const double difference = (p.weights[i] - m.weights[i]) / (2 * eta);
    RC_ASSERT(std::abs(exact[i] - difference) <= bound + values[i] / (2 * eta));
  }
}

// Law 20 for k, in units of sum f: over a step eta sum f the root moves by
// about eta T, with |u'|, |u''| <= 1 and |u'''| <= 3 up to e^eta, so that
// |p'''| <= 7 f_i and the truncation of p' = q_i sum f is 7/6 f_i eta^2: at
// most 2 eta^2 q_i. k +- step is rounded, which shifts the centre by
// |up - down|/2, times |p''| <= 2 f_i.
RC_GTEST_PROP(LapSumLaw, Law20ShareIsTheCentralDifferenceInK, ()) {
  const LapSumCase c = *LapSumCases();
  const double eta = 0x1p-17;
  const LapSum s = Solve(c);
  RC_PRE(s.arguments.cwiseAbs().minCoeff() > 10 * eta);
  LapSumCase plus = c, minus = c;
  const double step = eta * SumOf(s.densities);
  plus.mean_active += step;
  minus.mean_active -= step;
  // The steps as rounded; both ends must still be valid problems.
  const double up = plus.mean_active - c.mean_active;
  const double down = c.mean_active - minus.mean_active;
  RC_PRE(down > 0.999 * step && up > 0.999 * step && up < 1.001 * step &&
         down < 1.001 * step && minus.mean_active > 0 &&
         plus.mean_active < c.n());
  Classify(c);
  const LapSum p = Solve(plus), m = Solve(minus);
  const Vector values = WeightBounds(p) + WeightBounds(m);
  for (int i = 0; i < c.n(); ++i) {
    const double difference = (p.weights[i] - m.weights[i]) / (up + down);
    const double bound =
        s.shares[i] * (2 * eta * eta + 2 * eta * std::abs(up - down) / step);
    RC_ASSERT(std::abs(s.shares[i] - difference) <=
              bound + values[i] / (up + down) + 8 * kDoubleUnit);
  }
}

}  // namespace
}  // namespace softmoe::property_tests
