// SPDX-License-Identifier: Apache-2.0
//
// Every claim worked out by hand, on made-up runs with exactly known
// deviations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/testing/message_test_util.h"
#include "golden/testing/miniature_test_util.h"
#include "golden/verdict/miniature_judge.h"
#include "golden/verdict/statistics.h"

namespace softmoe::golden {
namespace {

using enum MiniatureStatus;

bool IsSparse(const MiniatureRun& run) { return run.row.starts_with("sparse"); }

MiniatureResults WithThroughput(const std::vector<double>& speeds) {
  MiniatureResults results = MadeUpResults(FrozenClaims());
  const std::vector<double>& experts =
      FrozenClaims().claims.back().measures[0].active_experts;
  for (size_t i = 0; i < speeds.size(); ++i) {
    ThroughputSamples samples{experts[i], {}, "soft"};
    for (const double factor : {0.99, 1.0, 1.01}) {
      samples.tokens_per_second.push_back(factor * speeds[i]);
    }
    results.throughput.push_back(samples);
  }
  return results;
}

TEST(MiniatureClaim, BudgetGroupByHand) {
  const MiniatureVerdicts verdicts = JudgeMadeUp();
  // At 1.8 active experts, against Sparse-2: 2.93 - 3.00.
  const MiniatureCase& star =
      CaseOf(verdicts, "C1a.group", "gcide", "softmoe-star-1.5-calibrated");
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
  // Six cases, three rows on two corpora; all must hold.
  const MiniatureMeasureVerdict& measure = MeasureOf(verdicts, "C1a.group");
  EXPECT_EQ(measure.cases.size(), 6u);
  EXPECT_EQ(measure.cases_needed, 6);
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
          if (run->row == "softmoe-star-2-calibrated") run->infer_ae = experts;
        });
    return CaseOf(verdicts, "C1a.group", "gcide", "softmoe-star-2-calibrated")
        .label;
  };
  EXPECT_EQ(label(0.7), "softmoe-star-2-calibrated - sparse-1");
  EXPECT_EQ(label(2), "softmoe-star-2-calibrated - sparse-2");
  EXPECT_EQ(label(std::nextafter(2, 3)),
            "softmoe-star-2-calibrated - sparse-3");
  EXPECT_EQ(label(4), "softmoe-star-2-calibrated - sparse-4");
}

TEST(MiniatureClaim, MoreThanFourActiveExpertsHaveNoGroupAndNoCurve) {
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->row == "softmoe-star-2-calibrated") run->infer_ae = 4.25;
  });
  for (const char* measure : {"C1a.group", "C1a.curve", "C4.balance"}) {
    EXPECT_EQ(MeasureOf(verdicts, measure).status, kNotTestable) << measure;
  }
  EXPECT_TRUE(Says(MeasureOf(verdicts, "C1a.group").reason,
                   "softmoe-star-2-calibrated has 4.25 active "
                   "experts, and no sparse row has as many"));
  EXPECT_EQ(ClaimOf(verdicts, "C1a").status, kNotTestable);
}

TEST(MiniatureClaim, FewerThanOneActiveExpertHasAGroupButNoCurve) {
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->row == "softmoe-star-2-calibrated") run->infer_ae = 0.75;
  });
  EXPECT_EQ(MeasureOf(verdicts, "C1a.group").status, kShown);
  EXPECT_EQ(MeasureOf(verdicts, "C1a.curve").status, kNotTestable);
}

