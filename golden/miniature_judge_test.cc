// SPDX-License-Identifier: Apache-2.0
//
// Every claim by hand, on made-up runs whose deviations are known exactly.
#include "golden/miniature_judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/errors.h"
#include "golden/miniature_test_util.h"
#include "golden/statistics.h"

namespace softmoe::golden {
namespace {

using enum MiniatureStatus;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// Sums of a hundred numbers near 3, each with a rounding or two.
constexpr double kRounding = 1e-13;

const MiniatureClaims& Claims() {
  static const MiniatureClaims kClaims = LoadMiniatureClaims();
  return kClaims;
}

MiniatureVerdicts Judged(const RunChange& change = {}) {
  return JudgeMiniature(Claims(), MadeUpResults(Claims(), change));
}

bool IsSparse(const MiniatureRun& run) { return run.row.starts_with("sparse"); }

void AddTo(const std::string& row, double difference, MiniatureRun* run) {
  if (run->row == row) run->loss += difference;
}

MiniatureResults WithThroughput(const std::vector<double>& speeds) {
  MiniatureResults results = MadeUpResults(Claims());
  const std::vector<double>& experts =
      Claims().claims[8].measures[0].active_experts;
  for (size_t i = 0; i < speeds.size(); ++i) {
    ThroughputSamples samples{experts[i], {}};
    for (const double factor : {0.99, 1.0, 1.01}) {
      samples.tokens_per_second.push_back(factor * speeds[i]);
    }
    results.throughput.push_back(samples);
  }
  return results;
}

TEST(MiniatureJudge, RunsLikeThePaperShowEveryClaimThatHasNumbers) {
  const MiniatureVerdicts verdicts = Judged();
  EXPECT_EQ(verdicts.planned, 76);
  EXPECT_EQ(verdicts.finished, 76);
  EXPECT_TRUE(verdicts.missing.empty());
  EXPECT_EQ(verdicts.hash, Claims().Hash());
  for (const MiniatureVerdict& claim : verdicts.claims) {
    const bool without = claim.id == "C6" || claim.id == "C9";
    EXPECT_EQ(claim.status, without ? kNotTestable : kShown) << claim.id;
  }
}

TEST(MiniatureJudge, BudgetGroupByHand) {
  const MiniatureVerdicts verdicts = Judged();
  // 1.8 active experts: against Sparse-2, 2.93 - 3.00.
  const MiniatureCase& star =
      CaseOf(verdicts, "C1.group", "gcide", "softmoe-star-1.5-calibrated");
  EXPECT_EQ(star.label, "softmoe-star-1.5-calibrated - sparse-2");
  EXPECT_EQ(star.seeds, 4);
  EXPECT_NEAR(star.estimate, -0.07, kRounding);
  // Nine rows, four seeds, paired: 8 * 3 degrees of freedom.
  EXPECT_NEAR(star.freedom, 24, 1e-9);
  const double error = MadeUpDeviation() * std::sqrt(2.0 / 4);
  EXPECT_NEAR(star.seed_error, error, kRounding);
  const double t_975_24 = 2.0638985616280205;
  EXPECT_NEAR(star.interval.low, -0.07 - t_975_24 * error, kRounding);
  EXPECT_NEAR(star.interval.high, -0.07 + t_975_24 * error, kRounding);
  EXPECT_EQ(star.p_shown,
            StudentCdf(star.estimate / star.seed_error, star.freedom));
  // Ten cases: five rows on two corpora, and all are needed.
  const MiniatureMeasureVerdict& measure = MeasureOf(verdicts, "C1.group");
  EXPECT_EQ(measure.cases.size(), 10u);
  EXPECT_EQ(measure.cases_needed, 10);
  double largest = 0;
  for (const MiniatureCase& each : measure.cases) {
    largest = std::max(largest, each.p_shown);
  }
  EXPECT_EQ(measure.p, 2 * largest);
  EXPECT_EQ(measure.cases[measure.deciding].p_shown, largest);
}

TEST(MiniatureJudge, GroupIsTheSmallestSparseKThatIsEnough) {
  auto label = [](double experts) {
    const MiniatureVerdicts verdicts = Judged([&](size_t, MiniatureRun* run) {
      if (run->row == "softmoe-2-calibrated") run->infer_ae = experts;
    });
    return CaseOf(verdicts, "C1.group", "gcide", "softmoe-2-calibrated").label;
  };
  EXPECT_EQ(label(0.7), "softmoe-2-calibrated - sparse-1");
  EXPECT_EQ(label(2), "softmoe-2-calibrated - sparse-2");
  EXPECT_EQ(label(std::nextafter(2, 3)), "softmoe-2-calibrated - sparse-3");
  EXPECT_EQ(label(4), "softmoe-2-calibrated - sparse-4");
}

TEST(MiniatureJudge, MoreThanFourActiveExpertsHaveNoGroupAndNoCurve) {
  const MiniatureVerdicts verdicts = Judged([](size_t, MiniatureRun* run) {
    if (run->row == "softmoe-2-calibrated") run->infer_ae = 4.25;
  });
  for (const char* measure : {"C1.group", "C1.curve", "C4.balance"}) {
    EXPECT_EQ(MeasureOf(verdicts, measure).status, kNotTestable) << measure;
  }
  EXPECT_NE(MeasureOf(verdicts, "C1.group")
                .reason.find("softmoe-2-calibrated has 4.25 active "
                             "experts, and no sparse row so many"),
            std::string::npos);
  EXPECT_EQ(ClaimOf(verdicts, "C1").status, kNotTestable);
}

TEST(MiniatureJudge, FewerThanOneActiveExpertHasAGroupButNoCurve) {
  const MiniatureVerdicts verdicts = Judged([](size_t, MiniatureRun* run) {
    if (run->row == "softmoe-2-calibrated") run->infer_ae = 0.75;
  });
  EXPECT_EQ(MeasureOf(verdicts, "C1.group").status, kShown);
  EXPECT_EQ(MeasureOf(verdicts, "C1.curve").status, kNotTestable);
}

TEST(MiniatureJudge, SparseCurveByHand) {
  // Without noise of the Infer-AE, the curve moves none of the losses.
  const MiniatureVerdicts verdicts = Judged([](size_t, MiniatureRun* run) {
    if (run->row == "softmoe-star-1.5-calibrated") run->infer_ae = 1.8;
  });
  const MiniatureCase& star =
      CaseOf(verdicts, "C1.curve", "gcide", "softmoe-star-1.5-calibrated");
  // 3.10 at k = 1, 3.00 at k = 2: 3.02 at 1.8.
  EXPECT_NEAR(star.estimate, 2.93 - 3.02, kRounding);
  EXPECT_EQ(star.seeds, 4);
  EXPECT_TRUE(star.own_deviation.empty());
  // The curve's own noise: 0.2 of Sparse-1 and 0.8 of Sparse-2.
  const MiniatureCase& group =
      CaseOf(verdicts, "C1.group", "gcide", "softmoe-star-1.5-calibrated");
  const double per_run = group.seed_error / std::sqrt(2.0 / 4);
  // Other rows' Infer-AE moves along the curve: a slope of at most 0.1
  // nat/expert times 0.003 experts, less than a third of their noise.
  EXPECT_NEAR(star.seed_error,
              per_run * std::sqrt((1 + 0.2 * 0.2 + 0.8 * 0.8) / 4),
              0.3 * per_run);
}

// A run with more active experts has the lower loss for that: what counts is
// its distance from the curve.
TEST(MiniatureJudge, CurveTakesTheEffectOfMoreExpertsOutOfTheNoise) {
  const MiniatureVerdicts verdicts = Judged([](size_t i, MiniatureRun* run) {
    if (run->row != "softmoe-star-1.5-calibrated") return;
    const double more = i % 2 == 0 ? 0.1 : -0.1;
    run->infer_ae = 1.5 + more;
    run->loss -= 0.1 * more;  // the slope between Sparse-1 and Sparse-2
  });
  const MiniatureCase& curve =
      CaseOf(verdicts, "C1.curve", "gcide", "softmoe-star-1.5-calibrated");
  const MiniatureCase& group =
      CaseOf(verdicts, "C1.group", "gcide", "softmoe-star-1.5-calibrated");
  EXPECT_NEAR(curve.estimate, 2.93 - 3.05, kRounding);
  EXPECT_LT(curve.seed_error, 0.5 * group.seed_error);
}

TEST(MiniatureJudge, InAllConfigurationsNeedsEveryPair) {
  // Sparse-4 has 2.92: a loss of 2.97 on one corpus is enough.
  const MiniatureVerdicts reversed = Judged([](size_t, MiniatureRun* run) {
    if (run->corpus == "gcide") AddTo("softmoe-2-calibrated", 0.13, run);
  });
  EXPECT_EQ(MeasureOf(reversed, "C1.group").status, kContradicted);
  EXPECT_EQ(ClaimOf(reversed, "C1").status, kContradicted);
  const MiniatureMeasureVerdict& measure = MeasureOf(reversed, "C1.group");
  EXPECT_FALSE(measure.leans_to_shown);
  EXPECT_EQ(measure.cases[measure.deciding].label,
            "softmoe-2-calibrated - sparse-4");
  // Of ten cases any one reversed case would do: Bonferroni over them.
  EXPECT_EQ(measure.p, 2 * 10 * measure.cases[measure.deciding].p_contradicted);
  // One pair alike: nine are not enough, and nothing is contradicted.
  const MiniatureVerdicts alike = Judged([](size_t, MiniatureRun* run) {
    if (run->corpus == "gcide") AddTo("softmoe-2-calibrated", 0.0805, run);
  });
  EXPECT_EQ(MeasureOf(alike, "C1.group").status, kUndecided);
}

TEST(MiniatureJudge, LaterLayersByHand) {
  const MiniatureVerdicts verdicts = Judged();
  // The last three of ten: 3 k + 0.8 * (0.25 + 0.35 + 0.45) of 10 k.
  const MiniatureCase& share =
      CaseOf(verdicts, "C2.share", "gcide", "softmoe-2-calibrated");
  EXPECT_NEAR(share.estimate, 0.8 * 1.05 / 20, kRounding);
  // Two rows, four seeds, not paired.
  EXPECT_NEAR(share.freedom, 6, 1e-9);
  const MiniatureCase& order =
      CaseOf(verdicts, "C2.order", "gcide", "softmoe-2-calibrated");
  EXPECT_EQ(order.estimate, 1);
  // No deviation at all is taken for one exchange of neighbours, 2 of 45.
  EXPECT_NEAR(order.seed_error, 2.0 / 45 / 2, kRounding);
}

// Ten layers of which only the last three count.
TEST(MiniatureJudge, ShareIsThatOfTheLastThreeOfTenLayers) {
  auto status = [](const std::vector<double>& final) {
    const MiniatureVerdicts verdicts = Judged([&](size_t i, MiniatureRun* run) {
      if (run->allocation.empty()) return;
      std::vector<double> allocation = final;
      allocation[0] += 0.01 * static_cast<double>(i % 2);
      run->allocation = {{1000, allocation}};
    });
    return MeasureOf(verdicts, "C2.share").status;
  };
  // Layers 6 and 7, that a half would count, have little.
  EXPECT_EQ(status({2, 2, 2, 2, 2, 1, 1, 2.4, 2.4, 2.4}), kShown);
  // They have much, and the last three little; so have the first three.
  EXPECT_EQ(status({1, 1, 1, 2, 2, 4, 4, 1.5, 1.5, 1.5}), kContradicted);
  EXPECT_EQ(status({3, 3, 3, 2, 2, 2, 2, 1, 1, 1}), kContradicted);
}

TEST(MiniatureJudge, OrderIsKendallsTauAndTiesCountAsNeither) {
  auto order = [](const std::vector<double>& final) {
    const MiniatureVerdicts verdicts = Judged([&](size_t, MiniatureRun* run) {
      if (!run->allocation.empty()) run->allocation = {{1000, final}};
    });
    return CaseOf(verdicts, "C2.order", "gcide", "softmoe-2-calibrated")
        .estimate;
  };
  // One exchange of neighbours among 45 pairs; one tie.
  EXPECT_NEAR(order({1, 2, 3, 4, 5, 6, 7, 8, 10, 9}), 43.0 / 45, kRounding);
  EXPECT_NEAR(order({1, 2, 3, 4, 5, 6, 7, 8, 9, 9}), 44.0 / 45, kRounding);
  EXPECT_NEAR(order({10, 9, 8, 7, 6, 5, 4, 3, 2, 1}), -1, kRounding);
}

TEST(MiniatureJudge, OrderThatFallsWithDepthIsContradicted) {
  const MiniatureVerdicts verdicts = Judged([](size_t, MiniatureRun* run) {
    for (AllocationPoint& point : run->allocation) {
      point.allocation = {point.allocation.rbegin(), point.allocation.rend()};
    }
  });
  EXPECT_EQ(MeasureOf(verdicts, "C2.order").status, kContradicted);
  EXPECT_EQ(MeasureOf(verdicts, "C2.share").status, kContradicted);
}

TEST(MiniatureJudge, EarlyMovementByHand) {
  const MiniatureVerdicts verdicts = Judged();
  // At 150 of 1000 steps: half way from 0.6 to 0.8.
  const MiniatureCase& early =
      CaseOf(verdicts, "C3.early", "gcide", "softmoe-1.5-calibrated");
  EXPECT_NEAR(early.estimate, 0.7, 1e-3);  // its noise is not linear
  EXPECT_EQ(MeasureOf(verdicts, "C3.early").cases.size(), 2u);
  auto status = [](double half_way) {
    const MiniatureVerdicts changed = Judged([&](size_t i, MiniatureRun* run) {
      if (run->allocation.empty()) return;
      std::vector<double> between = run->allocation.back().allocation;
      const double mean = run->row.starts_with("softmoe-2") ? 2 : 1.5;
      const double done = half_way + 0.01 * static_cast<double>(i % 2);
      for (double& k : between) k = mean + done * (k - mean);
      run->allocation = {{300, between}, run->allocation.back()};
    });
    return MeasureOf(changed, "C3.early").status;
  };
  // The first record is at 300 steps: at 150 half of that is done.
  EXPECT_EQ(status(0.9), kContradicted);  // 0.45
  EXPECT_EQ(status(1.2), kShown);         // 0.60
}

// Movement away from the final allocation does not count as done.
TEST(MiniatureJudge, MovementTheWrongWayIsNotDone) {
  const MiniatureVerdicts verdicts = Judged([](size_t i, MiniatureRun* run) {
    if (run->allocation.empty()) return;
    std::vector<double> away = run->allocation.back().allocation;
    const double mean = run->row.starts_with("softmoe-2") ? 2 : 1.5;
    for (double& k : away) {
      k = mean - (0.8 + 0.01 * static_cast<double>(i % 2)) * (k - mean);
    }
    run->allocation = {{150, away}, run->allocation.back()};
  });
  EXPECT_NEAR(
      CaseOf(verdicts, "C3.early", "gcide", "softmoe-2-calibrated").estimate,
      -0.805, kRounding);
  EXPECT_EQ(MeasureOf(verdicts, "C3.early").status, kContradicted);
}

TEST(MiniatureJudge, AllocationThatHardlyMovesIsNotTestable) {
  const MiniatureVerdicts verdicts = Judged([](size_t, MiniatureRun* run) {
    for (AllocationPoint& point : run->allocation) {
      const double mean = run->row.starts_with("softmoe-2") ? 2 : 1.5;
      for (double& k : point.allocation) k = mean + 0.1 * (k - mean);
    }
  });
  EXPECT_EQ(ClaimOf(verdicts, "C3").status, kNotTestable);
  EXPECT_NE(MeasureOf(verdicts, "C3.early").reason.find("less than 0.01"),
            std::string::npos);
}

TEST(MiniatureJudge, LoadBalanceIsAlikeWithinAFactorOfTwoEitherWay) {
  auto status = [](double factor) {
    const MiniatureVerdicts verdicts = Judged([&](size_t, MiniatureRun* run) {
      if (run->row == "softmoe-2-calibrated") run->load_variance *= factor;
    });
    return ClaimOf(verdicts, "C4").status;
  };
  EXPECT_EQ(status(1.5), kShown);
  EXPECT_EQ(status(1 / 1.5), kShown);
  EXPECT_EQ(status(3), kContradicted);
  EXPECT_EQ(status(1 / 3.0), kContradicted);
  EXPECT_EQ(status(2), kUndecided);
  EXPECT_EQ(status(0), kNotTestable);
}

TEST(MiniatureJudge, WithinTakesTheWorseOfBothSides) {
  const MiniatureVerdicts verdicts = Judged([&](size_t, MiniatureRun* run) {
    if (run->row == "softmoe-2-calibrated") run->load_variance *= 1.5;
  });
  const MiniatureCase& balance =
      CaseOf(verdicts, "C4.balance", "gcide", "softmoe-2-calibrated");
  EXPECT_NEAR(balance.estimate, std::log(1.5), kRounding);
  EXPECT_EQ(balance.p_shown,
            StudentCdf((balance.estimate - std::log(2.0)) / balance.seed_error,
                       balance.freedom));
}

TEST(MiniatureJudge, TypicallyIsMoreThanHalfOfThePairs) {
  const MiniatureVerdicts as_is = Judged();
  const MiniatureMeasureVerdict& loss = MeasureOf(as_is, "C5.loss");
  EXPECT_EQ(loss.cases.size(), 4u);
  EXPECT_EQ(loss.cases_needed, 3);
  EXPECT_NEAR(
      CaseOf(as_is, "C5.loss", "gcide", "softmoe-2-calibrated").estimate,
      2.84 - 2.87, kRounding);
  EXPECT_NEAR(
      CaseOf(as_is, "C5.experts", "gcide", "softmoe-1.5-calibrated").estimate,
      2.2 - 1.8, kRounding);
  // One pair of four reversed: still typical.
  const MiniatureVerdicts one = Judged([](size_t, MiniatureRun* run) {
    if (run->corpus == "gcide") AddTo("softmoe-2-calibrated", 0.05, run);
  });
  EXPECT_EQ(MeasureOf(one, "C5.loss").status, kShown);
  // Two: three can no longer hold.
  const MiniatureVerdicts two = Judged([](size_t, MiniatureRun* run) {
    if (run->corpus == "gcide") {
      AddTo("softmoe-2-calibrated", 0.05, run);
      AddTo("softmoe-1.5-calibrated", 0.05, run);
    }
  });
  EXPECT_EQ(MeasureOf(two, "C5.loss").status, kContradicted);
}

TEST(MiniatureJudge, AClaimIsShownIfEveryMeasureIs) {
  const MiniatureVerdicts verdicts = Judged([](size_t i, MiniatureRun* run) {
    if (run->row.starts_with("softmoe-star")) return;
    if (run->row.starts_with("softmoe")) {
      run->infer_ae += i % 2 == 0 ? 0.5 : -0.5;
    }
  });
  EXPECT_EQ(MeasureOf(verdicts, "C5.loss").status, kShown);
  EXPECT_EQ(MeasureOf(verdicts, "C5.experts").status, kUndecided);
  EXPECT_EQ(ClaimOf(verdicts, "C5").status, kUndecided);
}

TEST(MiniatureJudge, HellaswagIsNotTestableWhileNoRowIsAboveChance) {
  auto judged = [](double soft, double sparse) {
    return Judged([=](size_t i, MiniatureRun* run) {
      const double noise = i % 2 == 0 ? 1e-4 : -1e-4;
      run->hellaswag = (IsSparse(*run) ? sparse - noise : soft + noise);
    });
  };
  // 1.96 * sqrt(0.25 * 0.75 / 10042) = 0.0085 above chance.
  const MiniatureVerdicts chance = judged(0.258, 0.25);
  EXPECT_EQ(ClaimOf(chance, "C6").status, kNotTestable);
  EXPECT_NE(MeasureOf(chance, "C6.hellaswag").reason.find("above chance"),
            std::string::npos);
  // Sampling of the items is the larger noise: 1.96 * sqrt(2) * 0.0045.
  const MiniatureVerdicts near = judged(0.287, 0.28);
  EXPECT_EQ(ClaimOf(near, "C6").status, kUndecided);
  const MiniatureCase& pair =
      CaseOf(near, "C6.hellaswag", "gcide", "softmoe-2-calibrated");
  EXPECT_NEAR(pair.least_error,
              std::sqrt((0.287 * 0.713 + 0.28 * 0.72) / 10042), kRounding);
  EXPECT_GT(pair.least_error, 10 * pair.seed_error);
  EXPECT_EQ(ClaimOf(judged(0.35, 0.28), "C6").status, kShown);
  EXPECT_EQ(ClaimOf(judged(0.28, 0.35), "C6").status, kContradicted);
}

TEST(MiniatureJudge, JitterMayLowerTheLossByThreeHundredthsOfANat) {
  auto status = [](double difference) {
    const MiniatureVerdicts verdicts = Judged([&](size_t, MiniatureRun* run) {
      // 0.01 above the rows without jitter.
      if (run->row.find("jitter") != std::string::npos) {
        run->loss += difference - 0.01;
      }
    });
    return ClaimOf(verdicts, "C7").status;
  };
  EXPECT_EQ(status(0.05), kShown);
  EXPECT_EQ(status(-0.02), kShown);
  EXPECT_EQ(status(-0.03), kUndecided);
  EXPECT_EQ(status(-0.05), kContradicted);
}

TEST(MiniatureJudge, HalvingByHand) {
  const MiniatureVerdicts verdicts = Judged();
  const MiniatureCase& halving =
      CaseOf(verdicts, "C8.halving", "gcide", "softmoe-2-calibrated");
  // Half of the experts lies midway between 0.6 at 1.5 tau (+0.01) and 0.4 at
  // twice tau (+0.03); half of the range is (3.10 - 2.92) / 2.
  EXPECT_NEAR(halving.estimate, 0.02 - 0.09, kRounding);
  // The cost's deviation is 0.0005 * sqrt(4 / 3) in every row; the two errors
  // are added, and the fewer degrees of freedom count: 5 * 3 against 24.
  const double cost = 0.0005 * std::sqrt(4.0 / 3) / 2;
  const double range = MadeUpDeviation() * std::sqrt(2.0 / 4) / 2;
  EXPECT_NEAR(halving.seed_error, cost + range, kRounding);
  EXPECT_NEAR(halving.freedom, 15, 1e-9);
  const MiniatureVerdicts dear = Judged([](size_t, MiniatureRun* run) {
    for (TauPoint& point : run->at_tau) {
      if (point.factor > 1) point.loss += 0.2;
    }
  });
  EXPECT_EQ(ClaimOf(dear, "C8").status, kContradicted);
}

TEST(MiniatureJudge, HalvingIsNotTestableWhereHalfIsNotReached) {
  const MiniatureVerdicts verdicts = Judged([](size_t, MiniatureRun* run) {
    if (!run->at_tau.empty()) run->at_tau.back().infer_ae *= 1.3;
  });
  EXPECT_EQ(ClaimOf(verdicts, "C8").status, kNotTestable);
  EXPECT_NE(MeasureOf(verdicts, "C8.halving")
                .reason.find("at 2 times the trained tau, more than half"),
            std::string::npos);
  const MiniatureVerdicts none =
      Judged([](size_t, MiniatureRun* run) { run->at_tau.clear(); });
  EXPECT_EQ(ClaimOf(none, "C8").status, kNotTestable);
}

TEST(MiniatureJudge, HalvingIsNotTestableWhereSparseRowsAreAlike) {
  const MiniatureVerdicts verdicts =
      Judged([](size_t, MiniatureRun* run) { AddTo("sparse-1", -0.18, run); });
  EXPECT_EQ(ClaimOf(verdicts, "C8").status, kNotTestable);
  EXPECT_NE(MeasureOf(verdicts, "C8.halving")
                .reason.find("sparse-1 is not surely above sparse-4"),
            std::string::npos);
}

TEST(MiniatureJudge, ThroughputMustFallAtEveryStep) {
  auto judged = [](const std::vector<double>& speeds) {
    return JudgeMiniature(Claims(), WithThroughput(speeds));
  };
  const MiniatureVerdicts falling = judged({500, 400, 300, 200, 150});
  EXPECT_EQ(ClaimOf(falling, "C9").status, kShown);
  const MiniatureCase& first = MeasureOf(falling, "C9.throughput").cases[0];
  EXPECT_EQ(first.label, "AE 1 - AE 1.5");
  EXPECT_NEAR(first.estimate, std::log(500.0 / 400), kRounding);
  EXPECT_EQ(first.seeds, 3);
  EXPECT_NEAR(first.freedom, 10, 1e-9);  // five points, three samples each
  EXPECT_EQ(ClaimOf(judged({500, 600, 300, 200, 150}), "C9").status,
            kContradicted);
  EXPECT_EQ(ClaimOf(judged({500, 400, 300, 200}), "C9").status, kNotTestable);
  MiniatureResults few = WithThroughput({500, 400, 300, 200, 150});
  few.throughput[2].tokens_per_second.pop_back();
  const MiniatureVerdicts verdicts = JudgeMiniature(Claims(), few);
  EXPECT_EQ(ClaimOf(verdicts, "C9").status, kNotTestable);
  EXPECT_NE(MeasureOf(verdicts, "C9.throughput")
                .reason.find("2 samples at AE 2, 3 are needed"),
            std::string::npos);
}

// The seeds move all rows by 0.05 nat, fifty times what is left of the noise.
TEST(MiniatureJudge, PairsShowWhatTheEffectOfTheSeedWouldHide) {
  const MiniatureVerdicts paired = Judged();
  EXPECT_EQ(MeasureOf(paired, "C5.loss").status, kShown);
  MiniatureClaims plain = Claims();
  for (MiniatureClaim& claim : plain.claims) {
    for (MiniatureMeasure& measure : claim.measures) {
      measure.noise = Noise::kPlain;
    }
  }
  const MiniatureVerdicts unpaired = TestMiniature(plain, MadeUpResults(plain));
  EXPECT_EQ(MeasureOf(unpaired, "C5.loss").status, kUndecided);
  // Nine rows, four seeds.
  EXPECT_NEAR(
      CaseOf(unpaired, "C5.loss", "gcide", "softmoe-2-calibrated").freedom, 27,
      1e-9);
}

// The other eleven measures have nothing: what one test would find at 5 %, the
// family must not.
TEST(MiniatureJudge, HolmHoldsBackWhatOneTestWouldDecide) {
  auto results = [](const MiniatureClaims& claims, double difference) {
    MiniatureResults made;
    for (const std::string& row : claims.planned[0].rows) {
      const int r = row[1] - '0';
      for (const int64_t seed : claims.planned[0].seeds) {
        // Of nine rows four have one sign, four the other.
        const double sign = r == 9 ? 0 : r % 2 == 0 ? 1 : -1;
        const double noise = seed == 1 || seed == 4 ? 1 : -1;
        MiniatureRun run;
        run.row = row;
        run.corpus = "text";
        run.seed = seed;
        run.loss = 3 + 1e-3 * sign * noise + (r == 1 ? difference : 0) +
                   1e-4 * static_cast<double>(seed);
        made.runs.push_back(run);
      }
    }
    return made;
  };
  // A standard error of 1e-3 * sqrt(32 / 24) * sqrt(2 / 4); t = 2.5 with 24
  // degrees of freedom has p = 0.0196.
  const double difference = -2.5e-3 * std::sqrt(4.0 / 3 / 2);
  const MiniatureClaims one = PairClaims(1, 4), twelve = PairClaims(12, 4);
  const MiniatureVerdicts alone = TestMiniature(one, results(one, difference));
  EXPECT_NEAR(MeasureOf(alone, "P1.loss").p, 0.0196, 1e-4);
  EXPECT_EQ(ClaimOf(alone, "P1").status, kShown);
  const MiniatureVerdicts among =
      TestMiniature(twelve, results(twelve, difference));
  EXPECT_EQ(MeasureOf(among, "P1.loss").p, MeasureOf(alone, "P1.loss").p);
  EXPECT_EQ(ClaimOf(among, "P1").status, kUndecided);
  // The other way round.
  const MiniatureVerdicts reversed =
      TestMiniature(one, results(one, -difference));
  EXPECT_EQ(ClaimOf(reversed, "P1").status, kContradicted);
}

TEST(MiniatureJudge, NoisyRowIsNamedAndKeepsItsOwnDeviation) {
  const MiniatureVerdicts verdicts = Judged([](size_t i, MiniatureRun* run) {
    if (run->corpus == "gcide") {
      AddTo("softmoe-2-calibrated", i == 0 ? 0.03 : i == 1 ? -0.03 : 0, run);
    }
  });
  const MiniatureCase& noisy =
      CaseOf(verdicts, "C1.group", "gcide", "softmoe-2-calibrated");
  ASSERT_EQ(noisy.own_deviation.size(), 1u);
  EXPECT_EQ(noisy.own_deviation[0], "softmoe-2-calibrated");
  // Almost all of the noise is its own, with three degrees of freedom.
  EXPECT_LT(noisy.freedom, 3.1);
  EXPECT_NE(
      MeasureOf(verdicts, "C1.group").reason.find("gcide/softmoe-2-calibrated"),
      std::string::npos);
  // The others keep theirs: eight rows, four seeds.
  const MiniatureCase& calm =
      CaseOf(verdicts, "C1.group", "gcide", "softmoe-1.5-calibrated");
  EXPECT_TRUE(calm.own_deviation.empty());
  EXPECT_NEAR(calm.freedom, 21, 1e-9);
  EXPECT_NEAR(calm.seed_error, 1e-3 * std::sqrt(32.0 / 21) * std::sqrt(0.5),
              kRounding);
}

TEST(MiniatureJudge, RunThatDivergedIsNotTestable) {
  const MiniatureVerdicts verdicts = Judged([](size_t i, MiniatureRun* run) {
    if (run->row == "softmoe-2-calibrated" && run->corpus == "gcide" &&
        i == 2) {
      run->loss = kNaN;
    }
  });
  EXPECT_EQ(ClaimOf(verdicts, "C1").status, kNotTestable);
  EXPECT_NE(MeasureOf(verdicts, "C1.group")
                .reason.find("softmoe-2-calibrated, seed 1236, gave no number"),
            std::string::npos);
  // Three of four pairs are left, and three are needed.
  EXPECT_EQ(MeasureOf(verdicts, "C5.loss").status, kShown);
}

TEST(MiniatureJudge, EqualBitsUnderTwoSeedsAreMistrusted) {
  double first = 0;
  const MiniatureVerdicts verdicts = Judged([&](size_t i, MiniatureRun* run) {
    if (run->row != "softmoe-2-calibrated" || run->corpus != "gcide") return;
    if (i == 0) first = run->loss;
    if (i == 3) run->loss = first;
  });
  ASSERT_EQ(verdicts.equal_seeds.size(), 1u);
  EXPECT_EQ(verdicts.equal_seeds[0],
            "gcide/softmoe-2-calibrated: 1234 and 1237");
  for (const char* claim : {"C1", "C2", "C3", "C4", "C5", "C7", "C8"}) {
    EXPECT_EQ(ClaimOf(verdicts, claim).status, kMistrusted) << claim;
  }
  EXPECT_NE(MeasureOf(verdicts, "C1.group").reason.find("1234 and 1237"),
            std::string::npos);
}

TEST(MiniatureJudge, MissingRunsMakeEveryVerdictInterim) {
  MiniatureResults results = MadeUpResults(Claims());
  results.runs.pop_back();
  const MiniatureVerdicts verdicts = TestMiniature(Claims(), results);
  EXPECT_EQ(verdicts.finished, 75);
  ASSERT_EQ(verdicts.missing.size(), 1u);
  EXPECT_EQ(verdicts.missing[0], "gcide/sparse-3-jitter-0.05/1237");
  for (const MiniatureVerdict& claim : verdicts.claims) {
    EXPECT_EQ(claim.status, kInterim) << claim.id;
  }
  EXPECT_EQ(ClaimOf(verdicts, "C1").leaning, kShown);
  EXPECT_EQ(ClaimOf(verdicts, "C6").leaning, kNotTestable);
  // The pair goes on with the three seeds that both of its rows have.
  EXPECT_EQ(
      CaseOf(verdicts, "C7.jitter", "gcide", "sparse-3-jitter-0.05").seeds, 3);
  const MiniatureVerdicts nothing = JudgeMiniature(Claims(), {});
  EXPECT_EQ(nothing.missing.size(), 76u);
  EXPECT_EQ(ClaimOf(nothing, "C1").status, kInterim);
  EXPECT_EQ(ClaimOf(nothing, "C1").leaning, kNotTestable);
}

void ExpectRefused(const MiniatureResults& results,
                   const std::string& message) {
  try {
    TestMiniature(Claims(), results);
    ADD_FAILURE() << "accepted: " << message;
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos)
        << error.what();
  }
}

TEST(MiniatureJudge, RunsThatDoNotBelongAreRefused) {
  const MiniatureResults good = MadeUpResults(Claims());
  MiniatureResults bad = good;
  bad.runs.push_back(bad.runs[0]);
  ExpectRefused(bad, "run gcide/sparse-1/1234 is there twice");
  bad = good;
  bad.runs[0].seed = 99;
  ExpectRefused(bad, "run gcide/sparse-1/99 is not planned");
  bad = good;
  bad.runs[0].row = "sparse-5";
  ExpectRefused(bad, "run gcide/sparse-5/1234 is not planned");
  auto soft = [](MiniatureResults* results) -> MiniatureRun& {
    for (MiniatureRun& run : results->runs) {
      if (run.row == "softmoe-2-calibrated") return run;
    }
    throw InternalError("no such run");
  };
  bad = good;
  soft(&bad).at_tau[2].factor = 1;
  ExpectRefused(bad, "tau factors must ascend, but 1 follows 1");
  bad = good;
  soft(&bad).allocation[1].step = 100;
  ExpectRefused(bad, "steps must ascend, but 100 follows 100");
  bad = good;
  soft(&bad).allocation[1].allocation.pop_back();
  ExpectRefused(bad, "9 layers at step 200, 10 before");
  bad = good;
  bad.throughput = {{1, {100, 0, 100}}};
  ExpectRefused(bad, "0 tokens/s is no speed");
  bad.throughput = {{1, {100}}, {1, {100}}};
  ExpectRefused(bad, "throughput at 1 active experts is there twice");
}

TEST(MiniatureJudge, ResultsUnderOtherMarginsAreRefused) {
  RequireSameMiniatureClaims(Claims(), Claims().Hash(), "golden/runs/mini.h5");
  try {
    RequireSameMiniatureClaims(Claims(), std::string(64, 'a'), "mini.h5");
    ADD_FAILURE() << "accepted";
  } catch (const DataError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("mini.h5 was recorded under other margins"),
              std::string::npos);
    EXPECT_NE(what.find(std::string(64, 'a')), std::string::npos);
    EXPECT_NE(what.find(Claims().Hash()), std::string::npos);
  }
}

