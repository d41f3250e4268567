// SPDX-License-Identifier: Apache-2.0
#include "reference/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "core/testing/bounded.h"
#include "core/testing/config_test_util.h"
#include "reference/router.h"

namespace softmoe::reference {
namespace {

BoolMatrix Active(std::initializer_list<std::initializer_list<int>> rows) {
  BoolMatrix active(rows.size(), rows.begin()->size());
  int t = 0;
  for (const auto& row : rows) {
    int e = 0;
    for (int value : row) active(t, e++) = value != 0;
    ++t;
  }
  return active;
}

TEST(ActiveExperts, AreCountedPerTokenAndLayer) {
  const std::vector<BoolMatrix> layers = {
      Active({{1, 0, 1}, {0, 0, 0}}),
      Active({{1, 1, 1}, {0, 1, 0}}),
  };
  EXPECT_EQ(MeanActiveExperts(layers), 1.5);
  EXPECT_EQ(TokensPerExpert(layers[0]), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(TokensPerExpert(layers[1]), (std::vector<int64_t>{1, 2, 1}));
}

// A weight must exceed the cutoff strictly; each layer has its own.
TEST(ActiveExperts, TokensWithoutOneAreCountedBeforeTheFallback) {
  Matrix weights(2, 3);
  weights << 0.5, 0.75, 0.25,  //
      0.5, 0.25, 0.5;
  EXPECT_EQ(ZeroActiveFraction({weights, weights}, {0.5, 0.75}), 0.75);
  EXPECT_EQ(ZeroActiveFraction({weights}, {0}), 0);
}

TEST(ActiveExperts, TrainAeIsTheMeanOverTheSteps) {
  EXPECT_EQ(TrainActiveExperts({1.0, 2.0, 4.5}), 2.5);
}

TEST(ActiveExperts, OfNothingIsAnError) {
  EXPECT_THROW(MeanActiveExperts({}), InternalError);
  EXPECT_THROW(MeanActiveExperts({BoolMatrix(0, 4)}), InternalError);
  EXPECT_THROW(ZeroActiveFraction({}, {}), InternalError);
  EXPECT_THROW(ZeroActiveFraction({Matrix::Ones(1, 1)}, {}), InternalError);
  // Nor of layers with unequally many tokens.
  EXPECT_THROW(MeanActiveExperts({BoolMatrix(2, 4), BoolMatrix(1, 4)}),
               InternalError);
  EXPECT_THROW(
      ZeroActiveFraction({Matrix::Ones(2, 1), Matrix::Ones(1, 1)}, {0, 0}),
      InternalError);
  EXPECT_THROW(TrainActiveExperts({}), InternalError);
}

// Population variance of (2, 4, 4, 6) is 2, its mean 4.
TEST(LoadVariance, HasThreeReadings) {
  const LoadVariance variance = LoadVarianceOf({2, 4, 4, 6});
  EXPECT_EQ(variance.relative, 0.125);
  EXPECT_NEAR(variance.cv, std::sqrt(0.125), kDoubleUnit);
  EXPECT_EQ(variance.var_over_mean, 0.5);
}

TEST(LoadVariance, OfEqualLoadsIsZeroAndOfOneExpertIsExperts) {
  EXPECT_EQ(LoadVarianceOf({7, 7, 7}).relative, 0);
  // One of E experts takes all: E - 1.
  EXPECT_EQ(LoadVarianceOf({12, 0, 0, 0}).relative, 3);
}

TEST(LoadVariance, OfNoTokensIsZero) {
  const LoadVariance variance = LoadVarianceOf({0, 0});
  EXPECT_EQ(variance.relative, 0);
  EXPECT_EQ(variance.cv, 0);
  EXPECT_EQ(variance.var_over_mean, 0);
}

TEST(LoadVariance, IsAveragedOverLayersPerReading) {
  const LoadVariance mean =
      MeanLoadVariance({LoadVarianceOf({2, 4, 4, 6}), LoadVarianceOf({3, 3})});
  EXPECT_EQ(mean.relative, 0.0625);
  EXPECT_NEAR(mean.cv, std::sqrt(0.125) / 2, kDoubleUnit);
  EXPECT_EQ(mean.var_over_mean, 0.25);
}

// Shares 1/2, 1/4, 1/4, 0: 1/2 ln 2 + 2/4 ln 4 = 3/2 ln 2, and ln 4 at most. A
// logarithm, a product and a sum of three numbers: fewer than 8 roundings.
TEST(LoadEntropy, IsThatOfTheShares) {
  const std::vector<int64_t> load = {4, 2, 2, 0};
  EXPECT_NEAR(LoadEntropy(load), 1.5 * std::log(2.0), 8 * kDoubleUnit);
  EXPECT_NEAR(RelativeLoadEntropy(load), 0.75, 8 * kDoubleUnit);
  EXPECT_EQ(DeadExperts(load), 1);
}

TEST(LoadEntropy, IsLargestForAnEvenLoadAndZeroForOneExpert) {
  EXPECT_NEAR(LoadEntropy({5, 5, 5, 5}), std::log(4.0), 8 * kDoubleUnit);
  EXPECT_NEAR(RelativeLoadEntropy({5, 5, 5, 5}), 1, 8 * kDoubleUnit);
  EXPECT_EQ(DeadExperts({5, 5, 5, 5}), 0);
  EXPECT_EQ(LoadEntropy({0, 9, 0}), 0);
  EXPECT_EQ(RelativeLoadEntropy({0, 9, 0}), 0);
  EXPECT_EQ(DeadExperts({0, 9, 0}), 2);
  // A single expert is neither idle nor preferred.
  EXPECT_EQ(LoadEntropy({1}), 0);
  EXPECT_EQ(RelativeLoadEntropy({1}), 1);
}

TEST(LoadEntropy, OfNoTokensIsZeroAndAllExpertsAreDead) {
  EXPECT_EQ(LoadEntropy({0, 0}), 0);
  EXPECT_EQ(RelativeLoadEntropy({0, 0}), 0);
  EXPECT_EQ(RelativeLoadEntropy({0}), 0);
  EXPECT_EQ(DeadExperts({0, 0}), 2);
  EXPECT_THROW(LoadEntropy({}), InternalError);
  EXPECT_THROW(RelativeLoadEntropy({}), InternalError);
}

// 3, 2, 1 and 0 weights exceed the cutoff 0.25; equality is not enough.
TEST(RouterHealth, CountsTokensAtTheCap) {
  Matrix weights(4, 3);
  weights << 0.5, 0.75, 0.375,  //
      0.5, 0.25, 0.5,           //
      0.25, 0.25, 0.5,          //
      0.25, 0.25, 0.125;
  EXPECT_EQ(AtCapFraction(weights, 0.25, 1), 0.75);
  EXPECT_EQ(AtCapFraction(weights, 0.25, 2), 0.5);
  EXPECT_EQ(AtCapFraction(weights, 0.25, 3), 0.25);
  EXPECT_EQ(AtCapFraction(weights, 0, 3), 1);
  EXPECT_THROW(AtCapFraction(Matrix(0, 3), 0.25, 1), InternalError);
}

// e^-800 is 0, and the expert is active all the same.
TEST(RouterHealth, SparseTokensAreAlwaysAtTheCap) {
  Matrix scores(1, 2);
  scores << 0, -800;
  const RouterSaved saved =
      RouterForward({.kind = RouterKind::kSparse, .max_active = 2}, scores);
  ASSERT_EQ(saved.soft_weights(0, 1), 0);
  EXPECT_EQ(saved.active.count(), 2);
  EXPECT_EQ(AtCapFraction(saved.soft_weights, -HUGE_VAL, 2), 1);
}

TEST(RouterHealth, TruncatedMassIsWhatIsNotActive) {
  Matrix weights(2, 3);
  weights << 0.5, 0.75, 0.25,  //
      0.25, 0.125, 0.125;
  EXPECT_EQ(TruncatedMass(weights, Active({{1, 1, 0}, {0, 0, 0}})), 0.375);
  // The fallback gives the second token its largest weight back.
  EXPECT_EQ(TruncatedMass(weights, Active({{1, 1, 0}, {1, 0, 0}})), 0.25);
  EXPECT_EQ(TruncatedMass(weights, Active({{1, 1, 1}, {1, 1, 1}})), 0);
  EXPECT_THROW(TruncatedMass(Matrix(0, 3), BoolMatrix(0, 3)), InternalError);
  EXPECT_THROW(TruncatedMass(weights, BoolMatrix(3, 3)), InternalError);
}

// For a router's own output: what is kept and what is not add up to k_l, and
// cutoff and cap both remove something.
TEST(RouterHealth, TruncatedMassAndGatesAddUpToTheMean) {
  Matrix scores(3, 4);
  scores << 2, 1, 0, -1,  //
      0, 0, 0, 0,         //
      -3, 3, 1, 1;
  RouterSettings settings = {.kind = RouterKind::kSoftFixed,
                             .mean_active = 1.5,
                             .temperature = 1,
                             .cutoff = 1.1 * 1.5 / 4,
                             .max_active = 2,
                             .fallback = Fallback::kNone};
  for (const Fallback fallback : {Fallback::kNone, Fallback::kTop1}) {
    settings.fallback = fallback;
    const RouterSaved saved = RouterForward(settings, scores);
    const double mass = TruncatedMass(saved.soft_weights, saved.active);
    EXPECT_GT(mass, 0);
    // 12 weights with rows that add up to 1.5 within 4 ulp an element.
    EXPECT_NEAR(mass + saved.gates.sum() / 3, 1.5, 12 * 4 * 2 * kDoubleUnit);
    EXPECT_EQ(saved.active.row(1).any(), fallback == Fallback::kTop1);
  }
}

// SPEC.md 3.1: 58.54528 M + 49.152 M * AE, and 1,631,409,280 in all.
TEST(ActiveParameters, AreThePapers) {
  const ModelConfig paper;
  EXPECT_EQ(ActiveParameters(paper, 0), 58545280);
  EXPECT_EQ(ActiveParameters(paper, 1), 58545280 + 49152000);
  EXPECT_EQ(ActiveParameters(paper, 1.5), 58545280 + 73728000);
  EXPECT_EQ(ActiveParameters(paper, 32), 1631409280);
}

// With every expert active, all parameters are active: as many as the layout
// that the models really use has.
TEST(ActiveParameters, WithAllExpertsAreTheWholeModel) {
  const Config config = SmallConfig(RouterKind::kSparse);
  EXPECT_EQ(ActiveParameters(config.model, 5),
            static_cast<double>(ParameterLayout(config).total));
}

}  // namespace
}  // namespace softmoe::reference
