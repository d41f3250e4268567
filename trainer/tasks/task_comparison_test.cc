// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/task_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/tasks/task_report.h"

namespace softmoe::trainer {
namespace {

TEST(McNemar, IsTwiceATailOfFairCoins) {
  EXPECT_EQ(McNemarExact(0, 0), 1);
  EXPECT_EQ(McNemarExact(7, 7), 1);
  // By hand: 2 (1 + 10 + 45) / 1024, and 2 / 2^5.
  EXPECT_NEAR(McNemarExact(2, 8), 112.0 / 1024, 1e-15 * 16);
  EXPECT_NEAR(McNemarExact(5, 0), 0.0625, 1e-15 * 16);
  EXPECT_EQ(McNemarExact(3, 11), McNemarExact(11, 3));
}

// Every tail of up to 40 coins, its terms whole numbers below 2^53. Boost works
// in long double, with 11 bits to spare.
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

// Items with two choices, of which a model takes those that `answers` say.
ScoredTask Answered(const std::string& name, const std::string& answers,
                    const std::string& gold) {
  ScoredTask scored;
  scored.task.name = name;
  for (size_t i = 0; i < answers.size(); ++i) {
    TaskItem item{.context = "c",
                  .choices = {"x", "y"},
                  .gold = gold[i] - '0',
                  .document = {{"id", i}}};
    const bool second = answers[i] == '1';
    scored.scores.push_back(ScoreItem(
        item, {{second ? -2.0 : -1.0, 1}, {second ? -1.0 : -2.0, 1}}));
    scored.task.items.push_back(std::move(item));
  }
  return scored;
}

class Comparison : public testing::Test {
 protected:
  const std::filesystem::path folder_ = FreshFolder("comparison");

  std::filesystem::path Write(const std::string& name,
                              const std::vector<ScoredTask>& tasks) const {
    WriteTaskReport({}, tasks, folder_ / name);
    return folder_ / name;
  }
};

TEST_F(Comparison, CountsPairs) {
  const auto a = Write("a", {Answered("piqa", "00110", "00000"),
                             Answered("arc_easy", "0", "0")});
  const auto b = Write("b", {Answered("piqa", "01010", "00000")});
  const auto comparisons = CompareAnswers(a, b);
  ASSERT_EQ(comparisons.size(), 4u);
  const AnswerComparison& acc = comparisons[0];
  EXPECT_EQ(acc.task, "piqa");
  EXPECT_EQ(acc.pairs.num_items, 5);
  EXPECT_EQ(acc.first_correct, 3);
  EXPECT_EQ(acc.second_correct, 3);
  EXPECT_EQ(acc.pairs.only_first, 1);
  EXPECT_EQ(acc.pairs.only_second, 1);
  EXPECT_EQ(acc.other_answer, 2);
  EXPECT_EQ(CompareAnswers(a, a)[3].other_answer, 0);
  EXPECT_TRUE(Says(ComparisonTable(comparisons), "60.00", "+0.00", "40.00"));
}

TEST_F(Comparison, SaysByHowManyPointsTheFirstIsBetter) {
  const auto better = Write("a", {Answered("piqa", "00001", "00000")});
  const auto worse = Write("b", {Answered("piqa", "00111", "00000")});
  const auto comparisons = CompareAnswers(better, worse);
  EXPECT_EQ(comparisons[0].first_correct, 4);
  EXPECT_EQ(comparisons[0].second_correct, 2);
  EXPECT_EQ(comparisons[0].pairs.only_first, 2);
  EXPECT_EQ(comparisons[0].pairs.only_second, 0);
  EXPECT_TRUE(Says(ComparisonTable(comparisons), "80.00", "40.00", "+40.00"));
  EXPECT_TRUE(Says(ComparisonTable(CompareAnswers(worse, better)), "-40.00"));
}

TEST_F(Comparison, RefusesWhatIsNoPair) {
  const auto a = Write("a", {Answered("piqa", "00", "00")});
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     CompareAnswers(
                         a, Write("b", {Answered("piqa", "000", "000")}));
                   }),
                   "other items of piqa, from item 2 on"));
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     CompareAnswers(
                         a, Write("c", {Answered("arc_easy", "0", "0")}));
                   }),
                   "no task in common"));
  EXPECT_THROW(CompareAnswers(a, folder_ / "none"), EnvironmentError);
}

}  // namespace
}  // namespace softmoe::trainer