TEST(MiniatureJudge, SeedsNeededIsTheLeastNumberThatDecides) {
  const MiniatureResults results =
      MadeUpResults(Claims(), [](size_t, MiniatureRun* run) {
        // 0.0015 below the margin: leans to shown.
        if (run->row.find("jitter") != std::string::npos) run->loss -= 0.0385;
      });
  const MiniatureVerdicts verdicts = JudgeMiniature(Claims(), results);
  const MiniatureMeasureVerdict& measure = MeasureOf(verdicts, "C7.jitter");
  ASSERT_EQ(measure.status, kUndecided);
  ASSERT_TRUE(measure.leans_to_shown);
  ASSERT_TRUE(measure.seeds_needed.has_value());
  // Two of three cases: p = 2 directions * 2 * the second smallest; all three
  // have the same error, and the same estimate.
  auto p = [&](int64_t seeds) {
    const MiniatureCase& each = measure.cases[measure.deciding];
    const double error =
        each.seed_error * std::sqrt(4.0 / static_cast<double>(seeds));
    const double freedom = 11.0 * (static_cast<double>(seeds) - 1);
    return 4 * StudentCdf((-0.03 - each.estimate) / error, freedom);
  };
  EXPECT_GT(*measure.seeds_needed, 4);
  EXPECT_LE(p(*measure.seeds_needed), 0.05 / 12);
  EXPECT_GT(p(*measure.seeds_needed - 1), 0.05 / 12);
}

