// SPDX-License-Identifier: Apache-2.0
#include "reference/router.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/bounded.h"
#include "core/testing/message_test_util.h"
#include "reference/lapsum.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference {
namespace {

using testing::RandomMatrix;

std::vector<int> ActiveOf(const RouterSaved& saved, int64_t token) {
  std::vector<int> active;
  for (int e = 0; e < saved.active.cols(); ++e) {
    if (saved.active(token, e)) active.push_back(e);
  }
  return active;
}

RouterSettings Soft(double mean_active, double temperature, double tau,
                    int64_t num_experts, double expansion_factor) {
  return {.kind = RouterKind::kSoftLearned,
          .mean_active = mean_active,
          .temperature = temperature,
          .cutoff = Cutoff(tau, mean_active, num_experts),
          .max_active = MaxActive(expansion_factor, mean_active, num_experts)};
}

// --- sparse --------------------------------------------------------------

TEST(SparseRouter, KeepsTheLargestSoftmaxValuesUnnormalised) {
  Matrix scores(1, 4);
  scores << std::log(1.0), std::log(4.0), std::log(2.0), std::log(3.0);
  const RouterSaved saved =
      RouterForward({.kind = RouterKind::kSparse, .max_active = 2}, scores);
  EXPECT_EQ(ActiveOf(saved, 0), (std::vector<int>{1, 3}));
  EXPECT_NEAR(saved.gates(0, 1), 0.4, 8 * kDoubleUnit);
  EXPECT_NEAR(saved.gates(0, 3), 0.3, 8 * kDoubleUnit);
  EXPECT_EQ(saved.gates(0, 0), 0);
  EXPECT_EQ(saved.gates(0, 2), 0);
  EXPECT_NEAR(saved.soft_weights.row(0).sum(), 1, 4 * kDoubleUnit);
}

TEST(SparseRouter, TiesGoToTheLowerExpert) {
  Matrix scores(2, 5);
  scores << 1, 2, 2, 2, 0,  //
      0, 0, 0, 0, 0;
  const RouterSaved saved =
      RouterForward({.kind = RouterKind::kSparse, .max_active = 2}, scores);
  EXPECT_EQ(ActiveOf(saved, 0), (std::vector<int>{1, 2}));
  EXPECT_EQ(ActiveOf(saved, 1), (std::vector<int>{0, 1}));
}

// There are enough equal scores to expose an unstable sort.
TEST(SparseRouter, TiesOfManyExpertsGoToTheLowerOnes) {
  Matrix scores = Matrix::Zero(1, 200);
  scores(0, 150) = 1;
  const RouterSaved saved =
      RouterForward({.kind = RouterKind::kSparse, .max_active = 4}, scores);
  EXPECT_EQ(ActiveOf(saved, 0), (std::vector<int>{0, 1, 2, 150}));
}

// --- soft: which experts are active --------------------------------------

TEST(SoftRouter, GatesAreTheLapSumWeightsOfTheActiveExperts) {
  const Matrix scores = RandomMatrix(20, 16, 99, 4);
  const RouterSettings settings = Soft(1.5, 0.7, 1.2, 16, 2);
  const RouterSaved saved = RouterForward(settings, scores);
  int active = 0, cut_off = 0, capped = 0;
  for (int64_t t = 0; t < 20; ++t) {
    const LapSum solution = SolveLapSum(scores.row(t), 1.5, 0.7);
    for (int64_t e = 0; e < 16; ++e) {
      EXPECT_EQ(saved.soft_weights(t, e), solution.weights[e]);
      // Rank by score, by definition: how many are larger.
      int64_t rank = 0;
      for (int64_t other = 0; other < 16; ++other) {
        rank += scores(t, other) > scores(t, e);
      }
      const bool above = solution.weights[e] > settings.cutoff;
      const bool expected = above && rank < settings.max_active;
      EXPECT_EQ(saved.active(t, e), expected) << t << " " << e;
      EXPECT_EQ(saved.gates(t, e), expected ? solution.weights[e] : 0);
      active += expected;
      cut_off += !above;
      capped += above && !expected;
    }
  }
  EXPECT_GT(active, 0);
  EXPECT_GT(cut_off, 0);
  EXPECT_GT(capped, 0);
}

// Strictly greater: an expert exactly at the cutoff is not active.
TEST(SoftRouter, CutoffIsStrict) {
  Matrix scores = Matrix::Zero(1, 4);
  RouterSettings settings = Soft(1, 1, 1, 4, 4);
  const double weight = RouterForward(settings, scores).soft_weights(0, 0);
  settings.cutoff = weight;
  EXPECT_EQ(RouterForward(settings, scores).active.count(), 0);
  settings.cutoff = std::nextafter(weight, 0.0);
  EXPECT_EQ(RouterForward(settings, scores).active.count(), 4);
}

TEST(SoftRouter, CapKeepsTheLargestScoresAndBreaksTiesByIndex) {
  Matrix scores(2, 6);
  scores << 1, 1, 1, 1, 1, 1,  //
      0, 2, 1, 2, 1, 1;
  RouterSettings settings = Soft(2, 5, 0, 6, 1.5);
  EXPECT_EQ(settings.max_active, 3);
  const RouterSaved saved = RouterForward(settings, scores);
  EXPECT_EQ(ActiveOf(saved, 0), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(ActiveOf(saved, 1), (std::vector<int>{1, 2, 3}));
}

TEST(SoftRouter, FallbackKeepsTheBestExpertOfATokenThatHasNone) {
  Matrix scores(2, 4);
  scores << 0.1, 0.2, 0.2, 0,  // nearly uniform: no expert above 2 k/E
      0, 9, 0, 0;              // one expert far above
  RouterSettings settings = Soft(1, 1, 2, 4, 2);
  const RouterSaved none = RouterForward(settings, scores);
  EXPECT_EQ(ActiveOf(none, 0), (std::vector<int>{}));
  EXPECT_EQ(ActiveOf(none, 1), (std::vector<int>{1}));
  EXPECT_EQ(none.gates.row(0).sum(), 0);
  settings.fallback = Fallback::kTop1;
  const RouterSaved top1 = RouterForward(settings, scores);
  EXPECT_EQ(ActiveOf(top1, 0), (std::vector<int>{1}));  // ties: lower index
  EXPECT_EQ(top1.gates(0, 1), top1.soft_weights(0, 1));
  EXPECT_EQ(ActiveOf(top1, 1), (std::vector<int>{1}));
  // The fallback's expert gets its gradient like an active one.
  const RouterGradients gradients =
      RouterBackward(settings, scores, top1, Matrix::Ones(2, 4));
  EXPECT_GT(gradients.d_scores(0, 1), 0);
  EXPECT_LT(gradients.d_scores(0, 2), 0);
}

// The mean weight is k_l/num_experts.
TEST(Cutoff, IsTauTimesTheMeanWeight) {
  EXPECT_EQ(Cutoff(1.5, 2, 32), 0.09375);
  EXPECT_EQ(Cutoff(2, 1.5, 4), 0.75);
  EXPECT_EQ(Cutoff(1, 3, 3), 1);
  EXPECT_EQ(Cutoff(0, 1.5, 4), 0);
}

TEST(MaxActive, IsTheCeilingWithALittleSlack) {
  EXPECT_EQ(MaxActive(2, 1.5, 32), 3);
  EXPECT_EQ(MaxActive(2, 1.5000001, 32), 3);  // within the slack of 1e-6
  EXPECT_EQ(MaxActive(2, 1.500001, 32), 4);
  EXPECT_EQ(MaxActive(4, 1, 32), 4);
  EXPECT_EQ(MaxActive(4, 1, 3), 3);
  EXPECT_EQ(MaxActive(0.1, 1, 32), 1);
  EXPECT_EQ(MaxActive(1, 1e-9, 32), 1);
}

// --- soft: gradients with the active set frozen --------------------------

TEST(SoftRouter, SoftWeightsAreGatesOfExpertsThatAreAllActive) {
  const Matrix scores = RandomMatrix(4, 8, 99, 10),
               d_gates = RandomMatrix(4, 8, 99, 11);
  const RouterSettings settings = Soft(1.5, 1, 0, 8, 8);
  const RouterSaved saved = RouterForward(settings, scores);
  ASSERT_EQ(saved.active.count(), 4 * 8);
  EXPECT_EQ(SoftWeightsBackward(settings, scores, d_gates),
            RouterBackward(settings, scores, saved, d_gates).d_scores);
}

// d_gates of inactive experts is not read, and yet their scores get gradient.
TEST(SoftRouter, InactiveExpertsAffectTheirScoresOnly) {
  const Matrix scores = RandomMatrix(6, 8, 99, 50);
  const RouterSettings settings = Soft(1.5, 1, 1.2, 8, 2);
  const RouterSaved saved = RouterForward(settings, scores);
  Matrix d_gates = RandomMatrix(6, 8, 99, 51);
  const RouterGradients before =
      RouterBackward(settings, scores, saved, d_gates);
  for (int64_t t = 0; t < 6; ++t) {
    for (int64_t e = 0; e < 8; ++e) {
      if (!saved.active(t, e)) d_gates(t, e) = std::nan("");
    }
  }
  const RouterGradients after =
      RouterBackward(settings, scores, saved, d_gates);
  EXPECT_EQ(before.d_scores, after.d_scores);
  EXPECT_EQ(before.d_mean_active, after.d_mean_active);
  bool inactive_has_gradient = false;
  for (int64_t t = 0; t < 6; ++t) {
    for (int64_t e = 0; e < 8; ++e) {
      inactive_has_gradient =
          inactive_has_gradient ||
          (!saved.active(t, e) && before.d_scores(t, e) != 0);
    }
  }
  EXPECT_TRUE(inactive_has_gradient);
}

// --- bad inputs ----------------------------------------------------------

TEST(RouterErrors, NameTokenAndExpert) {
  const double bad_values[] = {std::nan(""),
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity()};
  for (RouterKind kind : {RouterKind::kSparse, RouterKind::kSoftFixed}) {
    for (double bad : bad_values) {
      Matrix scores = RandomMatrix(3, 4, 99, 60);
      scores(2, 0) = bad;
      EXPECT_TRUE(Says(MessageOf<NumericsError>(
                           [&] { RouterForward({.kind = kind}, scores); }),
                       "token 2, expert 0"))
          << bad;
    }
  }
}

// A budget of K > L can give one layer more than there are experts.
TEST(Router, AllocationsAboveTheExpertsMakeEveryWeightOne) {
  const Matrix scores = RandomMatrix(3, 4, 99, 62);
  for (const double mean_active : {4.0, 4.5, 70.0}) {
    const RouterSettings settings = Soft(mean_active, 1, 1, 4, 4);
    const RouterSaved saved = RouterForward(settings, scores);
    EXPECT_EQ(saved.soft_weights, Matrix::Ones(3, 4));
    EXPECT_EQ(
        RouterBackward(settings, scores, saved, RandomMatrix(3, 4, 99, 63))
            .d_scores.norm(),
        0);
  }
}

TEST(RouterErrors, RefuseSettingsOutsideTheirRange) {
  const Matrix scores = RandomMatrix(2, 4, 99, 61);
  const RouterSettings good = Soft(1.5, 1, 1, 4, 2);
  EXPECT_NO_THROW(RouterForward(good, scores));
  RouterSettings bad = good;
  bad.max_active = 5;
  EXPECT_THROW(RouterForward(bad, scores), ConfigError);
  bad.max_active = 0;
  EXPECT_THROW(RouterForward(bad, scores), ConfigError);
  bad = good;
  bad.mean_active = 0;
  EXPECT_THROW(RouterForward(bad, scores), ConfigError);
  bad.mean_active = std::nan("");
  EXPECT_THROW(RouterForward(bad, scores), ConfigError);
  bad = good;
  bad.temperature = 0;  // LapSum refuses it, too, but in other words
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] { RouterForward(bad, scores); }),
                   "router: temperature"));
  bad = good;
  for (const double cutoff : {-0.1, std::nan("")}) {
    bad.cutoff = cutoff;
    EXPECT_THROW(RouterForward(bad, scores), ConfigError);
  }
  bad.kind = RouterKind::kSparse;  // has no cutoff
  EXPECT_NO_THROW(RouterForward(bad, scores));
}

TEST(RouterErrors, RefuseGradientsOfAnotherSize) {
  const Matrix scores = RandomMatrix(2, 4, 99, 62);
  const RouterSettings settings = Soft(1.5, 1, 1, 4, 2);
  const RouterSaved saved = RouterForward(settings, scores);
  const Matrix more = Matrix::Ones(3, 4);
  EXPECT_NO_THROW(RouterBackward(settings, scores, saved, scores));
  EXPECT_THROW(RouterBackward(settings, scores, saved, more), InternalError);
  const Matrix one = scores.topRows(1);
  EXPECT_TRUE(Says(MessageOf<InternalError>(
                       [&] { RouterBackward(settings, one, saved, one); }),
                   "[2, 4] for scores [1, 4]"));
  EXPECT_THROW(SoftWeightsBackward(settings, scores, more), InternalError);
}

}  // namespace
}  // namespace softmoe::reference
