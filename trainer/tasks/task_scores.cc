// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/task_scores.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <utility>

#include "core/errors.h"
#include "optimized/step.h"
#include "trainer/corpora/python_text.h"

namespace softmoe::trainer {
namespace {

// The length by which the measure divides a choice's log-likelihood.
double Length(TaskMeasure measure, const std::string& choice, int64_t tokens) {
  switch (measure) {
    case TaskMeasure::kAcc:
      return 1;
    case TaskMeasure::kAccNorm:
      return static_cast<double>(CodePoints(choice));
    case TaskMeasure::kAccBytes:
      return static_cast<double>(choice.size());
    case TaskMeasure::kAccTokens:
      return static_cast<double>(tokens);
  }
  throw InternalError("an unknown task measure");
}

double Weight(TaskMeasure measure, const std::string& choice,
              const ChoiceScore& score) {
  const double length = Length(measure, choice, score.tokens);
  return length == 0 ? -std::numeric_limits<double>::infinity()
                     : score.log_likelihood / length;
}

template <typename Keep>
TaskAccuracy Count(std::string name, const ScoredTask& task, const Keep& keep) {
  TaskAccuracy accuracy{.name = std::move(name), .sha256 = task.task.sha256};
  for (size_t i = 0; i < task.scores.size(); ++i) {
    const TaskItem& item = task.task.items[i];
    if (!keep(item)) continue;
    ++accuracy.num_items;
    unsigned bits = 0;
    for (int m = 0; m < kNumTaskMeasures; ++m) {
      const bool right = task.scores[i].answers[m] == item.gold;
      accuracy.correct[m] += right;
      bits |= unsigned{right} << m;
    }
    accuracy.right.push_back(static_cast<uint8_t>(bits));
  }
  return accuracy;
}

bool Always(const TaskItem&) { return true; }

}  // namespace

ItemScore ScoreItem(const TaskItem& item, std::vector<ChoiceScore> choices) {
  SOFTMOE_CHECK(choices.size() == item.choices.size() && !choices.empty())
      << choices.size() << " scores of " << item.choices.size() << " choices";
  for (const ChoiceScore& score : choices) {
    if (std::isfinite(score.log_likelihood)) continue;
    throw optimized::DivergedError(fmt::format(
        "a choice has log-likelihood {}; the model has diverged: train again "
        "with a smaller training.learning_rate",
        score.log_likelihood));
  }
  ItemScore result{.choices = std::move(choices), .answers = {}};
  for (int m = 0; m < kNumTaskMeasures; ++m) {
    const auto weight = [&](size_t c) {
      return Weight(static_cast<TaskMeasure>(m), item.choices[c],
                    result.choices[c]);
    };
    size_t best = 0;
    for (size_t c = 1; c < item.choices.size(); ++c) {
      if (weight(c) > weight(best)) best = c;
    }
    result.answers[m] = static_cast<int64_t>(best);
  }
  return result;
}

double TaskAccuracy::Mean(TaskMeasure measure) const {
  return static_cast<double>(correct[static_cast<size_t>(measure)]) /
         static_cast<double>(num_items);
}

double TaskAccuracy::StandardError(TaskMeasure measure) const {
  if (num_items < 2) return std::numeric_limits<double>::quiet_NaN();
  const double mean = Mean(measure);
  return std::sqrt(mean * (1 - mean) / static_cast<double>(num_items - 1));
}

std::vector<TaskAccuracy> Accuracies(std::span<const ScoredTask> tasks) {
  std::vector<TaskAccuracy> accuracies;
  TaskAccuracy all{.name = "arc_easy_all"};
  int splits = 0;
  for (const ScoredTask& task : tasks) {
    const std::string& name = task.task.name;
    const TaskAccuracy whole = Count(name, task, Always);
    accuracies.push_back(whole);
    if (name == "arc_easy_validation") {
      TaskAccuracy four =
          Count(name + "_four_choices", task,
                [](const TaskItem& item) { return item.choices.size() == 4; });
      if (four.num_items > 0) accuracies.push_back(std::move(four));
    }
    if (!name.starts_with("arc_easy")) continue;
    ++splits;
    all.num_items += whole.num_items;
    for (int m = 0; m < kNumTaskMeasures; ++m) {
      all.correct[m] += whole.correct[m];
    }
    all.sha256 += (splits > 1 ? ", " : "") + whole.sha256;
    all.right.insert(all.right.end(), whole.right.begin(), whole.right.end());
  }
  if (splits == 3) accuracies.push_back(all);
  return accuracies;
}

}  // namespace softmoe::trainer
