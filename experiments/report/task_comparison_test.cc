// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/task_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/philox.h"
#include "experiments/testing/report_test_util.h"

namespace softmoe::experiments {
namespace {

using Texts = std::vector<std::string>;
using trainer::TaskMeasure;
using trainer::TaskResult;

TEST(McNemar, IsTwiceATailOfFairCoins) {
  EXPECT_EQ(McNemarExact(0, 0), 1);
  EXPECT_EQ(McNemarExact(7, 7), 1);
  // By hand: 2 (1 + 10 + 45) / 1024, and 2 / 2^5.
  EXPECT_NEAR(McNemarExact(2, 8), 112.0 / 1024, 1e-15 * 16);
  EXPECT_NEAR(McNemarExact(5, 0), 0.0625, 1e-15 * 16);
  EXPECT_EQ(McNemarExact(3, 11), McNemarExact(11, 3));
}

// Every tail of up to 40 coins; its terms are whole numbers below 2^53. Boost
// works in long double, with 11 bits to spare.
TEST(McNemar, AgreesWithWholeNumbers) {
  for (int n = 0; n <= 40; ++n) {
    double binomial = 1, tail = 0;
    for (int k = 0; 2 * k <= n; ++k) {
      tail += binomial;
      const double exact = std::min(1.0, 2 * tail / std::exp2(n));
      EXPECT_NEAR(McNemarExact(k, n - k), exact, exact * std::exp2(-52))
          << k << " of " << n;
      binomial = binomial * (n - k) / (k + 1);
    }
  }
}

// scipy.stats.binomtest(b, b + c).pvalue of SciPy 1.17.1, whose own error is up
// to 2.6e-14 of these (against fractions of whole numbers).
TEST(McNemar, AgreesWithScipy) {
  struct {
    int64_t b, c;
    double p;
  } const kRecorded[] = {{0, 6, 0.03125},
                         {5, 15, 0.04138946533203125},
                         {37, 61, 0.019690184799846844},
                         {120, 121, 1},
                         {150, 225, 0.00012655899867102644},
                         {480, 612, 7.226115867806097e-05},
                         {812, 1003, 8.056296011885951e-06},
                         {1500, 1900, 7.358339605388221e-12},
                         {2500, 2301, 0.004263985604741341}};
  for (const auto& [b, c, p] : kRecorded) {
    EXPECT_NEAR(McNemarExact(b, c), p, p * 3e-14) << b << " " << c;
  }
}

TEST(McNemar, FallsWithTheDifferenceAndIsNeverNegative) {
  double before = 1;
  for (int64_t more = 0; more <= 5000; more += 250) {
    const double p = McNemarExact(5000 - more, 5000 + more);
    EXPECT_GE(p, 0);
    EXPECT_LE(p, before);
    before = p;
  }
  EXPECT_EQ(McNemarExact(0, 10042), 0);  // 2^-10041
}

// Bits of five items; of measure 1 only: first 1 1 1 0 0, second 0 0 1 1 0.
TEST(PairAnswers, CountsTheBitsOfOneMeasure) {
  const std::vector<uint8_t> first = {2, 3, 2, 1, 0}, second = {1, 0, 3, 2, 5};
  const AnswerPairs pairs = PairAnswers(first, second, TaskMeasure::kAccNorm);
  EXPECT_EQ(pairs.num_items, 5);
  EXPECT_EQ(pairs.only_first, 2);
  EXPECT_EQ(pairs.only_second, 1);
  EXPECT_EQ(pairs.Flips(), 0.6);
  EXPECT_EQ(pairs.Difference(), 0.2);
  // (1, 1, 0, -1, 0): the mean of the squares is 0.6, that of them 0.2.
  EXPECT_NEAR(pairs.StandardError(), std::sqrt(0.56 / 5), 1e-15);
  const AnswerPairs none = PairAnswers(first, first, TaskMeasure::kAcc);
  EXPECT_EQ(none.Flips(), 0);
  EXPECT_EQ(none.StandardError(), 0);
  EXPECT_THROW(PairAnswers(first, {}, TaskMeasure::kAcc), InternalError);
}

constexpr size_t kItems = 100;

// Right by acc on items [begin, end); by acc_norm never.
TaskResult Answered(size_t begin, size_t end,
                    const std::string& name = "piqa") {
  TaskResult task{.name = name,
                  .sha256 = "of " + name,
                  .measures = {},
                  .right = std::vector<uint8_t>(kItems)};
  for (size_t i = begin; i < end; ++i) task.right[i] = 1;
  return task;
}

RunOutcome& RunOf(GridOutcome& outcome, const std::string& row, int64_t seed) {
  for (RunOutcome& run : outcome.runs) {
    if (run.run.row.id == row && run.run.seed == seed) return run;
  }
  throw std::logic_error("no run of " + row);
}

// star-1.5 has 1.75 active experts, so its budget is sparse-2's; soft-2 has
// 2.25, and there is no sparse row of 3.
GridOutcome TwoSeeds() {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2}});
  const auto ask = [&](const char* row, int64_t seed, const TaskResult& task) {
    EvaluationsOf(RunOf(outcome, row, seed)).tasks = {task};
  };
  ask("star-1.5", 1, Answered(0, 60));
  ask("sparse-2", 1, Answered(10, 65));
  ask("star-1.5", 2, Answered(0, 62));
  ask("sparse-2", 2, Answered(2, 58));
  ask("sparse-1", 1, Answered(0, 100));
  ask("soft-2", 1, Answered(0, 100));
  return outcome;
}

