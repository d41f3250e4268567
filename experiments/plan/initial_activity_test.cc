// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/initial_activity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/philox.h"
#include "optimized/initialize.h"
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
  // The variance takes at most 8 roundings, including those of the literals;
  // the root halves their relative error and adds one. The expected value has
  // at most 3.
  const auto expect_deviation = [&](bool noise, double expected) {
    EXPECT_NEAR(InitialScoreDeviation(config, noise), expected,
                (8 / 2.0 + 1 + 3) * 0x1p-53 * expected);
  };
  // SPEC.md 2.3: 0.506 = 0.02 sqrt(640).
  expect_deviation(true, 0.02 * std::sqrt(640.0));
  // The embedding's mean square is 4e-4, as large as epsilon: half the
  // variance.
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

// tau is calibrated without noise; noise then spreads the scores.
TEST(InitialActivity, NoiseComesAfterTheCalibration) {
  Config config = PaperRouter(2, 2);
  const InitialActivity quiet = EstimateInitialActivity(config);
  EXPECT_NEAR(quiet.active_experts, 2, 2e-5);
  config.router.noise = NoiseKind::kLogitGauss;
  config.router.noise_amplitude = 0.3;
  const InitialActivity noisy = EstimateInitialActivity(config);
  EXPECT_EQ(noisy.tau, quiet.tau);
  EXPECT_GT(noisy.active_experts, quiet.active_experts + 0.1);
}

// A still run agrees with its single steps; its end has no noise.
TEST(InitialActivity, AStillRunIsTheStepsOfOne) {
  Config config = PaperRouter(1.5, 2);
  config.router.tau = 1.3;
  config.training.steps = 40;
  config.router.noise = NoiseKind::kLogitGauss;
  config.router.noise_amplitude = 0.3;
  const InitialActivity start = EstimateInitialActivity(config);
  const StillRun run = EstimateStillRun(config, start);
  // Halfway between two temperatures on a cosine is halfway through the run.
  EXPECT_NEAR(run.middle.active_experts,
              EstimateInitialActivity(config, 20).active_experts, 1e-9);
  double active = 0, zero = 0;
  for (int64_t m = 0; m < 40; ++m) {
    const InitialActivity step = EstimateInitialActivity(config, m);
    active += step.active_experts / 40;
    zero += step.zero_active_fraction / 40;
  }
  EXPECT_NEAR(run.train.active_experts, active, 1e-4);
  EXPECT_NEAR(run.train.zero_active_fraction, zero, 1e-4);
  config.router.noise = NoiseKind::kNone;
  EXPECT_EQ(run.end.active_experts,
            EstimateInitialActivity(config, 40).active_experts);
  config.router.kind = RouterKind::kSparse;
  EXPECT_THROW(EstimateStillRun(config, start), InternalError);
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
  EXPECT_NEAR(activity.active_experts, 1, 1e-5);
  // Measured before the fallback.
  EXPECT_NEAR(activity.zero_active_fraction, 1, 1e-5);
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

// A small model with its real initialisation and first step.
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
  const auto model = optimized::MakeModel(
      config, config.training.global_batch_sequences, pool);
  optimized::InitializeParameters(*model, static_cast<uint64_t>(seed), pool);
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
      ->Forward({.num_sequences = config.training.global_batch_sequences,
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
      (squares - sum * mean) / (kModels - 1) / kModels;  // relative to the mean
  const InitialActivity estimate = EstimateInitialActivity(config);
  const double error = std::sqrt(variance);
  RecordProperty("real", std::to_string(mean));
  RecordProperty("estimate", std::to_string(estimate.active_experts));
  RecordProperty("error", std::to_string(error));
  const double unmodelled =
      GetParam().norm_epsilon > 1e-6 ? 0.01 * 16 * 0.242 : 0;
  EXPECT_NEAR(mean, estimate.active_experts, 6 * error + unmodelled);
  // A deviation that is 10 % off is detected.
  Config wrong = config;
  wrong.model.init_std *= 1.1;
  if (GetParam().noise != NoiseKind::kLogitGauss) {
    EXPECT_GT(std::abs(EstimateInitialActivity(wrong).active_experts -
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
