// SPDX-License-Identifier: Apache-2.0
#include "experiments/run_grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <system_error>

#include "core/errors.h"
#include "core/paths.h"
#include "core/stop_signal.h"
#include "experiments/cost_model.h"
#include "experiments/experiment.h"
#include "experiments/grid_progress.h"
#include "experiments/grid_select.h"
#include "experiments/run_folder.h"
#include "experiments/run_record.h"
#include "kernels/isa.h"
#include "trainer/final_evaluations.h"
#include "trainer/folder_lock.h"
#include "trainer/prepare.h"
#include "trainer/resources.h"
#include "trainer/run_identity.h"
#include "trainer/train_run.h"
#include "trainer/trainer.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

const fs::path& Made(const fs::path& folder) {
  MakeFolder(folder);
  return folder;
}

ProgressOptions Quiet(bool quiet) {
  ProgressOptions options;
  options.quiet = quiet;
  return options;
}

class GridRunner {
 public:
  GridRunner(const Grid& grid, const GridRunOptions& options)
      : options_(options),
        lock_(Made(options.folder)),
        outcome_(ReadRuns(grid)),
        progress_(outcome_, options.selected, Quiet(options.quiet)) {}

  GridOutcome Run() {
    RequireDiskSpace();
    for (const std::string& note : notes_) progress_.Note(note);
    progress_.Note(Summary());
    PrepareCorpora();
    CheckFinishedRuns();
    for (size_t i = 0; i < options_.selected.size(); ++i) {
      StopIfAsked();
      RunOutcome& run = outcome_.runs[options_.selected[i]];
      progress_.Begin(i);
      if (run.state != RunState::kFinished) {
        Train(run);
      } else if (!Lacking(run).empty()) {
        EvaluateFinished(run);
      }
      progress_.End(run);
    }
    return outcome_;
  }

 private:
  // What is on disk, and what a record adds.
  GridOutcome ReadRuns(const Grid& grid) {
    GridOutcome outcome =
        ReadGrid(grid, options_.folder, /*check_checkpoints=*/true);
    if (options_.record.empty()) return outcome;
    const RunRecord record = ReadRunRecord(options_.record);
    // A run counts only on the tokens of here.
    for (const size_t r : options_.selected) {
      const RunOutcome& run = outcome.runs[r];
      if (run.state == RunState::kFinished) continue;
      if (record.Find(RunIdentityKey(run.run)) == nullptr) continue;
      const fs::path corpus = CorpusRecord(run.run, options_.folder);
      if (fs::exists(corpus.string() + ".json")) continue;
      if (prepared_.contains(corpus)) continue;
      Prepare(run, corpus);
      outcome.corpora.push_back(prepared_.at(corpus));
      outcome.corpora.back().prefix = corpus;
    }
    notes_ = TakeRecordedRuns(record, outcome);
    return outcome;
  }

  int64_t CountSelected(RunState state) const {
    return std::count_if(
        options_.selected.begin(), options_.selected.end(),
        [&](size_t r) { return outcome_.runs[r].state == state; });
  }

  std::string Summary() const {
    std::string text =
        fmt::format("grid {}: {} runs in {}", outcome_.grid.name,
                    options_.selected.size(), options_.folder.string());
    const std::pair<RunState, const char*> kStates[] = {
        {RunState::kFinished, "finished"},
        {RunState::kInterrupted, "interrupted"},
        {RunState::kFailed, "failed, to be tried again"}};
    for (const auto& [state, name] : kStates) {
      if (const int64_t count = CountSelected(state); count > 0) {
        text += fmt::format(", {} {}", count, name);
      }
    }
    return text;
  }

  std::string FinishedRows() const {
    return fmt::format("{} of {} rows are finished",
                       CountSelected(RunState::kFinished),
                       options_.selected.size());
  }

  // Behind the reason why the grid stopped.
  std::string GoesOn() const {
    return fmt::format(" ({}; the same command goes on)", FinishedRows());
  }

  void StopIfAsked() const {
    stop_.ThrowIfRequested(FinishedRows() + "; the same command goes on");
  }

