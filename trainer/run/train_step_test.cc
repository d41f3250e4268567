// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/train_step.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/testing/bits_test_util.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "optimized/model.h"
#include "optimized/optimizer.h"
#include "trainer/run/schedules.h"
#include "trainer/testing/trainer_test_util.h"
#include "trainer/tokens/dataset.h"

namespace softmoe::trainer {
namespace {

struct FreshStep : FreshModel {
  explicit FreshStep(const Config& config) : FreshModel(config) {}
  std::vector<float> Parameters() const { return model->ReadParameters(); }
  std::unique_ptr<optimized::Updater> updater = model->MakeUpdater();
  TrainStep step{*model, *updater, data};
};

TEST(TrainStep, TheFirstUpdateOnlyFillsTheMoments) {
  FreshStep fresh(TinyConfig(RouterKind::kSparse));
  const std::vector<float> before = fresh.Parameters();
  const StepOutcome first = fresh.step.Run(0, 0);
  EXPECT_EQ(first.record.step, 1);
  EXPECT_EQ(first.record.learning_rate, 0);
  EXPECT_TRUE(SameBits(before, fresh.Parameters()));
  float largest = 0;
  for (float v : fresh.updater->ReadSecondMoment()) {
    largest = std::max(largest, v);
  }
  EXPECT_GT(largest, 0);
  const StepOutcome second = fresh.step.Run(1, 0);
  EXPECT_GT(second.record.learning_rate, 0);
  EXPECT_FALSE(SameBits(before, fresh.Parameters()));
}

TEST(TrainStep, IsTheMeanOverItsGroups) {
  // The update composed of its parts: two groups of step 1's batch, each with
  // half of the loss's weight, added, clipped, applied.
  Config config = TinyConfig(RouterKind::kSoftLearned);
  config.router.z_loss_coeff = 1e-2;
  config.router.noise = NoiseKind::kInputJitter;  // keyed by step and token
  config.router.noise_amplitude = 0.1;
  FreshStep whole(config), parts(config);
  constexpr double kTau = 1.05;
  const StepOutcome outcome = whole.step.Run(1, kTau);

  const int64_t total = parts.model->layout().total;
  std::vector<float> sum(total), gradient(total);
  std::vector<int32_t> inputs(2 * 16), targets(2 * 16);
  double loss = 0, balance = 0, z = 0;
  for (int64_t group = 0; group < 2; ++group) {
    parts.data.FillBatch(1, 2 * group, 2, inputs, targets);
    const optimized::StepStats stats = parts.model->ForwardBackward(
        {.num_sequences = 2,
         .inputs = inputs,
         .targets = targets,
         .first_token = 32 * group},
        {.temperature = Temperature(config, 1),
         .tau = kTau,
         .noise = true,
         .step = 1},
        1.0 / 64, 1.0 / 2, group == 0 ? sum : gradient);
    loss += stats.loss_sum;
    for (const optimized::LayerStats& layer : stats.layers) {
      balance += layer.load_balance_loss;
      z += layer.z_loss;
    }
  }
  for (int64_t i = 0; i < total; ++i) sum[i] += gradient[i];
  optimized::Optimizer optimizer(config.training, parts.model->layout(),
                                 parts.pool);
  const double norm = optimizer.GradientNorm(sum);
  std::vector<float> parameters = parts.Parameters();
  optimizer.Update(LearningRate(config.training, 1), 1, norm, sum, parameters);
  EXPECT_EQ(outcome.record.loss, loss / 64);
  EXPECT_EQ(outcome.record.load_balance_loss, balance / 2);
  EXPECT_EQ(outcome.record.z_loss, z / 2);
  EXPECT_EQ(outcome.record.gradient_norm, norm);
  EXPECT_EQ(outcome.record.temperature, Temperature(config, 1));
  EXPECT_TRUE(SameBits(whole.Parameters(), parameters));
}

TEST(TrainStep, ReportsCapsAndTime) {
  Config config = TinyConfig(RouterKind::kSoftFixed);
  config.router.mean_active_experts = 1.3;
  config.router.expansion_factor = 2;
  FreshStep fresh(config);
  const StepOutcome outcome = fresh.step.Run(0, 0.1);
  EXPECT_EQ(outcome.max_active, 3);              // ceil(2.6)
  EXPECT_EQ(outcome.most_active_in_a_token, 3);  // tau = 0.1 keeps the cap
  EXPECT_EQ(outcome.record.allocation, (std::vector<double>{1.3, 1.3}));
  EXPECT_GT(outcome.record.seconds, 0);
  EXPECT_NEAR(outcome.record.tokens_per_second * outcome.record.seconds, 64,
              64 * 4 * 0x1p-53);
}

TEST(TrainStep, ANanChangesNothingAndIsNamed) {
  for (const bool in_head : {false, true}) {
    FreshStep fresh(TinyConfig(RouterKind::kSoftFixed));
    const ParameterLayout& layout = fresh.model->layout();
    // A NaN in the router shows in the scores; one after it, only in the loss.
    const float nan[] = {std::numeric_limits<float>::quiet_NaN()};
    fresh.model->WriteParameters(
        nan, in_head ? layout.head_weight : layout.layers[1].router_weight + 3);
    const std::vector<float> before = fresh.Parameters();
    const std::string message =
        MessageOf<optimized::DivergedError>([&] { fresh.step.Run(7, 1.0); });
    EXPECT_TRUE(Says(message, "step 8", "learning_rate",
                     "or a lower training.clip_norm"));
    if (!in_head) {
      EXPECT_TRUE(Says(message, "layer 1", "expert 3"));
    }
    EXPECT_TRUE(SameBits(before, fresh.Parameters()));
    for (float v : fresh.updater->ReadSecondMoment()) ASSERT_EQ(v, 0);
  }
}

}  // namespace
}  // namespace softmoe::trainer
