// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/calibration.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "optimized/model.h"
#include "trainer/run/resources.h"
#include "trainer/run/schedules.h"
#include "trainer/testing/trainer_test_util.h"
#include "trainer/tokens/dataset.h"

namespace softmoe::trainer {
namespace {

TEST(RankMidpoint, LiesBetweenTheRankAndTheNext) {
  std::vector<float> values = {0.25f, 4.0f, 1.0f, 2.0f, 0.5f};
  const RankMidpoint result = FindRankMidpoint(values, 2);
  EXPECT_EQ(result.larger, 2.0f);
  EXPECT_EQ(result.smaller, 1.0f);
  EXPECT_EQ(result.midpoint, 1.5);
  EXPECT_EQ(result.rank, 2);
}

TEST(RankMidpoint, ClampsTheRank) {
  std::vector<float> values = {1.0f, 2.0f, 4.0f};
  EXPECT_EQ(FindRankMidpoint(values, 0).midpoint, 3.0);
  EXPECT_EQ(FindRankMidpoint(values, 99).midpoint, 1.5);
  EXPECT_EQ(FindRankMidpoint(values, 99).rank, 2);
}

RC_GTEST_PROP(RankMidpointProperty, SortingGivesTheSame, ()) {
  // Few distinct values, so that ties at the rank happen, among them zeros of
  // both signs and subnormals.
  auto values = *rc::gen::container<std::vector<float>>(rc::gen::oneOf(
      rc::gen::element(0.0f, -0.0f, 1e-40f, 1.0f, 1.5f),
      rc::gen::map(rc::gen::inRange(0, 1 << 20),
                   [](int i) { return static_cast<float>(i) * 0x1p-18f; })));
  RC_PRE(values.size() >= 2u);
  const auto rank = *rc::gen::inRange<int64_t>(1, values.size());
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const RankMidpoint found = FindRankMidpoint(values, rank);
  RC_ASSERT(found.midpoint == (double{found.larger} + found.smaller) / 2);
  RC_ASSERT(found.rank ==
            std::count_if(values.begin(), values.end(), [&](float v) {
              return v > found.midpoint;
            }) + (found.larger == 0 ? std::ssize(values) : 0));
  if (sorted[rank - 1] != sorted[rank]) {
    RC_ASSERT(found.larger == sorted[rank - 1]);
    RC_ASSERT(found.smaller == sorted[rank]);
  }
}

TEST(RankMidpoint, OfEqualWeightsHasThemAllAbove) {
  std::vector<float> values(7, 1.0f);
  const RankMidpoint found = FindRankMidpoint(values, 7);
  EXPECT_EQ(found.midpoint, 0.5);
  EXPECT_EQ(found.rank, 7);
}

TEST(RankMidpoint, RefusesWhatIsNoWeight) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(),
                    std::numeric_limits<float>::infinity(), -1.0f}) {
    std::vector<float> values = {1.0f, bad, 2.0f};
    EXPECT_THROW(FindRankMidpoint(values, 1), optimized::DivergedError) << bad;
  }
  std::vector<float> lonely = {1.0f};
  EXPECT_THROW(FindRankMidpoint(lonely, 1), DataError);
  EXPECT_THROW(FindRankMidpoint({}, 1), DataError);
}

// A fresh model on generated tokens.
struct Fresh : FreshModel {
  explicit Fresh(const Config& config)
      : FreshModel(config, static_cast<uint64_t>(config.training.seed)) {}
};

// Returns the number of active experts on the calibration batches with `tau`.
int64_t CountActive(Fresh& fresh, double tau) {
  const Config& config = fresh.model->config();
  const int64_t group = config.training.balance_group_sequences;
  const int64_t length = config.model.sequence_length;
  std::vector<int32_t> inputs(group * length), targets(group * length);
  int64_t active = 0;
  for (int64_t b = 0; b < config.router.calibration_batches; ++b) {
    for (int64_t first = 0; first < config.training.global_batch_sequences;
         first += group) {
      fresh.data.FillBatch(b, first, group, inputs, targets);
      const optimized::StepStats stats = fresh.model->Forward(
          {.num_sequences = group, .inputs = inputs, .targets = targets},
          {.temperature = Temperature(config, 0), .tau = tau});
      for (const optimized::LayerStats& layer : stats.layers) {
        for (int64_t tokens : layer.tokens_per_expert) active += tokens;
      }
    }
  }
  return active;
}

class SoftRouter
    : public testing::TestWithParam<std::tuple<RouterKind, double>> {};

INSTANTIATE_TEST_SUITE_P(
    Calibration, SoftRouter,
    testing::Combine(testing::Values(RouterKind::kSoftFixed,
                                     RouterKind::kSoftLearned),
                     testing::Values(1.0, 1.3, 2.0, 3.0)));

