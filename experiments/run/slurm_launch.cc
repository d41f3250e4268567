// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/slurm_launch.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/folder_lock.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "core/process/process.h"
#include "core/process/stop_signal.h"
#include "core/stoppable_output.h"
#include "core/text/ascii.h"
#include "experiments/plan/grid_estimate.h"
#include "experiments/run/grid_requirements.h"
#include "experiments/run/run_folder.h"
#include "trainer/results/run_result_file.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// ---- sbatch and squeue.

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string OneLine(const std::string& text) {
  std::string line;
  for (const std::string& each : Lines(text)) {
    if (!each.empty()) line += (line.empty() ? "" : "; ") + each;
  }
  return line.empty() ? "nothing" : line;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isdigit(c) != 0;
  });
}

struct SlurmJobId {
  std::string number;   // the array's
  std::string cluster;  // "" if there is only one cluster
};

std::string OnCluster(const SlurmJobId& job) {
  return job.cluster.empty() ? "" : "--clusters=" + job.cluster + " ";
}

// A task of an array that Slurm has not ended.
struct SlurmTask {
  int64_t index = 0;
  std::string state;   // "RUNNING", "PENDING", "COMPLETING", ...
  std::string reason;  // why it is pending
};

// INDEX|STATE|REASON
std::optional<SlurmTask> ParseTask(const std::string& line) {
  const size_t first = line.find('|');
  if (first == std::string::npos) return std::nullopt;
  const size_t second = line.find('|', first + 1);
  if (second == std::string::npos) return std::nullopt;
  const auto index = ParseNumber<uint32_t>(line.substr(0, first));
  if (!index) return std::nullopt;
  return SlurmTask{.index = *index,
                   .state = line.substr(first + 1, second - first - 1),
                   .reason = line.substr(second + 1)};
}

// Throws EnvironmentError if sbatch or squeue is missing.
void RequireSlurm() {
  for (const char* program : {"sbatch", "squeue"}) {
    if (HaveProgram(program)) continue;
    throw EnvironmentError(fmt::format(
        "--launcher=slurm: there is no {} in PATH; run this on a machine that "
        "submits jobs to a Slurm cluster (its commands are in Debian's package "
        "slurm-client), or train here with --launcher=local",
        program));
  }
}

// Throws EnvironmentError with sbatch's message if it refuses.
SlurmJobId SubmitScript(const std::filesystem::path& script) {
  // Ctrl-C must not end sbatch once Slurm may have accepted the job.
  const ProgramResult result =
      RunProgram({"sbatch", "--parsable", script.string()},
                 script.parent_path(), /*own_group=*/true);
  if (result.exit_status == 0) {
    // NUMBER or NUMBER;CLUSTER, perhaps among warnings.
    for (const std::string& line : Lines(result.output)) {
      const size_t end = line.find(';');
      const std::string number = line.substr(0, end);
      if (!IsNumber(number)) continue;
      return {.number = number,
              .cluster = end == std::string::npos ? "" : line.substr(end + 1)};
    }
  }
  throw EnvironmentError(
      fmt::format("sbatch {} ended with {} and said: {}. Options that this "
                  "cluster requires, such as \"--account=me\", go into sbatch "
                  "= [...] of [cluster] in the grid's file",
                  script.string(), result.exit_status, OneLine(result.output)));
}

// The job's tasks in the queue; none once Slurm has ended them all or forgotten
// the job, whose number may then belong to another. nullopt if Slurm does not
// answer; `*failure` is then squeue's message.
std::optional<std::vector<SlurmTask>> TasksInQueue(const SlurmJobId& job,
                                                   std::string* failure) {
  std::vector<std::string> command = {"env"};
  // The user's choices for squeue would hide tasks.
  for (const std::string& variable : Environment()) {
    if (!variable.starts_with("SQUEUE_")) continue;
    command.insert(command.end(),
                   {"-u", variable.substr(0, variable.find('='))});
  }
  command.insert(command.end(),
                 {"squeue", "--noheader", "--array", "--jobs=" + job.number,
                  "--format=%K|%T|%r", "--user=" + std::to_string(::getuid())});
  if (!job.cluster.empty()) command.push_back("--clusters=" + job.cluster);
  const ProgramResult result = RunProgram(command, "/");
  std::vector<SlurmTask> tasks;
  if (result.exit_status != 0) {
    // Slurm's answer for a job that ended some minutes ago.
    if (result.output.find("Invalid job id") != std::string::npos) return tasks;
    *failure = OneLine(result.output);
    return std::nullopt;
  }
  for (const std::string& line : Lines(result.output)) {
    if (const auto task = ParseTask(line)) tasks.push_back(*task);
  }
  return tasks;
}

