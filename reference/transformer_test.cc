// SPDX-License-Identifier: Apache-2.0
//
// Laws of the whole model: values by hand and invariances. Its gradient is
// tested in property_tests/verify/gradients/model_dual_test.cc, and what it
// refuses in transformer_errors_test.cc.
#include "reference/transformer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "core/testing/bounded.h"
#include "core/testing/config_test_util.h"
#include "reference/decoder_block.h"
#include "reference/embedding.h"
#include "reference/flat_parameters.h"
#include "reference/lm_head.h"
#include "reference/rmsnorm.h"
#include "reference/testing/tiny_model.h"

namespace softmoe::reference {
namespace {

using testing::TinyConfig;
using testing::TinyParameters;
using testing::TinyRouting;
using testing::TinyTokens;

// The tolerance for sums taken in another order. The longest path through one
// layer of the tiny model has sums of 8, 8, 4, 6, 8, 8, 8, 5, 8, 12 and 5
// terms, the head 8 and 11: under 256 roundings in two layers forward and as
// many backward, half an ulp each. Norms (weights below 2, rms near 1), softmax
// and the soft top-k (scores of size 3, temperature above 1) amplify a relative
// error by less than 2 each, four times on that path: 256 * 16 ulp.
constexpr double kReordered = 4096 * kUlp;

std::vector<int32_t> SwapHalves(std::vector<int32_t> tokens) {
  std::rotate(tokens.begin(), tokens.begin() + tokens.size() / 2, tokens.end());
  return tokens;
}

TEST(Transformer, ZeroHeadGivesTheLogOfTheVocabulary) {
  for (const RouterKind kind : kRouterKinds) {
    const Config config = TinyConfig(kind);
    const ParameterLayout layout(config);
    Vector parameters = TinyParameters(config, 1);
    const ParameterTensor& head = TensorNamed(layout, "head_weight");
    parameters.segment(head.offset, head.size).setZero();
    const TinyTokens tokens(config, 2, 1);
    const GroupResult result =
        TransformerForward(config, parameters, tokens.Group(), TinyRouting());
    ASSERT_EQ(result.token_losses.size(), 12);
    for (const double loss : result.token_losses) {
      EXPECT_EQ(loss, std::log(11.0));
    }
    // Eleven additions and a product round.
    EXPECT_NEAR(result.loss_sum, 12 * std::log(11.0),
                12 / 2.0 * kUlp * 12 * std::log(11.0));
  }
}

// The model is its layers, put together here with every setting spelt out; none
// has its default value.
TEST(Transformer, IsItsLayersInOrder) {
  for (const RouterKind kind : kRouterKinds) {
    Config config = TinyConfig(kind);
    config.model.norm_epsilon = 0.01;
    config.router.fallback = Fallback::kTop1;
    config.router.noise = NoiseKind::kInputJitter;
    config.router.load_balance = LoadBalanceKind::kMegatron;
    const ParameterLayout layout(config);
    const Vector parameters = TinyParameters(config, 13);
    const TinyTokens tokens(config, 2, 13);
    const RoutingState routing = TinyRouting();
    const GroupResult result =
        TransformerForward(config, parameters, tokens.Group(), routing);
    const auto allocations = Allocations(config, parameters, routing);

    Matrix hidden = EmbeddingForward(
        tokens.inputs, ReadMatrix(parameters, layout.embedding, 11, 8));
    for (uint32_t l = 0; l < 2; ++l) {
      DecoderBlockSettings settings;
      settings.num_sequences = 2;
      settings.num_heads = 2;
      settings.rope_base = 100;
      settings.norm_epsilon = 0.01;
      settings.moe = {.router = {.kind = kind,
                                 .mean_active = allocations[l].mean_active,
                                 .temperature = 1.25,
                                 .cutoff = allocations[l].cutoff,
                                 .max_active = allocations[l].max_active,
                                 .fallback = Fallback::kTop1},
                      .noise = {.kind = NoiseKind::kInputJitter,
                                .amplitude = 0.1,
                                .seed = 7,
                                .step = 3,
                                .layer = l},
                      .first_token = 48,
                      .load_balance = LoadBalanceKind::kMegatron,
                      .aux_loss_coeff = 0.5,
                      .z_loss_coeff = 0.25};
      const DecoderBlockResult block = DecoderBlockForward(
          settings, ReadBlock(config.model, layout, l, parameters), hidden);
      hidden = block.out;
      EXPECT_EQ(result.layers[l].scores, block.saved.moe.scores);
      EXPECT_EQ(result.layers[l].balance.loss, block.saved.moe.balance.loss);
      EXPECT_EQ(result.layers[l].z_loss, block.saved.moe.z_loss);
    }
    const Matrix head_input = RmsNormForward(
        hidden, ReadMatrix(parameters, layout.final_norm, 8, 1), 0.01);
    EXPECT_EQ(result.token_losses,
              TokenLosses(LmHeadLogits(head_input,
                                       ReadMatrix(parameters,
                                                  layout.head_weight, 11, 8)),
                          tokens.targets));
  }
}

TEST(Transformer, LaterTokensDoNotChangeEarlierLosses) {
  for (const RouterKind kind : kRouterKinds) {
    Config config = TinyConfig(kind);
    config.router.noise = NoiseKind::kLogitGauss;
    const Vector parameters = TinyParameters(config, 2);
    TinyTokens tokens(config, 2, 2);
    const Vector before =
        TransformerForward(config, parameters, tokens.Group(), TinyRouting())
            .token_losses;
    tokens.inputs[4] = (tokens.inputs[4] + 1) % 11;  // in the first sequence
    const Vector after =
        TransformerForward(config, parameters, tokens.Group(), TinyRouting())
            .token_losses;
    EXPECT_EQ(after.head(4), before.head(4));
    EXPECT_NE(after[4], before[4]);
    EXPECT_NE(after[5], before[5]);
    EXPECT_EQ(after.tail(6), before.tail(6));  // the other sequence
  }
}

TEST(Transformer, OrderOfSequencesDoesNotMatter) {
  for (const RouterKind kind : kRouterKinds) {
    const Config config = TinyConfig(kind);  // no noise: it goes by position
    const Vector parameters = TinyParameters(config, 3);
    TinyTokens tokens(config, 2, 3);
    const GroupResultAndGradients a = TransformerLossAndGradients(
        config, parameters, tokens.Group(), TinyRouting(), 0.1, 0.3);
    tokens.inputs = SwapHalves(tokens.inputs);
    tokens.targets = SwapHalves(tokens.targets);
    const GroupResultAndGradients b = TransformerLossAndGradients(
        config, parameters, tokens.Group(), TinyRouting(), 0.1, 0.3);
    EXPECT_EQ(a.result.token_losses.head(6), b.result.token_losses.tail(6));
    EXPECT_EQ(a.result.token_losses.tail(6), b.result.token_losses.head(6));
    for (int l = 0; l < 2; ++l) {
      // On either side a sum over 12 tokens and its quotient, half an ulp each;
      // for the balance loss the dot product of 5 and its factor.
      EXPECT_NEAR(a.result.layers[l].balance.loss,
                  b.result.layers[l].balance.loss,
                  (12 + 5 + 1) * kUlp * b.result.layers[l].balance.loss);
      EXPECT_NEAR(a.result.layers[l].z_loss, b.result.layers[l].z_loss,
                  12 * kUlp * b.result.layers[l].z_loss);
    }
    EXPECT_LE((a.gradients - b.gradients).norm(),
              kReordered * a.gradients.norm());
  }
}

// A group is its sequences: each alone has the same token losses, noise
// included, since noise goes by the global token index.
TEST(Transformer, SequencesDoNotSeeEachOther) {
  Config config = TinyConfig(RouterKind::kSoftLearned);
  config.router.noise = NoiseKind::kInputJitter;
  const Vector parameters = TinyParameters(config, 4);
  const TinyTokens tokens(config, 3, 4);
  const BalanceGroup group = tokens.Group();
  const Vector all =
      TransformerForward(config, parameters, group, TinyRouting()).token_losses;
  for (int s = 0; s < 3; ++s) {
    const BalanceGroup alone = {.num_sequences = 1,
                                .inputs = group.inputs.subspan(6 * s, 6),
                                .targets = group.targets.subspan(6 * s, 6),
                                .first_token = group.first_token + 6 * s};
    EXPECT_EQ(TransformerForward(config, parameters, alone, TinyRouting())
                  .token_losses,
              all.segment(6 * s, 6));
  }
}

TEST(Transformer, NoiseIsKeyedByTokenStepAndSeedAndCanBeSwitchedOff) {
  for (const NoiseKind noise :
       {NoiseKind::kInputJitter, NoiseKind::kLogitGauss}) {
    Config config = TinyConfig(RouterKind::kSoftFixed);
    config.router.noise = noise;
    const Vector parameters = TinyParameters(config, 5);
    const TinyTokens tokens(config, 2, 5);
    auto scores = [&](const Config& c, const BalanceGroup& group,
                      const RoutingState& routing) -> Matrix {
      return TransformerForward(c, parameters, group, routing).layers[0].scores;
    };
    const RoutingState routing = TinyRouting();
    const Matrix base = scores(config, tokens.Group(), routing);
    EXPECT_EQ(scores(config, tokens.Group(), routing), base);
    BalanceGroup later = tokens.Group();
    later.first_token += 12;
    EXPECT_NE(scores(config, later, routing), base);
    RoutingState other = routing;
    other.step = 4;
    EXPECT_NE(scores(config, tokens.Group(), other), base);
    Config reseeded = config;
    reseeded.training.seed = 8;
    EXPECT_NE(scores(reseeded, tokens.Group(), routing), base);
    Config silent = config;
    silent.router.noise = NoiseKind::kNone;
    other = routing;
    other.noise = false;
    EXPECT_EQ(scores(config, tokens.Group(), other),
              scores(silent, tokens.Group(), routing));
  }
}

// A token without an active expert passes through the residual stream: with a
// cutoff that nothing reaches, experts that output nothing change nothing.
TEST(Transformer, TokensWithoutExpertsPassThrough) {
  const Config config = TinyConfig(RouterKind::kSoftLearned);
  const ParameterLayout layout(config);
  const Vector parameters = TinyParameters(config, 6);
  Vector without = parameters;
  for (const LayerOffsets& layer : layout.layers) {
    without
        .segment(layer.down_weight, config.model.num_experts *
                                        config.model.d_ffn *
                                        config.model.d_model)
        .setZero();
  }
  const TinyTokens tokens(config, 2, 6);
  RoutingState routing = TinyRouting();
  routing.tau = 1e9;
  const GroupResultAndGradients off = TransformerLossAndGradients(
      config, parameters, tokens.Group(), routing, 1, 1);
  EXPECT_EQ(off.result.token_losses,
            TransformerForward(config, without, tokens.Group(), TinyRouting())
                .token_losses);
  for (int l = 0; l < 2; ++l) {
    const std::string prefix = "layers." + std::to_string(l) + ".";
    EXPECT_EQ(off.result.layers[l].routing.active.count(), 0);
    EXPECT_EQ(TensorElements(TensorNamed(layout, prefix + "gate_up_weight"),
                             off.gradients)
                  .norm(),
              0);
    // The load-balancing loss still trains the router.
    EXPECT_GT(TensorElements(TensorNamed(layout, prefix + "router_weight"),
                             off.gradients)
                  .norm(),
              0);
  }
  EXPECT_EQ(TensorElements(TensorNamed(layout, "budget_logits"), off.gradients)
                .norm(),
            0);
}

TEST(Transformer, ExpertsAreExchangeable) {
  for (const RouterKind kind : kRouterKinds) {
    const Config config = TinyConfig(kind);
    const ParameterLayout layout(config);
    const Vector parameters = TinyParameters(config, 7);
    const std::vector<int> order = {3, 1, 4, 0, 2};
    Vector renamed = parameters;
    for (int64_t l = 0; l < config.model.num_layers; ++l) {
      DecoderBlockWeights block =
          ReadBlock(config.model, layout, l, parameters);
      const MoeLayerWeights old = block.moe;
      block.moe.router_weight = old.router_weight(Eigen::all, order);
      for (size_t e = 0; e < order.size(); ++e) {
        block.moe.gate_up_weight[e] = old.gate_up_weight[order[e]];
        block.moe.down_weight[e] = old.down_weight[order[e]];
      }
      WriteBlock(block, layout, l, &renamed);
    }
    const TinyTokens tokens(config, 2, 7);
    const GroupResult a =
        TransformerForward(config, parameters, tokens.Group(), TinyRouting());
    const GroupResult b =
        TransformerForward(config, renamed, tokens.Group(), TinyRouting());
    EXPECT_LE((a.token_losses - b.token_losses).norm(),
              kReordered * a.token_losses.norm());
    EXPECT_NEAR(a.Objective(1, 1), b.Objective(1, 1),
                kReordered * a.Objective(1, 1));
  }
}

// With equal budget logits every layer gets K/L = k: SoftMoE is SoftMoE*.
TEST(Transformer, EqualBudgetLogitsGiveTheFixedRouter) {
  const Config learned = TinyConfig(RouterKind::kSoftLearned);
  const Config fixed = TinyConfig(RouterKind::kSoftFixed);
  const ParameterLayout layout(learned);
  Vector parameters = TinyParameters(learned, 8);
  parameters.tail(2).setConstant(0.3);
  const TinyTokens tokens(learned, 2, 8);
  const GroupResultAndGradients a = TransformerLossAndGradients(
      learned, parameters, tokens.Group(), TinyRouting(), 1, 1);
  const GroupResultAndGradients b =
      TransformerLossAndGradients(fixed, parameters.head(layout.total - 2),
                                  tokens.Group(), TinyRouting(), 1, 1);
  EXPECT_LE((a.result.token_losses - b.result.token_losses).norm(),
            kReordered * b.result.token_losses.norm());
  EXPECT_LE((a.gradients.head(layout.total - 2) - b.gradients).norm(),
            kReordered * b.gradients.norm());
}

TEST(Transformer, GradientIsLinearInItsScales) {
  const Config config = TinyConfig(RouterKind::kSoftLearned);
  const Vector parameters = TinyParameters(config, 9);
  const TinyTokens tokens(config, 2, 9);
  auto gradients = [&](double loss_scale, double group_scale) -> Vector {
    return TransformerLossAndGradients(config, parameters, tokens.Group(),
                                       TinyRouting(), loss_scale, group_scale)
        .gradients;
  };
  const Vector loss = gradients(1, 0), auxiliary = gradients(0, 1);
  EXPECT_GT(loss.norm(), 0);
  EXPECT_GT(auxiliary.norm(), 0);
  EXPECT_LE((gradients(0.7, -3) - 0.7 * loss + 3 * auxiliary).norm(),
            kReordered * (loss.norm() + auxiliary.norm()));
}

// L = 2, k = 1.5: K = 3. eta = (0, ln 3): shares 1/4, 3/4; k_l = 1.25, 1.75.
TEST(Allocations, MatchHandComputedValues) {
  Config config = TinyConfig(RouterKind::kSoftLearned);
  config.router.expansion_factor = 2;
  Vector parameters = TinyParameters(config, 10);
  parameters.tail(2) << 0, std::log(3.0);
  const RoutingState routing = {.tau = 2};
  const auto learned = Allocations(config, parameters, routing);
  ASSERT_EQ(learned.size(), 2u);
  EXPECT_NEAR(learned[0].mean_active, 1.25, 8 * kUlp);
  EXPECT_NEAR(learned[1].mean_active, 1.75, 8 * kUlp);
  EXPECT_NEAR(learned[0].cutoff, 2 * 1.25 / 5, 8 * kUlp);
  EXPECT_EQ(learned[0].max_active, 3);  // ceil(2.5)
  EXPECT_EQ(learned[1].max_active, 4);  // ceil(3.5)

  config.router.kind = RouterKind::kSoftFixed;
  const auto fixed = Allocations(config, TinyParameters(config, 10), routing);
  EXPECT_EQ(fixed[1].mean_active, 1.5);
  EXPECT_EQ(fixed[1].cutoff, 2 * 1.5 / 5);
  EXPECT_EQ(fixed[1].max_active, 3);  // ceil(3 - 1e-6)
  EXPECT_THROW(Allocations(config, Vector(), routing), InternalError);

  config.router.kind = RouterKind::kSparse;
  config.router.mean_active_experts = 2;
  const auto sparse = Allocations(config, TinyParameters(config, 10), routing);
  EXPECT_EQ(sparse[0].max_active, 2);
  EXPECT_EQ(sparse[0].cutoff, 0);
  config.router.mean_active_experts = 1.5;
  EXPECT_THROW(Allocations(config, TinyParameters(config, 10), routing),
               InternalError);
}

TEST(Transformer, ReplayOfItsOwnSelectionChangesNothing) {
  for (const RouterKind kind : kRouterKinds) {
    const Config config = TinyConfig(kind);
    const Vector parameters = TinyParameters(config, 11);
    const TinyTokens tokens(config, 2, 11);
    const GroupResultAndGradients own = TransformerLossAndGradients(
        config, parameters, tokens.Group(), TinyRouting(), 1, 1);
    std::vector<RoutingReplay> replay;
    for (const LayerRouting& layer : own.result.layers) {
      replay.push_back({layer.routing.active, layer.balance.fractions});
    }
    const GroupResultAndGradients again = TransformerLossAndGradients(
        config, parameters, tokens.Group(), TinyRouting(), 1, 1, replay);
    EXPECT_EQ(again.result.token_losses, own.result.token_losses);
    EXPECT_EQ(again.result.Objective(1, 1), own.result.Objective(1, 1));
    EXPECT_EQ(again.gradients, own.gradients);
    replay[0].active.setConstant(true);
    EXPECT_NE(TransformerForward(config, parameters, tokens.Group(),
                                 TinyRouting(), replay)
                  .loss_sum,
              own.result.loss_sum);
    replay.pop_back();
    EXPECT_THROW(TransformerForward(config, parameters, tokens.Group(),
                                    TinyRouting(), replay),
                 InternalError);
  }
}

}  // namespace
}  // namespace softmoe::reference
