// SPDX-License-Identifier: Apache-2.0
//
// task_comparison.h - two models' answers to the same items, pair by pair.
#ifndef SOFTMOE_TRAINER_TASKS_TASK_COMPARISON_H_
#define SOFTMOE_TRAINER_TASKS_TASK_COMPARISON_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/tasks/task_scores.h"

namespace softmoe::trainer {

// McNemar's exact test, two-sided: how likely, if both models are as good, the
// items that one alone answers rightly are shared out at least as unevenly as
// `only_first` to `only_second`; 1 where there are none. Both >= 0.
double McNemarExact(int64_t only_first, int64_t only_second);

// Two models' answers to the same items under one measure.
struct AnswerPairs {
  int64_t num_items = 0;                    // at least one
  int64_t only_first = 0, only_second = 0;  // right where the other is wrong

  // Share of the items that one alone answers rightly, in [0, 1].
  double Flips() const;
  // The first accuracy minus the second, in [-1, 1].
  double Difference() const;
  // The difference's standard error, over items drawn anew. Each item adds 1,
  // -1 or 0 to it, so this is sqrt((Flips - Difference^2) / num_items).
  double StandardError() const;
};

// Pairs what TaskResult::right of both models says, item by item; as many
// items, at least one.
AnswerPairs PairAnswers(std::span<const uint8_t> first,
                        std::span<const uint8_t> second, TaskMeasure measure);

// One task under one measure.
struct AnswerComparison {
  std::string task;  // name of the split
  TaskMeasure measure = TaskMeasure::kAcc;
  AnswerPairs pairs;
  int64_t first_correct = 0, second_correct = 0;
  int64_t other_answer = 0;  // items answered differently
};

// Compares what WriteTaskReport left in two folders, under every measure, task
// by task in the order of TaskSplits(); tasks that one of them lacks are left
// out.
//
// Throws EnvironmentError if a tasks.h5 is missing, DataError with the remedy
// if one is damaged, if no task is in both, or if a task's items are not the
// same in the same order (by doc_hash).
std::vector<AnswerComparison> CompareAnswers(
    const std::filesystem::path& first, const std::filesystem::path& second);

// A line for each: both accuracies, the first minus the second in points, the
// items that one alone answers rightly, p, and the share that is answered
// differently.
std::string ComparisonTable(const std::vector<AnswerComparison>& comparisons);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TASKS_TASK_COMPARISON_H_
