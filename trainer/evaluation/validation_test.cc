// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/validation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/testing/file_test_util.h"
#include "optimized/communicator/in_process.h"
#include "optimized/initialize.h"
#include "optimized/model.h"
#include "trainer/testing/trainer_test_util.h"
#include "trainer/tokens/dataset.h"

namespace softmoe::trainer {
namespace {

TEST(Validate, CountsEveryTokenOnce) {
  // 5 sequences in groups of 2: the last group is half full.
  Config config = TinyConfig(RouterKind::kSoftFixed);
  config.training.eval_sequences = 5;
  FreshModel fresh(config);
  int polls = 0;
  const Validation all =
      Validate(*fresh.model, fresh.data, 1.1, 2.0, [&] { ++polls; });
  EXPECT_EQ(polls, 3);
  EXPECT_EQ(all.num_tokens, 5 * 16);
  ASSERT_EQ(all.active_histogram.size(), 2u);
  int64_t active = 0;
  for (int l = 0; l < 2; ++l) {
    const auto& histogram = all.active_histogram[l];
    EXPECT_EQ(std::accumulate(histogram.begin(), histogram.end(), int64_t{0}),
              5 * 16);
    const auto& load = all.tokens_per_expert[l];
    const int64_t routed =
        std::accumulate(load.begin(), load.end(), int64_t{0});
    EXPECT_EQ(all.layer_active_experts[l],
              static_cast<double>(routed) / (5 * 16));
    active += routed;
  }
  EXPECT_EQ(all.active_experts, static_cast<double>(active) / (2 * 5 * 16));

  // The loss is the mean over tokens, also one sequence at a time.
  std::vector<int32_t> inputs(16), targets(16);
  double sum = 0;
  for (int64_t s = 0; s < 5; ++s) {
    fresh.data.FillValidation(s, 1, inputs, targets);
    sum += fresh.model
               ->Forward(
                   {.num_sequences = 1, .inputs = inputs, .targets = targets},
                   {.temperature = 2.0, .tau = 1.1})
               .loss_sum;
  }
  // A token's loss does not depend on its batch: two orders of summation of 80
  // doubles, and a quotient.
  EXPECT_NEAR(all.loss, sum / 80, (79 + 1) * 0x1p-52 * all.loss);
}

TEST(Validate, TauAndTemperatureMatterToSoftRoutersOnly) {
  FreshModel soft(TinyConfig(RouterKind::kSoftLearned));
  const auto poll = [] {};
  const Validation base = Validate(*soft.model, soft.data, 1.1, 1.0, poll);
  EXPECT_NE(Validate(*soft.model, soft.data, 1.1, 5.0, poll).loss, base.loss);
  const Validation strict = Validate(*soft.model, soft.data, 1.6, 1.0, poll);
  EXPECT_LT(strict.active_experts, base.active_experts);
  EXPECT_EQ(
      Validate(*soft.model, soft.data, 1e6, 1.0, poll).zero_active_fraction,
      1.0);

  FreshModel sparse(TinyConfig(RouterKind::kSparse));
  const Validation one = Validate(*sparse.model, sparse.data, 0, 1.0, poll);
  const Validation five = Validate(*sparse.model, sparse.data, 0, 5.0, poll);
  ExpectSameValidation(one, five);
  EXPECT_EQ(one.active_experts, 2.0);
  EXPECT_EQ(one.zero_active_fraction, 0.0);
}

TEST(Validate, NoiseIsOff) {
  Config config = TinyConfig(RouterKind::kSoftFixed);
  FreshModel quiet(config);
  const auto poll = [] {};
  const Validation expected = Validate(*quiet.model, quiet.data, 1.1, 1, poll);
  config.router.noise_amplitude = 0.5;
  for (const NoiseKind kind :
       {NoiseKind::kInputJitter, NoiseKind::kLogitGauss}) {
    config.router.noise = kind;
    FreshModel noisy(config);
    ExpectSameValidation(expected,
                         Validate(*noisy.model, noisy.data, 1.1, 1, poll));
  }
}

// By hand from the counts n_i of each layer: with E experts, N = sum n_i and
// S = sum n_i^2, E^2 Var = E S - N^2. These are whole numbers, E = 4 and two
// layers scale without rounding, so every quotient and root is rounded as in
// the definition, and the numbers are the same.
TEST(Validate, LoadVarianceIsTheMeanOverLayers) {
  FreshModel fresh(TinyConfig(RouterKind::kSoftLearned));
  const Validation v = Validate(*fresh.model, fresh.data, 1.1, 1.0, [] {});
  ASSERT_EQ(v.tokens_per_expert.size(), 2u);
  std::vector<double> relative, cv, var_over_mean;
  for (const std::vector<int64_t>& counts : v.tokens_per_expert) {
    ASSERT_EQ(counts.size(), 4u);
    double n = 0, squares = 0;
    for (const int64_t tokens : counts) {
      n += static_cast<double>(tokens);
      squares += static_cast<double>(tokens * tokens);
    }
    const double spread = 4 * squares - n * n;
    relative.push_back(spread / (n * n));
    cv.push_back(std::sqrt(spread) / n);
    var_over_mean.push_back(spread / (4 * n));
  }
  ASSERT_NE(relative[0], relative[1]);  // otherwise one layer would do for both
  EXPECT_EQ(v.relative_load_variance, (relative[0] + relative[1]) / 2);
  EXPECT_EQ(v.load_cv, (cv[0] + cv[1]) / 2);
  EXPECT_EQ(v.load_var_over_mean, (var_over_mean[0] + var_over_mean[1]) / 2);
}

TEST(Validate, WholeSplitIsTheDefault) {
  Config config = TinyConfig(RouterKind::kSparse);
  config.training.eval_sequences = 0;
  FreshModel fresh(config);
  EXPECT_EQ(Validate(*fresh.model, fresh.data, 0, 1, [] {}).num_tokens,
            16 * fresh.data.num_validation_sequences());
  config.training.eval_sequences = int64_t{1} << 40;
  FreshModel greedy(config);
  EXPECT_EQ(Validate(*greedy.model, greedy.data, 0, 1, [] {}).num_tokens,
            16 * greedy.data.num_validation_sequences());
}

TEST(Validate, RanksShareTheGroupsAndHaveAllOfTheNumbers) {
  // 5 sequences in groups of 2: three groups, the last one half full.
  Config config = TinyConfig(RouterKind::kSoftLearned);
  config.training.eval_sequences = 5;
  FreshModel fresh(config);
  const Validation alone = Validate(*fresh.model, fresh.data, 1.1, 2.0, [] {});
  for (const int ranks : {1, 2, 3, 4}) {
    std::vector<Validation> of_rank(static_cast<size_t>(ranks));
    std::vector<int> polls(static_cast<size_t>(ranks));
    optimized::RunInProcessRanks(ranks, [&](optimized::Communicator& c) {
      const auto rank = static_cast<size_t>(c.rank());
      ThreadPool pool(1);
      const auto model = optimized::MakeModel(config, 2, pool);
      optimized::InitializeParameters(*model, 1, pool);
      of_rank[rank] =
          Validate(*model, fresh.data, 1.1, 2.0, c, [&] { ++polls[rank]; });
    });
    for (const Validation& validation : of_rank) {
      ExpectSameValidation(alone, validation);
    }
    for (const int count : polls) EXPECT_EQ(count, (3 + ranks - 1) / ranks);
  }
}

// Each rank sees every group once.
TEST(Validate, RanksObserveTheGroupsInOrder) {
  Config config = TinyConfig(RouterKind::kSparse);
  config.training.eval_sequences = 5;
  FreshModel fresh(config);
  std::vector<double> alone;
  Validate(
      *fresh.model, fresh.data, 0, 1, [] {},
      [&](std::span<const optimized::StepStats> groups) {
        ASSERT_EQ(groups.size(), 1u);
        alone.push_back(groups[0].loss_sum);
      });
  ASSERT_EQ(alone.size(), 3u);
  for (const int ranks : {2, 4}) {
    std::vector<std::vector<double>> of_rank(static_cast<size_t>(ranks));
    optimized::RunInProcessRanks(ranks, [&](optimized::Communicator& c) {
      ThreadPool pool(1);
      const auto model = optimized::MakeModel(config, 2, pool);
      optimized::InitializeParameters(*model, 1, pool);
      Validate(
          *model, fresh.data, 0, 1, c, [] {},
          [&](std::span<const optimized::StepStats> groups) {
            EXPECT_LE(groups.size(), static_cast<size_t>(ranks));
            for (const optimized::StepStats& stats : groups) {
              of_rank[static_cast<size_t>(c.rank())].push_back(stats.loss_sum);
            }
          });
    });
    for (const auto& seen : of_rank) EXPECT_EQ(seen, alone);
  }
}

TEST(Validate, NeverReturnsALossThatIsNone) {
  FreshModel fresh(TinyConfig(RouterKind::kSparse));
  // Placed after all routers, where only the loss can show it.
  const float nan[] = {std::numeric_limits<float>::quiet_NaN()};
  fresh.model->WriteParameters(nan, fresh.model->layout().head_weight);
  EXPECT_THROW(Validate(*fresh.model, fresh.data, 0, 1, [] {}),
               optimized::DivergedError);
}

}  // namespace
}  // namespace softmoe::trainer
