// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/initial_activity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/philox.h"
#include "optimized/model.h"
#include "trainer/run/schedules.h"

namespace softmoe::experiments {
namespace {

// The paper's router with unit-RMS input, as SPEC.md 2.3 simulated it.
Config PaperRouter(double k, double expansion) {
  Config config;
  config.model.norm_epsilon = 1e-15;
  config.router.kind = RouterKind::kSoftFixed;
  config.router.mean_active_experts = k;
  config.router.expansion_factor = expansion;
  return config;
}

TEST(InitialActivity, ScoresHaveTheDeviationOfTheInitialisation) {
  Config config = PaperRouter(1, 4);
  config.model.norm_epsilon = 0;
  // The variance is a product, quotient and sum of at most 8 roundings, those
  // of the literals included, of which the root halves the relative error; the
  // root itself, and as many as 3 in the expected value.
  const auto expect_deviation = [&](bool noise, double expected) {
    EXPECT_NEAR(InitialScoreDeviation(config, noise), expected,
                (8 / 2.0 + 1 + 3) * 0x1p-53 * expected);
  };
  // SPEC.md 2.3: 0.506 = 0.02 sqrt(640).
  expect_deviation(true, 0.02 * std::sqrt(640.0));
  // Mean square 4e-4 of the embedding, epsilon as large: half the variance.
  config.model.norm_epsilon = 4e-4;
  expect_deviation(true, 0.02 * std::sqrt(320.0));
  config.model.norm_epsilon = 0;
  // Factors uniform in [0.5, 1.5]: mean square 1 + 1/12.
  config.router.noise = NoiseKind::kInputJitter;
  config.router.noise_amplitude = 0.5;
  expect_deviation(true, 0.02 * std::sqrt(640.0 * 13 / 12));
  config.router.noise = NoiseKind::kLogitGauss;  // 0.256 + 0.25
  expect_deviation(true, std::sqrt(0.506));
  expect_deviation(false, std::sqrt(0.256));
}

// SPEC.md 2.3, an independent simulation of 6000 tokens in another language:
// its standard error is ours times sqrt(4096/6000), its values are rounded to
// two decimals (three below 0.01). Four standard errors of the difference.
TEST(InitialActivity, AgreesWithTheSpecification) {
  const double both = std::sqrt(1 + 4096.0 / 6000);
  struct Case {
    double tau, active, rounding;
  };
  for (const Case& known : {Case{1.1, 3.81, 0.005}, Case{1.2, 0.95, 0.005},
                            Case{1.3, 0.10, 0.005}, Case{1.5, 0.001, 0.0005}}) {
    Config config = PaperRouter(1, 4);
    config.router.tau = known.tau;
    const InitialActivity activity = EstimateInitialActivity(config);
    // Where only a handful of rows have an expert at all, the sample's own
    // standard error may be 0; that of a Poisson count with the known mean is
    // not.
    const double error =
        std::max(activity.standard_error, std::sqrt(known.active / 4096));
    EXPECT_NEAR(activity.active_experts, known.active,
                4 * both * error + known.rounding)
        << known.tau;
    EXPECT_EQ(activity.tau, known.tau);
  }
  Config config = PaperRouter(1.5, 2);
  config.router.tau = 1.8;
  const InitialActivity none = EstimateInitialActivity(config);
  EXPECT_EQ(none.active_experts, 0);
  EXPECT_EQ(none.zero_active_fraction, 1);
}

// The same section: tau calibrated to 1.197, 1.174, 1.159, and the share of
// tokens without an expert, about 33 %, 16 %, 8.6 %. A mean that is off by
// its standard error moves tau by that over the slope d(mean)/d(tau).
TEST(InitialActivity, CalibratesAsTheSpecificationDoes) {
  struct Case {
    double k, expansion, tau, zero_share, zero_rounding;
  };
  for (const Case& known :
       {Case{1, 4, 1.197, 0.33, 0.005}, Case{1.5, 2, 1.174, 0.16, 0.005},
        Case{2, 2, 1.159, 0.086, 0.0005}}) {
    Config config = PaperRouter(known.k, known.expansion);
    const InitialActivity activity = EstimateInitialActivity(config);
    // Exactly rank round(k * 4096) lies above tau.
    EXPECT_NEAR(activity.active_experts, known.k, 0.5 / 4096);
    config.router.tau = known.tau - 0.01;
    const double below = EstimateInitialActivity(config).active_experts;
    config.router.tau = known.tau + 0.01;
    const double above = EstimateInitialActivity(config).active_experts;
    const double slope = (below - above) / 0.02;
    const double both = std::sqrt(1 + 4096.0 / 6000);
    EXPECT_NEAR(activity.tau, known.tau,
                4 * both * activity.standard_error / slope + 0.0005);
    const double p = known.zero_share;
    EXPECT_NEAR(activity.zero_active_fraction, p,
                4 * both * std::sqrt(p * (1 - p) / 4096) + known.zero_rounding);
  }
}

// SPEC.md 2.3: at T = 1, where the schedule ends, tau 1.5 gives 3.8 and tau 1.8
// gives 2.4 (one decimal).
TEST(InitialActivity, FollowsTheTemperature) {
  Config config = PaperRouter(1, 4);
  for (const auto& [tau, active] : {std::pair(1.5, 3.8), std::pair(1.8, 2.4)}) {
    config.router.tau = tau;
    const InitialActivity end =
        EstimateInitialActivity(config, config.training.steps);
    EXPECT_NEAR(end.active_experts, active,
                4 * std::sqrt(1 + 4096.0 / 6000) * end.standard_error + 0.05);
  }
}

TEST(InitialActivity, SparseRoutersActivateK) {
  Config config;
  config.router.mean_active_experts = 3;
  const InitialActivity activity = EstimateInitialActivity(config);
  EXPECT_EQ(activity.active_experts, 3);
  EXPECT_EQ(activity.zero_active_fraction, 0);
  EXPECT_EQ(activity.tau, 0);
}

TEST(InitialActivity, FallbackGivesOneExpertToTokensBelowTheCutoff) {
  Config config = PaperRouter(1.5, 2);
  config.router.tau = 1.8;
  config.router.fallback = Fallback::kTop1;
  const InitialActivity activity = EstimateInitialActivity(config);
  EXPECT_EQ(activity.active_experts, 1);
  EXPECT_EQ(activity.zero_active_fraction, 1);  // before the fallback
}

TEST(InitialActivity, RefusesScoresThatOverflow) {
  Config config = PaperRouter(2, 2);
  config.model.init_std = 1e38;
  EXPECT_THROW(EstimateInitialActivity(config), ConfigError);
}

TEST(InitialActivity, ScoresSpreadAsTheRoutersOwnWeightsDo) {
  Config config = PaperRouter(2, 2);
  const double as_model = InitialScoreDeviation(config, /*noise=*/false);
  config.router.init_std = 3 * config.model.init_std;
  EXPECT_DOUBLE_EQ(InitialScoreDeviation(config, /*noise=*/false),
                   3 * as_model);
  config.router.init_std = 1e38;
  EXPECT_THROW(EstimateInitialActivity(config), ConfigError);
}

TEST(InitialActivity, IsTheSameEveryTime) {
  const Config config = PaperRouter(2, 2);
  const InitialActivity a = EstimateInitialActivity(config);
  const InitialActivity b = EstimateInitialActivity(config);
  EXPECT_EQ(a.tau, b.tau);
  EXPECT_EQ(a.active_experts, b.active_experts);
}

// A small model with its real initialisation and its real first step.
struct ModelCase {
  std::string name;
  RouterKind kind;
  double tau;
  double norm_epsilon = 1e-12;
  NoiseKind noise = NoiseKind::kNone;
  double amplitude = 0;
};

Config SmallModel(const ModelCase& test) {
  Config config;
  config.model = {.num_layers = 2,
                  .d_model = 64,
                  .num_heads = 4,
                  .d_ffn = 32,
                  .num_experts = 16,
                  .vocab_size = 512,
                  .sequence_length = 32};
  config.model.norm_epsilon = test.norm_epsilon;
  config.router.kind = test.kind;
  config.router.mean_active_experts = 2;
  config.router.expansion_factor = 4;
  config.router.tau = test.tau;
  config.router.temperature_start = 1.5;
  config.router.noise = test.noise;
  config.router.noise_amplitude = test.amplitude;
  config.training.global_batch_sequences = 8;
  config.training.micro_batch_sequences = 8;
  config.training.balance_group_sequences = 8;
  return config;
}

double FirstStepActivity(Config config, int64_t seed) {
  config.training.seed = seed;
  ThreadPool pool(2);
  optimized::Model model(config, config.training.global_batch_sequences, pool);
  model.InitializeParameters(static_cast<uint64_t>(seed));
  const int64_t tokens =
      config.training.global_batch_sequences * config.model.sequence_length;
  std::vector<int32_t> ids(static_cast<size_t>(tokens) + 1);
  const RandomKey key = {.seed = static_cast<uint64_t>(seed)};
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>(PhiloxWords(key, i)[0] %
                                  static_cast<uint32_t>(512));
  }
  const std::span<const int32_t> all(ids);
  return model
      .Forward({.num_sequences = config.training.global_batch_sequences,
                .inputs = all.first(ids.size() - 1),
                .targets = all.subspan(1)},
               {.temperature = trainer::Temperature(config, 0),
                .tau = *config.router.tau,
                .noise = config.router.noise != NoiseKind::kNone,
                .step = 0})
      .MeanActiveExperts();
}

class RealModel : public testing::TestWithParam<ModelCase> {};

// Tokens of one model share its router weights, so the spread is taken over
// models: 16 seeds, whose mean has standard error s/4. The difference to the
// estimate, over its standard error, follows a t-distribution of 15 degrees of
// freedom, which exceeds 6 once in 40,000.
//
// The estimate leaves out the growth of the residual stream, which matters only
// through norm_epsilon. Attention over t tokens adds the share
// (d_model init_std)^2/(2 layers t) of the embedding's variance to it, half of
// that where epsilon halves |x|^2: 2.6 % in the mean over 32 positions (sum of
// 1/t is 4.06), twice as much in the second layer. v/(v + epsilon) grows by
// half of that, the deviation by a quarter: 1 % in the mean over both layers.
// The mean of active experts follows by at most 16 * 0.242 times that (the
// largest z times density of a normal).
TEST_P(RealModel, StartsAsEstimated) {
  const Config config = SmallModel(GetParam());
  constexpr int kModels = 16;
  double sum = 0, squares = 0;
  for (int i = 0; i < kModels; ++i) {
    const double active = FirstStepActivity(config, 100 + i);
    sum += active;
    squares += active * active;
  }
  const double mean = sum / kModels;
  const double variance =
      (squares - sum * mean) / (kModels - 1) / kModels;  // of the mean
  const InitialActivity estimate = EstimateInitialActivity(config, 0, 1 << 15);
  const double error =
      std::sqrt(variance + estimate.standard_error * estimate.standard_error);
  RecordProperty("real", std::to_string(mean));
  RecordProperty("estimate", std::to_string(estimate.active_experts));
  RecordProperty("error", std::to_string(error));
  const double unmodelled =
      GetParam().norm_epsilon > 1e-6 ? 0.01 * 16 * 0.242 : 0;
  EXPECT_NEAR(mean, estimate.active_experts, 6 * error + unmodelled);
  // The test can tell a deviation that is 10 % off.
  Config wrong = config;
  wrong.model.init_std *= 1.1;
  if (GetParam().noise != NoiseKind::kLogitGauss) {
    EXPECT_GT(
        std::abs(EstimateInitialActivity(wrong, 0, 1 << 15).active_experts -
                 estimate.active_experts),
        6 * error + unmodelled);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RealModel,
    testing::Values(ModelCase{"fixed", RouterKind::kSoftFixed, 1.1},
                    ModelCase{"learned", RouterKind::kSoftLearned, 1.15},
                    ModelCase{"epsilon", RouterKind::kSoftFixed, 1.08, 4e-4},
                    ModelCase{"jitter", RouterKind::kSoftFixed, 1.1, 1e-12,
                              NoiseKind::kInputJitter, 0.9},
                    ModelCase{"gauss", RouterKind::kSoftFixed, 1.2, 1e-12,
                              NoiseKind::kLogitGauss, 0.2}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace softmoe::experiments
