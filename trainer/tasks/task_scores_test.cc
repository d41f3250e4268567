// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/task_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "optimized/step.h"

namespace softmoe::trainer {
namespace {

using Answers = std::array<int64_t, kNumTaskMeasures>;

Answers AnswersTo(const std::vector<std::string>& choices,
                  const std::vector<ChoiceScore>& scores) {
  return ScoreItem(
             {.context = "", .choices = choices, .gold = 0, .document = {}},
             scores)
      .answers;
}

// By hand: -6/2, -8/4; in bytes -6/2, -8/8; by tokens -6/3, -8/1.
TEST(ScoreItem, DividesByCodePointsBytesAndTokens) {
  EXPECT_EQ(AnswersTo({"ab", "éèàù"}, {{-6, 3}, {-8, 1}}),
            (Answers{0, 1, 1, 0}));
  // -6/4 and -8/5 in code points, -6/4 and -8/10 in bytes.
  EXPECT_EQ(AnswersTo({"abcd", "éèàùö"}, {{-6, 2}, {-8, 2}}),
            (Answers{0, 0, 1, 0}));
}

TEST(ScoreItem, CountsTheSpacesOfAChoice) {
  // -9/4 is more than -5/2; without its spaces it would be -9/2.
  EXPECT_EQ(AnswersTo({"ab", " ab "}, {{-5, 2}, {-9, 2}}),
            (Answers{0, 1, 1, 0}));
}

TEST(ScoreItem, TakesTheFirstOfEquals) {
  EXPECT_EQ(AnswersTo({"a", "b", "c"}, {{-2, 1}, {-1, 1}, {-1, 1}}),
            (Answers{1, 1, 1, 1}));
  EXPECT_EQ(AnswersTo({"a", "a"}, {{-1, 1}, {-1, 1}}), (Answers{0, 0, 0, 0}));
}

TEST(ScoreItem, NeverPrefersAChoiceOfNoLengthByLength) {
  EXPECT_EQ(AnswersTo({"", "x"}, {{-0.5, 1}, {-900, 1}}),
            (Answers{0, 1, 1, 0}));
  // Not even if its log-likelihood is zero, which might give NaN.
  EXPECT_EQ(AnswersTo({"x", ""}, {{-900, 1}, {0, 1}}), (Answers{1, 0, 0, 1}));
  EXPECT_EQ(AnswersTo({"", "x"}, {{0, 1}, {-900, 1}}), (Answers{0, 1, 1, 0}));
  EXPECT_EQ(AnswersTo({"", ""}, {{-2, 1}, {-1, 1}}), (Answers{1, 0, 0, 1}));
}

TEST(ScoreItem, RefusesWhatIsNotFinite) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(),
                           -std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(Says(MessageOf<optimized::DivergedError>([&] {
                       AnswersTo({"a", "b"}, {{-1, 1}, {bad, 1}});
                     }),
                     "diverged"));
  }
}

TEST(TaskAccuracy, HasTheErrorOfASample) {
  // 1 of 4: squares 9/16 + 3/16 = 3/4, over 3 is 1/4, over 4 items 1/16.
  TaskAccuracy accuracy{.name = "", .num_items = 4, .correct = {1, 0, 4, 2}};
  EXPECT_EQ(accuracy.Mean(TaskMeasure::kAcc), 0.25);
  EXPECT_EQ(accuracy.StandardError(TaskMeasure::kAcc), 0.25);
  EXPECT_EQ(accuracy.StandardError(TaskMeasure::kAccNorm), 0);
  EXPECT_EQ(accuracy.StandardError(TaskMeasure::kAccBytes), 0);
  accuracy.num_items = 1;
  EXPECT_TRUE(std::isnan(accuracy.StandardError(TaskMeasure::kAcc)));
}

// Items with these numbers of choices. The model takes the first choice, which
// is right for items at even places.
ScoredTask Made(const std::string& name, const std::vector<int>& choices) {
  ScoredTask scored;
  scored.task.name = name;
  scored.task.sha256 = "of " + name;
  for (size_t i = 0; i < choices.size(); ++i) {
    TaskItem item{.context = "",
                  .choices = std::vector<std::string>(choices[i], "x"),
                  .gold = static_cast<int64_t>(i % 2),
                  .document = {}};
    scored.scores.push_back(
        ScoreItem(item, std::vector<ChoiceScore>(choices[i], {-1, 1})));
    scored.task.items.push_back(std::move(item));
  }
  return scored;
}

TEST(Accuracies, CountValidationItemsOfFourChoicesAndAllOfArcEasy) {
  const std::vector<ScoredTask> tasks = {
      Made("piqa", {2, 2}), Made("arc_easy", {4, 3, 5}),
      Made("arc_easy_validation", {4, 4, 3, 4, 5}),
      Made("arc_easy_train", {4})};
  std::string text;
  for (const TaskAccuracy& a : Accuracies(tasks)) {
    text += a.name + " " + std::to_string(a.correct[0]) + "/" +
            std::to_string(a.num_items) + "\n";
    ASSERT_EQ(std::ssize(a.right), a.num_items);
    for (int m = 0; m < kNumTaskMeasures; ++m) {
      EXPECT_EQ(std::ranges::count_if(
                    a.right, [&](uint8_t bits) { return bits >> m & 1; }),
                a.correct[m]);
    }
  }
  EXPECT_EQ(text,
            "piqa 1/2\n"
            "arc_easy 2/3\n"
            "arc_easy_validation 3/5\n"
            "arc_easy_validation_four_choices 1/3\n"
            "arc_easy_train 1/1\n"
            "arc_easy_all 6/9\n");
  EXPECT_EQ(Accuracies(tasks).back().sha256,
            "of arc_easy, of arc_easy_validation, of arc_easy_train");
  EXPECT_EQ(Accuracies({tasks.data(), 3}).size(), 4u);
  // A part without items has no accuracy.
  const ScoredTask without_four = Made("arc_easy_validation", {3, 5});
  EXPECT_EQ(Accuracies({&without_four, 1}).size(), 1u);
}

}  // namespace
}  // namespace softmoe::trainer
