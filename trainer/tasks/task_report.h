// SPDX-License-Identifier: Apache-2.0
//
// task_report.h - what a model answered, for people and for programs: a table,
// and results and samples in lm-evaluation-harness's form.
//
//   results.json        as the harness's results_*.json; "files" has the tasks
//   samples_TASK.jsonl  as its samples_TASK_*.jsonl: one item per line
#ifndef SOFTMOE_TRAINER_TASKS_TASK_REPORT_H_
#define SOFTMOE_TRAINER_TASKS_TASK_REPORT_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/tasks/task_items.h"
#include "trainer/tasks/task_scores.h"

namespace softmoe::trainer {

// Who answered.
struct AnsweringModel {
  std::string config_hash;
  std::string tokenizer_sha256;
  int64_t step = 0;  // completed updates
  double tau = 0;
  double temperature = 1;
  std::string device;  // in words
};

// The harness's hashes, by which two programs know that they asked the same.
struct ItemHashes {
  std::string document, prompt, target;  // SHA-256, hex
};
ItemHashes HashItem(const TaskItem& item);

// A table with a line for each of Accuracies(): items, and each measure in
// percent with its standard error; then what was cut, and partial splits.
std::string TaskTable(std::span<const ScoredTask> tasks);

// The content of results.json and of samples_TASK.jsonl.
std::string TaskResultsJson(const AnsweringModel& model,
                            std::span<const ScoredTask> tasks);
std::string TaskSamples(const ScoredTask& task);

// The files in `folder` that a report replaces or deletes, whatever its tasks.
std::vector<std::filesystem::path> TaskReportFiles(
    const std::filesystem::path& folder);

// Throws ConfigError with the remedy if a report on the tasks `asked` would
// delete something in `folder` that it does not replace: any model's answers to
// other tasks, as results.json lists them, or one of TaskReportFiles() that
// belongs to no report. Call this before the tasks are asked, which may take
// hours.
void RequireReplaceableReport(const std::filesystem::path& folder,
                              std::span<const TaskItems> asked);

// Writes results.json and all samples_TASK.jsonl into `folder`, which is made;
// each is there whole or not at all. Replaces those of an earlier report on the
// same tasks; if it is interrupted, the same call can follow. Throws
// EnvironmentError, and as RequireReplaceableReport.
void WriteTaskReport(const AnsweringModel& model,
                     std::span<const ScoredTask> tasks,
                     const std::filesystem::path& folder);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TASKS_TASK_REPORT_H_
