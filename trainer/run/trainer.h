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
  // Ranks that train together, threads of this process: each has a model, whole
  // balance groups of every batch, and its share of runtime.threads, at least
  // one. Rank 0 alone writes, prints and calls back.
  int ranks = 1;
  // Ranks that are processes: this one's communicator, inside its Run. Where it
  // has several ranks, `ranks` is 1. All see the folder and the tokens under
  // the same paths.
  optimized::Communicator* processes = nullptr;
  // What carries between ranks of either kind; the same on all. Changes no bit.
  ExchangeChoice exchange = ExchangeChoice::kAuto;
  bool quiet = false;          // prints warnings alone, on stderr
  bool warns = true;           // false: not even these
  EvaluationPlan evaluations;  // by default: none, and the checkpoint stays
  std::filesystem::path task_files;  // folder of the items of its tasks
  std::function<void(const StepRecord&)> on_step;  // after every step
  // Called before every balance group of rank 0, in the validations that belong
  // to training and in the evaluations after it.
  std::function<void()> on_validation, on_evaluation;
};

// "" if `ranks` ranks give the bits of one process: if they divide the balance
// groups of a batch into subtrees (rank_groups.h). Else their number, which is
// part of the run's identity. Throws ConfigError if the groups do not divide
// among them.
std::string RanksInIdentity(const Config& config, int ranks);

// "" as well, or the same in a sentence, for the user to read beforehand.
std::string OtherBitsOfRanks(const Config& config, int ranks);

// Runs, or goes on with, the training that `config` describes in
// `options.folder`, and measures what `options.evaluations` asks for on the
// final parameters. A finished run is only read; evaluations that its result
// lacks are measured on its checkpoint and added, if that is still there (else
// see EvaluationObstacle in final_evaluations.h). On SIGINT, SIGTERM or SIGHUP
// (stop_signal.h) it saves a checkpoint and throws StoppedError. The same
// config and seed give the same bits, for any number of threads and ranks (but
// see RanksInIdentity), interrupted or not, on one device (runtime.device).
// Errors   before anything is written: what ReadPlannedTasks throws, and
//          DataError for tasks of a run whose tokens have no tokenizer;
//          ConfigError as RanksInIdentity and RequireNoFewerItems, and for
//          a precision that runtime.device does not have; EnvironmentError if
//          that is not there, or if its memory does not hold a step of all
//          ranks that share it (rank_devices.h), or if NCCL was chosen and
//          cannot carry (ChooseCarrier). Then DivergedError, and
//          EnvironmentError if the device has failed, or has too little memory
//          for the next step, before which a checkpoint is saved.
// Of several processes, rank 0 alone returns the result; the others train and
// measure with it.
RunResult TrainRun(const Config& config, const RunOptions& options);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_TRAINER_H_
