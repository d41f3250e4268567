// SPDX-License-Identifier: Apache-2.0
//
// What can be tested of the model without a second implementation: the same
// bits for any number of threads and any split of the statistics, consistency
// of its own counts, refusal of bad input. Values and gradients are compared
// with //reference in property_tests.
#include "optimized/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/philox.h"
#include "core/testing/config_test_util.h"
#include "core/testing/message_test_util.h"
#include "kernels/router.h"
#include "optimized/initialize.h"
#include "optimized/testing/ranked_training.h"

namespace softmoe::optimized {
namespace {

Config WithZLoss(RouterKind kind) {
  Config config = SmallConfig(kind);
  config.router.z_loss_coeff = 1e-3;
  return config;
}

struct Tokens {
  std::vector<int32_t> inputs, targets;

  Tokens(const Config& config, int64_t num_sequences) {
    const RandomKey key{3, RandomStream::kTestData, 0, 0};
    const int64_t n = num_sequences * config.model.sequence_length;
    for (int64_t t = 0; t < n; ++t) {
      const auto words = PhiloxWords(key, static_cast<uint64_t>(t));
      inputs.push_back(static_cast<int32_t>(words[0] % 61));
      targets.push_back(static_cast<int32_t>(words[1] % 61));
    }
  }
  Batch batch(int64_t num_sequences, int64_t first_token = 0) const {
    return {num_sequences, inputs, targets, first_token};
  }
};

struct Step {
  StepStats stats;
  std::vector<float> gradients;
};

Step RunStep(const Config& config, int threads, const RoutingState& routing,
             int64_t capacity_sequences = 4) {
  ThreadPool pool(threads);
  const auto model = MakeModel(config, capacity_sequences, pool);
  InitializeParameters(*model, 9, pool);
  const Tokens tokens(config, 4);
  Step step;
  step.gradients.assign(static_cast<size_t>(model->layout().total), NAN);
  step.stats = model->ForwardBackward(tokens.batch(4), routing, 1.0 / 76, 1.0,
                                      step.gradients);
  return step;
}

// The router's kernel on the scores of a pass, called as
// CollectSoftWeightRatios must call it: gates [tokens, max_active].
std::vector<float> GatesWithoutCutoff(const Config& config,
                                      const LayerAllocation& layer,
                                      double temperature,
                                      std::span<const float> scores,
                                      ThreadPool& pool) {
  const int64_t experts = config.model.num_experts;
  const int64_t n = static_cast<int64_t>(scores.size()) / experts;
  std::vector<float> gates(static_cast<size_t>(n * layer.max_active));
  std::vector<float> soft_weights(scores.size()), root(2 * n);
  std::vector<int32_t> num_active(n), selected(n * layer.max_active);
  std::vector<double> sums(experts),
      scratch(kernels::RouterScratch(n, experts));
  std::vector<int64_t> balance_counts(experts), active_counts(experts);
  int64_t bad_score = -1;
  kernels::RouterForward(
      {.shape = {.num_tokens = n,
                 .num_experts = experts,
                 .mode = kernels::RouterMode::kSoft,
                 .balance = kernels::BalanceBasis::kSoftWeights,
                 .mean_active = static_cast<float>(layer.mean_active),
                 .temperature = static_cast<float>(temperature),
                 .cutoff = 0,
                 .max_active = layer.max_active,
                 .balance_top = layer.balance_top,
                 .fallback_top1 = false},
       .scores = scores.data(),
       .soft_weights = soft_weights.data(),
       .root = root.data(),
       .num_active = num_active.data(),
       .selected = selected.data(),
       .gates = gates.data(),
       .probability_sums = sums.data(),
       .balance_counts = balance_counts.data(),
       .active_counts = active_counts.data(),
       .z_sum = nullptr,
       .bad_score = &bad_score,
       .scratch = scratch.data()},
      pool);
  EXPECT_EQ(bad_score, -1);
  return gates;
}

class ModelTest : public ::testing::TestWithParam<RouterKind> {
 protected:
  Config config_ = WithZLoss(GetParam());
  RoutingState routing_{.temperature = 1.3, .tau = 1.1, .noise = true};
};

INSTANTIATE_TEST_SUITE_P(Routers, ModelTest, ::testing::ValuesIn(kRouterKinds),
                         NameOfRouter);

TEST_P(ModelTest, GivesTheSameBitsForAnyNumberOfThreadsAndAnyCapacity) {
  for (const NoiseKind noise :
       {NoiseKind::kNone, NoiseKind::kInputJitter, NoiseKind::kLogitGauss}) {
    config_.router.noise = noise;
    config_.router.noise_amplitude = 0.05;
    const Step one = RunStep(config_, 1, routing_);
    for (const float g : one.gradients) ASSERT_TRUE(std::isfinite(g));
    for (const int threads : {2, 4}) {
      const Step more = RunStep(config_, threads, routing_, threads + 3);
      EXPECT_TRUE(SameStats(one.stats, more.stats)) << threads << " threads";
      EXPECT_EQ(one.gradients, more.gradients) << threads << " threads";
    }
  }
}

TEST_P(ModelTest, ForwardAloneSeesTheSameLossAndRouting) {
  ThreadPool pool(2);
  const auto model = MakeModel(config_, 4, pool);
  InitializeParameters(*model, 9, pool);
  const Tokens tokens(config_, 4);
  EXPECT_TRUE(SameStats(RunStep(config_, 2, routing_).stats,
                        model->Forward(tokens.batch(4), routing_)));
}

TEST_P(ModelTest, CountsAreConsistent) {
  const Step step = RunStep(config_, 2, routing_);
  ThreadPool pool(1);
  const auto model = MakeModel(config_, 1, pool);
  const auto allocations = model->Allocations(routing_);
  int64_t all_active = 0;
  for (size_t l = 0; l < step.stats.layers.size(); ++l) {
    const LayerStats& layer = step.stats.layers[l];
    int64_t tokens = 0, active = 0;
    for (size_t count = 0; count < layer.active_histogram.size(); ++count) {
      tokens += layer.active_histogram[count];
      active += static_cast<int64_t>(count) * layer.active_histogram[count];
      if (static_cast<int64_t>(count) > allocations[l].max_active) {
        EXPECT_EQ(layer.active_histogram[count], 0);
      }
    }
    EXPECT_EQ(tokens, step.stats.num_tokens);
    EXPECT_EQ(active,
              std::accumulate(layer.tokens_per_expert.begin(),
                              layer.tokens_per_expert.end(), int64_t{0}));
    all_active += active;
  }
  EXPECT_EQ(step.stats.MeanActiveExperts(),
            static_cast<double>(all_active) / (3.0 * 76));
  EXPECT_EQ((StepStats{.layers = {LayerStats()}}.MeanActiveExperts()), 0);
}

// Sequences see nothing of each other, and noise is keyed by global tokens: the
// loss of a batch is the sum of the losses of its sequences.
TEST_P(ModelTest, SequencesAreIndependentAndNoiseIsGlobal) {
  config_.router.noise = NoiseKind::kLogitGauss;
  config_.router.noise_amplitude = 0.3;
  ThreadPool pool(2);
  const auto model = MakeModel(config_, 4, pool);
  InitializeParameters(*model, 9, pool);
  const Tokens tokens(config_, 4);
  const double whole = model->Forward(tokens.batch(4), routing_).loss_sum;
  double sum = 0;
  for (int64_t s = 0; s < 4; ++s) {
    const auto part = [&](const std::vector<int32_t>& ids) {
      return std::span<const int32_t>(ids).subspan(s * 19, 19);
    };
    sum += model
               ->Forward({1, part(tokens.inputs), part(tokens.targets), s * 19},
                         routing_)
               .loss_sum;
  }
  // Equal token losses; two orders of summation of 76 doubles.
  EXPECT_NEAR(sum, whole, 76 * 0x1p-52 * whole);
}

TEST_P(ModelTest, NamesLayerTokenAndExpertOfABadScore) {
  ThreadPool pool(2);
  const auto model = MakeModel(config_, 4, pool);
  InitializeParameters(*model, 9, pool);
  const int64_t weight = model->layout().layers[1].router_weight;
  const float infinity[] = {std::numeric_limits<float>::infinity()};
  model->WriteParameters(infinity, weight + 3);
  const Tokens tokens(config_, 4);
  std::vector<float> gradients(static_cast<size_t>(model->layout().total));
  EXPECT_TRUE(Says(MessageOf<DivergedError>([&] {
                     model->ForwardBackward(tokens.batch(4, 1000), routing_, 1,
                                            1, gradients);
                   }),
                   "layer 1, token 1000 ", "expert 3", "inf"));
  EXPECT_THROW(model->Forward(tokens.batch(4), routing_), DivergedError);
  if (config_.router.kind != RouterKind::kSparse) {
    EXPECT_THROW(model->CollectSoftWeightRatios(tokens.batch(4), routing_),
                 DivergedError);
  }
}

TEST_P(ModelTest, RefusesTokensOutsideTheVocabularyAndPartialSequences) {
  ThreadPool pool(1);
  const auto model = MakeModel(config_, 4, pool);
  InitializeParameters(*model, 9, pool);
  for (const int32_t bad : {-1, 61}) {
    Tokens tokens(config_, 4);
    tokens.inputs[20] = bad;
    EXPECT_THROW(model->Forward(tokens.batch(4), routing_), DataError);
    tokens = Tokens(config_, 4);
    tokens.targets[75] = bad;
    EXPECT_THROW(model->Forward(tokens.batch(4), routing_), DataError);
  }
  Tokens tokens(config_, 4);
  tokens.targets.pop_back();
  EXPECT_THROW(model->Forward(tokens.batch(4), routing_), DataError);
  EXPECT_THROW(model->Forward(Tokens(config_, 5).batch(5), routing_),
               InternalError);
}

TEST(Model, RatiosAreThoseOfTheCappedSoftWeights) {
  Config config = WithZLoss(RouterKind::kSoftFixed);
  ThreadPool pool(2);
  const auto model = MakeModel(config, 4, pool);
  InitializeParameters(*model, 9, pool);
  const Tokens tokens(config, 4);
  RoutingState routing{.temperature = 5.0};
  const auto ratios = model->CollectSoftWeightRatios(tokens.batch(4), routing);
  ASSERT_EQ(ratios.size(), 3u * 76 * 3);  // layers, tokens, cap
  // With tau between two ratios, as many experts are active as lie above it.
  std::vector<float> sorted = ratios;
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  ASSERT_LT(sorted[middle - 1], sorted[middle]);
  // Only the first layer sees the same input as with tau = 0, so count there.
  routing.tau = 0.5 * (sorted[middle - 1] + sorted[middle]);
  const StepStats stats = model->Forward(tokens.batch(4), routing);
  int64_t above = 0, active = 0;
  for (size_t i = 0; i < 76 * 3; ++i) above += ratios[i] > routing.tau;
  for (const int64_t count : stats.layers[0].tokens_per_expert) active += count;
  EXPECT_EQ(active, above);
  EXPECT_THROW(MakeModel(WithZLoss(RouterKind::kSparse), 1, pool)
                   ->CollectSoftWeightRatios(tokens.batch(1), routing),
               InternalError);
}

// The layers' shares of the budget are unequal, and so are their caps: each
// weight is divided by its own layer's k_l/E, and tau is left out of the pass.
TEST(Model, RatiosAreDividedByTheirOwnLayersShareWithoutTau) {
  Config config = WithZLoss(RouterKind::kSoftLearned);
  config.router.expansion_factor = 1.6;  // caps 4, 2, 3
  ThreadPool pool(2);
  const auto model = MakeModel(config, 4, pool);
  InitializeParameters(*model, 9, pool);
  const std::vector<float> logits = {1.5f, -0.5f, 0.25f};
  model->WriteParameters(logits, model->layout().budget_logits);
  const Tokens tokens(config, 4);
  const RoutingState with_tau{.temperature = 1.5, .tau = 1.25};
  const auto ratios = model->CollectSoftWeightRatios(tokens.batch(4), with_tau);

  const auto allocations = ComputeAllocations(config, logits, 0);
  ASSERT_EQ(allocations[0].max_active, 4);
  ASSERT_EQ(allocations[1].max_active, 2);
  ASSERT_EQ(allocations[2].max_active, 3);
  size_t at = 0;
  for (int64_t l = 0; l < 3; ++l) {
    const LayerAllocation& layer = allocations[static_cast<size_t>(l)];
    const std::vector<float> gates =
        GatesWithoutCutoff(config, layer, with_tau.temperature,
                           model->LastRouting(l).scores, pool);
    for (const float gate : gates) {
      ASSERT_LT(at, ratios.size());
      // Only the division is left to round.
      EXPECT_EQ(ratios[at], static_cast<float>(gate / (layer.mean_active / 5)))
          << "layer " << l;
      ++at;
    }
    // tau would have left out some of them.
    const double cutoff = with_tau.tau * layer.mean_active / 5;
    EXPECT_TRUE(std::ranges::any_of(
        gates, [cutoff](float gate) { return 0 < gate && gate <= cutoff; }));
  }
  EXPECT_EQ(at, ratios.size());
}

// No weight reaches the cutoff: without fallback experts learn nothing and the
// MoE half is the identity; with it every token keeps one expert.
TEST(Model, FallbackDecidesWhatHappensToTokensWithoutExperts) {
  Config config = WithZLoss(RouterKind::kSoftFixed);
  const RoutingState routing{.temperature = 1.0, .tau = 100.0};
  const ParameterLayout layout(config);
  const Step none = RunStep(config, 2, routing);
  EXPECT_EQ(none.stats.MeanActiveExperts(), 0.0);
  for (const LayerOffsets& layer : layout.layers) {
    for (int64_t i = 0; i < 5 * 20 * 24; ++i) {
      ASSERT_EQ(none.gradients[layer.down_weight + i], 0.0f);
    }
  }
  config.router.fallback = Fallback::kTop1;
  const Step top1 = RunStep(config, 2, routing);
  EXPECT_EQ(top1.stats.MeanActiveExperts(), 1.0);
}

}  // namespace
}  // namespace softmoe::optimized
