// SPDX-License-Identifier: Apache-2.0
//
// Every claim, worked out by hand on made-up runs whose deviations are known
// exactly.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "golden/testing/miniature_test_util.h"
#include "golden/verdict/miniature_judge.h"
#include "golden/verdict/statistics.h"

namespace softmoe::golden {
namespace {

using enum MiniatureStatus;

// Sums of a hundred numbers near 3, each with a rounding or two.
constexpr double kRounding = 1e-13;

bool IsSparse(const MiniatureRun& run) { return run.row.starts_with("sparse"); }

MiniatureResults WithThroughput(const std::vector<double>& speeds) {
  MiniatureResults results = MadeUpResults(FrozenClaims());
  const std::vector<double>& experts =
      FrozenClaims().claims[8].measures[0].active_experts;
  for (size_t i = 0; i < speeds.size(); ++i) {
    ThroughputSamples samples{experts[i], {}};
    for (const double factor : {0.99, 1.0, 1.01}) {
      samples.tokens_per_second.push_back(factor * speeds[i]);
    }
    results.throughput.push_back(samples);
  }
  return results;
}

TEST(MiniatureClaim, BudgetGroupByHand) {
  const MiniatureVerdicts verdicts = JudgeMadeUp();
  // 1.8 active experts: against Sparse-2, 2.93 - 3.00.
  const MiniatureCase& star =
      CaseOf(verdicts, "C1.group", "gcide", "softmoe-star-1.5-calibrated");
  EXPECT_EQ(star.label, "softmoe-star-1.5-calibrated - sparse-2");
  EXPECT_EQ(star.seeds, 4);
  EXPECT_NEAR(star.estimate, -0.07, kRounding);
  // Nine rows, four seeds, paired: 8 * 3 degrees of freedom.
  EXPECT_DOUBLE_EQ(star.freedom, 24);
  const double error = MadeUpDeviation() * std::sqrt(2.0 / 4);
  EXPECT_NEAR(star.seed_error, error, kRounding);
  EXPECT_DOUBLE_EQ(star.resolves,
                   star.seed_error * (StudentQuantile(1 - 0.05 / 12 / 2, 24) +
                                      StudentQuantile(0.8, 24)));
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

TEST(MiniatureClaim, GroupIsTheSmallestSparseKThatIsEnough) {
  auto label = [](double experts) {
    const MiniatureVerdicts verdicts =
        JudgeMadeUp([&](size_t, MiniatureRun* run) {
          if (run->row == "softmoe-2-calibrated") run->infer_ae = experts;
        });
    return CaseOf(verdicts, "C1.group", "gcide", "softmoe-2-calibrated").label;
  };
  EXPECT_EQ(label(0.7), "softmoe-2-calibrated - sparse-1");
  EXPECT_EQ(label(2), "softmoe-2-calibrated - sparse-2");
  EXPECT_EQ(label(std::nextafter(2, 3)), "softmoe-2-calibrated - sparse-3");
  EXPECT_EQ(label(4), "softmoe-2-calibrated - sparse-4");
}

TEST(MiniatureClaim, MoreThanFourActiveExpertsHaveNoGroupAndNoCurve) {
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->row == "softmoe-2-calibrated") run->infer_ae = 4.25;
  });
  for (const char* measure : {"C1.group", "C1.curve", "C4.balance"}) {
    EXPECT_EQ(MeasureOf(verdicts, measure).status, kNotTestable) << measure;
  }
  EXPECT_NE(MeasureOf(verdicts, "C1.group")
                .reason.find("softmoe-2-calibrated has 4.25 active "
                             "experts, and no sparse row has as many"),
            std::string::npos);
  EXPECT_EQ(ClaimOf(verdicts, "C1").status, kNotTestable);
}

TEST(MiniatureClaim, FewerThanOneActiveExpertHasAGroupButNoCurve) {
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->row == "softmoe-2-calibrated") run->infer_ae = 0.75;
  });
  EXPECT_EQ(MeasureOf(verdicts, "C1.group").status, kShown);
  EXPECT_EQ(MeasureOf(verdicts, "C1.curve").status, kNotTestable);
}

