// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/run_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "core/errors.h"
#include "core/files/folder_lock.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/parallel_for.h"
#include "core/process/stop_signal.h"
#include "experiments/grids/experiment.h"
#include "experiments/run/grid_corpora.h"
#include "experiments/run/grid_progress.h"
#include "experiments/run/grid_ranks.h"
#include "experiments/run/grid_requirements.h"
#include "experiments/run/grid_workers.h"
#include "experiments/run/run_folder.h"
#include "experiments/run/run_record.h"
#include "optimized/device.h"
#include "trainer/evaluation/final_evaluations.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/run_result.h"
#include "trainer/run/trainer.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

ProgressOptions Quiet(bool quiet) {
  ProgressOptions options;
  options.quiet = quiet;
  return options;
}

// When the run's failure was recorded, if it was: a change shows that somebody
// has retried the run.
std::optional<fs::file_time_type> ProblemTime(const fs::path& run_folder) {
  std::error_code missing;
  const auto time = fs::last_write_time(run_folder / kProblemName, missing);
  if (missing) return std::nullopt;
  return time;
}

// The options that all ranks of a run share, without the tokens, which rank 0
// distributes.
trainer::RunOptions OptionsOfRun(const GridRun& run, const fs::path& run_folder,
                                 const GridRunOptions& options) {
  trainer::RunOptions result;
  result.folder = run_folder;
  result.runtime = run.runtime;
  if (result.runtime.threads == 0) {
    result.runtime.threads =
        options.threads > 0
            ? options.threads
            : std::max<int64_t>(1, AvailableCores() / options.jobs);
  }
  result.ranks = options.ranks;
  result.exchange = options.exchange;
  result.quiet = true;  // GridProgress reports instead
  result.warns = false;
  result.evaluations = run.evaluations;
  result.task_files = options.task_files;
  return result;
}

// Called before rank 0 writes anything. Programs agree if their bytes are
// equal.
void AgreeOnGrid(const Grid& grid, const GridRunOptions& options) {
  if (options.processes == nullptr || options.processes->size() == 1) return;
  std::string runs;
  for (const size_t r : options.selected) {
    const GridRun& run = grid.runs[r];
    const trainer::EvaluationPlan& plan = run.evaluations;
    runs += fmt::format("{} {} {} {} {} {}\n", RunFolderName(run),
                        fmt::join(plan.inference_tau_factors, ","),
                        plan.active_histogram, plan.router_health,
                        fmt::join(plan.tasks, ","), plan.keep_checkpoint);
  }
  options.processes->Agree({{{"program", Sha256OfFile("/proc/self/exe")},
                             {"--exchange", NameOf(options.exchange)},
                             {"runs", Sha256Hex(runs)},
                             {"folder", options.folder.string()}}});
}

// What a finished run's result lacks, in words.
std::string Lacking(const RunOutcome& run) {
  return trainer::MissingEvaluations(run.run.evaluations, *run.result);
}

class GridRunner {
 public:
  // `found`: from ReadGrid, with checkpoints; `parts`: from RequireTaskItems.
  GridRunner(GridOutcome found, std::vector<std::string> parts,
             const GridRunOptions& options)
      : options_(options),
        corpora_(options_, /*only_find=*/found.grid.scale == "paper"),
        outcome_(WithRecord(std::move(found))),
        progress_(outcome_, options.selected, Quiet(options.quiet)) {
    std::ranges::move(parts, std::back_inserter(notes_));
    for (size_t i = 0; i < options_.selected.size(); ++i) {
      open_.push_back(i);
      problem_times_.push_back(ProblemTime(Selected(i).folder));
    }
  }

  GridOutcome Run() {
    MakeFolder(options_.folder);
    for (const size_t r : options_.selected) {
      corpora_.RequireDevice(outcome_.runs[r]);
    }
    NoteOtherBits();
    RequireDiskSpace();
    for (const std::string& note : notes_) progress_.Note(note);
    progress_.Note(Summary());
    {
      const auto lock = LockFolder();
      ReadAgain();  // another command may have begun while this one waited
      corpora_.Prepare(
          outcome_, [this] { StopIfAsked(); },
          [this](const std::string& line) { progress_.Note(line); });
      corpora_.CheckFinishedRuns(outcome_, OnlyReads());
      corpora_.WriteRecords();
    }
    TrainSelected();
    ReadAgain();
    corpora_.CheckFinishedRuns(outcome_, OnlyReads());
    return outcome_;
  }

