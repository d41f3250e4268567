// SPDX-License-Identifier: Apache-2.0
//
// The judge over the whole family of measures: pairing, Holm, missing, equal
// and bad runs.
#include "golden/verdict/miniature_judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "golden/testing/miniature_test_util.h"
#include "golden/verdict/miniature_evidence.h"
#include "golden/verdict/statistics.h"

namespace softmoe::golden {
namespace {

using enum MiniatureStatus;

TEST(MiniatureJudge, RunsLikeThePaperShowEveryClaimThatHasNumbers) {
  const MiniatureVerdicts verdicts = JudgeMadeUp();
  EXPECT_EQ(verdicts.planned, 76);
  EXPECT_EQ(verdicts.finished, 76);
  EXPECT_TRUE(verdicts.missing.empty());
  EXPECT_EQ(verdicts.hash, FrozenClaims().Hash());
  for (const MiniatureVerdict& claim : verdicts.claims) {
    const bool without = claim.id == "C6" || claim.id == "H2";
    EXPECT_EQ(claim.status, without ? kNotTestable : kShown) << claim.id;
  }
}

// The seeds move all rows by 0.05 nat, fifty times the remaining noise.
TEST(MiniatureJudge, PairsShowWhatTheEffectOfTheSeedWouldHide) {
  const MiniatureVerdicts paired = JudgeMadeUp();
  EXPECT_EQ(MeasureOf(paired, "C5.loss").status, kShown);
  MiniatureClaims plain = FrozenClaims();
  for (MiniatureClaim& claim : plain.claims) {
    for (MiniatureMeasure& measure : claim.measures) {
      measure.noise = Noise::kPlain;
    }
  }
  const MiniatureVerdicts unpaired = TestMiniature(plain, MadeUpResults(plain));
  EXPECT_EQ(MeasureOf(unpaired, "C5.loss").status, kUndecided);
  // Nine rows, four seeds.
  EXPECT_DOUBLE_EQ(
      CaseOf(unpaired, "C5.loss", "gcide", "softmoe-2-calibrated").freedom, 27);
}

// The other eleven measures have no effect: the family must not decide what a
// single test would at 5 %.
TEST(MiniatureJudge, HolmHoldsBackWhatOneTestWouldDecide) {
  auto results = [](const MiniatureClaims& claims, double difference) {
    MiniatureResults made;
    for (const std::string& row : claims.planned[0].rows) {
      const int r = row[1] - '0';
      for (const int64_t seed : claims.planned[0].seeds) {
        // Four of the nine rows have one sign, four the other.
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

TEST(MiniatureJudge, RowsWithoutTwoSeedsInCommonAreNotCompared) {
  const MiniatureClaims claims = PairClaims(1, 4);
  MiniatureResults results;
  for (const int64_t seed : {1, 2, 3, 4}) {
    MiniatureRun& run = results.runs.emplace_back();
    run.row = seed <= 2 ? "r1" : "r2";
    run.corpus = "text";
    run.seed = seed <= 2 ? seed : seed - 1;  // one in common
    run.loss = 3 + 0.01 * static_cast<double>(seed * seed);
  }
  EXPECT_EQ(
      CaseOf(TestMiniature(claims, results), "P1.loss", "text", "r1").problem,
      "its rows have fewer than two seeds in common");
}

// Cases that cannot be tested point nowhere.
TEST(MiniatureJudge, CountsTheCasesThatPointToAClaim) {
  const MiniatureVerdicts verdicts = JudgeMadeUp([](size_t, MiniatureRun* run) {
    AddToLoss("softmoe-star-1-calibrated", 1, run);
    if (run->row == "softmoe-star-2-calibrated") run->infer_ae = 4.5;
  });
  const MiniatureMeasureVerdict& measure = MeasureOf(verdicts, "C1a.group");
  EXPECT_EQ(measure.status, kContradicted);
  EXPECT_EQ(measure.reason,
            "2 of 4 cases point to the claim, 6 needed (of 6, not all of "
            "which can be tested)");
}

TEST(PointsToClaim, GoesByTheEstimateAlone) {
  MiniatureMeasure measure;
  measure.margin = 0.5;
  auto at = [&](Holds holds, double estimate) {
    measure.holds = holds;
    return PointsToClaim(measure, estimate);
  };
  EXPECT_TRUE(at(Holds::kBelow, 0.49));
  EXPECT_FALSE(at(Holds::kBelow, 0.51));
  EXPECT_TRUE(at(Holds::kAbove, 0.51));
  EXPECT_FALSE(at(Holds::kAbove, 0.49));
  EXPECT_TRUE(at(Holds::kWithin, -0.49));
  EXPECT_TRUE(at(Holds::kWithin, 0.49));
  EXPECT_FALSE(at(Holds::kWithin, -0.51));
  EXPECT_FALSE(at(Holds::kWithin, 0.51));
  for (const Holds holds : {Holds::kBelow, Holds::kAbove, Holds::kWithin}) {
    EXPECT_FALSE(at(holds, 0.5));
  }
}

// With 8 seeds the variance 0.25 of 4 becomes 0.125, and 0.0625 of 2 becomes
// 0.015625; 6 and 3 degrees of freedom become 14 and 21.
TEST(TestCases, AMeanGoesByTheSeedsOfItsSources) {
  const MiniatureMeasure measure;  // theta is below 0
  std::vector<MiniatureCase> cases(1);
  cases[0].estimate = -1;
  cases[0].seeds = 2;
  cases[0].sources = {{.error = 0.5, .freedom = 6, .seeds = 4},
                      {.error = 0.25, .freedom = 3, .seeds = 2}};
  TestCases(measure, 8, &cases);
  const double freedom = std::pow(0.140625, 2) /
                         (std::pow(0.125, 2) / 14 + std::pow(0.015625, 2) / 21);
  EXPECT_NEAR(cases[0].p_shown, StudentCdf(-1 / 0.375, freedom), 1e-12);
  EXPECT_EQ(SeedsNeeded(measure, cases, 1, 0.5), 2);
}

TEST(MiniatureJudge, NoisyRowIsNamedAndKeepsItsOwnDeviation) {
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([](size_t i, MiniatureRun* run) {
        if (run->corpus == "gcide") {
          AddToLoss("softmoe-2-calibrated",
                    i == 0   ? 0.03
                    : i == 1 ? -0.03
                             : 0,
                    run);
        }
      });
  const MiniatureCase& noisy =
      CaseOf(verdicts, "C5.loss", "gcide", "softmoe-2-calibrated");
  ASSERT_EQ(noisy.own_deviation.size(), 1u);
  EXPECT_EQ(noisy.own_deviation[0], "softmoe-2-calibrated");
  // Almost all of the noise is the row's own, with three degrees of freedom.
  EXPECT_LT(noisy.freedom, 3.1);
  EXPECT_TRUE(Says(MeasureOf(verdicts, "C5.loss").reason,
                   "left out of the pool: gcide/softmoe-2-calibrated"));
  // The others keep the pooled one: eight rows, four seeds.
  const MiniatureCase& calm =
      CaseOf(verdicts, "C5.loss", "gcide", "softmoe-1.5-calibrated");
  EXPECT_TRUE(calm.own_deviation.empty());
  EXPECT_EQ(calm.left_out, noisy.own_deviation);
  EXPECT_DOUBLE_EQ(calm.freedom, 21);
  EXPECT_NEAR(calm.seed_error, 1e-3 * std::sqrt(32.0 / 21) * std::sqrt(0.5),
              kRounding);
  // Compared with the seeds' effects its noise is small.
  const MiniatureResolution& gcide = verdicts.resolution[0];
  EXPECT_EQ(gcide.paired_own,
            (std::vector<std::string>{"softmoe-2-calibrated"}));
  EXPECT_TRUE(gcide.plain_own.empty());
}

TEST(MiniatureJudge, RunThatDivergedIsNotTestable) {
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([](size_t i, MiniatureRun* run) {
        if (run->row == "softmoe-2-calibrated" && run->corpus == "gcide" &&
            i >= 2) {
          run->loss = NAN;
        }
      });
  EXPECT_EQ(ClaimOf(verdicts, "C1b").status, kNotTestable);
  EXPECT_TRUE(Says(MeasureOf(verdicts, "C1b.curve").reason,
                   "softmoe-2-calibrated, seed 1236, gave no number"));
  // Nothing else of that run is used for a comparison, either.
  EXPECT_EQ(MeasureOf(verdicts, "C2.share").status, kNotTestable);
  EXPECT_EQ(MeasureOf(verdicts, "C4.balance").status, kNotTestable);
  EXPECT_EQ(MeasureOf(verdicts, "C4.balance").cases[0].seeds, 0);
  // Three of four pairs remain, and three are needed.
  EXPECT_EQ(MeasureOf(verdicts, "C5.loss").status, kShown);
}

TEST(MiniatureJudge, AllocationWithoutNumbersIsNotTestable) {
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([](size_t i, MiniatureRun* run) {
        if (run->row == "softmoe-2-calibrated" && i == 0) {
          run->allocation.back().allocation[3] = NAN;
        }
      });
  for (const char* claim : {"C2", "C3"}) {
    EXPECT_EQ(ClaimOf(verdicts, claim).status, kNotTestable) << claim;
  }
}

// Each has its own reason, and a table of results shows it.
TEST(MiniatureJudge, SaysWhyAnAllocationCannotBeRead) {
  auto reason = [](const std::vector<AllocationPoint>& allocation,
                   const char* measure) {
    const MiniatureVerdicts verdicts = JudgeMiniature(
        FrozenClaims(),
        MadeUpResults(FrozenClaims(), [&](size_t i, MiniatureRun* run) {
          if (run->row == "softmoe-2-calibrated" && run->corpus == "gcide" &&
              i == 1) {
            run->allocation = allocation;
          }
        }));
    return MeasureOf(verdicts, measure).reason;
  };
  const std::string run = "gcide: softmoe-2-calibrated, seed 1235, ";
  for (const char* measure : {"C2.share", "C3.early"}) {
    EXPECT_EQ(reason({}, measure),
              run + "has no learned allocation over two layers or more")
        << measure;
    EXPECT_EQ(reason({{100, {2}}, {200, {2}}}, measure),
              run + "has no learned allocation over two layers or more")
        << measure;
    EXPECT_EQ(reason({{100, {2, NAN}}}, measure), run + "gave no number")
        << measure;
  }
  EXPECT_EQ(reason({{100, {2, 2}, 9}, {200, {2, 2}, 9}}, "C3.early"),
            run + "has an allocation that never moved");
}

// Comparisons with the one sparse row of the budget remain.
TEST(MiniatureJudge, CurveNeedsAllSparseRows) {
  const MiniatureVerdicts verdicts = JudgeMiniature(
      FrozenClaims(),
      MadeUpResults(FrozenClaims(), [](size_t i, MiniatureRun* run) {
        if (run->row == "sparse-1" && run->corpus == "gcide" && i == 2) {
          run->loss = NAN;
        }
      }));
  for (const char* row :
       {"softmoe-star-1-calibrated", "softmoe-star-1.5-calibrated",
        "softmoe-star-2-calibrated"}) {
    EXPECT_EQ(CaseOf(verdicts, "C1a.curve", "gcide", row).problem,
              "sparse-1, seed 1236, gave no number");
    EXPECT_EQ(CaseOf(verdicts, "C1a.curve", "foldoc", row).problem, "");
    EXPECT_EQ(CaseOf(verdicts, "C1a.group", "gcide", row).problem, "");
  }
  EXPECT_EQ(MeasureOf(verdicts, "C1a.curve").reason,
            "gcide: sparse-1, seed 1236, gave no number");
  EXPECT_EQ(MeasureOf(verdicts, "H1.halving").reason,
            "gcide: sparse-1, seed 1236, gave no number");
}

TEST(MiniatureJudge, RunWithoutActiveExpertsHasNoGroup) {
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([](size_t i, MiniatureRun* run) {
        if (run->row == "softmoe-star-2-calibrated" && i == 0)
          run->infer_ae = NAN;
      });
  for (const char* measure : {"C1a.group", "C1a.curve", "C4.balance"}) {
    EXPECT_EQ(MeasureOf(verdicts, measure).status, kNotTestable) << measure;
    // The other rows are judged without its noise.
    EXPECT_GT(CaseOf(verdicts, measure, "gcide", "softmoe-star-1.5-calibrated")
                  .seed_error,
              0);
  }
}

TEST(MiniatureJudge, EqualBitsUnderTwoSeedsAreMistrusted) {
  double first = 0;
  const MiniatureVerdicts verdicts =
      JudgeMadeUp([&](size_t i, MiniatureRun* run) {
        if (run->row != "softmoe-2-calibrated" || run->corpus != "gcide")
          return;
        if (i == 0) first = run->loss;
        if (i == 3) run->loss = first;
      });
  ASSERT_EQ(verdicts.equal_seeds.size(), 1u);
  EXPECT_EQ(verdicts.equal_seeds[0],
            "gcide/softmoe-2-calibrated: 1234 and 1237");
  for (const char* claim : {"C1a", "C1b", "C2", "C3", "C4", "C5", "C7", "H1"}) {
    EXPECT_EQ(ClaimOf(verdicts, claim).status, kMistrusted) << claim;
  }
  EXPECT_TRUE(Says(MeasureOf(verdicts, "C1a.group").reason, "1234 and 1237"));
}

TEST(MiniatureJudge, MissingRunsMakeEveryVerdictInterim) {
  MiniatureResults results = MadeUpResults(FrozenClaims());
  results.runs.pop_back();
  const MiniatureVerdicts verdicts = TestMiniature(FrozenClaims(), results);
  EXPECT_EQ(verdicts.finished, 75);
  ASSERT_EQ(verdicts.missing.size(), 1u);
  EXPECT_EQ(verdicts.missing[0], "gcide/sparse-3-jitter-0.05/seed1237");
  for (const MiniatureVerdict& claim : verdicts.claims) {
    EXPECT_EQ(claim.status, kInterim) << claim.id;
  }
  EXPECT_EQ(ClaimOf(verdicts, "C1a").leaning, kShown);
  EXPECT_EQ(ClaimOf(verdicts, "C6").leaning, kNotTestable);
  // The pair is judged on the three seeds that both rows have.
  EXPECT_EQ(
      CaseOf(verdicts, "C7.jitter", "gcide", "sparse-3-jitter-0.05").seeds, 3);
  const MiniatureVerdicts nothing = JudgeMiniature(FrozenClaims(), {});
  EXPECT_EQ(nothing.missing.size(), 76u);
  EXPECT_EQ(ClaimOf(nothing, "C1a").status, kInterim);
  EXPECT_EQ(ClaimOf(nothing, "C1a").leaning, kNotTestable);
}

void ExpectResultsRefused(const MiniatureResults& results,
                          const std::string& message) {
  EXPECT_TRUE(Says(
      MessageOf<DataError>([&] { TestMiniature(FrozenClaims(), results); }),
      message))
      << message;
}

TEST(MiniatureJudge, RunsThatDoNotBelongAreRefused) {
  const MiniatureResults good = MadeUpResults(FrozenClaims());
  MiniatureResults bad = good;
  bad.runs.push_back(bad.runs[0]);
  ExpectResultsRefused(bad, "run gcide/sparse-1/seed1234 is there twice");
  bad = good;
  bad.runs[0].seed = 99;
  ExpectResultsRefused(bad, "run gcide/sparse-1/seed99 is not planned");
  bad = good;
  bad.runs[0].row = "sparse-5";
  ExpectResultsRefused(bad, "run gcide/sparse-5/seed1234 is not planned");
  auto soft = [](MiniatureResults* results) -> MiniatureRun& {
    for (MiniatureRun& run : results->runs) {
      if (run.row == "softmoe-2-calibrated") return run;
    }
    throw InternalError("no such run");
  };
  bad = good;
  soft(&bad).at_tau[2].factor = 1;
  ExpectResultsRefused(bad, "tau factors must ascend, but 1 follows 1");
  bad = good;
  soft(&bad).allocation[1].step = 100;
  ExpectResultsRefused(bad, "steps must ascend, but 100 follows 100");
  bad = good;
  soft(&bad).allocation[1].allocation.pop_back();
  ExpectResultsRefused(bad, "9 layers at step 200, 10 before");
  bad = good;
  soft(&bad).allocation[1].learning_rate_sum = 0.5;
  ExpectResultsRefused(
      bad, "sums of learning rates must not fall, but 0.5 follows 1");
  soft(&bad).allocation[1].learning_rate_sum = NAN;
  ExpectResultsRefused(bad, "sums of learning rates must not fall");
  // The first step may be 0, before any learning.
  bad = good;
  soft(&bad).allocation[0].step = -1;
  ExpectResultsRefused(bad, "steps must ascend, but -1 follows -1");
  soft(&bad).allocation[0].step = 0;
  soft(&bad).allocation[0].learning_rate_sum = 0;
  EXPECT_NO_THROW(TestMiniature(FrozenClaims(), bad));
  bad = good;
  bad.throughput = {{1, {100, 0, 100}, "soft"}};
  ExpectResultsRefused(bad, "0 tokens/s is not a speed");
  bad.throughput = {{1, {100, INFINITY}, "soft"}};
  ExpectResultsRefused(bad, "inf tokens/s is not a speed");
  bad.throughput = {{1, {100}, "soft"}, {1, {100}, "soft"}};
  ExpectResultsRefused(
      bad, "throughput of 'soft' at 1 active experts is there twice");
}

// The hash of procedure 1, under which golden/runs/mini.h5 was recorded.
constexpr char kProcedure1[] =
    "f40f63b96e499623cb50f40f0e5ead2d8c412f7584ef1218cfd2de19a16cbe00";

TEST(MiniatureJudge, ResultsUnderOtherMarginsAreRefused) {
  EXPECT_EQ(RecordedUnder(FrozenClaims(), FrozenClaims().Hash(), "mini.h5"),
            nullptr);
  for (const std::string& hash :
       {std::string(64, 'a'), std::string(), std::string(kProcedure1, 63)}) {
    EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                       RecordedUnder(FrozenClaims(), hash, "mini.h5");
                     }),
                     "mini.h5 was recorded under other margins", "hash " + hash,
                     FrozenClaims().Hash()))
        << hash;
  }
}

TEST(MiniatureJudge, ResultsUnderEarlierMarginsAreJudgedAfterTheFact) {
  const EarlierClaims* earlier =
      RecordedUnder(FrozenClaims(), kProcedure1, "mini.h5");
  ASSERT_NE(earlier, nullptr);
  EXPECT_EQ(earlier->procedure, 1);
  const MiniatureResults results = MadeUpResults(FrozenClaims());
  const MiniatureVerdicts verdicts =
      JudgeMiniature(FrozenClaims(), results, earlier);
  ASSERT_TRUE(verdicts.recorded_under.has_value());
  EXPECT_EQ(verdicts.recorded_under->hash, kProcedure1);
  // Judged by the present rules, with the earlier verdict alongside.
  EXPECT_EQ(verdicts.hash, FrozenClaims().Hash());
  EXPECT_EQ(ClaimOf(verdicts, "C3").status, kShown);
  for (const auto& [now, before] :
       {std::pair{"C1a", "C1"}, {"C1b", "C1"}, {"C3", "C3"}, {"H2", "C9"}}) {
    const EarlierVerdict* verdict = verdicts.recorded_under->Before(now);
    ASSERT_NE(verdict, nullptr) << now;
    EXPECT_EQ(verdict->claim, before);
  }
  EXPECT_EQ(verdicts.recorded_under->Before("C9"), nullptr);
  EXPECT_FALSE(
      JudgeMiniature(FrozenClaims(), results).recorded_under.has_value());
}

TEST(MiniatureJudge, SeedsNeededIsTheLeastNumberThatDecides) {
  const MiniatureResults results =
      MadeUpResults(FrozenClaims(), [](size_t, MiniatureRun* run) {
        // 0.0015 below the margin: leans towards shown.
        if (run->row.find("jitter") != std::string::npos) run->loss -= 0.0385;
      });
  const MiniatureVerdicts verdicts = JudgeMiniature(FrozenClaims(), results);
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
      FrozenClaims(),
      MadeUpResults(FrozenClaims(), [](size_t, MiniatureRun* run) {
        // On the margin up to the sums' last digits.
        if (run->row.find("jitter") != std::string::npos) run->loss -= 0.04;
      }));
  const MiniatureMeasureVerdict& measure = MeasureOf(verdicts, "C7.jitter");
  EXPECT_EQ(measure.status, kUndecided);
  EXPECT_FALSE(measure.seeds_needed.has_value());
}

TEST(MiniatureJudge, ResolutionTellsTheGainOfPairing) {
  const MiniatureVerdicts verdicts = JudgeMadeUp();
  ASSERT_EQ(verdicts.resolution.size(), 2u);
  const MiniatureResolution& gcide = verdicts.resolution[0];
  EXPECT_EQ(gcide.corpus, "gcide");
  EXPECT_EQ(gcide.rows, 9);
  EXPECT_EQ(gcide.seeds, 4);
  EXPECT_NEAR(gcide.paired, MadeUpDeviation(), kRounding);
  // Every row has the effects of the seeds, eight have noise.
  EXPECT_NEAR(
      gcide.plain,
      std::sqrt((9 * 2 * (0.05 * 0.05 + 0.03 * 0.03) + 8 * 4 * 1e-6) / 27),
      kRounding);
  EXPECT_DOUBLE_EQ(gcide.paired_freedom, 24);
  // The grid's planned resolution: 2.1 deviations for one test, 2.8 among
  // twelve, to their last printed digit.
  EXPECT_NEAR(gcide.one_test / gcide.paired, 2.1, 0.05);
  EXPECT_NEAR(gcide.family / gcide.paired, 2.8, 0.05);
  EXPECT_EQ(verdicts.resolution[1].seeds, 2);
}

}  // namespace
}  // namespace softmoe::golden
