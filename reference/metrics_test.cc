// SPDX-License-Identifier: Apache-2.0
#include "reference/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/config.h"
#include "core/errors.h"
#include "core/parameter_layout.h"

namespace softmoe::reference {
namespace {

constexpr double kUnit = 0x1p-53;

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

// Strictly above, as the cutoff is; each layer has its own.
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
  EXPECT_THROW(TrainActiveExperts({}), InternalError);
}

// Population variance of (2, 4, 4, 6) is 2, its mean 4.
TEST(LoadVariance, HasThreeReadings) {
  const LoadVariance variance = LoadVarianceOf({2, 4, 4, 6});
  EXPECT_EQ(variance.relative, 0.125);
  EXPECT_NEAR(variance.cv, std::sqrt(0.125), kUnit);
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
  EXPECT_NEAR(mean.cv, std::sqrt(0.125) / 2, kUnit);
  EXPECT_EQ(mean.var_over_mean, 0.25);
}

// SPEC.md 3.1: 58.54528 M + 49.152 M * AE, and 1,631,409,280 in all.
TEST(ActiveParameters, AreThePapers) {
  const ModelConfig paper;
  EXPECT_EQ(ActiveParameters(paper, 0), 58545280);
  EXPECT_EQ(ActiveParameters(paper, 1), 58545280 + 49152000);
  EXPECT_EQ(ActiveParameters(paper, 1.5), 58545280 + 73728000);
  EXPECT_EQ(ActiveParameters(paper, 32), 1631409280);
}

// With every expert active, all parameters are: against the layout that the
// models really use.
TEST(ActiveParameters, WithAllExpertsAreTheWholeModel) {
  Config config;
  config.model = {.num_layers = 3,
                  .d_model = 24,
                  .num_heads = 2,
                  .d_ffn = 40,
                  .num_experts = 5,
                  .vocab_size = 100,
                  .sequence_length = 16};
  EXPECT_EQ(ActiveParameters(config.model, 5),
            static_cast<double>(ParameterLayout(config).total));
}

}  // namespace
}  // namespace softmoe::reference