TEST(MiniatureClaim, SparseCurveByHand) {
  // Without noise in the Infer-AE the curve adds nothing to the losses.
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->row == "softmoe-star-1.5-calibrated") run->infer_ae = 1.8;
  });
  const MiniatureCase& star =
      CaseOf(verdicts, "C1a.curve", "gcide", "softmoe-star-1.5-calibrated");
  // 3.10 at k = 1, 3.00 at k = 2: 3.02 at 1.8.
  EXPECT_NEAR(star.estimate, 2.93 - 3.02, kRounding);
  EXPECT_EQ(star.seeds, 4);
  EXPECT_TRUE(star.own_deviation.empty());
  // The curve's own noise: weight 0.2 on Sparse-1 and 0.8 on Sparse-2.
  const MiniatureCase& group =
      CaseOf(verdicts, "C1a.group", "gcide", "softmoe-star-1.5-calibrated");
  const double per_run = group.seed_error / std::sqrt(2.0 / 4);
  // Other rows' Infer-AE moves them along the curve: a slope of at most 0.1
  // nat/expert times 0.003 experts, less than a third of their noise.
  EXPECT_NEAR(star.seed_error,
              per_run * std::sqrt((1 + 0.2 * 0.2 + 0.8 * 0.8) / 4),
              0.3 * per_run);
}

// One run of a row may lie beyond an end of the curve although the mean does
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
      CaseOf(verdicts, "C1a.curve", "gcide", "softmoe-star-1.5-calibrated")
          .estimate,
      2.93 - (3 * 3.10 + 3.04) / 4, kRounding);
}

// A run with more active experts has a lower loss for that reason: its distance
// from the curve counts.
TEST(MiniatureClaim, CurveTakesTheEffectOfMoreExpertsOutOfTheNoise) {
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([](size_t i, MiniatureRun* run) {
        if (run->row != "softmoe-star-1.5-calibrated") return;
        const double more = i % 2 == 0 ? 0.1 : -0.1;
        run->infer_ae = 1.5 + more;
        run->loss -= 0.1 * more;  // the slope between Sparse-1 and Sparse-2
      });
  const MiniatureCase& curve =
      CaseOf(verdicts, "C1a.curve", "gcide", "softmoe-star-1.5-calibrated");
  const MiniatureCase& group =
      CaseOf(verdicts, "C1a.group", "gcide", "softmoe-star-1.5-calibrated");
  EXPECT_NEAR(curve.estimate, 2.93 - 3.05, kRounding);
  EXPECT_LT(curve.seed_error, 0.5 * group.seed_error);
}

TEST(MiniatureClaim, InAllConfigurationsNeedsEveryPair) {
  // Sparse-4 has 2.92: a loss of 2.98 on one corpus is enough.
  const MiniatureVerdicts reversed = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->corpus == "gcide")
      AddToLoss("softmoe-star-1-calibrated", 0.13, run);
  });
  EXPECT_EQ(MeasureOf(reversed, "C1a.group").status, kContradicted);
  EXPECT_EQ(ClaimOf(reversed, "C1a").status, kContradicted);
  const MiniatureMeasureVerdict& measure = MeasureOf(reversed, "C1a.group");
  EXPECT_FALSE(measure.leans_to_shown);
  EXPECT_EQ(measure.cases[measure.deciding].label,
            "softmoe-star-1-calibrated - sparse-4");
  // Any of the six cases could be the reversed one: Bonferroni over them.
  EXPECT_EQ(measure.p, 2 * 6 * measure.cases[measure.deciding].p_contradicted);
  // If one pair is equal, five are not enough, and nothing is contradicted.
  const MiniatureVerdicts alike = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->corpus == "gcide")
      AddToLoss("softmoe-star-1-calibrated", 0.0705, run);
  });
  EXPECT_EQ(MeasureOf(alike, "C1a.group").status, kUndecided);
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
  // With zero deviation, one exchange of neighbours is assumed: 2 of 45.
  EXPECT_NEAR(order.seed_error, 2.0 / 45 / 2, kRounding);
}

// Only the last three of ten layers count.
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
  // They have much; the last three have little, as do the first three.
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

TEST(MiniatureClaim, ShareThatFallsWithDepthIsContradicted) {
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
    for (AllocationPoint& point : run->allocation) {
      point.allocation = {point.allocation.rbegin(), point.allocation.rend()};
    }
  });
  EXPECT_EQ(MeasureOf(verdicts, "C2.share").status, kContradicted);
  // The order is reported whatever it is.
  const MiniatureMeasureVerdict& order = MeasureOf(verdicts, "C2.order");
  EXPECT_EQ(order.status, kReported);
  EXPECT_EQ(order.reason, "reported, not judged: -1 to -1 in 4 cases");
}

