// SPDX-License-Identifier: Apache-2.0
#include "reference/moe_layer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "reference/expert.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference {
namespace {

using testing::RandomMatrix;

constexpr int kTokens = 7, kDModel = 6, kExperts = 4, kDFfn = 5;

MoeLayerWeights RandomWeights(uint64_t seed) {
  MoeLayerWeights weights;
  weights.router_weight = RandomMatrix(kDModel, kExperts, seed, 1, 0.6);
  for (uint32_t e = 0; e < kExperts; ++e) {
    weights.gate_up_weight.push_back(
        RandomMatrix(kDModel, 2 * kDFfn, seed, 10 + e, 0.4));
    weights.down_weight.push_back(
        RandomMatrix(kDFfn, kDModel, seed, 20 + e, 0.4));
  }
  return weights;
}

MoeLayerSettings Settings(RouterKind kind, LoadBalanceKind load_balance,
                          NoiseKind noise = NoiseKind::kNone) {
  MoeLayerSettings settings;
  settings.router.kind = kind;
  settings.router.mean_active = kind == RouterKind::kSparse ? 2 : 1.5;
  settings.router.temperature = 0.8;
  settings.router.cutoff = 0.4;
  settings.router.max_active = 2;
  settings.noise = {
      .kind = noise, .amplitude = 0.2, .seed = 3, .step = 1, .layer = 4};
  settings.first_token = 21;
  settings.load_balance = load_balance;
  settings.aux_loss_coeff = 0.7;
  settings.z_loss_coeff = 0.3;
  return settings;
}

std::vector<MoeLayerSettings> AllSettings() {
  std::vector<MoeLayerSettings> all;
  for (const RouterKind kind : {RouterKind::kSparse, RouterKind::kSoftFixed}) {
    for (const LoadBalanceKind balance :
         {LoadBalanceKind::kMegatron, LoadBalanceKind::kSoft}) {
      for (const NoiseKind noise : {NoiseKind::kNone, NoiseKind::kInputJitter,
                                    NoiseKind::kLogitGauss}) {
        all.push_back(Settings(kind, balance, noise));
      }
    }
  }
  return all;
}

// The definition, token by token. The router sees the noise, the experts do
// not.
TEST(MoeLayer, IsTheGatedSumOfTheActiveExperts) {
  const Matrix hidden = RandomMatrix(kTokens, kDModel, 1, 99);
  const MoeLayerWeights weights = RandomWeights(1);
  for (const MoeLayerSettings& settings : AllSettings()) {
    const MoeLayerResult result = MoeLayerForward(settings, weights, hidden);
    for (int t = 0; t < kTokens; ++t) {
      Matrix expected = Matrix::Zero(1, kDModel);
      for (int e = 0; e < kExperts; ++e) {
        if (!result.saved.routing.active(t, e)) continue;
        expected += result.saved.routing.gates(t, e) *
                    ExpertForward(hidden.row(t), weights.gate_up_weight[e],
                                  weights.down_weight[e]);
      }
      EXPECT_EQ(result.out.row(t), expected.row(0));
    }
  }
}

TEST(MoeLayer, TokenWithoutActiveExpertsGetsZeroUnlessItFallsBack) {
  const Matrix hidden = RandomMatrix(kTokens, kDModel, 2, 99);
  const MoeLayerWeights weights = RandomWeights(2);
  MoeLayerSettings settings =
      Settings(RouterKind::kSoftFixed, LoadBalanceKind::kSoft);
  settings.router.cutoff = 1;  // no soft weight is above
  const MoeLayerResult none = MoeLayerForward(settings, weights, hidden);
  EXPECT_EQ(none.out, Matrix::Zero(kTokens, kDModel));
  EXPECT_EQ(none.saved.balance.fractions, Vector::Constant(kExperts, 0.25));
  settings.router.fallback = Fallback::kTop1;
  const MoeLayerResult top = MoeLayerForward(settings, weights, hidden);
  for (int t = 0; t < kTokens; ++t) {
    EXPECT_EQ(top.saved.routing.active.row(t).count(), 1);
    EXPECT_GT(top.out.row(t).norm(), 0);
  }
}

TEST(MoeLayer, ExpertsWithoutTokensReceiveNoGradientButTheirScoresDo) {
  const Matrix hidden = RandomMatrix(kTokens, kDModel, 3, 99);
  const MoeLayerWeights weights = RandomWeights(3);
  MoeLayerSettings settings =
      Settings(RouterKind::kSoftFixed, LoadBalanceKind::kSoft);
  settings.aux_loss_coeff = 0;
  settings.z_loss_coeff = 0;
  MoeLayerSaved saved = MoeLayerForward(settings, weights, hidden).saved;
  RoutingReplay replay{saved.routing.active, saved.balance.fractions};
  replay.active.col(2).setConstant(false);
  replay.active.col(0).setConstant(true);
  saved = MoeLayerForward(settings, weights, hidden, &replay).saved;
  const MoeLayerGradients gradients =
      MoeLayerBackward(settings, weights, hidden, saved,
                       RandomMatrix(kTokens, kDModel, 3, 98), 1);
  EXPECT_EQ(gradients.d_weights.gate_up_weight[2],
            Matrix::Zero(kDModel, 2 * kDFfn));
  EXPECT_EQ(gradients.d_weights.down_weight[2], Matrix::Zero(kDFfn, kDModel));
  EXPECT_GT(gradients.d_weights.gate_up_weight[0].norm(), 0);
  EXPECT_GT(gradients.d_weights.router_weight.col(2).norm(), 0);
}

TEST(MoeLayer, TokensAreIndependentExceptInTheAuxiliaryLosses) {
  const Matrix hidden = RandomMatrix(kTokens, kDModel, 5, 99);
  const MoeLayerWeights weights = RandomWeights(5);
  for (MoeLayerSettings settings : AllSettings()) {
    const MoeLayerResult all = MoeLayerForward(settings, weights, hidden);
    for (int t = 0; t < kTokens; ++t) {
      MoeLayerSettings alone = settings;
      alone.first_token += t;  // the same token as far as noise goes
      EXPECT_EQ(MoeLayerForward(alone, weights, hidden.row(t)).out.row(0),
                all.out.row(t));
    }
  }
}

TEST(MoeLayer, ReplayOfAnotherSelectionTakesItsChoicesButNotItsNumbers) {
  const Matrix hidden = RandomMatrix(kTokens, kDModel, 7, 99);
  const MoeLayerWeights weights = RandomWeights(7);
  for (const MoeLayerSettings& settings : AllSettings()) {
    const MoeLayerResult own = MoeLayerForward(settings, weights, hidden);
    RoutingReplay replay;
    replay.active = BoolMatrix::Constant(kTokens, kExperts, false);
    replay.active.col(1).setConstant(true);  // every token to expert 1
    replay.active(0, 3) = true;
    const MoeLayerSaved replayed =
        MoeLayerForward(settings, weights, hidden, &replay).saved;
    EXPECT_EQ(replayed.routing.soft_weights, own.saved.routing.soft_weights);
    EXPECT_EQ(replayed.routing.active, replay.active);
    EXPECT_EQ(replayed.routing.gates.col(1),
              own.saved.routing.soft_weights.col(1));
    EXPECT_EQ(replayed.routing.gates(1, 3), 0);
    const bool counts_active = settings.router.kind == RouterKind::kSparse ||
                               settings.load_balance == LoadBalanceKind::kSoft;
    EXPECT_EQ(replayed.balance.fractions[1],
              counts_active ? 7.0 / 8 : own.saved.balance.fractions[1]);
  }
}

TEST(MoeLayer, SparseAlwaysUsesMegatronsReading) {
  const Matrix hidden = RandomMatrix(kTokens, kDModel, 8, 99);
  const MoeLayerWeights weights = RandomWeights(8);
  const MoeLayerResult soft = MoeLayerForward(
      Settings(RouterKind::kSparse, LoadBalanceKind::kSoft), weights, hidden);
  const MoeLayerResult megatron =
      MoeLayerForward(Settings(RouterKind::kSparse, LoadBalanceKind::kMegatron),
                      weights, hidden);
  EXPECT_EQ(soft.saved.balance.loss, megatron.saved.balance.loss);
  EXPECT_NE(
      MoeLayerForward(Settings(RouterKind::kSoftFixed, LoadBalanceKind::kSoft),
                      weights, hidden)
          .saved.balance.loss,
      MoeLayerForward(
          Settings(RouterKind::kSoftFixed, LoadBalanceKind::kMegatron), weights,
          hidden)
          .saved.balance.loss);
}

TEST(MoeLayer, NonFiniteScoresAreRefusedByTokenAndExpert) {
  MoeLayerWeights weights = RandomWeights(10);
  weights.router_weight(0, 2) = std::nan("");
  Matrix hidden = RandomMatrix(kTokens, kDModel, 10, 99);
  EXPECT_TRUE(Says(MessageOf<NumericsError>([&] {
                     MoeLayerForward(Settings(RouterKind::kSoftFixed,
                                              LoadBalanceKind::kSoft),
                                     weights, hidden);
                   }),
                   "token 0, expert 2"));
}

TEST(MoeLayer, RefusesShapesThatDoNotFit) {
  const MoeLayerSettings settings =
      Settings(RouterKind::kSparse, LoadBalanceKind::kSoft);
  const MoeLayerWeights weights = RandomWeights(11);
  const Matrix hidden = RandomMatrix(kTokens, kDModel, 11, 99);
  EXPECT_THROW(MoeLayerForward(settings, weights, hidden.leftCols(5)),
               InternalError);
  MoeLayerWeights few = weights;
  few.down_weight.pop_back();
  EXPECT_THROW(MoeLayerForward(settings, few, hidden), InternalError);
  MoeLayerWeights narrow = weights;
  narrow.down_weight[0] = RandomMatrix(kDFfn, kDModel - 1, 11, 98);
  EXPECT_THROW(MoeLayerForward(settings, narrow, hidden), InternalError);
  const RoutingReplay replay{BoolMatrix::Constant(kTokens, 3, true), {}};
  EXPECT_THROW(MoeLayerForward(settings, weights, hidden, &replay),
               InternalError);
  const MoeLayerSaved saved = MoeLayerForward(settings, weights, hidden).saved;
  EXPECT_THROW(
      MoeLayerBackward(settings, weights, hidden, saved, hidden.topRows(2), 1),
      InternalError);
  MoeLayerWeights many = weights;
  many.down_weight.push_back(weights.down_weight[0]);
  EXPECT_THROW(MoeLayerBackward(settings, many, hidden, saved, hidden, 1),
               InternalError);
}

}  // namespace
}  // namespace softmoe::reference
