// SPDX-License-Identifier: Apache-2.0
#include "reference/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/errors.h"
#include "reference/lapsum.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference {
namespace {

using testing::RandomMatrix;

TEST(CalibrateTau, IsTheMidpointAfterTheNthRatio) {
  EXPECT_EQ(CalibrateTau({1.0, 3.0, 2.0, 5.0}, 1, 2), 2.5);    // n = 2
  EXPECT_EQ(CalibrateTau({1.0, 3.0, 2.0, 5.0}, 1.5, 2), 1.5);  // n = 3
  EXPECT_EQ(CalibrateTau({1.0, 3.0, 2.0, 5.0}, 1.2, 2), 2.5);  // 2.4 -> 2
}

// n is rounded to the nearest, not down.
TEST(CalibrateTau, RoundsTheWantedCount) {
  EXPECT_EQ(CalibrateTau({1.0, 3.0, 2.0, 5.0}, 1.3, 2), 1.5);  // 2.6 -> 3
}

TEST(CalibrateTau, KeepsOneRatioOnEitherSide) {
  EXPECT_EQ(CalibrateTau({1.0, 3.0, 2.0}, 0.01, 2), 2.5);  // n = 0 -> 1
  EXPECT_EQ(CalibrateTau({1.0, 3.0, 2.0}, 4, 2), 1.5);     // n = 8 -> 2
}

// No tau separates equal ratios.
TEST(CalibrateTau, PassesTiesAtTheirNearerEnd) {
  EXPECT_EQ(CalibrateTau({1, 1, 1, 1}, 2, 2), 0.5);          // k = E
  EXPECT_EQ(CalibrateTau({2, 2, 2, 1}, 0.5, 2), 1.5);        // 1 -> 3, not 0
  EXPECT_EQ(CalibrateTau({4, 2, 2, 2, 2, 1}, 1, 2), 3.0);    // 2 -> 1, not 5
  EXPECT_EQ(CalibrateTau({4, 2, 2, 2, 2, 1}, 1.5, 2), 1.5);  // 3 -> 5, not 1
  EXPECT_EQ(CalibrateTau({4, 2, 2, 2, 2, 1}, 2, 2), 1.5);    // 4 -> 5
  EXPECT_EQ(CalibrateTau({4, 4, 2, 2, 0}, 1.5, 2), 1.0);
  EXPECT_EQ(CalibrateTau({4, 0, 0}, 1, 2), 2.0);  // 0 is above no tau
}

TEST(CalibrateTau, NeedsTwoRatios) {
  EXPECT_THROW(CalibrateTau({}, 1, 1), ConfigError);
  EXPECT_THROW(CalibrateTau({1.0}, 1, 1), ConfigError);
}

TEST(CalibrationRatios, AreTheCappedWeightsOverTheUniformOne) {
  const Matrix scores = RandomMatrix(3, 6, 13, 1);
  const RouterSettings settings{.kind = RouterKind::kSoftFixed,
                                .mean_active = 1.5,
                                .temperature = 5,
                                .max_active = 2};
  const std::vector<double> ratios = CalibrationRatios(settings, scores);
  ASSERT_EQ(ratios.size(), 6u);
  for (int t = 0; t < 3; ++t) {
    const Vector weights = SolveLapSum(scores.row(t), 1.5, 5).weights;
    EXPECT_EQ(ratios[2 * t], weights.maxCoeff() / (1.5 / 6));
    int larger = 0;
    for (double weight : weights)
      larger += weight / (1.5 / 6) > ratios[2 * t + 1];
    EXPECT_EQ(larger, 1);
  }
}

// With the tau that is returned, exactly round(k * tokens * layers) experts are
// active on the data it was calibrated on (no two ratios tie), for layers with
// different allocations.
TEST(Calibration, ActivatesTheWantedNumberOnItsOwnData) {
  const int64_t tokens = 40, experts = 16;
  const double allocation[] = {1.0, 1.5, 2.0};
  for (double k : {1.0, 1.5, 2.0}) {
    for (double temperature : {1.0, 5.0}) {
      std::vector<double> ratios;
      std::vector<RouterSettings> layers;
      for (int l = 0; l < 3; ++l) {
        layers.push_back({.kind = RouterKind::kSoftLearned,
                          .mean_active = allocation[l],
                          .temperature = temperature,
                          .max_active = MaxActive(4, allocation[l], experts)});
        const auto layer = CalibrationRatios(
            layers[l], 0.5 * RandomMatrix(tokens, experts, 13, 10 + l));
        ratios.insert(ratios.end(), layer.begin(), layer.end());
      }
      const double tau = CalibrateTau(ratios, k, tokens * 3);
      int64_t active = 0;
      for (int l = 0; l < 3; ++l) {
        layers[l].cutoff = tau * allocation[l] / experts;
        active += RouterForward(layers[l],
                                0.5 * RandomMatrix(tokens, experts, 13, 10 + l))
                      .active.count();
      }
      EXPECT_EQ(active, std::llround(k * tokens * 3)) << k << temperature;
    }
  }
}

}  // namespace
}  // namespace softmoe::reference
