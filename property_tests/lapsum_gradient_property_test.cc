// SPDX-License-Identifier: Apache-2.0
//
// The laws of SPEC.md 1.5 that LapSum's derivatives and the budget obey: 7
// (shares), 10, 17 and 18, at derived bounds (lapsum_bounds.h).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

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
  // exp 2u and division u per share; the sum that divides them errs by u.
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

}  // namespace
}  // namespace softmoe::property_tests
