// SPDX-License-Identifier: Apache-2.0
//
// task_items.h - the questions of zero-shot tasks, from the files of their
// authors or jsonl of the Hugging Face form, with the prompts of
// lm-evaluation-harness 0.4.13 (SPEC.md 5.1).
#ifndef SOFTMOE_TRAINER_TASKS_TASK_ITEMS_H_
#define SOFTMOE_TRAINER_TASKS_TASK_ITEMS_H_

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace softmoe::trainer {

// One split of a task, for which the harness, and a report, have a number.
struct TaskSplit {
  std::string name;   // "piqa"; "arc_easy" is the test split, as the harness's
  std::string split;  // "validation"
  int64_t num_items;  // as published
  // The places where a folder of tasks may have it, the authors' names first;
  // and where it is from.
  std::vector<std::string> places;
  std::string origin;
};

// All splits, in the order of reports.
const std::vector<TaskSplit>& TaskSplits();

// Returns the split of this name; throws ConfigError with the nearest name.
const TaskSplit& FindTaskSplit(const std::string& name);

// Where a split's items are.
struct TaskFile {
  std::string name;  // of a TaskSplit
  std::filesystem::path items;
};

// Returns the files that --task asks for, in the order of TaskSplits(). Each of
// `wanted` is the name of a split, which `folder` has at one of its places;
// "arc_easy", which stands for the test and validation splits; or NAME=FILE,
// that file alone. Relative files and `folder` are the user's (UserPath).
//
// Throws ConfigError if a name is unknown or occurs twice, or if `folder` has a
// split at two places; EnvironmentError, with the places looked at, if it has a
// split at none.
std::vector<TaskFile> FindTaskFiles(const std::vector<std::string>& wanted,
                                    const std::string& folder);

// Returns the file of `split` at one of its places in `folder`. Throws as
// FindTaskFiles; `otherwise`, ", or ...", ends the remedies.
TaskFile FindInFolder(const TaskSplit& split,
                      const std::filesystem::path& folder,
                      const std::string& otherwise);

struct TaskItem {
  std::string context;
  std::vector<std::string> choices;  // at least two, with their own spaces
  int64_t gold = 0;                  // index of the right one
  // The document as the harness has it, in the Hugging Face form, from which
  // its doc_hash is computed.
  nlohmann::ordered_json document;
};

// What is scored for a choice: it follows the context.
std::string Continuation(const std::string& choice);

struct TaskItems {
  std::string name;  // of a TaskSplit
  std::filesystem::path file;
  std::string
      sha256;  // of the file, then of the file of labels if there is one
  std::vector<TaskItem> items;
};

// "piqa: 200 of the 1838 items of the validation split"; "" for a whole split.
std::string PartText(const TaskItems& task);

// Reads a file of items and, if items of PIQA have no labels, the file of
// labels: STEM-labels.lst or STEM_labels.lst beside STEM.jsonl.
//
// Throws EnvironmentError if a file cannot be read; DataError with FILE:LINE
// and the remedy for a line that is not a JSON object, a field that is missing
// or of another type, fewer than two choices, a label that is none of them (the
// test splits of PIQA and HellaSwag have none), more or fewer labels than
// items, or a file without items.
TaskItems ReadTaskItems(const TaskFile& file);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TASKS_TASK_ITEMS_H_