TEST(MiniatureClaim, SparseCurveByHand) {
  // Without noise in the Infer-AE, the curve moves none of the losses.
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
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

// One run of a row may lie beyond an end of the curve, though their mean does
// not: it is compared with the row at that end.
TEST(MiniatureClaim, TheCurveEndsAtItsFirstRow) {
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([](size_t i, MiniatureRun* run) {
        constexpr double kExperts[] = {0.4, 1.6, 1, 1};
        if (run->row == "softmoe-star-1.5-calibrated") {
          run->infer_ae = kExperts[i];
        }
      });
  // 3.10 at k = 1, 3.04 at 1.6.
  EXPECT_NEAR(
      CaseOf(verdicts, "C1.curve", "gcide", "softmoe-star-1.5-calibrated")
          .estimate,
      2.93 - (3 * 3.10 + 3.04) / 4, kRounding);
}

// A run with more active experts has the lower loss for that: what counts is
// its distance from the curve.
TEST(MiniatureClaim, CurveTakesTheEffectOfMoreExpertsOutOfTheNoise) {
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([](size_t i, MiniatureRun* run) {
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

TEST(MiniatureClaim, InAllConfigurationsNeedsEveryPair) {
  // Sparse-4 has 2.92: a loss of 2.97 on one corpus is enough.
  const MiniatureVerdicts reversed = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->corpus == "gcide") AddToLoss("softmoe-2-calibrated", 0.13, run);
  });
  EXPECT_EQ(MeasureOf(reversed, "C1.group").status, kContradicted);
  EXPECT_EQ(ClaimOf(reversed, "C1").status, kContradicted);
  const MiniatureMeasureVerdict& measure = MeasureOf(reversed, "C1.group");
  EXPECT_FALSE(measure.leans_to_shown);
  EXPECT_EQ(measure.cases[measure.deciding].label,
            "softmoe-2-calibrated - sparse-4");
  // Any one reversed case of ten would do: Bonferroni over them.
  EXPECT_EQ(measure.p, 2 * 10 * measure.cases[measure.deciding].p_contradicted);
  // With one pair alike, nine are not enough, and nothing is contradicted.
  const MiniatureVerdicts alike = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->corpus == "gcide") AddToLoss("softmoe-2-calibrated", 0.0805, run);
  });
  EXPECT_EQ(MeasureOf(alike, "C1.group").status, kUndecided);
}

TEST(MiniatureClaim, LaterLayersByHand) {
  const MiniatureVerdicts verdicts = JudgeMadeUp();
  // The last three of ten: 3 k + 0.8 * (0.25 + 0.35 + 0.45) of 10 k.
  const MiniatureCase& share =
      CaseOf(verdicts, "C2.share", "gcide", "softmoe-2-calibrated");
  EXPECT_NEAR(share.estimate, 0.8 * 1.05 / 20, kRounding);
  // Two rows, four seeds, not paired.
  EXPECT_DOUBLE_EQ(share.freedom, 6);
  const MiniatureCase& order =
      CaseOf(verdicts, "C2.order", "gcide", "softmoe-2-calibrated");
  EXPECT_EQ(order.estimate, 1);
  // Without any deviation, one exchange of neighbours is assumed, 2 of 45.
  EXPECT_NEAR(order.seed_error, 2.0 / 45 / 2, kRounding);
}

// Of ten layers only the last three count.
TEST(MiniatureClaim, ShareIsThatOfTheLastThreeOfTenLayers) {
  auto status = [](const std::vector<double>& final) {
    const MiniatureVerdicts verdicts =
        JudgeMadeUp([&](size_t i, MiniatureRun* run) {
          if (run->allocation.empty()) return;
          std::vector<double> allocation = final;
          allocation[0] += 0.01 * static_cast<double>(i % 2);
          run->allocation = {{1000, allocation}};
        });
    return MeasureOf(verdicts, "C2.share").status;
  };
  // Layers 6 and 7, which half of the layers would include, have little.
  EXPECT_EQ(status({2, 2, 2, 2, 2, 1, 1, 2.4, 2.4, 2.4}), kShown);
  // They have much, and the last three have little, as have the first three.
  EXPECT_EQ(status({1, 1, 1, 2, 2, 4, 4, 1.5, 1.5, 1.5}), kContradicted);
  EXPECT_EQ(status({3, 3, 3, 2, 2, 2, 2, 1, 1, 1}), kContradicted);
}

