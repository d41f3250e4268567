// SPDX-License-Identifier: Apache-2.0
//
// task_scores.h - from log-likelihoods to answers and accuracies.
#ifndef SOFTMOE_TRAINER_TASKS_TASK_SCORES_H_
#define SOFTMOE_TRAINER_TASKS_TASK_SCORES_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/results/run_result.h"
#include "trainer/tasks/task_items.h"

namespace softmoe::trainer {

struct ChoiceScore {
  double log_likelihood = 0;  // nats, of the tokens that were scored
  int64_t tokens = 0;         // how many; at least one
  bool is_greedy = false;     // each of them the most likely one
};

// What the model answers to one item.
struct ItemScore {
  std::vector<ChoiceScore> choices;               // in the item's order
  std::array<int64_t, kNumTaskMeasures> answers;  // by TaskMeasure: an index
};

// Returns the best choice by each measure, the first of equals. A choice of no
// length is worse than all others under the measures that divide by it.
//
// Errors   DivergedError if a log-likelihood is not finite.
ItemScore ScoreItem(const TaskItem& item, std::vector<ChoiceScore> choices);

// The items of a task that were answered correctly.
struct TaskAccuracy {
  std::string name;  // of the split, or of the part of it that was counted
  int64_t num_items = 0;
  std::array<int64_t, kNumTaskMeasures> correct{};
  std::string sha256 = {};  // of the items' file; for several, all in order
  // [num_items], for each item: bit m says whether measure m's answer is right.
  std::vector<uint8_t> right = {};

  double Mean(TaskMeasure measure) const;
  // Standard error of Mean, by the sample variance (n - 1); NaN for one item.
  double StandardError(TaskMeasure measure) const;
};

// What is known of one task: an ItemScore for each item.
struct ScoredTask {
  TaskItems task;
  std::vector<ItemScore> scores;
  int64_t cut_contexts = 0;       // requests too long for the window
  int64_t cut_continuations = 0;  // of these, with the choice itself cut
};

// Returns the accuracy of each task as a whole; for ARC-Easy's validation
// items, also of those with four choices, whose number fits the paper's counts
// (N18), as "arc_easy_validation_four_choices", if there are any; and of all of
// ARC-Easy, as "arc_easy_all", if its three splits are there.
std::vector<TaskAccuracy> Accuracies(std::span<const ScoredTask> tasks);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TASKS_TASK_SCORES_H_