// "3 running, 2 pending (Priority)".
std::string DescribeTasks(const std::vector<SlurmTask>& tasks) {
  std::map<std::string, int64_t> counts;
  for (const SlurmTask& task : tasks) {
    std::string what = LowerCase(task.state);
    if (task.state == "PENDING") what += " (" + task.reason + ")";
    ++counts[what];
  }
  std::string text;
  for (const auto& [what, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  }
  return text;
}

// Commands for people: "squeue --jobs=12" and "scancel 12".
std::string FollowCommand(const SlurmJobId& job) {
  return "squeue " + OnCluster(job) + "--jobs=" + job.number;
}

std::string CancelCommand(const SlurmJobId& job) {
  return "scancel " + OnCluster(job) + job.number;
}

// ---- The launcher.

constexpr std::chrono::milliseconds kLook(200);
// Interval between questions to Slurm, whose controller serves all users.
constexpr std::chrono::seconds kAsk(10);

// A submitted job and the rows of its tasks; "" for a task that has ended and
// whose row is in another job.
struct Submitted {
  SlurmJobId id;
  SlurmJob job;
};

// The record of a job, kept in a file beside its script for later calls.
std::string JobRecordLine(const Submitted& submitted) {
  return JsonLine({{"job", submitted.id.number},
                   {"cluster", submitted.id.cluster},
                   {"rows", submitted.job.rows},
                   {"command", submitted.job.command}});
}

fs::path JobRecordPath(const SlurmJob& job, const SlurmJobId& id) {
  return fs::path(job.logs) / fmt::format("{}-{}.json", job.name, id.number);
}

// nullopt if the file is not such a record, or belongs to another command.
std::optional<Submitted> ReadJobRecord(const fs::path& path,
                                       const SlurmJob& job) {
  const auto record = ParseJsonObject(ReadWholeFile(path));
  Submitted submitted;
  submitted.job = job;
  try {
    submitted.id.number = record.at("job").get<std::string>();
    submitted.id.cluster = record.at("cluster").get<std::string>();
    submitted.job.rows = record.at("rows").get<std::vector<std::string>>();
    if (record.at("command") != job.command) return std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  return submitted;
}

class SlurmLauncher {
 public:
  // `runs`: the selected ones, in the order of the grid, in which the seeds of
  // a row follow each other, as EstimateGrid needs; a task trains them in the
  // order of their waves.
  SlurmLauncher(const Grid& grid, const SlurmLaunchOptions& options,
                const std::vector<RunOutcome>& runs)
      : grid_(grid), options_(options) {
    for (const RunOutcome& run : runs) {
      if (run.state == RunState::kFinished && !CanBeMeasured(run)) continue;
      open_.push_back(run);
    }
  }

  void Run() {
    MakeFolder(options_.run.folder);
    if (open_.empty()) {
      fmt::print("nothing to submit: all {} runs are finished{}\n",
                 options_.run.selected.size(),
                 options_.detach ? "; `report` shows them" : "");
      return;
    }
    std::set<std::pair<std::string, std::string>> tasks;
    for (const RunOutcome& run : open_) {
      tasks.emplace(run.run.corpus.id, run.run.row.id);
    }
    GridRunOptions at_work = options_.run;
    at_work.jobs = 1;
    at_work.processes_at_work = static_cast<int64_t>(tasks.size());
    RequireGridDiskSpace(open_, at_work);
    Submit();
    std::fflush(stdout);  // the numbers of the jobs are needed now
    if (!options_.detach) Wait();
  }

 private:
  // Submits the jobs that the open runs need, except those in the queue.
  void Submit() {
    Grid open = grid_;
    open.runs.clear();
    for (const RunOutcome& run : open_) open.runs.push_back(run.run);
    const std::vector<SlurmJob> jobs =
        SlurmJobs(open, EstimateGrid(open, ReadPaper()), options_.place);
    MakeFolder(SlurmFolder(options_.run.folder));
    // Two such commands would otherwise submit the same jobs twice.
    const FolderLock lock(SlurmFolder(options_.run.folder));
    for (SlurmJob job : jobs) {
      for (Submitted& earlier : EarlierJobs(&job)) {
        jobs_.push_back(std::move(earlier));
      }
      if (!job.rows.empty()) SubmitJob(job);
    }
  }

  // Jobs of earlier calls that have tasks in the queue for some of job->rows;
  // these rows are taken out of `job`. Forgets jobs that Slurm has ended.
  std::vector<Submitted> EarlierJobs(SlurmJob* job) {
    std::vector<Submitted> earlier;
    const fs::path folder = job->logs;
    std::vector<fs::path> records;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".json") records.push_back(entry.path());
    }
    std::ranges::sort(records);
    for (const fs::path& path : records) {
      if (!path.filename().string().starts_with(job->name + "-")) continue;
      const auto submitted = ReadJobRecord(path, *job);
      if (!submitted) continue;
      const std::vector<SlurmTask> tasks = AskNow(submitted->id);
      if (tasks.empty()) {
        fs::remove(path);
        continue;
      }
      std::set<std::string> queued;
      for (const SlurmTask& task : tasks) {
        const auto index = static_cast<size_t>(task.index);
        if (index >= submitted->job.rows.size()) continue;
        queued.insert(submitted->job.rows[index]);
      }
      if (std::erase_if(job->rows, [&](const std::string& row) {
            return queued.contains(row);
          }) == 0) {
        continue;
      }
      fmt::print("job {} of an earlier command is still in Slurm's queue: {}\n",
                 submitted->id.number, DescribeTasks(tasks));
      // Rows of ended tasks are submitted again: their logs are the new job's.
      Submitted still = *submitted;
      for (std::string& row : still.job.rows) {
        if (!queued.contains(row)) row.clear();
      }
      earlier.push_back(std::move(still));
    }
    return earlier;
  }

  static std::vector<SlurmTask> AskNow(const SlurmJobId& job) {
    std::string failure;
    const auto tasks = TasksInQueue(job, &failure);
    if (tasks) return *tasks;
    throw EnvironmentError(
        fmt::format("{} failed, so it is unknown whether that job is still at "
                    "work: {}; try again when Slurm answers",
                    FollowCommand(job), failure));
  }

  void SubmitJob(const SlurmJob& job) {
    const fs::path script = fs::path(job.logs) / (job.name + ".sh");
    WriteFileAtomically(script, SlurmScript(job));
    const StopSignal stop;  // takes effect once the job is recorded
    Submitted submitted = {.id = {}, .job = job};
    try {
      submitted.id = SubmitScript(script);
    } catch (const EnvironmentError& error) {
      if (jobs_.empty()) throw;
      throw EnvironmentError(
          fmt::format("{}. Jobs that were submitted before continue; {}",
                      error.what(), HowToGoOn()));
    }
    jobs_.push_back(submitted);
    // Before anything is printed, which may fail, or wait for its reader.
    try {
      WriteFileAtomically(JobRecordPath(job, submitted.id),
                          JobRecordLine(submitted));
    } catch (const EnvironmentError& error) {
      throw EnvironmentError(fmt::format(
          "{}. Job {} continues, but is not recorded, and the same command "
          "would submit its rows again: {} ends it",
          error.what(), submitted.id.number, CancelCommand(submitted.id)));
    }
    PrintUnlessStopped(
        stdout,
        fmt::format("job {}: {} rows, a task each; its script is {}, logs are "
                    "beside it; {} shows it, {} ends it\n",
                    submitted.id.number, job.rows.size(), script.string(),
                    FollowCommand(submitted.id), CancelCommand(submitted.id)));
    ThrowIfRequested(stop);
  }

  void ThrowIfRequested(const StopSignal& stop) const {
    stop.ThrowIfRequested("submitted jobs continue; " + HowToGoOn());
  }

  std::string HowToGoOn() const {
    std::string follow, cancel;
    for (const Submitted& submitted : jobs_) {
      const bool first = follow.empty();
      follow += (first ? "" : ", ") + FollowCommand(submitted.id);
      cancel += (first ? "" : ", ") + CancelCommand(submitted.id);
    }
    return fmt::format(
        "follow it with {} or `grid status`, end it with {}; the same command "
        "waits for it again",
        follow, cancel);
  }

  void Wait() {
    const StopSignal stop;
    auto ask = Clock::now();
    while (!AllResultsAreThere()) {
      ThrowIfRequested(stop);
      if (Clock::now() >= ask) {
        if (!AnyTaskIsLeft()) return WaitForFiles(stop);
        ask = Clock::now() + kAsk;
      }
      std::this_thread::sleep_for(kLook);
    }
  }

  // Waits for results that ended tasks may have written.
  void WaitForFiles(const StopSignal& stop) const {
    const auto end = Clock::now() + options_.file_delay;
    while (!std::ranges::all_of(open_, &HasResult)) {
      if (Clock::now() >= end) return SayWhatIsMissing();
      ThrowIfRequested(stop);
      std::this_thread::sleep_for(kLook);
      OpenFolders();
    }
  }

  // NFS remembers that a file was absent, but asks the server again about a
  // folder that is opened.
  void OpenFolders() const {
    std::error_code absent;
    (void)fs::directory_iterator(options_.run.folder, absent);
    for (const RunOutcome& run : open_) {
      (void)fs::directory_iterator(run.folder, absent);
    }
  }

  // False while a run that had a result from the beginning waits for
  // evaluations: only Slurm knows whether it has them.
  bool AllResultsAreThere() const {
    return std::ranges::all_of(open_, [](const RunOutcome& run) {
      return run.state != RunState::kFinished && HasResult(run);
    });
  }

  static bool HasResult(const RunOutcome& run) {
    std::error_code missing;
    return fs::exists(run.folder / trainer::kResultName, missing);
  }

  bool AnyTaskIsLeft() {
    bool any = false;
    for (const Submitted& submitted : jobs_) {
      const std::string& number = submitted.id.number;
      std::string failure;
      const auto tasks = TasksInQueue(submitted.id, &failure);
      if (!tasks) {
        Say(number, fmt::format("Slurm does not answer: {}", failure));
      } else if (!tasks->empty()) {
        Say(number, DescribeTasks(*tasks));
      }
      any |= !tasks || !tasks->empty();
    }
    return any;
  }

  // Prints `text` unless it was the last thing said about the job.
  void Say(const std::string& job, const std::string& text) {
    if (options_.run.quiet || std::exchange(said_[job], text) == text) return;
    const auto finished = std::ranges::count_if(open_, &HasResult);
    PrintUnlessStopped(
        stderr, fmt::format("job {}: {}; {} of {} runs have ended\n", job, text,
                            finished, open_.size()));
  }

  void SayWhatIsMissing() const {
    for (const RunOutcome& run : open_) {
      if (HasResult(run)) continue;
      PrintUnlessStopped(
          stderr,
          fmt::format("{}: not finished, and Slurm has ended its task; the "
                      "reason is in {}\n",
                      run.run.id, LogOf(run.run)));
    }
  }

  std::string LogOf(const GridRun& run) const {
    for (const Submitted& submitted : jobs_) {
      const std::vector<std::string>& rows = submitted.job.rows;
      const auto row = std::ranges::find(rows, run.row.id);
      if (submitted.job.corpus != run.corpus.id || row == rows.end()) continue;
      return SlurmLogName(submitted.job, submitted.id.number,
                          static_cast<size_t>(row - rows.begin()));
    }
    return SlurmFolder(options_.run.folder).string();
  }

  const Grid& grid_;
  const SlurmLaunchOptions& options_;
  std::vector<RunOutcome> open_;  // selected and not finished at the start
  std::vector<Submitted> jobs_;   // that train the open runs
  std::map<std::string, std::string> said_;
};

