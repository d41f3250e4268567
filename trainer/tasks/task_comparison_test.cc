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

// Every tail of up to 40 coins, its terms whole numbers below 2^53. The
// logarithms of factorials are at most 111, so their roundings and that of
// n ln 2 are at most 111 * 2^-52, or a few of these in the exponent.
TEST(McNemar, AgreesWithWholeNumbers) {
  for (int n = 0; n <= 40; ++n) {
    double binomial = 1, tail = 0;
    for (int k = 0; 2 * k <= n; ++k) {
      tail += binomial;
      const double exact = std::min(1.0, 2 * tail / std::exp2(n));
      EXPECT_NEAR(McNemarExact(k, n - k), exact,
                  exact * 8 * 111 * std::exp2(-52))
          << k << " of " << n;
      binomial = binomial * (n - k) / (k + 1);
    }
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
  EXPECT_EQ(acc.num_items, 5);
  EXPECT_EQ(acc.first_correct, 3);
  EXPECT_EQ(acc.second_correct, 3);
  EXPECT_EQ(acc.only_first, 1);
  EXPECT_EQ(acc.only_second, 1);
  EXPECT_EQ(acc.other_answer, 2);
  EXPECT_EQ(CompareAnswers(a, a)[3].other_answer, 0);
  EXPECT_TRUE(Says(ComparisonTable(comparisons), "60.00", "+0.00", "40.00"));
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
