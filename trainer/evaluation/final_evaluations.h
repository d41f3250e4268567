// SPDX-License-Identifier: Apache-2.0
//
// final_evaluations.h - measures what an EvaluationPlan lists, on a model with
// its final parameters or from the checkpoint that holds them.
#ifndef SOFTMOE_TRAINER_EVALUATION_FINAL_EVALUATIONS_H_
#define SOFTMOE_TRAINER_EVALUATION_FINAL_EVALUATIONS_H_

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "optimized/communicator/communicator.h"
#include "optimized/device.h"
#include "optimized/model.h"
#include "trainer/evaluation/evaluation_plan.h"
#include "trainer/evaluation/validation.h"
#include "trainer/results/run_result.h"
#include "trainer/tasks/task_items.h"
#include "trainer/tokens/dataset.h"

namespace softmoe::trainer {

// The part of `plan` that this run's result lacks, in words: "inference tau
// x0.5, x2; router health; tasks piqa (other items)". "" if nothing is missing.
std::string MissingEvaluations(const EvaluationPlan& plan,
                               const RunResult& result);

// `plan` plus what `result` has from earlier plans.
EvaluationPlan WithEarlierPlans(EvaluationPlan plan, const RunResult& result);

// Returns EvaluationPlan::items_here for the plan's tasks whose items `folder`
// has. If others are needed, ReadPlannedTasks says what is wrong with them.
std::map<std::string, ItemsOfTask> ItemsHere(
    const EvaluationPlan& plan, const std::filesystem::path& folder);

// Returns the items of the plan's tasks in the order of TaskSplits(), from
// `folder`, which has each at one of its places (task_items.h); empty for a
// plan without tasks. Throws an EnvironmentError that says what is missing and
// where it is from or, for "", how to give a folder; what FindInFolder and
// ReadTaskItems throw; and DataError for a single item, which has no standard
// error.
std::vector<TaskItems> ReadPlannedTasks(const EvaluationPlan& plan,
                                        const std::filesystem::path& folder);

// Throws ConfigError if `result` has answers to more items of one of `tasks`
// than are here, as asking the run again would lose these. `run` names it.
void RequireNoFewerItems(std::span<const TaskItems> tasks,
                         const RunResult& result, const std::string& run);

// Measures what `plan` lists; nullopt if it asks for nothing that this router
// has. Does not change the model's parameters; gives the same bits for any
// number of threads and ranks. All ranks must call this; they share the groups
// of each validation, and all return the whole result.
//
//   tau     that of training; the sparse router has none
//   tasks   ReadPlannedTasks(plan)
//   tokens  prefix of the token files; tasks need PREFIX.model, the tokenizer,
//           which IdentifyRun has found to have `tokenizer_sha256`
//   poll    called by each rank before every balance group that it takes, and
//           before every batch of a task
// Errors   as Validate and ScoreTask
std::optional<FinalEvaluations> MeasureFinalModel(
    optimized::Model& model, const Dataset& data, double tau,
    const EvaluationPlan& plan, std::span<const TaskItems> tasks,
    const std::filesystem::path& tokens, const std::string& tokenizer_sha256,
    optimized::Communicator& communicator, const StopPoll& poll);

// Why the checkpoint at `path` cannot supply what a finished run's result
// lacks, and the remedy; "" if it can: it exists undamaged, is that of its last
// step (WhyNotFinal), and was trained on the device `here`.
std::string EvaluationObstacle(const RunResult& result,
                               const std::filesystem::path& path,
                               const optimized::DeviceIdentity& here);

// Measures what `plan` lists with the parameters of the checkpoint at `path`.
// The plan must list something that the router has, and the checkpoint must
// have no EvaluationObstacle. All ranks must call this, as MeasureFinalModel.
//
//   tasks    ReadPlannedTasks(plan)
//   tokens   prefix of the token files of the run, which IdentifyRun has opened
//   threads  of the host; 0: one for each core
// Errors     as MeasureFinalModel, and what opening the files throws
FinalEvaluations EvaluateFinishedRun(const std::filesystem::path& path,
                                     const std::filesystem::path& tokens,
                                     int64_t threads, optimized::Device& device,
                                     const EvaluationPlan& plan,
                                     std::span<const TaskItems> tasks,
                                     optimized::Communicator& communicator,
                                     const StopPoll& poll);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_EVALUATION_FINAL_EVALUATIONS_H_