// Adds those tokens of recorded runs that are on this machine and that the
// folder has no record of yet; notes the corpora that were not compared.
void AddTokensHere(const GridRunOptions& options, GridOutcome* found) {
  for (const size_t r : RecordedCorpora(*found, options)) {
    const GridRun& run = found->runs[r].run;
    try {
      found->corpora.push_back(FindTokens(run, options));
      found->corpora.back().prefix = CorpusPrefix(run, options.folder);
    } catch (const EnvironmentError&) {
      fmt::print(
          "the tokens of {} are not here, so they are not compared with the "
          "record's\n",
          run.config.data.corpus);
    }
  }
}

}  // namespace

void RunOnSlurm(Grid grid, const SlurmLaunchOptions& options) {
  grid = WithItemsHere(std::move(grid), options.run);
  for (const size_t r : options.run.selected) {
    CheckSlurmRanks(grid, grid.runs[r], options.place.ranks);
  }
  GridRunOptions in_order = options.run;
  std::ranges::sort(in_order.selected);
  GridOutcome found =
      ReadGrid(grid, options.run.folder, /*check_checkpoints=*/true);
  if (options.run.record) AddTokensHere(options.run, &found);
  std::vector<std::string> notes;
  const std::vector<RunOutcome> runs =
      SelectedRuns(std::move(found), in_order, &notes);
  for (const std::string& note : notes) fmt::print("{}\n", note);
  for (const RunOutcome& run : runs) {
    if (run.state != RunState::kFinished) CheckPrecisionOfTasks(run.run);
  }
  // The tasks run elsewhere, where things that this machine lacks may exist.
  RequirePaperScale(grid, runs, options.run, /*trains_here=*/false);
  for (const std::string& part : RequireTaskItems(runs, options.run)) {
    fmt::print("{}\n", part);
  }
  RequireTokens(grid, options.run);
  RequireSlurm();
  SlurmLauncher(grid, options, runs).Run();
}

}  // namespace softmoe::experiments