TEST(MiniatureClaim, OrderIsKendallsTauAndTiesCountAsNeither) {
  auto order = [](const std::vector<double>& final) {
    const MiniatureVerdicts verdicts =
        JudgeMadeUp([&](size_t, MiniatureRun* run) {
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

TEST(MiniatureClaim, OrderThatFallsWithDepthIsContradicted) {
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
    for (AllocationPoint& point : run->allocation) {
      point.allocation = {point.allocation.rbegin(), point.allocation.rend()};
    }
  });
  EXPECT_EQ(MeasureOf(verdicts, "C2.order").status, kContradicted);
  EXPECT_EQ(MeasureOf(verdicts, "C2.share").status, kContradicted);
}

TEST(MiniatureClaim, EarlyMovementByHand) {
  const MiniatureVerdicts verdicts = JudgeMadeUp();
  // At 150 of 1000 steps: half way from 0.6 to 0.8.
  const MiniatureCase& early =
      CaseOf(verdicts, "C3.early", "gcide", "softmoe-1.5-calibrated");
  EXPECT_NEAR(early.estimate, 0.7, 1e-3);  // its noise is not linear
  EXPECT_EQ(MeasureOf(verdicts, "C3.early").cases.size(), 2u);
  auto status = [](double half_way) {
    const MiniatureVerdicts changed =
        JudgeMadeUp([&](size_t i, MiniatureRun* run) {
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
TEST(MiniatureClaim, MovementTheWrongWayIsNotDone) {
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([](size_t i, MiniatureRun* run) {
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

TEST(MiniatureClaim, AllocationThatHardlyMovesIsNotTestable) {
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
    for (AllocationPoint& point : run->allocation) {
      const double mean = run->row.starts_with("softmoe-2") ? 2 : 1.5;
      for (double& k : point.allocation) k = mean + 0.1 * (k - mean);
    }
  });
  EXPECT_EQ(ClaimOf(verdicts, "C3").status, kNotTestable);
  EXPECT_NE(MeasureOf(verdicts, "C3.early").reason.find("less than 0.01"),
            std::string::npos);
}

TEST(MiniatureClaim, LoadBalanceIsAlikeWithinAFactorOfTwoEitherWay) {
  auto status = [](double factor) {
    const MiniatureVerdicts verdicts =
        JudgeMadeUp([&](size_t, MiniatureRun* run) {
          if (run->row == "softmoe-2-calibrated") run->load_variance *= factor;
        });
    return ClaimOf(verdicts, "C4").status;
  };
  EXPECT_EQ(status(1.5), kShown);
  EXPECT_EQ(status(1 / 1.5), kShown);
  EXPECT_EQ(status(3), kContradicted);
  EXPECT_EQ(status(1 / 3.0), kContradicted);
  EXPECT_EQ(status(2), kUndecided);
  EXPECT_EQ(status(0.5), kUndecided);
  EXPECT_EQ(status(0), kNotTestable);
}

TEST(MiniatureClaim, WithinTakesTheWorseOfBothSides) {
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([&](size_t, MiniatureRun* run) {
        if (run->row == "softmoe-2-calibrated") run->load_variance *= 1.5;
      });
  const MiniatureCase& balance =
      CaseOf(verdicts, "C4.balance", "gcide", "softmoe-2-calibrated");
  EXPECT_NEAR(balance.estimate, std::log(1.5), kRounding);
  EXPECT_EQ(balance.p_shown,
            StudentCdf((balance.estimate - std::log(2.0)) / balance.seed_error,
                       balance.freedom));
}

TEST(MiniatureClaim, TypicallyIsMoreThanHalfOfThePairs) {
  const MiniatureVerdicts as_is = JudgeMadeUp();
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
  const MiniatureVerdicts one = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->corpus == "gcide") AddToLoss("softmoe-2-calibrated", 0.05, run);
  });
  EXPECT_EQ(MeasureOf(one, "C5.loss").status, kShown);
  // With two, three can no longer hold.
  const MiniatureVerdicts two = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->corpus == "gcide") {
      AddToLoss("softmoe-2-calibrated", 0.05, run);
      AddToLoss("softmoe-1.5-calibrated", 0.05, run);
    }
  });
  EXPECT_EQ(MeasureOf(two, "C5.loss").status, kContradicted);
}

TEST(MiniatureClaim, AClaimIsShownIfEveryMeasureIs) {
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([](size_t i, MiniatureRun* run) {
        if (run->row.starts_with("softmoe-star")) return;
        if (run->row.starts_with("softmoe")) {
          run->infer_ae += i % 2 == 0 ? 0.5 : -0.5;
        }
      });
  EXPECT_EQ(MeasureOf(verdicts, "C5.loss").status, kShown);
  EXPECT_EQ(MeasureOf(verdicts, "C5.experts").status, kUndecided);
  EXPECT_EQ(ClaimOf(verdicts, "C5").status, kUndecided);
}

TEST(MiniatureClaim, HellaswagIsNotTestableWhileNoRowIsAboveChance) {
  auto judged = [](double soft, double sparse) {
    return JudgeMadeUp([=](size_t i, MiniatureRun* run) {
      const double noise = i % 2 == 0 ? 1e-4 : -1e-4;
      run->hellaswag = (IsSparse(*run) ? sparse - noise : soft + noise);
    });
  };
  // 1.96 * sqrt(0.25 * 0.75 / 10042) = 0.0085 above chance.
  const MiniatureVerdicts chance = judged(0.258, 0.25);
  EXPECT_EQ(ClaimOf(chance, "C6").status, kNotTestable);
  EXPECT_NE(MeasureOf(chance, "C6.hellaswag").reason.find("above chance"),
            std::string::npos);
  // The sampling of the items is the larger noise: 1.96 * sqrt(2) * 0.0045.
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

// The items still may be others: that is a number to compare with.
TEST(MiniatureClaim, HellaswagIsTestedThoughAllSeedsAgree) {
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
    run->hellaswag = IsSparse(*run) ? 0.25 : 0.5;
  });
  const MiniatureCase& pair =
      CaseOf(verdicts, "C6.hellaswag", "gcide", "softmoe-2-calibrated");
  EXPECT_EQ(pair.seed_error, 0);
  EXPECT_EQ(pair.problem, "");
  EXPECT_EQ(ClaimOf(verdicts, "C6").status, kShown);
}