TEST(MiniatureClaim, EarlyMovementByHand) {
  const MiniatureVerdicts verdicts = JudgeMadeUp();
  // At 150 of 1000 steps: half way from 0.6 to 0.8.
  const MiniatureCase& early =
      CaseOf(verdicts, "C3.early", "gcide", "softmoe-1.5-calibrated");
  EXPECT_NEAR(early.estimate, 0.7, 1e-3);  // its noise is nonlinear
  EXPECT_EQ(MeasureOf(verdicts, "C3.early").cases.size(), 2u);
  auto status = [](double half_way) {
    const MiniatureVerdicts changed =
        JudgeMadeUp([&](size_t i, MiniatureRun* run) {
          if (run->allocation.empty()) return;
          std::vector<double> between = run->allocation.back().allocation;
          const double mean = run->row.starts_with("softmoe-2") ? 2 : 1.5;
          const double done = half_way + 0.01 * static_cast<double>(i % 2);
          for (double& k : between) k = mean + done * (k - mean);
          run->allocation = {{300, between, 4}, run->allocation.back()};
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
        run->allocation = {{150, away, 2}, run->allocation.back()};
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
  EXPECT_TRUE(Says(MeasureOf(verdicts, "C3.early").reason, "less than 0.01"));
}

// The mean of ten rows' cases, each of two corpora with five.
TEST(MiniatureClaim, LoadBalanceIsAlikeInTheMeanWithinAFactorOfTwoEitherWay) {
  auto verdict = [](double factor, const char* row) {
    const MiniatureVerdicts verdicts =
        JudgeMadeUp([&](size_t, MiniatureRun* run) {
          if (run->row.starts_with(row)) run->load_variance *= factor;
        });
    const MiniatureMeasureVerdict& balance = MeasureOf(verdicts, "C4.balance");
    EXPECT_EQ(balance.cases.size(), 1u);
    EXPECT_EQ(balance.parts.size(), 10u);
    EXPECT_EQ(balance.cases_needed, 1);
    return balance.status;
  };
  EXPECT_EQ(verdict(1.5, "softmoe"), kShown);
  EXPECT_EQ(verdict(1 / 1.5, "softmoe"), kShown);
  EXPECT_EQ(verdict(3, "softmoe"), kContradicted);
  EXPECT_EQ(verdict(1 / 3.0, "softmoe"), kContradicted);
  EXPECT_EQ(verdict(2, "softmoe"), kUndecided);
  EXPECT_EQ(verdict(0.5, "softmoe"), kUndecided);
  // One row of five is off by a factor of three, the mean by 1.25.
  EXPECT_EQ(verdict(3, "softmoe-2-calibrated"), kShown);
  EXPECT_EQ(verdict(0, "softmoe-2-calibrated"), kNotTestable);
}

TEST(MiniatureClaim, MeanOfRowsByHand) {
  const MiniatureVerdicts verdicts = JudgeMadeUp();
  const MiniatureMeasureVerdict& balance = MeasureOf(verdicts, "C4.balance");
  const MiniatureCase& mean = balance.cases[0];
  EXPECT_EQ(mean.label, "mean of 5 on 2 corpora each");
  EXPECT_EQ(mean.corpus, "");
  EXPECT_EQ(mean.seeds, 2);
  double estimate = 0;
  for (const MiniatureCase& part : balance.parts) {
    EXPECT_EQ(part.problem, "");
    estimate += part.estimate / 10;
  }
  EXPECT_NEAR(mean.estimate, estimate, kRounding);
  // Groups: Sparse-4 of star-1, star-2 and learned 2, Sparse-2 of star-1.5,
  // Sparse-3 of learned 1.5. In fifths: five soft rows with 1, sparse rows with
  // -3, -1 and -1.
  const double weights = (5 + 9 + 1 + 1) / 25.0;
  ASSERT_EQ(mean.sources.size(), 2u);
  double variance = 0, squares = 0;
  for (const ErrorSource& source : mean.sources) {
    const MiniatureCase& part =
        CaseOf(verdicts, "C4.balance", source.seeds == 4 ? "gcide" : "foldoc",
               "softmoe-star-1-calibrated");
    ASSERT_FALSE(part.not_pooled);
    // A part has the weights 1 and -1; half of each corpus's mean counts.
    const double square = part.seed_error * part.seed_error / 2 * weights / 4;
    EXPECT_NEAR(source.error, std::sqrt(square), kRounding);
    variance += square;
    squares += square * square / part.freedom;
  }
  EXPECT_NEAR(mean.seed_error, std::sqrt(variance), kRounding);
  EXPECT_NEAR(mean.freedom, variance * variance / squares, 1e-9);
  EXPECT_EQ(mean.p_shown, StudentCdf((std::abs(mean.estimate) - std::log(2.0)) /
                                         mean.seed_error,
                                     mean.freedom));
}

TEST(MiniatureClaim, BalanceNeedsBothReadingsOfItsLoss) {
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (!run->load_balance.empty()) run->load_balance = "soft";
  });
  const MiniatureMeasureVerdict& balance = MeasureOf(verdicts, "C4.balance");
  EXPECT_EQ(balance.status, kNotTestable);
  EXPECT_FALSE(balance.could_be_shown);
  EXPECT_EQ(balance.reason,
            "no run has the reading megatron of the balance loss, which the "
            "claim needs beside the other");
  // Its parts are still shown.
  EXPECT_EQ(balance.parts[0].problem, "");
  EXPECT_EQ(ClaimOf(verdicts, "C4").status, kNotTestable);
}

// Otherwise readings and corpora would differ together.
TEST(MiniatureClaim, BalanceNeedsBothReadingsOnEachCorpus) {
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->load_balance.empty()) return;
    run->load_balance = run->corpus == "foldoc" ? "megatron" : "soft";
  });
  const MiniatureMeasureVerdict& balance = MeasureOf(verdicts, "C4.balance");
  EXPECT_EQ(balance.status, kNotTestable);
  EXPECT_TRUE(Says(balance.reason,
                   "no run on foldoc has the reading soft of the",
                   "no run on gcide has the reading megatron of the"));
}