 private:
  // Adds the runs of the record to what the folder has.
  GridOutcome WithRecord(GridOutcome outcome) {
    if (!options_.record) return outcome;
    for (const size_t r : options_.selected) {
      const RunOutcome& run = outcome.runs[r];
      if (run.state == RunState::kFailed ||
          options_.record->Find(RunIdentityKey(run.run)) == nullptr) {
        corpora_.RequireDevice(run);
      }
    }
    // A recorded run counts only if its tokens are the ones here.
    for (const size_t r : RecordedCorpora(outcome, options_)) {
      outcome.corpora.push_back(corpora_.CorpusOf(outcome.runs[r].run));
    }
    notes_ = TakeRecordedRuns(*options_.record, outcome);
    return outcome;
  }

  // Takes in what others have done, in the order in which a later `report`
  // would.
  void ReadAgain() {
    outcome_ = WithRecord(ReadGrid(outcome_.grid, options_.folder,
                                   /*check_checkpoints=*/false));
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

  // The current state of a run, which another process may have ended.
  RunState StateNow(const RunOutcome& run) const {
    try {
      const RunState now = ReadRun(run.run, options_.folder).state;
      return HasEnded(now) ? now : run.state;
    } catch (const Error&) {
      return run.state;  // what stops the grid matters more
    }
  }

  std::string FinishedRuns() const {
    int64_t finished = 0, failed = 0;
    for (const size_t r : options_.selected) {
      const RunState state = StateNow(outcome_.runs[r]);
      finished += state == RunState::kFinished ? 1 : 0;
      failed += state == RunState::kFailed ? 1 : 0;
    }
    return fmt::format("{} of {} runs are finished{}", finished,
                       options_.selected.size(),
                       failed > 0 ? fmt::format(", {} failed", failed) : "");
  }

  // Appended to the reason why the grid stopped.
  std::string GoesOn() const {
    return fmt::format(" ({}; the same command continues)", FinishedRuns());
  }

  void StopIfAsked() const {
    if (!stop_.requested()) return;
    stop_.ThrowIfRequested(FinishedRuns() + "; the same command continues");
  }

  void RequireDiskSpace() const {
    std::vector<RunOutcome> runs;
    for (size_t r : options_.selected) runs.push_back(outcome_.runs[r]);
    RequireGridDiskSpace(runs, options_);
  }

  // Keeps out other processes that prepare the same corpora or write a report.
  std::unique_ptr<FolderLock> LockFolder() {
    bool said = false;
    return WaitForFolder(options_.folder, [&](const LockHolder& holder) {
      StopIfAsked();
      if (said) return;
      said = true;
      progress_.Note(fmt::format("{}: waiting for {}", options_.folder.string(),
                                 Describe(holder)));
    });
  }

  // True if nothing is left to train and nothing was trained in this session.
  bool OnlyReads() const {
    return !trained_ && CountSelected(RunState::kFinished) ==
                            static_cast<int64_t>(options_.selected.size());
  }

  // Notes, once for all runs to be trained, that the ranks give other bits.
  void NoteOtherBits() {
    std::set<std::string> said;
    for (const size_t r : options_.selected) {
      const RunOutcome& run = outcome_.runs[r];
      if (run.state == RunState::kFinished) continue;
      const std::string other_bits =
          trainer::OtherBitsOfRanks(run.run.config, NumRanks(options_));
      if (other_bits.empty() || !said.insert(other_bits).second) continue;
      notes_.push_back(other_bits);
    }
  }

  RunOutcome& Selected(size_t position) {
    return outcome_.runs[options_.selected[position]];
  }

  // Takes runs that nobody holds until no selected run is open, and waits while
  // others hold the rest.
  void TrainSelected() {
    while (!open_.empty() || workers_.size() > 0) {
      if (stop_.requested() && workers_.size() > 0) {
        if (!stopping_) workers_.AskToStop();
        stopping_ = true;
      } else {
        StopIfAsked();
        if (static_cast<int64_t>(workers_.size()) < options_.jobs &&
            StartNext()) {
          continue;
        }
      }
      for (const WorkerEnd& end : workers_.Wait()) EndWorker(end);
    }
  }

  // False if live processes hold all open runs.
  bool StartNext() {
    std::string obstacle;
    for (size_t i = 0; i < open_.size(); ++i) {
      const size_t position = open_[i];
      RunOutcome& run = Selected(position);
      const bool settled = SettledByOthers(position);
      if (settled ||
          (run.state == RunState::kFinished && Lacking(run).empty())) {
        RemoveLockLeftIn(run.folder);
        progress_.End(position, run);
        Close(i);
        return true;
      }
      if (const auto holder = HolderOf(run.folder)) {
        SayHeld(position, *holder);
        if (obstacle.empty()) obstacle = ObstacleToWaiting(run.folder);
        continue;
      }
      progress_.Begin(position);
      trained_ = true;
      if (options_.jobs > 1) {
        Close(i);
        workers_.Start(position, [&] { return Work(&run); });
        return true;
      }
      if (!Work(&run)) continue;
      progress_.End(position, run);
      Close(i);
      return true;
    }
    // Everything else is done, so only waiting is given up.
    if (!obstacle.empty() && workers_.size() == 0) {
      throw EnvironmentError(obstacle + GoesOn());
    }
    return false;
  }

  // Removes the lock of a process that was killed just after it wrote its
  // result.
  static void RemoveLockLeftIn(const fs::path& run_folder) {
    if (!fs::exists(run_folder / kLockName)) return;
    try {
      const FolderLock lock(run_folder);
    } catch (const EnvironmentError&) {
      // Its holder, if there is one, will remove it.
    }
  }

  // Why it cannot be known whether the lock's holder is alive.
  static std::string ObstacleToWaiting(const fs::path& run_folder) {
    try {
      const FolderLock lock(run_folder);
    } catch (const FolderHeldError&) {
    } catch (const EnvironmentError& error) {
      return error.what();
    }
    return "";
  }

  void Close(size_t index) {
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void SayHeld(size_t position, const LockHolder& holder) {
    if (!said_held_.insert(position).second) return;
    progress_.Note(fmt::format("{} is held by {}", progress_.Place(position),
                               Describe(holder)));
  }

  // Rereads the state on disk of a run that was open when this process began.
  bool SettledByOthers(size_t position) {
    RunOutcome& run = Selected(position);
    if (run.state == RunState::kFinished) return false;
    RunOutcome now = ReadRun(run.run, options_.folder);
    now.selected = run.selected;
    const bool settled = now.state == RunState::kFinished ||
                         (now.state == RunState::kFailed &&
                          ProblemTime(run.folder) != problem_times_[position]);
    run = std::move(now);
    return settled && (run.state == RunState::kFailed || Lacking(run).empty());
  }

  // Reads how the run ended from its folder, where another process may have
  // written that. A recorded run has no end there and stays unchanged.
  void Reread(RunOutcome& run) const {
    RunOutcome now = ReadRun(run.run, options_.folder);
    if (!HasEnded(now.state)) return;
    now.selected = run.selected;
    run = std::move(now);
  }

  void EndWorker(const WorkerEnd& end) {
    RunOutcome& run = Selected(end.job);
    if (end.code == ExitCode::kDone && end.done) {
      Reread(run);
      if (HasEnded(run.state)) {
        progress_.End(end.job, run);
        return;
      }
    }
    // Another process came first or removed what the worker left, or the worker
    // saved its state, from which the same command continues.
    open_.push_back(end.job);
    if (end.code == ExitCode::kDone) return;
    if (stopping_ && end.code == ExitCode::kStopped) return;
    workers_.AskToStop();
    while (workers_.size() > 0) workers_.Wait();
    throw Error(end.code,
                fmt::format("{}: {}", progress_.Place(end.job), end.problem));
  }

  // Trains the run, or measures what a finished run lacks.
  trainer::RunResult CallTrainer(const RunOutcome& run) {
    trainer::RunOptions options = OptionsOfRun(run.run, run.folder, options_);
    options.tokens = corpora_.TokensOf(run.run);
    options.on_step = [this](const trainer::StepRecord& record) {
      progress_.Step(record);
    };
    options.on_evaluation = [this] { progress_.Evaluating(); };
    try {
      if (options_.processes == nullptr) {
        return trainer::TrainRun(run.run.config, options);
      }
      const auto index = static_cast<size_t>(&run - outcome_.runs.data());
      return options_.processes->Lead(index, run.run.config, options);
    } catch (const StoppedError& error) {
      throw StoppedError(fmt::format("{} ({})", error.what(), FinishedRuns()));
    } catch (const FolderHeldError&) {
      throw;
    } catch (const EnvironmentError& error) {
      throw EnvironmentError(error.what() + GoesOn());
    } catch (const DataError& error) {
      // A damaged file is not a property of the row, which verdicts would call
      // diverged.
      throw DataError(error.what() + GoesOn());
    }
  }

  // False if another process came first.
  bool Work(RunOutcome* run) {
    try {
      if (run->state == RunState::kFinished) {
        EvaluateFinished(*run);
      } else {
        Train(*run);
      }
      return true;
    } catch (const FolderHeldError&) {
      return false;
    }
  }

  void Train(RunOutcome& run) {
    run.problem.clear();
    try {
      run.result = CallTrainer(run);
      run.state = RunState::kFinished;
      // Not earlier, or others would find neither the failure nor its end.
      ForgetProblem(run.folder);
    } catch (const NumericsError& error) {
      run.state = RunState::kFailed;
      run.problem = error.what();
      RecordProblem(run.folder, run.problem);
    }
  }

  // If it cannot be measured, the run stays finished and the reason is printed.
  void EvaluateFinished(RunOutcome& run) {
    const fs::path checkpoint = run.folder / trainer::kCheckpointName;
    std::string obstacle;
    if (CanBeMeasured(run)) {
      try {
        run.result = CallTrainer(run);
        if (Lacking(run).empty()) return;
      } catch (const NumericsError& error) {
        obstacle = error.what();
      }
    }
    if (!fs::exists(checkpoint)) {
      // Whoever measures a run may delete its checkpoint.
      Reread(run);
      if (run.state == RunState::kFailed || Lacking(run).empty()) return;
    }
    if (obstacle.empty() && run.recorded) {
      obstacle = fmt::format(
          "{}: a record has no checkpoints; leave out --from to have the same "
          "command train the run here, or leave these evaluations out",
          options_.record->path.string());
    }
    if (obstacle.empty()) {
      obstacle = trainer::EvaluationObstacle(
          *run.result, checkpoint,
          optimized::MakeDevice(run.run.runtime)->identity());
    }
    progress_.Note(fmt::format("{} was not measured ({}): {}", run.run.id,
                               Lacking(run), obstacle));
  }

  const GridRunOptions options_;
  const StopSignal stop_;
  GridCorpora corpora_;
  std::vector<std::string> notes_;  // to be printed before anything begins
  GridOutcome outcome_;
  GridProgress progress_;
  std::vector<size_t> open_;  // positions in options_.selected
  // ProblemTime of each position when this process began.
  std::vector<std::optional<fs::file_time_type>> problem_times_;
  std::set<size_t> said_held_;
  bool trained_ = false;   // trained something in this session
  bool stopping_ = false;  // asked the workers to stop
  GridWorkers workers_;
};

}  // namespace

int NumRanks(const GridRunOptions& options) {
  const int processes =
      options.processes == nullptr ? 1 : options.processes->size();
  return options.ranks * processes;
}

GridOutcome RunGrid(Grid grid, const GridRunOptions& options) {
  SOFTMOE_CHECK(options.processes == nullptr || options.jobs == 1)
      << options.jobs << " jobs";
  grid = WithItemsHere(std::move(grid), options);
  AgreeOnGrid(grid, options);
  for (const size_t r : options.selected) {
    (void)trainer::RanksInIdentity(grid.runs[r].config, NumRanks(options));
  }
  GridOutcome found = ReadGrid(grid, options.folder,
                               /*check_checkpoints=*/true);
  const std::vector<RunOutcome> runs = SelectedRuns(found, options);
  RequirePaperScale(grid, runs, options, /*trains_here=*/true);
  std::vector<std::string> parts = RequireTaskItems(runs, options);
  RequireTokens(grid, options);
  return GridRunner(std::move(found), std::move(parts), options).Run();
}

ExitCode FollowGrid(const Grid& grid, const GridRunOptions& options) {
  GridRanks& ranks = *options.processes;
  AgreeOnGrid(grid, options);
  while (const auto task = ranks.Next()) {
    const GridRun& run = grid.runs.at(task->run);
    trainer::RunOptions of_run =
        OptionsOfRun(run, options.folder / RunFolderName(run), options);
    of_run.tokens = task->tokens;
    ranks.Follow(run.config, of_run);
  }
  return ranks.code();
}

}  // namespace softmoe::experiments