TEST(MiniatureClaim, JitterMayLowerTheLossByThreeHundredthsOfANat) {
  auto status = [](double difference) {
    const MiniatureVerdicts verdicts =
        JudgeMadeUp([&](size_t, MiniatureRun* run) {
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

TEST(MiniatureClaim, HalvingByHand) {
  const MiniatureVerdicts verdicts = JudgeMadeUp();
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
  EXPECT_DOUBLE_EQ(halving.freedom, 15);
  const MiniatureVerdicts dear = JudgeMadeUp([](size_t, MiniatureRun* run) {
    for (TauPoint& point : run->at_tau) {
      if (point.factor > 1) point.loss += 0.2;
    }
  });
  EXPECT_EQ(ClaimOf(dear, "C8").status, kContradicted);
}

TEST(MiniatureClaim, HalvingIsNotTestableWhereHalfIsNotReached) {
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (!run->at_tau.empty()) run->at_tau.back().infer_ae *= 1.3;
  });
  EXPECT_EQ(ClaimOf(verdicts, "C8").status, kNotTestable);
  EXPECT_NE(MeasureOf(verdicts, "C8.halving")
                .reason.find("at 2 times the trained tau, more than half"),
            std::string::npos);
  const MiniatureVerdicts none =
      JudgeMadeUp([](size_t, MiniatureRun* run) { run->at_tau.clear(); });
  EXPECT_EQ(ClaimOf(none, "C8").status, kNotTestable);
}

TEST(MiniatureClaim, HalvingIsNotTestableWhereSparseRowsAreAlike) {
  const MiniatureVerdicts verdicts = JudgeMadeUp(
      [](size_t, MiniatureRun* run) { AddToLoss("sparse-1", -0.18, run); });
  EXPECT_EQ(ClaimOf(verdicts, "C8").status, kNotTestable);
  EXPECT_NE(MeasureOf(verdicts, "C8.halving")
                .reason.find("sparse-1 is not surely above sparse-4"),
            std::string::npos);
}

TEST(MiniatureClaim, ThroughputMustFallAtEveryStep) {
  auto judged = [](const std::vector<double>& speeds) {
    return JudgeMiniature(FrozenClaims(), WithThroughput(speeds));
  };
  const MiniatureVerdicts falling = judged({500, 400, 300, 200, 150});
  EXPECT_EQ(ClaimOf(falling, "C9").status, kShown);
  const MiniatureCase& first = MeasureOf(falling, "C9.throughput").cases[0];
  EXPECT_EQ(first.label, "AE 1 - AE 1.5");
  EXPECT_NEAR(first.estimate, std::log(500.0 / 400), kRounding);
  EXPECT_EQ(first.seeds, 3);
  EXPECT_DOUBLE_EQ(first.freedom, 10);  // five points, three samples each
  EXPECT_EQ(ClaimOf(judged({500, 600, 300, 200, 150}), "C9").status,
            kContradicted);
  EXPECT_EQ(ClaimOf(judged({500, 400, 300, 200}), "C9").status, kNotTestable);
  MiniatureResults few = WithThroughput({500, 400, 300, 200, 150});
  few.throughput[2].tokens_per_second.pop_back();
  const MiniatureVerdicts verdicts = JudgeMiniature(FrozenClaims(), few);
  EXPECT_EQ(ClaimOf(verdicts, "C9").status, kNotTestable);
  EXPECT_NE(MeasureOf(verdicts, "C9.throughput")
                .reason.find("2 samples at AE 2, 3 are needed"),
            std::string::npos);
}

}  // namespace
}  // namespace softmoe::golden