TEST_P(SoftRouter, GivesTheMeanThatWasAskedFor) {
  Config config = TinyConfig(std::get<0>(GetParam()));
  config.model.num_layers = 1;  // see calibration.h on deeper ones
  const double k = std::get<1>(GetParam());
  config.router.mean_active_experts = k;
  config.router.expansion_factor = 4.0 / 3;
  config.router.calibration_batches = 3;
  Fresh fresh(config);
  const TauCalibration found = CalibrateTau(*fresh.model, fresh.data, [] {});
  const int64_t token_layers = 3 * 4 * 16;
  const int64_t cap = static_cast<int64_t>(
      std::ceil(config.router.expansion_factor * k - 1e-6));
  EXPECT_EQ(found.num_ratios, token_layers * cap);
  EXPECT_EQ(found.num_ratios, NumCalibrationRatios(config));
  // n weights lie above the midpoint, the others below, so the count of active
  // experts is exactly n = round(k * tokens * layers). But the weights are
  // compared with the cutoff tau*k_l/E rounded to their precision, which may
  // meet a weight within an ulp of the midpoint: here, at most its neighbors.
  const int64_t wanted =
      std::min<int64_t>(std::llround(k * token_layers), found.num_ratios - 1);
  EXPECT_NEAR(static_cast<double>(CountActive(fresh, found.tau)),
              static_cast<double>(wanted), 1);
  EXPECT_EQ(found.rank, wanted);
  EXPECT_EQ(found.wanted, std::llround(k * token_layers));
}

TEST(Calibration, UsesTheInitialTemperatureAndNoNoise) {
  Config config = TinyConfig(RouterKind::kSoftFixed);
  Fresh plain(config);
  const double tau = CalibrateTau(*plain.model, plain.data, [] {}).tau;
  config.router.noise = NoiseKind::kLogitGauss;
  config.router.noise_amplitude = 1;
  Fresh noisy(config);
  EXPECT_EQ(CalibrateTau(*noisy.model, noisy.data, [] {}).tau, tau);
  config.router.temperature_start = 1;
  Fresh sharp(config);
  // With sharper weights the k-th ratio is higher.
  EXPECT_GT(CalibrateTau(*sharp.model, sharp.data, [] {}).tau, tau);
}

TEST(Calibration, RanksAsManyAsThePlanSays) {
  for (const auto kind : {RouterKind::kSoftFixed, RouterKind::kSoftLearned}) {
    Config config = TinyConfig(kind);
    config.router.mean_active_experts = 1.5;
    config.router.expansion_factor = 4;
    Fresh fresh(config);
    const TauCalibration found = CalibrateTau(*fresh.model, fresh.data, [] {});
    EXPECT_EQ(found.num_ratios, NumCalibrationRatios(config));
    // 1.5 experts per token and layer.
    const int64_t token_layers = config.router.calibration_batches *
                                 config.training.global_batch_sequences *
                                 config.model.sequence_length *
                                 config.model.num_layers;
    ASSERT_GT(config.model.num_layers, 1);
    EXPECT_EQ(found.rank, token_layers * 3 / 2);
  }
}

TEST(Calibration, AnswersAStop) {
  Fresh fresh(TinyConfig(RouterKind::kSoftFixed));
  int polls = 0;
  EXPECT_THROW(CalibrateTau(*fresh.model, fresh.data,
                            [&] {
                              if (++polls == 2) throw StoppedError("stop");
                            }),
               StoppedError);
  EXPECT_EQ(polls, 2);
}

TEST(Calibration, NamesANanScore) {
  Fresh fresh(TinyConfig(RouterKind::kSoftFixed));
  const float nan[] = {std::nanf("")};
  fresh.model->WriteParameters(nan,
                               fresh.model->layout().layers[0].router_weight);
  EXPECT_THROW(CalibrateTau(*fresh.model, fresh.data, [] {}),
               optimized::DivergedError);
}

// Only the last sequence of the batch, the second of its group, has this token.
TEST(Calibration, NamesTheTokenOfANanScoreInTheWholeBatch) {
  const Config config = TinyConfig(RouterKind::kSoftFixed);
  Fresh fresh(config);
  const int64_t length = config.model.sequence_length;
  ASSERT_EQ(config.training.global_batch_sequences, 4);
  ASSERT_EQ(config.training.balance_group_sequences, 2);
  std::vector<int32_t> ids(4 * length), targets(ids.size());
  fresh.data.FillBatch(0, 0, 4, ids, targets);
  const auto last = ids.begin() + 3 * length;
  const auto found = std::find_if(last, ids.end(), [&](int32_t id) {
    return std::find(ids.begin(), last, id) == last;
  });
  ASSERT_NE(found, ids.end());
  const int64_t width = config.model.d_model;
  const std::vector<float> nan(width, std::nanf(""));
  fresh.model->WriteParameters(
      nan, fresh.model->layout().embedding + *found * width);
  const std::string message = MessageOf<optimized::DivergedError>(
      [&] { CalibrateTau(*fresh.model, fresh.data, [] {}); });
  // Attention spreads the NaN over the whole sequence.
  EXPECT_TRUE(Says(message,
                   "layer 0, token 48 (sequence 1 of its group, position "
                   "0), expert 0: router score is "));
}

}  // namespace
}  // namespace softmoe::trainer
