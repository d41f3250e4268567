// SPDX-License-Identifier: Apache-2.0
//
// Tests numbers that bound a reverse pass: magnitudes never cancel, a reverse
// pass in another order and with other roundings stays within the bound, and a
// branch that rounding could change is refused.
#include "property_tests/verify/gradients/path_dual.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/errors.h"
#include "reference/scalar.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::verify {
namespace {

using reference::Dual;
using reference::testing::RandomVector;

template <typename Scalar>
Scalar Everything(Scalar x, Scalar y) {
  return exp(-x) * sqrt(y + 2) - log(3 + x) / (1 + y * y) + hypot(x, y) / 3;
}

TEST(PathDual, HasTheValueAndTheSlopeOfDual) {
  const auto draws = RandomVector(100, 3, 0);
  for (int i = 0; i < 100; i += 2) {
    const double x = std::tanh(draws[i]), y = std::tanh(draws[i + 1]);
    const PathDual got = Everything(PathDual(x, 2), PathDual(y, -1));
    const Dual want = Everything(Dual(x, 2), Dual(y, -1));
    EXPECT_EQ(got.dual.value.value, want.value.value);
    EXPECT_EQ(got.dual.slope.value, want.slope.value);
    EXPECT_GE(got.magnitude, std::abs(want.slope.value));
    EXPECT_GT(got.slack, 0);
    EXPECT_LT(got.slack, 1e-13 * got.magnitude);
  }
}

TEST(PathDual, MagnitudesDoNotCancel) {
  const PathDual x(1.5, 0.25);
  const PathDual nothing = x - x;
  EXPECT_EQ(nothing.dual.slope.value, 0);
  EXPECT_EQ(nothing.magnitude, 0.5);
  const PathDual square = x * x;
  EXPECT_EQ(square.magnitude, 0.75);
  // Inputs are exact, and so are the factors.
  EXPECT_EQ(square.slack, 0);
  EXPECT_EQ(Frozen(square).magnitude, 0);
  EXPECT_EQ(ValueOf(Frozen(square)), 2.25);
}

// f = sum_i c_i exp(s) x_i with s = sum_j w_j x_j, whose terms cancel. The
// roundings of a hand-written backward pass in another order: a product, times
// the exponential, n - 1 additions, times x_j, times v_j.
TEST(PathDual, BoundsAReversePass) {
  constexpr int kSize = 20;
  for (uint32_t trial = 0; trial < 200; ++trial) {
    const auto x = RandomVector(kSize, 5, 4 * trial);
    const auto w = RandomVector(kSize, 5, 4 * trial + 1);
    const auto v = RandomVector(kSize, 5, 4 * trial + 2);
    auto c = RandomVector(kSize, 5, 4 * trial + 3);
    reference::CompensatedSum<PathDual> s;
    for (int i = 0; i < kSize; ++i) s.Add(PathDual(w[i], v[i]) * x[i]);
    reference::CompensatedSum<PathDual> f;
    for (int i = 0; i < kSize; ++i) f.Add(c[i] * exp(s.Get()) * x[i]);
    const PathDual slope = f.Get();

    double argument = 0;  // backwards, in another order
    for (int i = kSize - 1; i >= 0; --i) argument += w[i] * x[i];
    double d_argument = 0;
    for (int i = kSize - 1; i >= 0; --i) {
      d_argument += std::exp(argument) * (x[i] * c[i]);
    }
    reference::CompensatedSum<double> product;
    double magnitude = 0;
    for (int j = 0; j < kSize; ++j) {
      product.Add(d_argument * x[j] * v[j]);
      magnitude += std::abs(d_argument * x[j] * v[j]);
    }
    const double bound = slope.dual.slope.error +
                         BackwardError(slope, kSize + 3) + 0x1p-52 * magnitude;
    EXPECT_LE(std::abs(product.Get() - slope.dual.slope.value), bound) << trial;
  }
}

TEST(PathDual, SumsAreBoundedInAnyOrder) {
  for (uint32_t trial = 0; trial < 50; ++trial) {
    auto terms = RandomVector(100, 7, trial);
    reference::CompensatedSum<PathDual> sum;
    for (const double term : terms) sum.Add(term);
    const PathDual total = sum.Get();
    std::sort(terms.begin(), terms.end());
    double plain = 0;
    for (const double term : terms) plain += term;
    EXPECT_LE(std::abs(plain - ValueOf(total)), 2 * total.value().error);
  }
}

TEST(PathDual, RefusesABranchThatRoundingDecides) {
  const PathDual third = PathDual(1) / 3;
  EXPECT_TRUE(third < 0.34);
  EXPECT_TRUE(third >= 0.33);
  EXPECT_THROW(static_cast<void>(third < 1. / 3), InternalError);
  EXPECT_THROW(static_cast<void>(third <= third), InternalError);
  EXPECT_TRUE(PathDual(1) > 0);  // both are exact
}

}  // namespace
}  // namespace softmoe::verify