// Seed 1: 10 against 5, 2 (1 + 15 + 105 + 455 + 1365 + 3003) / 2^15 and
// sqrt((0.15 - 0.05^2) / 100). Seed 2: 6 against 0, 2 / 2^6. Mean 5.5 points;
// over seeds its error is 0.5, with one degree of freedom p = 1 - 2 atan(11) /
// pi = 0.0577; by the answers that flip between seeds (2 of 100 in one row, 15
// in the other) the error is sqrt(0.17 / (2 * 100 * 2)) = 2.06 and p = 0.0076.
TEST(TaskComparison, IsWhatHandsCompute) {
  const GridOutcome outcome = TwoSeeds();
  const auto tables = TaskComparisonTables(outcome);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].title, "acc of piqa on foldoc, pair by pair");
  EXPECT_EQ(tables[0].header, (Texts{"row", "against", "seed", "b", "c",
                                     "points", "se", "p", "Holm"}));
  EXPECT_EQ(tables[0].rows,
            (std::vector<Texts>{{"star-1.5", "sparse-2", "1", "10", "5",
                                 "+5.00", "3.84", "0.302", ""},
                                {"star-1.5", "sparse-2", "2", "6", "0", "+6.00",
                                 "2.37", "0.0312", ""},
                                {"star-1.5", "sparse-2", "mean of 2", "", "",
                                 "+5.50", "2.06", "0.0577", "no"}}));
  // No answer by acc_norm is right: no noise, nothing to judge by.
  EXPECT_EQ(tables[1].title, "acc_norm of piqa on foldoc, pair by pair");
  EXPECT_EQ(tables[1].rows.back(), (Texts{"star-1.5", "sparse-2", "mean of 2",
                                          "", "", "+0.00", "-", "-", "no"}));
  EXPECT_NE(tables[0].caption.find("not added up"), std::string::npos);
  EXPECT_TRUE(TaskComparisonTables(ExampleOutcome()).empty());
}

TEST(TaskComparison, OneSeedIsMcNemarsTestAlone) {
  GridOutcome outcome = TwoSeeds();
  Interrupt(RunOf(outcome, "sparse-2", 1));
  const auto tables = TaskComparisonTables(outcome);
  EXPECT_EQ(tables[0].rows,
            (std::vector<Texts>{{"star-1.5", "sparse-2", "2", "6", "0", "+6.00",
                                 "2.37", "0.0312", "yes"}}));
}

TEST(TaskComparison, OtherItemsAreNoPair) {
  GridOutcome outcome = TwoSeeds();
  EvaluationsOf(RunOf(outcome, "sparse-2", 1)).tasks[0].sha256 = "of others";
  EXPECT_EQ(TaskComparisonTables(outcome)[0].rows.size(), 1u);
  EvaluationsOf(RunOf(outcome, "sparse-2", 2)).tasks[0].right.pop_back();
  EXPECT_TRUE(TaskComparisonTables(outcome).empty());
}