TEST(MiniatureClaim, ARowThatMixesReadingsIsNotTestable) {
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([](size_t i, MiniatureRun* run) {
        if (run->row == "softmoe-star-2-calibrated" && i == 1) {
          run->load_balance = "megatron";
        }
      });
  EXPECT_EQ(MeasureOf(verdicts, "C1a.group").status, kNotTestable);
  EXPECT_TRUE(Says(MeasureOf(verdicts, "C1a.group").reason,
                   "gcide: softmoe-star-2-calibrated mixes readings "
                   "of the balance loss, 'soft' and 'megatron'"));
}

TEST(MiniatureClaim, TypicallyIsMoreThanHalfOfThePairs) {
  const MiniatureVerdicts as_is = JudgeMadeUp();
  const MiniatureMeasureVerdict& loss = MeasureOf(as_is, "C5.loss");
  EXPECT_EQ(loss.cases.size(), 4u);
  EXPECT_EQ(loss.cases_needed, 3);
  EXPECT_NEAR(
      CaseOf(as_is, "C5.loss", "gcide", "softmoe-2-calibrated").estimate,
      2.84 - 2.87, kRounding);
  // One pair of four reversed: still typical.
  const MiniatureVerdicts one = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->corpus == "gcide") AddToLoss("softmoe-2-calibrated", 0.05, run);
  });
  EXPECT_EQ(MeasureOf(one, "C5.loss").status, kShown);
  // With two reversed, three can no longer hold.
  const MiniatureVerdicts two = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->corpus == "gcide") {
      AddToLoss("softmoe-2-calibrated", 0.05, run);
      AddToLoss("softmoe-1.5-calibrated", 0.05, run);
    }
  });
  EXPECT_EQ(MeasureOf(two, "C5.loss").status, kContradicted);
}

