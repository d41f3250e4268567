// SPDX-License-Identifier: Apache-2.0
#include "reference/testing/vjp_check.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/testing/message_test_util.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference::testing {
namespace {

// y = sin(a b), so that d_a = (w * cos(a b)) b^T and d_b = a^T (w * cos(a b)).
Matrix SinProduct(const Matrices& x) {
  return Multiply(x[0], x[1]).array().sin();
}

Matrices SinProductVjp(const Matrices& x, const Matrix& w) {
  const Matrix d_product = w.array() * Multiply(x[0], x[1]).array().cos();
  return {Multiply(d_product, x[1].transpose()),
          Multiply(x[0].transpose(), d_product)};
}

Matrices Inputs() {
  return {RandomMatrix(3, 4, 1, 1), RandomMatrix(4, 2, 1, 2)};
}

TEST(VjpMismatch, AcceptsTheGradient) {
  EXPECT_EQ(VjpMismatch(SinProduct, SinProductVjp, Inputs(), 1), "");
}

TEST(VjpMismatch, RefusesOneWrongElementByOnePartInAMillion) {
  auto wrong = [](const Matrices& x, const Matrix& w) {
    Matrices gradients = SinProductVjp(x, w);
    gradients[1](3, 1) *= 1 + 1e-6;
    return gradients;
  };
  EXPECT_NE(VjpMismatch(SinProduct, wrong, Inputs(), 1), "");
}

TEST(VjpMismatch, NamesTheWrongInput) {
  auto missing = [](const Matrices& x, const Matrix& w) {
    Matrices gradients = SinProductVjp(x, w);
    gradients[0].setZero();
    gradients[1].setZero();
    return gradients;
  };
  EXPECT_TRUE(Says(VjpMismatch(SinProduct, missing, Inputs(), 1),
                   "analytic derivative 0"));
}

TEST(VjpMismatch, RefusesWrongShapesAndCounts) {
  auto transposed = [](const Matrices& x, const Matrix& w) {
    Matrices gradients = SinProductVjp(x, w);
    gradients[1] = gradients[1].transpose().eval();
    return gradients;
  };
  EXPECT_EQ(VjpMismatch(SinProduct, transposed, Inputs(), 1),
            "gradient 1 has the wrong shape");
  auto few = [](const Matrices& x, const Matrix& w) {
    return Matrices{SinProductVjp(x, w)[0]};
  };
  EXPECT_EQ(VjpMismatch(SinProduct, few, Inputs(), 1),
            "wrong number of gradients");
}

TEST(VjpMismatch, RefusesAKink) {
  auto relu = [](const Matrices& x) -> Matrix { return x[0].cwiseMax(0); };
  auto vjp = [](const Matrices& x, const Matrix& w) -> Matrices {
    return {w.cwiseProduct((x[0].array() > 0).cast<double>().matrix())};
  };
  EXPECT_EQ(VjpMismatch(relu, vjp, {Matrix::Ones(2, 2)}, 1), "");
  EXPECT_TRUE(Says(VjpMismatch(relu, vjp, {Matrix::Zero(2, 2)}, 1), "kink"));
}

// y = x + max(0, x - c)^2 has a continuous slope whose curvature jumps at c.
TEST(VjpMismatch, AcceptsAJumpOfTheCurvatureCloseBy) {
  static constexpr double kWhere = 1 + 0x1p-14;
  auto f = [](const Matrices& x) -> Matrix {
    return x[0].array() + (x[0].array() - kWhere).max(0).square();
  };
  auto vjp = [](const Matrices& x, const Matrix& w) -> Matrices {
    return {w.array() * (1 + 2 * (x[0].array() - kWhere).max(0))};
  };
  EXPECT_EQ(VjpMismatch(f, vjp, {Matrix::Ones(1, 1)}, 1), "");
}

TEST(DerivativeMismatch, NaNNeverPasses) {
  DerivativeEstimate estimate{.value = 1, .error = 1e-12};
  estimate.smoothness = Smoothness::kSmooth;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(DerivativeMismatch(estimate, 1, 1), "");
  EXPECT_NE(DerivativeMismatch(estimate, nan, 1), "");
  EXPECT_NE(DerivativeMismatch(estimate, 1, nan), "");
  estimate.value = nan;
  EXPECT_NE(DerivativeMismatch(estimate, 1, 1), "");
}

TEST(DerivativeMismatch, RefusesAnEstimateThatWouldAcceptAnything) {
  DerivativeEstimate estimate{.value = 1, .error = 1e-3};
  estimate.smoothness = Smoothness::kSmooth;
  EXPECT_TRUE(Says(DerivativeMismatch(estimate, 1, 1), "blurred"));
}

}  // namespace
}  // namespace softmoe::reference::testing