// Seed 2 answers 50 items: McNemar's test covers each seed, there is no mean,
// and Holm's correction covers only the other pair.
TEST(TaskComparison, OtherItemsHaveNoMean) {
  GridOutcome outcome = TwoSeeds();
  for (const char* row : {"star-1.5", "sparse-2"}) {
    TaskResult& task = EvaluationsOf(RunOf(outcome, row, 2)).tasks[0];
    task.sha256 = "of a part";
    task.right.resize(50);
  }
  trainer::InferenceTau half{.factor = 0.5, .tau = 0.6, .validation = {}};
  half.tasks = {Answered(0, 60)};
  half.tasks[0].right.assign(kItems, 0);
  for (size_t i = 6; i < 60; ++i) half.tasks[0].right[i] = 1;
  EvaluationsOf(RunOf(outcome, "star-1.5", 1)).inference_tau = {half};
  EXPECT_EQ(TaskComparisonTables(outcome)[0].rows,
            (std::vector<Texts>{{"star-1.5", "sparse-2", "1", "10", "5",
                                 "+5.00", "3.84", "0.302", ""},
                                {"star-1.5", "sparse-2", "2", "2", "0", "+4.00",
                                 "2.77", "0.5", "-"},
                                {"star-1.5, tau x0.5", "star-1.5", "1", "0",
                                 "6", "-6.00", "2.37", "0.0312", "yes"}}));
}

// T6 and T8: rows that differ in something other than router, k and alpha.
// Holm: 6 against 0 is 0.031, which is not below 0.05 / 2.
TEST(TaskComparison, PairsRowsOfOneSetting) {
  GridOutcome outcome = TwoSeeds();
  for (RunOutcome& run : outcome.runs) {
    if (run.run.row.id != "sparse-2") continue;
    run.run.config.router.mean_active_experts = 1;
    run.run.config.router.noise = NoiseKind::kInputJitter;
  }
  Interrupt(RunOf(outcome, "star-1.5", 1));
  const auto rows = TaskComparisonTables(outcome)[0].rows;
  ASSERT_EQ(rows.size(), 1u);  // star-1.5 has no sparse row any more
  EXPECT_EQ(rows[0], (Texts{"sparse-2", "sparse-1", "1", "0", "45", "-45.00",
                            "4.97", "5.68e-14", "yes"}));
}

// T7, and Holm's correction over two pairs.
TEST(TaskComparison, PairsAnotherTauWithThatOfTraining) {
  GridOutcome outcome = TwoSeeds();
  Interrupt(RunOf(outcome, "star-1.5", 1));
  trainer::InferenceTau half{.factor = 0.5, .tau = 0.6, .validation = {}};
  half.tasks = {Answered(0, 60)};
  trainer::InferenceTau same{.factor = 1, .tau = 1.2, .validation = {}};
  same.tasks = {Answered(0, 62)};
  EvaluationsOf(RunOf(outcome, "star-1.5", 2)).inference_tau = {half, same};
  EXPECT_EQ(TaskComparisonTables(outcome)[0].rows,
            (std::vector<Texts>{{"star-1.5", "sparse-2", "2", "6", "0", "+6.00",
                                 "2.37", "0.0312", "no"},
                                {"star-1.5, tau x0.5", "star-1.5", "2", "0",
                                 "2", "-2.00", "1.40", "0.5", "no"}}));
}