TEST(MiniatureJudge, EffectOnTheMarginNeedsMoreSeedsThanAnybodyTrains) {
  const MiniatureVerdicts verdicts = JudgeMiniature(
      Claims(), MadeUpResults(Claims(), [](size_t, MiniatureRun* run) {
        // To the sums' last digits on the margin.
        if (run->row.find("jitter") != std::string::npos) run->loss -= 0.04;
      }));
  const MiniatureMeasureVerdict& measure = MeasureOf(verdicts, "C7.jitter");
  EXPECT_EQ(measure.status, kUndecided);
  EXPECT_FALSE(measure.seeds_needed.has_value());
}

TEST(MiniatureJudge, ResolutionTellsTheGainOfPairing) {
  const MiniatureVerdicts verdicts = Judged();
  ASSERT_EQ(verdicts.resolution.size(), 2u);
  const MiniatureResolution& gcide = verdicts.resolution[0];
  EXPECT_EQ(gcide.corpus, "gcide");
  EXPECT_EQ(gcide.rows, 9);
  EXPECT_EQ(gcide.seeds, 4);
  EXPECT_NEAR(gcide.paired, MadeUpDeviation(), kRounding);
  // Each row has the effects of the seeds, eight have noise.
  EXPECT_NEAR(
      gcide.plain,
      std::sqrt((9 * 2 * (0.05 * 0.05 + 0.03 * 0.03) + 8 * 4 * 1e-6) / 27),
      kRounding);
  EXPECT_NEAR(gcide.paired_freedom, 24, 1e-9);
  // The issue of power is that of the planned grid: 2.1 deviations for one
  // test, 2.8 among twelve.
  EXPECT_NEAR(gcide.one_test / gcide.paired, 2.1, 0.05);
  EXPECT_NEAR(gcide.family / gcide.paired, 2.8, 0.05);
  EXPECT_EQ(verdicts.resolution[1].seeds, 2);
}

}  // namespace
}  // namespace softmoe::golden