TEST(MiniatureClaim, MoreExpertsInTheMeanStandBesideTheirCaps) {
  const MiniatureVerdicts verdicts = JudgeMadeUp();
  const MiniatureMeasureVerdict& experts = MeasureOf(verdicts, "C5.experts");
  EXPECT_EQ(experts.status, kShown);
  ASSERT_EQ(experts.cases.size(), 1u);
  ASSERT_EQ(experts.parts.size(), 4u);
  // 2.2 - 1.8 and 3.6 - 3.2 on both corpora; caps 4.5 against 4.
  EXPECT_NEAR(experts.cases[0].estimate, 0.4, kRounding);
  EXPECT_EQ(experts.cases[0].cap_rise, 0.5);
  EXPECT_TRUE(Says(experts.reason,
                   "rounding of caps alone gives +0.50 (gcide: "
                   "softmoe-1.5-calibrated - "
                   "softmoe-star-1.5-calibrated), +0.50",
                   "which is 1.25 of the effect"));
  // One pair is far below zero: the mean counts, not the number of pairs.
  const MiniatureVerdicts one = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (run->row == "softmoe-2-calibrated") run->infer_ae -= 1.5;
  });
  EXPECT_EQ(MeasureOf(one, "C5.experts").status, kContradicted);
}

// Learned rows far below the caps of the fixed ones: nothing is pooled; each
// difference uses its own deviation, seed by seed.
TEST(MiniatureClaim, RowsThatScatterUnequallyAreNotPooled) {
  const double kNoise[] = {0.05, -0.03, -0.04, 0.02};
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([&](size_t i, MiniatureRun* run) {
        if (run->corpus != "gcide") return;
        if (run->row.starts_with("softmoe-star")) {
          run->infer_ae += 1e-5 * kNoise[(i + 1) % 4];
        } else if (run->row == "softmoe-1.5-calibrated") {
          run->infer_ae += kNoise[i];
        } else if (run->row == "softmoe-2-calibrated") {
          run->infer_ae += 2 * kNoise[3 - i];
        }
      });
  const MiniatureCase& pair =
      CaseOf(verdicts, "C5.experts", "gcide", "softmoe-1.5-calibrated");
  EXPECT_TRUE(pair.not_pooled);
  EXPECT_LT(pair.bartlett, 0.01);
  EXPECT_EQ(pair.freedom, 3);
  EXPECT_EQ(pair.seed_error, pair.own_error);
  // The mean on gcide uses the deviation of the mean of both differences.
  const MiniatureMeasureVerdict& experts = MeasureOf(verdicts, "C5.experts");
  EXPECT_TRUE(experts.cases[0].not_pooled);
  EXPECT_EQ(experts.cases[0].sources[0].freedom, 3);
  EXPECT_TRUE(
      Says(experts.reason,
           "not pooled, for the rows scatter unequally (Bartlett, gcide"));
  // Losses are pooled as usual.
  EXPECT_FALSE(CaseOf(verdicts, "C5.loss", "gcide", "softmoe-1.5-calibrated")
                   .not_pooled);
}

// A row that is left out of the pool does not prevent pooling the others.
TEST(MiniatureClaim, RowsThatAreLeftOutAreNotHeldAgainstTheOthers) {
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([](size_t i, MiniatureRun* run) {
        if (run->corpus == "gcide" && run->row == "softmoe-star-2-calibrated") {
          run->load_variance *= i < 2 ? 10 : 0.1;
        }
      });
  const MiniatureCase& other =
      CaseOf(verdicts, "C4.balance", "gcide", "softmoe-star-1-calibrated");
  EXPECT_FALSE(other.not_pooled) << other.bartlett;
  EXPECT_EQ(other.left_out,
            std::vector<std::string>{"softmoe-star-2-calibrated"});
  EXPECT_TRUE(other.own_deviation.empty());
  // Named although no difference contains it.
  EXPECT_TRUE(Says(MeasureOf(verdicts, "C4.balance").reason,
                   "left out of the pool: gcide/softmoe-star-2-calibrated"));
}