  void RequireDiskSpace() const {
    std::vector<RunOutcome> runs;
    for (size_t r : options_.selected) runs.push_back(outcome_.runs[r]);
    const int64_t need = DiskBytesStillNeeded(runs);
    const int64_t free = FreeDiskBytes(options_.folder);
    if (need <= free) return;
    throw EnvironmentError(fmt::format(
        "{}: the grid will write {} there, the disk has {} free; free some, "
        "choose a folder on another disk with --out, or fewer runs with "
        "--rows, --corpora or --seeds",
        options_.folder.string(), trainer::FormatBytes(need),
        trainer::FormatBytes(free)));
  }

  static std::string Lacking(const RunOutcome& run) {
    return trainer::MissingEvaluations(run.run.evaluations, *run.result);
  }

  // Of every corpus that a run is still to be trained or evaluated on, or whose
  // record is missing.
  void PrepareCorpora() {
    for (size_t r : options_.selected) {
      const RunOutcome& run = outcome_.runs[r];
      const fs::path record = CorpusRecord(run.run, options_.folder);
      if (prepared_.contains(record)) continue;
      const bool recorded = fs::exists(record.string() + ".json");
      if (run.state == RunState::kFinished && recorded &&
          (Lacking(run).empty() ||
           !fs::exists(run.folder / trainer::kCheckpointName))) {
        continue;
      }
      StopIfAsked();
      Prepare(run, record);
    }
  }

  void Prepare(const RunOutcome& run, const fs::path& record) {
    trainer::PrepareOptions options;
    options.threads = run.run.runtime.threads;
    options.quiet = options_.quiet;
    const Config& config = run.run.config;
    prepared_[record] =
        trainer::PrepareCorpus(config.data, config.model.vocab_size, options);
  }

  // The instruction set that finished runs must be of: the one asked for, or
  // the one that those to come will use. "" if neither is: reading takes none.
  std::string RequiredIsa(const RunOutcome& run) const {
    const std::string& asked = run.run.runtime.isa;
    const bool all_finished = CountSelected(RunState::kFinished) ==
                              static_cast<int64_t>(options_.selected.size());
    if (!asked.empty() || all_finished) return asked;
    kernels::SelectIsa("");
    return kernels::IsaName(kernels::ActiveIsa());
  }

  // Runs on other tokens, or with other kernels than those to come, do not
  // belong to this grid. Then the records can be renewed.
  void CheckFinishedRuns() {
    for (const RunOutcome& run : outcome_.runs) {
      // Those of a record may be of any instruction set, and say it.
      if (run.state != RunState::kFinished || run.recorded) continue;
      const trainer::RunIdentity& there = run.result->identity;
      trainer::RunIdentity here = there;  // ReadRun compared the configuration
      const auto corpus =
          prepared_.find(CorpusRecord(run.run, options_.folder));
      if (corpus != prepared_.end()) here.tokens = corpus->second.tokens;
      const std::string isa = RequiredIsa(run);
      if (!isa.empty()) here.isa = isa;
      trainer::RequireSameRun(
          run.folder / trainer::kResultName, there, here,
          {.config = "",
           .tokens = fmt::format(
               "Corpus '{}' has other tokens now: use another folder (--out), "
               "or delete that file to train the run again",
               run.run.config.data.corpus),
           .isa = fmt::format("Go on with --isa {}, or use another folder "
                              "(--out)",
                              there.isa)});
    }
    for (const auto& [record, corpus] : prepared_) {
      trainer::PreparedCorpus copy = corpus;
      copy.prefix = record;
      copy.from_cache = false;
      trainer::WritePreparedCorpus(copy);
    }
    // In the order in which a later `report` reads them.
    outcome_.corpora = ReadGrid(outcome_.grid, options_.folder, false).corpora;
  }

  // Trains the run, or measures what the result of a finished one lacks.
  trainer::RunResult CallTrainer(const RunOutcome& run) {
    trainer::RunOptions options;
    options.folder = run.folder;
    options.tokens =
        prepared_.at(CorpusRecord(run.run, options_.folder)).prefix;
    options.runtime = run.run.runtime;
    options.quiet = true;  // GridProgress speaks
    options.evaluations = run.run.evaluations;
    options.on_step = [this](const trainer::StepRecord& record) {
      progress_.Step(record);
    };
    options.on_evaluation = [this] { progress_.Evaluating(); };
    try {
      return trainer::TrainRun(run.run.config, options);
    } catch (const StoppedError& error) {
      throw StoppedError(fmt::format("{} ({})", error.what(), FinishedRows()));
    } catch (const EnvironmentError& error) {
      throw EnvironmentError(error.what() + GoesOn());
    } catch (const DataError& error) {
      // A damaged file is no property of the row: verdicts would call it
      // diverged.
      throw DataError(error.what() + GoesOn());
    }
  }

