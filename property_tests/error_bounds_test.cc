// SPDX-License-Identifier: Apache-2.0
//
// Tests the bounds: they hold where they must, and an excess of a hundredth is
// detected.
#include "property_tests/error_bounds.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/testing/random_test_util.h"
#include "reference/softmax.h"

namespace softmoe::property_tests {
namespace {

using Floats = std::vector<float>;

// The naive chain is one of the orders that the dot-product bound covers.
RC_GTEST_PROP(ErrorBounds, CoverTheNaiveChainOfADotProduct, ()) {
  const int64_t n = *rc::gen::inRange<int64_t>(1, 400);
  const uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  const Floats a = NormalFloats(n, seed, 1), b = NormalFloats(n, seed, 2);
  float chain = 0, backwards = 0, fused = 0;
  double exact = 0;
  BoundedSum<Bounded> bound;
  for (int64_t i = 0; i < n; ++i) {
    chain += a[i] * b[i];
    backwards += a[n - 1 - i] * b[n - 1 - i];
    fused = std::fma(a[i], b[i], fused);
    exact += static_cast<double>(a[i]) * b[i];
    bound.Add(Bounded(a[i]) * Bounded(b[i]));
  }
  const double error = bound.Get().error;
  RC_ASSERT(std::abs(chain - exact) <= error);
  RC_ASSERT(std::abs(backwards - exact) <= error);
  RC_ASSERT(std::abs(fused - exact) <= error);
  // The bound is not too loose: n u sum |ab| with |ab| of size 1.
  RC_ASSERT(error <= 2 * static_cast<double>(n + 1) * kFloatUnit *
                         static_cast<double>(n) * 16);
}

// Random terms in a random order: within lambda sqrt(n) u S, which is far less
// than n u S, and tight enough to catch an accumulator that truncates.
RC_GTEST_PROP(ErrorBounds, RandomRoundingsCoverRandomSums, ()) {
  const int64_t n = *rc::gen::inRange<int64_t>(2000, 4097);
  const bool positive = *rc::gen::arbitrary<bool>();
  Floats terms = NormalFloats(n, *rc::gen::inRange<uint64_t>(0, 1 << 20), 1);
  if (positive) {
    for (float& x : terms) x = std::abs(x);
  }
  std::mt19937_64 order(*rc::gen::arbitrary<uint64_t>());
  std::shuffle(terms.begin(), terms.end(), order);
  float nearest = 0, truncated = 0;
  double exact = 0;
  BoundedSum<Bounded> sum;
  for (const float x : terms) {
    nearest += x;
    const double both = static_cast<double>(truncated) + x;  // exact
    truncated = static_cast<float>(both);
    if (std::abs(static_cast<double>(truncated)) > std::abs(both)) {
      truncated = std::nextafter(truncated, 0.0f);
    }
    exact += x;
    sum.Add(Bounded(x));
  }
  const double worst = sum.Get().error;
  const double random = sum.Get(Roundings::kRandom).error;
  RC_ASSERT(random < worst / 4);
  RC_ASSERT(std::abs(nearest - exact) <= random);
  RC_ASSERT(std::abs(truncated - exact) <= worst);
  if (positive) RC_ASSERT(std::abs(truncated - exact) > random);
}

TEST(ErrorBounds, FewTermsKeepTheWorstCase) {
  for (const double n : {1.0, 2.0, 80.0}) {
    EXPECT_EQ(CountRoundings(n, Roundings::kRandom), n);
  }
  EXPECT_LT(CountRoundings(100, Roundings::kRandom), 100);
  // The declared probability: 2 e^(-lambda^2/2) for each sum of a suite. The
  // exponent is a logarithm of a quotient, its root and its square: 6
  // roundings, relative to itself; 5 more with the exponential and the product.
  const double exponent = Lambda() * Lambda() / 2;
  EXPECT_NEAR(2 * std::exp(-exponent) * kSumsOfASuite, kFalseAlarm,
              (6 * exponent + 5) * 0x1p-53 * kFalseAlarm);
}

// Whatever is subtracted from both scores, a weight's relative error is at most
// e^{2 error} - 1, and 12 roundings: of its exponential 2 and of the argument's
// difference up to 2, as many again within the sum, which has 2, and 1 of the
// quotient.
TEST(ErrorBounds, ASoftmaxCountsTheErrorOfItsLargestScoreOnce) {
  constexpr double kError = 0x1p-14, kRoundings = 12 * kFloatUnit;
  reference::VectorOf<Bounded> scores(2);
  scores << Bounded(3, kError), Bounded(1, kError);
  for (const Bounded& p : reference::formula::Softmax<Bounded>(scores)) {
    EXPECT_LE(p.error, (std::expm1(2 * kError) + kRoundings) * p.value);
  }
  const Bounded sum = reference::formula::LogSumExp<Bounded>(scores);
  EXPECT_LE(sum.error, kError + kRoundings);
}

}  // namespace
}  // namespace softmoe::property_tests