// The pairs' same difference, by the pool and by their own deviations.
TEST(MiniatureClaim, SaysWhatPWouldBeIfNothingWerePooled) {
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([](size_t i, MiniatureRun* run) {
        if (run->row.find("jitter") != std::string::npos) {
          run->loss += i == 0 ? 0.002 : 0;
        }
      });
  const MiniatureMeasureVerdict& jitter = MeasureOf(verdicts, "C7.jitter");
  ASSERT_TRUE(jitter.p_not_pooled.has_value());
  std::vector<double> p;
  for (const MiniatureCase& each : jitter.cases) {
    EXPECT_EQ(each.own_freedom, 3);
    p.push_back(StudentCdf((-0.03 - each.estimate) / each.own_error, 3));
  }
  std::ranges::sort(p);
  // Two of three must hold: two directions, and Bonferroni over two cases.
  EXPECT_DOUBLE_EQ(*jitter.p_not_pooled, 2 * 2 * p[1]);
  EXPECT_GT(*jitter.p_not_pooled, jitter.p);
}

TEST(MiniatureClaim, MatchesOrOutperformsAllowsAHundredthOfANat) {
  auto status = [](double worse) {
    const MiniatureVerdicts verdicts =
        JudgeMadeUp([&](size_t, MiniatureRun* run) {
          // On the curve: 2.99 at 2.2 and 2.932 at 3.6 active experts.
          if (run->row == "softmoe-1.5-calibrated") {
            run->infer_ae = 2.2;
            run->loss += 2.99 - 2.90 + worse;
          } else if (run->row == "softmoe-2-calibrated") {
            run->infer_ae = 3.6;
            run->loss += 2.932 - 2.84 + worse;
          }
        });
    return ClaimOf(verdicts, "C1b").status;
  };
  EXPECT_EQ(status(0), kShown);
  EXPECT_EQ(status(0.003), kShown);
  EXPECT_EQ(status(0.01), kUndecided);
  EXPECT_EQ(status(0.03), kContradicted);
}

// 2 and 1.5 in ten layers: softmax 0.2333 and 0.0429, 0.3 and 0.0143; half of
// the way there ln(0.1667 / 0.0714) / 2 and ln(0.2 / 0.0571) / 2.
TEST(MiniatureClaim, EarlyNeedsLearningRatesThatCouldMoveTheLogits) {
  auto reason = [](double rates) {
    const MiniatureVerdicts verdicts =
        JudgeMadeUp([&](size_t, MiniatureRun* run) {
          for (AllocationPoint& point : run->allocation) {
            point.learning_rate_sum = rates * static_cast<double>(point.step);
          }
        });
    const MiniatureMeasureVerdict& early = MeasureOf(verdicts, "C3.early");
    EXPECT_EQ(early.could_be_shown, early.status != kNotTestable);
    EXPECT_EQ(early.status == kNotTestable,
              ClaimOf(verdicts, "C3").status == kNotTestable);
    return early.status == kNotTestable ? early.reason : "";
  };
  // The judged step is 150.
  EXPECT_EQ(reason(0.6265 / 150), "");
  const std::string k15 =
      "gcide: the learning rates of softmoe-1.5-calibrated add up to ";
  const std::string k20 =
      "gcide: the learning rates of softmoe-2-calibrated add up to ";
  EXPECT_EQ(reason(0.6262 / 150),
            k15 + "0.63 by then, and 0.5 of the paper's movement needs 0.63");
  EXPECT_EQ(reason(0.4237 / 150),
            k15 + "0.42 by then, and 0.5 of the paper's movement needs 0.63");
  EXPECT_EQ(reason(0.4236 / 150),
            k15 + "0.42 by then, and 0.5 of the paper's movement needs 0.63; " +
                k20 +
                "0.42 by then, and 0.5 of the paper's movement needs "
                "0.42");
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
  EXPECT_TRUE(Says(MeasureOf(chance, "C6.hellaswag").reason, "above chance"));
  // The items' sampling noise is larger: 1.96 * sqrt(2) * 0.0045.
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

// Other items could still have been drawn: that noise can be tested against.
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
      CaseOf(verdicts, "H1.halving", "gcide", "softmoe-2-calibrated");
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
  EXPECT_EQ(ClaimOf(dear, "H1").status, kContradicted);
}