  void Train(RunOutcome& run) {
    run.problem.clear();
    ForgetProblem(run.folder);
    try {
      run.result = CallTrainer(run);
      run.state = RunState::kFinished;
    } catch (const NumericsError& error) {
      run.state = RunState::kFailed;
      run.problem = error.what();
      RecordProblem(run.folder, run.problem);
    }
  }

  // Where it cannot be done, the run stays finished, and the reason is said.
  void EvaluateFinished(RunOutcome& run) {
    const fs::path checkpoint = run.folder / trainer::kCheckpointName;
    std::string obstacle;
    if (fs::exists(checkpoint)) {
      try {
        run.result = CallTrainer(run);
        if (Lacking(run).empty()) return;
      } catch (const NumericsError& error) {
        obstacle = error.what();
      }
    }
    if (obstacle.empty()) {
      obstacle = trainer::EvaluationObstacle(*run.result, checkpoint);
    }
    progress_.Note(fmt::format("{} was not measured ({}): {}", run.run.id,
                               Lacking(run), obstacle));
  }

  const GridRunOptions options_;
  const StopSignal stop_;
  const trainer::FolderLock lock_;
  std::map<fs::path, trainer::PreparedCorpus> prepared_;  // by CorpusRecord
  std::vector<std::string> notes_;                        // of ReadRuns
  GridOutcome outcome_;
  GridProgress progress_;
};

}  // namespace

void RequireDevice(const Grid& grid) {
  if (grid.scale != "paper") return;
  double gpu_hours = 0, hours = 0, flops = 0;
  for (const GridRun& run : grid.runs) {
    Cluster cluster = grid.cluster;
    if (run.corpus.gpus > 0) cluster.gpus = run.corpus.gpus;
    const RunCost cost = EstimateCost(
        run.config, run.config.router.mean_active_experts, cluster);
    gpu_hours += cost.gpu_hours;
    hours += cost.hours;
    flops += cost.train_flops;
  }
  throw EnvironmentError(fmt::format(
      "grid '{5}' is of the paper's scale and needs GPUs, and this build "
      "trains on the CPU only. Its {1} runs would take {2:.2g} FLOPs: about "
      "{3:.0f} GPU hours, {4:.0f} hours of the whole machine one after the "
      "other. `plan {0}` shows all of it; `run mini` trains the same rows at a "
      "size for CPUs. --set does not lift this: a smaller grid needs a file of "
      "its own, with another scale",
      fmt::join(CommandWords(grid), " "), grid.runs.size(), flops, gpu_hours,
      hours, grid.name));
}

int64_t DiskBytesStillNeeded(const std::vector<RunOutcome>& runs) {
  const auto bytes_there = [](const RunOutcome& run, const char* name) {
    std::error_code missing;
    const auto bytes = fs::file_size(run.folder / name, missing);
    return missing ? int64_t{0} : static_cast<int64_t>(bytes);
  };
  int64_t need = 0, at_work = 0;
  for (const RunOutcome& run : runs) {
    if (run.state == RunState::kFinished) continue;
    const trainer::ResourceNeed one =
        trainer::EstimateResources(run.run.config);
    need += one.disk_bytes - 2 * one.checkpoint_bytes -
            bytes_there(run, trainer::kMetricsName);
    // While a checkpoint is written, the one before is still there; in the end
    // one stays, or none.
    int64_t checkpoints =
        2 * one.checkpoint_bytes - bytes_there(run, trainer::kCheckpointName);
    if (run.run.evaluations.keep_checkpoint) {
      need += checkpoints - one.checkpoint_bytes;
      checkpoints = one.checkpoint_bytes;
    }
    at_work = std::max(at_work, checkpoints);
  }
  return need + at_work;
}

GridOutcome RunGrid(const Grid& grid, const GridRunOptions& options) {
  RequireDevice(grid);
  return GridRunner(grid, options).Run();
}

}  // namespace softmoe::experiments
