// SPDX-License-Identifier: Apache-2.0
//
// trainer.h - one training run, from a prepared corpus to a result.
#ifndef SOFTMOE_TRAINER_RUN_TRAINER_H_
#define SOFTMOE_TRAINER_RUN_TRAINER_H_

#include <filesystem>
#include <functional>
#include <string>

#include "core/config/config.h"
#include "optimized/communicator/communicator.h"
#include "trainer/evaluation/evaluation_plan.h"
#include "trainer/results/run_result.h"
#include "trainer/run/rank_devices.h"

namespace softmoe::trainer {

struct RunOptions {
  std::filesystem::path folder;  // checkpoint.h5, metrics.jsonl, result.h5
  std::filesystem::path tokens;  // prefix of PREFIX.bin / PREFIX.idx
  RuntimeConfig runtime;
  // Number of ranks, threads of this process, that train together. Each has a
  // model, whole balance groups of every batch, and its share of
  // runtime.threads, at least one. Only rank 0 writes, prints and calls back.
  int ranks = 1;
  // For ranks that are processes: this process's communicator, inside its Run.
  // If it has several ranks, `ranks` must be 1, and all must see the folder and
  // the tokens under the same paths.
  optimized::Communicator* processes = nullptr;
  // What carries arrays between ranks; the same on all ranks. Changes no bit.
  ExchangeChoice exchange = ExchangeChoice::kAuto;
  bool quiet = false;          // prints warnings alone, on stderr
  bool warns = true;           // false: prints not even warnings
  EvaluationPlan evaluations;  // by default: none, and the checkpoint stays
  std::filesystem::path task_files;  // folder of the items of its tasks
  std::function<void(const StepRecord&)> on_step;  // after every step
  // Called on rank 0 before every balance group: in the validations that belong
  // to training, and in the evaluations after it (of a task: before every
  // batch).
  std::function<void()> on_validation, on_evaluation;
};

// Returns "" if `ranks` ranks give the bits of one process, i.e. if they divide
// the balance groups of a batch into subtrees (rank_groups.h). Otherwise
// returns their number, which is part of the run's identity. Throws ConfigError
// if the groups do not divide among them.
std::string RanksInIdentity(const Config& config, int ranks);

// Returns the same as a sentence, for the user to read beforehand, or "".
std::string OtherBitsOfRanks(const Config& config, int ranks);

// Runs or resumes the training that `config` describes in `options.folder`, and
// measures what `options.evaluations` asks for on the final parameters. A
// finished run is only read; evaluations that its result lacks are measured on
// its checkpoint and added, if that still exists (else see EvaluationObstacle
// in final_evaluations.h). On SIGINT, SIGTERM or SIGHUP (stop_signal.h) it
// saves a checkpoint and throws StoppedError. The same config and seed give the
// same bits, for any number of threads and ranks (but see RanksInIdentity),
// interrupted or not, on one device (runtime.device).
// Errors   before anything is written: what ReadPlannedTasks throws, and
//          DataError for tasks of a run whose tokens have no tokenizer; what
//          RequireSameRun throws, if the folder has another run; ConfigError
//          as RanksInIdentity and RequireNoFewerItems, and for a precision
//          that runtime.device does not have; EnvironmentError if
//          that device does not exist, or its memory does not hold a step of
//          all ranks that share it (rank_devices.h), or if NCCL was chosen and
//          cannot carry (ChooseCarrier). Later DivergedError, and
//          EnvironmentError if the device has failed, or lacks the memory for
//          the next step, before which a checkpoint is saved.
// Of several processes, only rank 0 returns the result; the others train and
// measure with it.
RunResult TrainRun(const Config& config, const RunOptions& options);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_TRAINER_H_