TEST(MiniatureClaim, HalvingIsNotTestableWhereHalfIsNotReached) {
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
    if (!run->at_tau.empty()) run->at_tau.back().infer_ae *= 1.3;
  });
  EXPECT_EQ(ClaimOf(verdicts, "H1").status, kNotTestable);
  EXPECT_TRUE(Says(MeasureOf(verdicts, "H1.halving").reason,
                   "at 2 times the trained tau, more than half"));
  const MiniatureVerdicts none =
      JudgeMadeUp([](size_t, MiniatureRun* run) { run->at_tau.clear(); });
  EXPECT_EQ(ClaimOf(none, "H1").status, kNotTestable);
}

TEST(MiniatureClaim, HalvingIsNotTestableWhereSparseRowsAreAlike) {
  const MiniatureVerdicts verdicts = JudgeMadeUp(
      [](size_t, MiniatureRun* run) { AddToLoss("sparse-1", -0.18, run); });
  EXPECT_EQ(ClaimOf(verdicts, "H1").status, kNotTestable);
  EXPECT_TRUE(Says(MeasureOf(verdicts, "H1.halving").reason,
                   "sparse-1 is not surely above sparse-4"));
}

TEST(MiniatureClaim, ThroughputIsThatOfTheSoftRouter) {
  MiniatureResults results = WithThroughput({500, 400, 300, 200, 150});
  results.throughput[2].router = "sparse";
  // A router other than the soft one at the same number changes nothing.
  results.throughput.push_back({1, {1, 1, 1}, "sparse"});
  const MiniatureVerdicts verdicts = JudgeMiniature(FrozenClaims(), results);
  const MiniatureMeasureVerdict& throughput =
      MeasureOf(verdicts, "H2.throughput");
  EXPECT_EQ(throughput.status, kNotTestable);
  EXPECT_EQ(throughput.reason,
            "the benchmark at AE 2 is of the sparse router, not of the soft "
            "one");
  EXPECT_EQ(throughput.cases[0].problem, "");
}

TEST(MiniatureClaim, ThroughputMustFallAtEveryStep) {
  auto judged = [](const std::vector<double>& speeds) {
    return JudgeMiniature(FrozenClaims(), WithThroughput(speeds));
  };
  const MiniatureVerdicts falling = judged({500, 400, 300, 200, 150});
  EXPECT_EQ(ClaimOf(falling, "H2").status, kShown);
  const MiniatureCase& first = MeasureOf(falling, "H2.throughput").cases[0];
  EXPECT_EQ(first.label, "AE 1 - AE 1.5");
  EXPECT_NEAR(first.estimate, std::log(500.0 / 400), kRounding);
  EXPECT_EQ(first.seeds, 3);
  EXPECT_DOUBLE_EQ(first.freedom, 10);  // five points, three samples each
  EXPECT_EQ(ClaimOf(judged({500, 600, 300, 200, 150}), "H2").status,
            kContradicted);
  EXPECT_EQ(ClaimOf(judged({500, 400, 300, 200}), "H2").status, kNotTestable);
  MiniatureResults few = WithThroughput({500, 400, 300, 200, 150});
  few.throughput[2].tokens_per_second.pop_back();
  const MiniatureVerdicts verdicts = JudgeMiniature(FrozenClaims(), few);
  EXPECT_EQ(ClaimOf(verdicts, "H2").status, kNotTestable);
  EXPECT_TRUE(Says(MeasureOf(verdicts, "H2.throughput").reason,
                   "2 samples at AE 2, 3 are needed"));
}

}  // namespace
}  // namespace softmoe::golden
