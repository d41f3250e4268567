// SPDX-License-Identifier: Apache-2.0
//
// run_loop.h - the loop of one run: start or resume, step, evaluate, save.
//
// TrainRun (trainer.h) wraps it. A step ends in this order, which makes
// resuming exact: update, metrics line, on_step, memory for the next step, stop
// check, checkpoint. Evaluations belong to the beginning of the next iteration,
// so a run that is stopped inside one repeats it.
#ifndef SOFTMOE_TRAINER_RUN_RUN_LOOP_H_
#define SOFTMOE_TRAINER_RUN_RUN_LOOP_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/parallel_for.h"
#include "core/process/stop_signal.h"
#include "optimized/communicator/communicator.h"
#include "optimized/device.h"
#include "optimized/model.h"
#include "optimized/updater.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/metrics_log.h"
#include "trainer/results/run_result.h"
#include "trainer/results/run_result_file.h"
#include "trainer/results/train_state.h"
#include "trainer/run/train_step.h"
#include "trainer/run/trainer.h"
#include "trainer/tasks/task_items.h"
#include "trainer/tokens/dataset.h"

namespace softmoe::trainer {

// Returns what ranks must have in common to give the same bits.
std::vector<optimized::Agreement> Agreements(const RunIdentity& identity);

class RunLoop {
 public:
  // Loads the checkpoint in options.folder, or draws the initial parameters
  // and calibrates tau. Throws what TrainRun throws.
  //
  //   options       those of this rank; options.ranks is ignored
  //   tasks         the items of the tasks that options.evaluations lists
  //   communicator  that of this rank; all ranks must make a RunLoop and run it
  //   carrier       what carries arrays between ranks; the same on all
  //   device        what this rank computes on, which `identity` describes
  //
  // Keeps references to `tasks`, `communicator`, `device` and `stop`.
  RunLoop(const RunIdentity& identity, const RunOptions& options,
          std::span<const TaskItems> tasks,
          optimized::Communicator& communicator, optimized::CarrierKind carrier,
          optimized::Device& device, const StopSignal& stop);

  // Trains to the end, writes the final checkpoint, validates, and measures
  // what options.evaluations asks for. Only rank 0 returns the whole result.
  RunResult Run();

 private:
  void Resume(const std::filesystem::path& path);
  void Initialize();
  // On rank 0, opens the log, with all that state_ knows, if it is not open.
  void OpenLog();
  // Adds a line. If it cannot be written, the log is closed and training goes
  // on; Save opens the log again.
  template <typename Record>
  void Log(const Record& record);
  void OneStep();
  // Writes the checkpoint, which is durable when this returns on any rank.
  void Save();
  // If a device lacks the memory for the next step, saves and throws
  // EnvironmentError on all ranks.
  void ReserveOrSave();
  // After a signal, saves and throws StoppedError on all ranks.
  void StopIfAsked();
  // Throws ConfigError if ranks do not work on the same run.
  void Agree();
  bool leads() const { return communicator_.rank() == 0; }
  bool EvaluationDue() const;
  // Validates at the current step in both readings of ruling 8, and logs it.
  void Evaluate();
  RunResult MakeResult();
  double Seconds() const;  // of all sessions
  void Say(const std::string& line) const;
  // Prints on stderr on rank 0, even if options_.quiet.
  void Warn(const std::string& text) const;

  const RunIdentity identity_;
  const RunOptions options_;
  const std::span<const TaskItems> tasks_;
  const Config& config_;
  const double start_;  // SteadySeconds()
  optimized::Communicator& communicator_;
  const StopSignal& stop_;
  ThreadPool pool_;
  Dataset data_;
  std::unique_ptr<optimized::Model> model_;
  std::unique_ptr<optimized::Updater> updater_;
  TrainStep step_;
  TrainState state_;
  double earlier_seconds_ = 0;  // of earlier sessions
  int64_t saved_step_ = -1;     // of the checkpoint on disk
  bool resumed_ = false;
  double seconds_per_step_ = 0;  // recent mean, to estimate the remaining time
  // The results of the last Evaluate().
  Validation at_schedule_temperature_, at_one_;
  std::unique_ptr<MetricsLog> metrics_;  // rank 0 only; nullptr: see Log
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_RUN_LOOP_H_
