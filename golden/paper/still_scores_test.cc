// SPDX-License-Identifier: Apache-2.0
#include "golden/paper/still_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "core/errors.h"
#include "core/files/paths.h"

namespace softmoe::golden {
namespace {

using nlohmann::json;

// The paper's router with k = 1.5 at the start, with published tau.
StillScores PaperRouter() {
  return {.num_experts = 32,
          .mean_active = 1.5,
          .max_active = 3,
          .tau = 1.8,
          .temperature = 5,
          .spread = 0.02 * std::sqrt(640)};
}

StillScores ScoresOf(const json& made) {
  return {.num_experts = made.at("experts"),
          .mean_active = made.at("k"),
          .max_active = made.at("cap"),
          .tau = made.at("tau"),
          .temperature = made.value("temperature", 1.0),
          .spread = made.at("spread")};
}

// golden/oracles/protocol.json: rows drawn and sorted in Python. Five standard
// errors, for about eighty comparisons; a share that no row showed may still
// mean ten among all its rows (e^-10 = 5e-5). The last term is the header's
// error for eight experts, and 0 for more.
TEST(StillScores, AgreesWithScoresThatWereDrawn) {
  std::ifstream file(RunfilePath("golden/oracles/protocol.json"));
  const json oracle = json::parse(file);
  const double rows = oracle.at("rows");
  int calibrated = 0, runs = 0;
  for (const json& made : oracle.at("cases")) {
    SCOPED_TRACE(made.dump());
    const StillScores scores = ScoresOf(made);
    StillActivity ours;
    if (made.contains("steps")) {
      ours = MeanActivity(scores, made.at("schedule")[0],
                          made.at("schedule")[1], made.at("steps"));
      ++runs;
    } else {
      ours = ActivityOf(scores);
    }
    const double known = scores.num_experts == 8 ? 1e-3 : 2e-5;
    EXPECT_NEAR(ours.active_experts, made.at("active"),
                5 * made.at("active_error").get<double>() +
                    10 * static_cast<double>(scores.max_active) / rows + known);
    EXPECT_NEAR(ours.zero_active_fraction, made.at("zero"),
                5 * made.at("zero_error").get<double>() + 10 / rows + known);
    if (made.contains("calibrated")) ++calibrated;
  }
  EXPECT_EQ(calibrated, 6);
  EXPECT_EQ(runs, 6);
}

// Computed once in Python by other rules, without cut-offs or a taper: the
// trapezoidal rule over z, the m-th largest score, with steps of 1/8; tanh-sinh
// rules with steps of 1/24 over every smooth piece of G; Gil-Pelaez's integral
// by the midpoint rule with h = pi / (E + 1), where sums within [0, E - 1] have
// no alias, until its terms are below 1e-13. Finer steps change none of these
// digits. The bound is the header's for E >= 16 and scores that spread by at
// most T. The cutoffs are 0.1, 0.75 and 0.275, on both sides of the median of
// F, and 48 experts take more panels than 16.
TEST(StillScores, AgreesWithAFinerQuadrature) {
  struct Case {
    StillScores scores;
    double active, zero;
  };
  for (const Case& fine :
       {Case{{16, 1, 3, 1.6, 1, 0.75}, 2.437839632, 0.002329007},
        Case{{16, 6, 4, 2, 1, 1}, 1.739781966, 0.089124450},
        Case{{48, 6, 5, 2.2, 3, 1.5}, 1.542031531, 0.147386650}}) {
    SCOPED_TRACE(fine.active);
    const StillActivity ours = ActivityOf(fine.scores);
    EXPECT_NEAR(ours.active_experts, fine.active, 1e-6);
    EXPECT_NEAR(ours.zero_active_fraction, fine.zero, 1e-6);
  }
}

// Of two experts, one of weight p leaves k - p to the other. So an expert is
// active iff the other's score is less than F^-1(k - c) - F^-1(c) above its
// own, in units of T. The difference of two scores is normal, with a deviation
// of sqrt(2) times the spread.
TEST(StillScores, OfTwoExpertsAreGoodToTheirBound) {
  const auto quantile = [](double p) {
    return p <= 0.5 ? std::log(2 * p) : -std::log(2 * (1 - p));
  };
  for (const double k : {0.02, 1.0, 1.5, 1.9, 1.999}) {
    for (const double tau : {0.5, 0.9, 1.0, 1.5}) {
      for (const double spread : {0.02, 0.7, 4.0, 40.0}) {
        SCOPED_TRACE(std::to_string(k) + " " + std::to_string(tau) + " " +
                     std::to_string(spread));
        const double cutoff = tau * k / 2, limit = k - cutoff;
        if (cutoff >= 1) continue;
        const double apart =
            limit >= 1 ? std::numeric_limits<double>::infinity()
                       : (quantile(limit) - quantile(cutoff)) / spread;
        const StillActivity two = ActivityOf({2, k, 2, tau, 1, spread});
        EXPECT_NEAR(two.active_experts, 1 + std::erf(apart / 2), 1e-6);
        EXPECT_NEAR(two.zero_active_fraction,
                    std::max(0.0, std::erf(-apart / 2)), 1e-6);
      }
    }
  }
}

// The three others' terms sum to less than 3 = k - c.
TEST(StillScores, AllAreActiveBelowAHighEnoughCutoff) {
  EXPECT_NEAR(ActivityOf({4, 3.75, 4, 0.8, 1, 10}).active_experts, 4, 1e-6);
}

// SPEC.md 2.3 and N28, to half of their last printed digits.
TEST(StillScores, CalibratesAsTheSpecificationDoes) {
  struct Case {
    double k;
    int64_t cap;
    double tau, zero, end, tau_at_end;
  };
  for (const Case& known :
       {Case{1, 4, 1.197, 0.32, 4, 2.2}, Case{1.5, 3, 1.174, 0.16, 3, 2.0},
        Case{2, 4, 1.158, 0.08, 4, 1.9}}) {
    StillScores scores = PaperRouter();
    scores.mean_active = known.k;
    scores.max_active = known.cap;
    scores.tau = CalibratedTau(scores);
    EXPECT_NEAR(scores.tau, known.tau, 0.0005);
    const StillActivity start = ActivityOf(scores);
    EXPECT_NEAR(start.active_experts, known.k, 2e-5);
    EXPECT_NEAR(start.zero_active_fraction, known.zero, 0.005);
    scores.temperature = 1;
    EXPECT_NEAR(ActivityOf(scores).active_experts, known.end, 0.005);
    EXPECT_NEAR(CalibratedTau(scores), known.tau_at_end, 0.05);
  }
  StillScores scores = PaperRouter();
  scores.mean_active = 1;
  scores.max_active = 4;
  const double kActive[][3] = {{1.1, 3.80, 4},
                               {1.2, 0.95, 4},
                               {1.3, 0.11, 4},
                               {1.5, 0, 3.8},
                               {1.8, 0, 2.4}};
  for (const auto& [tau, start, end] : kActive) {
    scores.tau = tau;
    scores.temperature = 5;
    EXPECT_NEAR(ActivityOf(scores).active_experts, start, 0.005) << tau;
    scores.temperature = 1;
    EXPECT_NEAR(ActivityOf(scores).active_experts, end, 0.05) << tau;
  }
}

TEST(StillScores, TheFallbackAddsTheTokensWithoutAnExpert) {
  StillScores scores = PaperRouter();
  scores.temperature = 1;
  const StillActivity none = ActivityOf(scores);
  scores.fallback_top1 = true;
  const StillActivity top1 = ActivityOf(scores);
  EXPECT_GT(none.zero_active_fraction, 0.01);
  EXPECT_EQ(top1.active_experts,
            none.active_experts + none.zero_active_fraction);
  EXPECT_EQ(top1.zero_active_fraction, none.zero_active_fraction);
}

// Only the ratio of spread and temperature counts.
TEST(StillScores, ScoresAndTemperatureScaleTogether) {
  StillScores scores = PaperRouter();
  scores.tau = 1.2;
  const StillActivity one = ActivityOf(scores);
  scores.temperature *= 4;
  scores.spread *= 4;
  EXPECT_EQ(ActivityOf(scores).active_experts, one.active_experts);
  scores.temperature /= 2;
  EXPECT_GT(ActivityOf(scores).active_experts, one.active_experts + 0.1);
}

TEST(StillScores, TheCapIsObeyed) {
  StillScores scores = PaperRouter();
  scores.temperature = 1;
  scores.tau = 0.5;  // leaves more than ten experts above the cutoff
  for (int64_t cap = 1; cap <= 8; ++cap) {
    scores.max_active = cap;
    EXPECT_NEAR(ActivityOf(scores).active_experts, static_cast<double>(cap),
                1e-4);
  }
}

TEST(StillScores, EdgesNeedNoQuadrature) {
  StillScores scores = PaperRouter();
  const auto active = [&] { return ActivityOf(scores).active_experts; };
  scores.tau = 0;  // every weight is above 0
  EXPECT_EQ(active(), 3);
  scores.tau = 32 / 1.5;  // none is above 1
  EXPECT_EQ(active(), 0);
  EXPECT_EQ(ActivityOf(scores).zero_active_fraction, 1);
  scores.spread = 0;  // all weights are k / E
  scores.tau = 1;
  EXPECT_EQ(active(), 0);
  scores.tau = 0.99;
  EXPECT_EQ(active(), 3);
  scores = PaperRouter();
  scores.mean_active = 32;  // all weights are 1
  scores.max_active = 32;
  scores.tau = 0.5;
  EXPECT_EQ(active(), 32);
  scores = {1, 0.5, 1, 0.9, 1, 1, false};  // one expert has weight k
  EXPECT_NEAR(active(), 1, 1e-6);
  scores.tau = 1.1;
  EXPECT_EQ(active(), 0);
}

// With a cap of k, every tau below some value leaves exactly k active.
TEST(StillScores, CalibrationWithACapOfKTakesTheLargestTau) {
  StillScores scores = PaperRouter();
  scores.mean_active = 2;
  scores.max_active = 2;
  scores.tau = CalibratedTau(scores);
  EXPECT_NEAR(ActivityOf(scores).active_experts, 2, 2e-5);
  scores.tau *= 1.05;
  EXPECT_LT(ActivityOf(scores).active_experts, 1.999);
}

// The mean over steps taken one by one and, with 18000 of them, the paper's row
// (N28).
TEST(StillScores, TheMeanIsOverTheSteps) {
  StillScores scores = PaperRouter();
  constexpr int kSteps = 200;
  double active = 0, zero = 0;
  for (int m = 0; m < kSteps; ++m) {
    scores.temperature = 1 + 4 * (1 + std::cos(M_PI * m / kSteps)) / 2;
    const StillActivity at = ActivityOf(scores);
    active += at.active_experts / kSteps;
    zero += at.zero_active_fraction / kSteps;
  }
  const StillActivity mean = MeanActivity(scores, 5, 1, kSteps);
  EXPECT_NEAR(mean.active_experts, active, 1e-5);
  EXPECT_NEAR(mean.zero_active_fraction, zero, 1e-5);
  EXPECT_NEAR(MeanActivity(scores, 5, 1, 18000).active_experts, 0.45, 0.005);
}

// A start below the end's last digit is not lost: the two largest scores have
// the weights 1 and 1/2, all others none.
TEST(StillScores, TheMeanBeginsAtTheStartExactly) {
  EXPECT_NEAR(MeanActivity(PaperRouter(), 1e-30, 1, 1).active_experts, 2, 1e-5);
}

TEST(StillScores, RefusesWhatNoRouterIs) {
  const auto refused = [](auto change) {
    StillScores scores = PaperRouter();
    change(scores);
    EXPECT_THROW(ActivityOf(scores), InternalError);
  };
  refused([](StillScores& s) { s.num_experts = 0; });
  refused([](StillScores& s) { s.max_active = 0; });
  refused([](StillScores& s) { s.max_active = 33; });
  refused([](StillScores& s) { s.mean_active = 0; });
  refused([](StillScores& s) { s.mean_active = 33; });
  refused([](StillScores& s) { s.tau = -1; });
  refused([](StillScores& s) { s.temperature = 0; });
  refused([](StillScores& s) { s.spread = -1; });
  refused([](StillScores& s) {
    s.spread = std::numeric_limits<double>::infinity();
  });
  refused(
      [](StillScores& s) { s.tau = std::numeric_limits<double>::quiet_NaN(); });
  EXPECT_THROW(MeanActivity(PaperRouter(), 5, 1, 0), InternalError);
}

}  // namespace
}  // namespace softmoe::golden