// The seeds differ in 20 of 100 items; the two tau in 3, which the other tau
// gets right in both seeds. sqrt(0.03 / (100 * 2)) is 1.22 points, and 3 / 1.22
// = 2.45. For two separate rows it would be 3 / 3.16.
TEST(TaskComparison, TwoTauOfOneRowAreAnsweredByTheSameModels) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2}});
  for (const int64_t seed : {1, 2}) {
    const size_t begin = seed == 1 ? 0 : 10;
    auto& evaluations = EvaluationsOf(RunOf(outcome, "star-1.5", seed));
    evaluations.tasks = {Answered(begin, begin + 60)};
    evaluations.inference_tau = {{.factor = 0.5, .tau = 0.6, .validation = {}}};
    evaluations.inference_tau[0].tasks = {Answered(begin, begin + 63)};
  }
  const auto tables = TaskComparisonTables(outcome);
  const std::string half = "star-1.5, tau x0.5";
  EXPECT_EQ(tables[0].rows,
            (std::vector<Texts>{
                {half, "star-1.5", "1", "3", "0", "+3.00", "1.71", "0.25", ""},
                {half, "star-1.5", "2", "3", "0", "+3.00", "1.71", "0.25", ""},
                {half, "star-1.5", "mean of 2", "", "", "+3.00", "1.22",
                 "0.0143", "yes"}}));
  // By acc_norm no answer moves.
  EXPECT_EQ(tables[1].rows.back()[7], "-");
}

TEST(FlipShare, IsTheMeanOverPairsOfSeeds) {
  const TaskResult a = Answered(0, 60), b = Answered(0, 62),
                   c = Answered(10, 60), other = Answered(0, 60, "other");
  EXPECT_EQ(FlipShare({&a, &b}, TaskMeasure::kAcc), 0.02);
  // 2, 10 and 12 of 100.
  EXPECT_NEAR(*FlipShare({&a, &b, &c}, TaskMeasure::kAcc), 0.08, 1e-15);
  EXPECT_EQ(FlipShare({&a, &b}, TaskMeasure::kAccNorm), 0);
  EXPECT_FALSE(FlipShare({&a}, TaskMeasure::kAcc));
  EXPECT_FALSE(FlipShare({&a, nullptr}, TaskMeasure::kAcc));
  EXPECT_FALSE(FlipShare({&a, &other}, TaskMeasure::kAcc));
}

// Made-up runs of two rows that are equally good: an item is answered correctly
// with its own probability, which is `shift` higher or lower (uniform) for all
// items of a run. Counts how often p of one seed and of the mean of three is
// below 5 %.
struct Rejections {
  double one_seed = 0, mean = 0;
};

Rejections ShareOfMadeUpGrids(double shift, int draws) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  std::vector<TaskResult*> tasks;
  for (RunOutcome& run : outcome.runs) {
    if (run.run.row.id != "star-1.5" && run.run.row.id != "sparse-2") continue;
    EvaluationsOf(run).tasks = {Answered(0, 0)};
    tasks.push_back(&EvaluationsOf(run).tasks[0]);
  }
  uint64_t index = 0;
  const auto uniform = [&index] {
    return UniformFromWord(
        PhiloxWords({17, RandomStream::kTestData}, index++)[0]);
  };
  Rejections share;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<double> p(kItems);
    for (double& one : p) one = 0.3 + 0.4 * uniform();
    for (TaskResult* task : tasks) {
      const double of_run = shift * (2 * uniform() - 1);
      for (size_t i = 0; i < kItems; ++i) {
        task->right[i] = uniform() < p[i] + of_run ? 1 : 0;
      }
    }
    const auto rows = TaskComparisonTables(outcome)[0].rows;
    share.one_seed += std::stod(rows[0][7]) <= 0.05 ? 1.0 / draws : 0;
    share.mean += std::stod(rows[3][7]) <= 0.05 ? 1.0 / draws : 0;
  }
  return share;
}

// Both tests keep their level if answers flip independently. If whole runs are
// better or worse, McNemar's test, which sees one run of each row, rightly
// finds that in 44 % of such grids, and only the mean over seeds still tells
// rows from runs (4.9 %; both counted elsewhere, over 6000). Five standard
// errors of 5 % in 1000 draws are 3.5 %, and of 44 % are 8 %.
TEST(TaskComparison, KeepsItsLevelOnMadeUpGrids) {
  const Rejections flips = ShareOfMadeUpGrids(0, 1000);
  EXPECT_LE(flips.one_seed, 0.085);
  EXPECT_LE(flips.mean, 0.085);
  const Rejections shifts = ShareOfMadeUpGrids(0.2, 1000);
  EXPECT_NEAR(shifts.one_seed, 0.44, 0.08);
  EXPECT_LE(shifts.mean, 0.085);
}

}  // namespace
}  // namespace softmoe::experiments
