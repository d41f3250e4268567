// SPDX-License-Identifier: Apache-2.0
//
// //:grid - plans, trains, reports and tidies the grids of the experiments.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/code_version.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/folder_lock.h"
#include "core/files/paths.h"
#include "core/process/stop_signal.h"
#include "core/text/suggestion.h"
#include "core/text/text_table.h"
#include "experiments/grids/experiment.h"
#include "experiments/grids/grid_file.h"
#include "experiments/grids/grid_select.h"
#include "experiments/plan/grid_plan.h"
#include "experiments/plan/slurm_jobs.h"
#include "experiments/report/grid_report.h"
#include "experiments/report/invariants.h"
#include "experiments/report/mini_claims.h"
#include "experiments/report/power.h"
#include "experiments/run/grid_clean.h"
#include "experiments/run/grid_ranks.h"
#include "experiments/run/grid_status.h"
#include "experiments/run/process_rank.h"
#include "experiments/run/run_folder.h"
#include "experiments/run/run_grid.h"
#include "experiments/run/run_record.h"
#include "experiments/run/slurm_launch.h"
#include "experiments/run/verify_record.h"
#include "trainer/results/event_file.h"
#include "trainer/results/metrics_log.h"
#include "trainer/run/rank_main.h"
#include "trainer/tokens/token_memory.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

constexpr char kDescription[] =
    "Reruns the paper's experiments: a grid is rows (routers) x corpora x "
    "seeds, described by a TOML file, and every run has a folder. Each "
    "table and figure of the paper is an experiment, at several scales.";

constexpr char kExamples[] = R"(
Examples:
  grid list
      scales, experiments, and what each is for
  grid plan paper
      rows, tokens, FLOPs, memory, GPU hours; runs nothing
  grid plan all --scale=paper
      all that the paper's tables and figures need, each run once
  grid plan regime --scale=mini
      also how probable each verdict is at which true difference; ends with 4
      where a claim is shown at none of them (--exploratory: 0)
  grid run smoke
      all nine rows on real text in minutes, with table and report
  grid run tau --scale=mini --seeds x2
      Table 6 in miniature, with the first two seeds; main is Table 1, and
      smoke, mini, midi, paper are short for main at that scale
  grid run mini --rows sparse-1,softmoe-1.5-calibrated --seeds 1,2,3
      some rows only, other seeds
  grid run mini --jobs 2
      two runs side by side, each with half of the cores
  mpirun -n 2 grid run mini --ranks mpi
      two processes train every run together, one run after the other; --ranks 2
      does the same with threads
  grid run mini --launcher=slurm
      a job array on a Slurm cluster, one task for each row; waits for it, and
      its exit code is that of the grid. --detach: does not wait
  mpirun -n 8 grid run mini --launcher=mpi
      eight processes share the rows, side by side: faster for many rows, not
      for one (they are not the ranks of a data-parallel training)
  grid run my-grid.toml --set training.steps=1000 --out /scratch/my-grid
      a grid of your own; --set goes over every run
  grid run paper --task-files /data/tasks
      where the items of the zero-shot tasks are that its [evaluations] list
  grid run paper --task-files /data/tasks --tokens owt=/data/owt
      on token files that were prepared elsewhere; corpora are not prepared at
      that scale, since GPUs would wait
  grid status smoke            how far it is, also while it runs
  grid report smoke            the report again, from what is on disk
  grid tensorboard smoke       curves for TensorBoard, also of runs at work
  grid clean smoke [--yes]     what could be deleted [delete it]
  grid report mini --from golden/runs/mini.h5
      the report of runs that were recorded; `run` trains those that are not
  grid verify-record golden/runs/mini.h5 --run gcide/sparse-1/seed1234
      one of them is trained again, and must give the same bits
  grid record mini --renew     the record again, as this program writes it; so
                               also to take in --bench FILE alone
  grid record mini             finished runs into golden/runs/mini.h5, without
                               their parameters; runs that it has stay
  grid run regime --scale=mini --from golden/runs/mini.h5
  grid record regime --scale=mini --from golden/runs/mini.h5
      an experiment of this project with a record of its own, regime.h5: soft
      and sparse routing at equal active experts, in the order of its [[waves]]

Experiments of one scale share the folder runs/SCALE, and a run that several
need is trained once, whoever asks first; their reports are in folders of their
own there, EXPERIMENT/report.html.

Stopped by Ctrl-C, SIGTERM, SIGHUP or a crash, the same command goes on:
finished runs are read, the interrupted one resumes at its checkpoint, and the
bits are those of an unbroken run. A run that fails does not keep the others
from running; the same command tries it again. --threads and --jobs never change
a result, nor do --ranks, unless a line says so.

The same command, given again while the first is at work, here or on another
machine that has the folder, shares the work: each takes runs that nobody holds,
waits in the end for those of others, and writes the report.

Results are in runs/GRID, runs/SCALE for experiments, under the working
directory, or in --out; the configuration is part of the name of each run's
folder, so that other settings never mix with these. Corpora and tokenizers are in $XDG_CACHE_HOME/softmoe.

Exit codes: 0 every row finished, every invariant holds; 1 a row failed or is
missing, an invariant does not hold, or a recorded run has other bits now; 2
usage, configuration, or a damaged file; 3 a recorded run and the same on another
instruction set; 4 a plan whose runs cannot show what they are judged for; 5 a
grid of the paper's scale lacks a GPU, a corpus or disk, a file is missing, the
disk is full, another rank is dead or silent, a lock is of a machine that cannot
be asked, or Slurm is missing or refuses a job; 7 two seeds have the same bits; 75
stopped by a signal, state saved.)";

// Arguments of all subcommands.
struct Arguments {
  std::string grid, scale, out;
  Strings overrides, runtime, rows, corpora, only, seeds;
  std::string from;    // a record
  std::string record;  // --to, FILE
  std::string bench;
  std::string run, changed_by, isa, device;
  std::string task_files;
  Strings tokens;  // CORPUS=PREFIX
  ReportOptions report;
  std::optional<Launcher> launcher;
  int64_t threads = 0;
  int64_t jobs = 1;
  trainer::RankOptions ranks;
  bool quiet = false, yes = false, keep_checkpoints = false, renew = false;
  bool detach = false, exploratory = false, recheck = false;
};

// Made-up records for each true difference: a probability is known to 4 %.
constexpr int kPowerDraws = 200;

Grid Load(const Arguments& arguments) {
  Strings overrides = arguments.overrides;
  // The options for [runtime] are short forms of --set.
  overrides.insert(overrides.end(), arguments.runtime.begin(),
                   arguments.runtime.end());
  return SelectGrid(arguments.grid, arguments.scale, overrides,
                    ParseSeeds(arguments.seeds));
}

// All experiments that share the folder of `grid`.
std::vector<Grid> LoadAll(const Grid& grid, const Arguments& arguments) {
  return LoadExperiments(grid.path, grid.overrides,
                         ParseSeeds(arguments.seeds));
}

// The folder of a grid that must have been run.
fs::path ExistingFolder(const Grid& grid, const Arguments& arguments) {
  const fs::path folder = GridFolder(grid, arguments.out);
  if (fs::is_directory(folder)) return folder;
  throw EnvironmentError(fmt::format(
      "{}: no such folder; `run {}` makes it, --out says where another is",
      folder.string(),
      arguments.grid +
          (arguments.scale.empty() ? "" : " --scale=" + arguments.scale)));
}

// The record of --from, if there is one.
std::optional<RunRecord> RecordOf(const Arguments& arguments) {
  if (arguments.from.empty()) return std::nullopt;
  RunRecord record = ReadRunRecord(UserPath(arguments.from));
  RequireKnownMargins(record);
  return record;
}

// The state of a grid, from disk and from the record.
GridOutcome ReadRuns(const Grid& grid, const fs::path& folder,
                     const std::optional<RunRecord>& record) {
  GridOutcome outcome = ReadGrid(grid, folder, /*check_checkpoints=*/false);
  if (record) {
    for (const std::string& note : TakeRecordedRuns(*record, outcome)) {
      fmt::print("{}\n", note);
    }
  }
  RequireSameTokens(outcome);
  return outcome;
}

std::unique_ptr<FolderLock> LockForReport(const fs::path& grid_folder) {
  const StopSignal stop;
  bool said = false;
  return WaitForFolder(grid_folder, [&](const LockHolder& holder) {
    stop.ThrowIfRequested("no report yet; the same command writes it");
    if (!std::exchange(said, true)) {
      std::cerr << grid_folder.string() << ": waiting for " << Describe(holder)
                << "\n";
    }
  });
}

void Select(const std::vector<size_t>& selected, GridOutcome& outcome) {
  for (RunOutcome& run : outcome.runs) run.selected = false;
  for (const size_t r : selected) outcome.runs[r].selected = true;
}

// Returns the exit code that Report would, for a process that leaves the report
// to another.
ExitCode JudgeOnly(const Grid& grid, const std::optional<RunRecord>& record,
                   const std::vector<size_t>& selected,
                   const fs::path& grid_folder) {
  GridOutcome outcome =
      ReadGrid(grid, grid_folder, /*check_checkpoints=*/false);
  if (record) TakeRecordedRuns(*record, outcome);
  Select(selected, outcome);
  return AllHold(CheckInvariants(outcome)) ? ExitCode::kDone
                                           : ExitCode::kFailed;
}

// Judges what is there, prints it and writes the report. One process at a time:
// the last to finish sees all runs. `selected` must finish.
ExitCode Report(const Grid& grid, const std::optional<RunRecord>& record,
                const std::vector<size_t>& selected,
                const fs::path& grid_folder, const ReportOptions& options) {
  MakeFolder(grid_folder);  // a record alone has no folder yet
  const auto lock = LockForReport(grid_folder);
  GridOutcome outcome = ReadRuns(grid, grid_folder, record);
  Select(selected, outcome);
  const fs::path folder = ReportFolder(outcome.grid, grid_folder);
  MakeFolder(folder);
  const GridReport report = WriteGridReport(outcome, folder, options);
  fmt::print("\n{}\n", report.text);
  for (const RunOutcome& run : outcome.runs) {
    if (run.state == RunState::kFailed) {
      fmt::print("FAILED {}: {}\n", run.run.id, run.problem);
    }
  }
  for (const fs::path& file : report.files) {
    fmt::print("wrote {}\n", file.string());
  }
  size_t finished = 0;
  for (const size_t r : selected) {
    finished += outcome.runs[r].state == RunState::kFinished ? 1 : 0;
  }
  fmt::print("{} of {} rows finished; {}\n", finished, selected.size(),
             report.invariants_hold ? "every invariant holds"
                                    : "an invariant does NOT hold");
  return report.invariants_hold ? ExitCode::kDone : ExitCode::kFailed;
}

// Calls `report(experiment, its runs)` for all experiments that have one of the
// selected runs of `all`.
ExitCode ForEachExperiment(
    const Grid& all, const std::vector<size_t>& selected,
    const Arguments& arguments,
    const std::function<ExitCode(const Grid&, const std::vector<size_t>&)>&
        report) {
  std::set<std::string> asked;
  for (const size_t r : selected) asked.insert(RunIdentityKey(all.runs[r]));
  ExitCode worst = ExitCode::kDone;
  for (const Grid& grid : LoadAll(all, arguments)) {
    if (IsOwnExperiment(grid.experiment)) continue;
    std::vector<size_t> own;
    for (size_t r = 0; r < grid.runs.size(); ++r) {
      if (asked.contains(RunIdentityKey(grid.runs[r]))) own.push_back(r);
    }
    if (own.empty()) continue;
    const ExitCode code = report(grid, own);
    if (code != ExitCode::kDone) worst = code;
  }
  return worst;
}

// Reports on the selected runs of a grid, or on each of its experiments. Only
// the process with `lead` prints and writes.
ExitCode ReportOn(const Grid& grid, const std::vector<size_t>& selected,
                  const fs::path& folder, const Arguments& arguments,
                  bool leads = true) {
  const std::optional<RunRecord> record = RecordOf(arguments);
  const auto report = [&](const Grid& one, const std::vector<size_t>& runs) {
    return leads ? Report(one, record, runs, folder, arguments.report)
                 : JudgeOnly(one, record, runs, folder);
  };
  if (grid.experiment != kAllExperiments) return report(grid, selected);
  return ForEachExperiment(
      grid, selected, arguments,
      [&](const Grid& one, const std::vector<size_t>& runs) {
        if (leads) {
          fmt::print("\nExperiment {}: {}\n", one.experiment, one.title);
        }
        return report(one, runs);
      });
}

// Refuses launcher options that contradict each other.
void CheckLaunch(const Arguments& arguments) {
  const Launcher launcher = arguments.launcher.value_or(Launcher::kLocal);
  if (arguments.detach && launcher != Launcher::kSlurm) {
    throw ConfigError(
        "--detach is for --launcher=slurm: without Slurm nothing would train "
        "once this process is gone; leave it out, or start the command in the "
        "background");
  }
  if (arguments.jobs != 1 && launcher != Launcher::kLocal) {
    throw ConfigError(fmt::format(
        "--jobs {} does not go with --launcher={}: {}; leave out one of them",
        arguments.jobs, launcher == Launcher::kMpi ? "mpi" : "slurm",
        launcher == Launcher::kMpi
            ? "each process of mpirun trains one run at a time"
            : "Slurm decides how many tasks are at work"));
  }
  if (!arguments.ranks.mpi()) return;
  const std::string ranks = "--ranks " + arguments.ranks.ranks;
  if (arguments.jobs != 1) {
    throw ConfigError(fmt::format(
        "--jobs {} does not go with {}: the processes train one run at a time, "
        "together; leave out one of them, or give --ranks a number, for ranks "
        "in threads of each job",
        arguments.jobs, ranks));
  }
  if (launcher == Launcher::kMpi) {
    throw ConfigError(fmt::format(
        "{} does not go with --launcher=mpi: the processes either train every "
        "run together (--ranks) or share the runs (--launcher); leave out one "
        "of them",
        ranks));
  }
  if (launcher == Launcher::kSlurm) {
    throw ConfigError(fmt::format(
        "{} does not go with --launcher=slurm, whose scripts have the ranks "
        "find each other: give --ranks a number",
        ranks));
  }
}

// The prefixes of --tokens, by corpus.
std::map<std::string, fs::path> TokensOf(const Arguments& arguments) {
  std::map<std::string, fs::path> tokens;
  for (const std::string& given : arguments.tokens) {
    const size_t at = given.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == given.size()) {
      throw ConfigError(fmt::format(
          "--tokens {}: write CORPUS=PREFIX, as in owt=/data/owt", given));
    }
    if (!tokens.emplace(given.substr(0, at), UserPath(given.substr(at + 1)))
             .second) {
      throw ConfigError(
          fmt::format("--tokens {}: the corpus is given twice; "
                      "leave one out",
                      given));
    }
  }
  return tokens;
}

// Where and how a launcher starts this program again.
SlurmPlace PlaceOf(const fs::path& folder, const Arguments& arguments) {
  SlurmPlace place;
  place.program = fs::read_symlink("/proc/self/exe").string();
  place.start = UserPath(".");
  place.folder = folder;
  if (!arguments.from.empty()) {
    place.options.insert(place.options.end(),
                         {"--from", UserPath(arguments.from).string()});
  }
  if (!arguments.task_files.empty()) {
    place.options.insert(
        place.options.end(),
        {"--task-files", UserPath(arguments.task_files).string()});
  }
  for (const auto& [corpus, prefix] : TokensOf(arguments)) {
    place.options.insert(place.options.end(),
                         {"--tokens", corpus + "=" + prefix.string()});
  }
  if (arguments.keep_checkpoints) {
    place.options.push_back("--keep-checkpoints");
  }
  place.ranks = arguments.ranks.in_process();
  if (arguments.ranks.exchange != trainer::ExchangeChoice::kAuto) {
    place.options.insert(place.options.end(),
                         {"--exchange", NameOf(arguments.ranks.exchange)});
  }
  return place;
}

// The folder of --task-files; "" without it.
fs::path TaskFilesOf(const Arguments& arguments) {
  return arguments.task_files.empty() ? "" : UserPath(arguments.task_files);
}

// Trains the selected runs together with the other processes of one mpirun,
// which share the grid as any processes do; the first one shows progress.
void RunAsRank(const Grid& grid, GridRunOptions options,
               const ProcessRank& rank) {
  options.threads = ShareOfCores(rank);
  options.quiet |= rank.rank > 0;
  try {
    RunGrid(grid, options);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("rank {}: {}", rank.rank, error.what()));
  }
}

ExitCode Run(const Arguments& arguments, const trainer::Ranks& processes) {
  const Launcher launcher = arguments.launcher.value_or(Launcher::kLocal);
  Grid grid = Load(arguments);
  if (arguments.keep_checkpoints) {
    for (GridRun& run : grid.runs) run.evaluations.keep_checkpoint = true;
  }
  GridRunOptions options;
  options.folder = GridFolder(grid, arguments.out);
  options.selected = SelectRuns(grid, arguments.rows, arguments.corpora);
  options.quiet = arguments.quiet;
  options.task_files = TaskFilesOf(arguments);
  options.tokens = TokensOf(arguments);
  if (arguments.recheck) trainer::ForgetTokens();
  options.record = RecordOf(arguments);
  options.jobs = arguments.jobs;
  options.ranks = arguments.ranks.in_process();
  options.exchange = arguments.ranks.exchange;
  GridRanks ranks(processes);
  if (arguments.ranks.mpi()) {
    options.processes = &ranks;
    if (!ranks.leads()) return FollowGrid(grid, options);
  }
  bool leads = true;
  if (launcher == Launcher::kSlurm) {
    RunOnSlurm(grid, {.run = options,
                      .place = PlaceOf(options.folder, arguments),
                      .detach = arguments.detach});
    if (arguments.detach) return ExitCode::kDone;
  } else if (launcher == Launcher::kMpi) {
    const ProcessRank rank = RankOfEnvironment();
    RunAsRank(grid, options, rank);
    leads = rank.rank == 0;
  } else {
    RunGrid(grid, options);
  }
  const ExitCode code =
      ReportOn(grid, options.selected, options.folder, arguments, leads);
  if (options.processes != nullptr) ranks.Dismiss(code);
  return code;
}

ExitCode ReportAgain(const Arguments& arguments) {
  const Grid grid = Load(arguments);
  const std::optional<RunRecord> record = RecordOf(arguments);
  const fs::path folder = record ? GridFolder(grid, arguments.out)
                                 : ExistingFolder(grid, arguments);
  const GridOutcome outcome = ReadRuns(grid, folder, record);
  // Wrong folder or settings: an empty report would overwrite the one on the
  // runs that were made.
  const auto waits = [](const RunOutcome& run) {
    return run.state == RunState::kWaiting;
  };
  if (std::ranges::all_of(outcome.runs, waits)) {
    throw EnvironmentError(fmt::format(
        "{}: no run of grid '{}' with these settings has saved anything there; "
        "give the --out, --seeds and --set that it was run with",
        folder.string(), grid.name));
  }
  const std::vector<size_t> every = SelectRuns(grid, {}, {});
  return ReportOn(grid, every, folder, arguments);
}

ExitCode Status(const Arguments& arguments) {
  const Grid grid = Load(arguments);
  const auto status = DescribeStatus(grid, GridFolder(grid, arguments.out));
  fmt::print("{}", status.text);
  return status.damaged ? ExitCode::kUsage : ExitCode::kDone;
}

// Event files of all runs that have begun, in a folder that `clean` does not
// touch.
ExitCode TensorBoard(const Arguments& arguments) {
  const Grid grid = Load(arguments);
  const fs::path folder = ExistingFolder(grid, arguments);
  const fs::path board = folder / "tensorboard";
  std::map<trainer::EventFileChange, int> runs;
  std::unique_ptr<FolderLock> lock;
  for (const GridRun& run : grid.runs) {
    const std::string name = RunFolderName(run);
    const fs::path metrics = folder / name / trainer::kMetricsName;
    if (!fs::exists(metrics)) continue;
    MakeFolder(board / name);
    if (!lock) lock = std::make_unique<FolderLock>(board);
    ++runs[trainer::UpdateEventFile(metrics,
                                    board / name / trainer::kEventFileName)];
  }
  if (runs.empty()) {
    throw EnvironmentError(fmt::format(
        "{}: no run of grid '{}' with these settings has a {} there; give the "
        "--out, --seeds and --set that it was run with",
        folder.string(), grid.name, trainer::kMetricsName));
  }
  using enum trainer::EventFileChange;
  fmt::print(
      "{} of {} runs: {} new, {} longer, {} as they were; look at them with\n"
      "  tensorboard --logdir {}\n",
      runs[kNew] + runs[kLonger] + runs[kNone], grid.runs.size(), runs[kNew],
      runs[kLonger], runs[kNone], board.string());
  return ExitCode::kDone;
}

ExitCode Plan(const Arguments& arguments) {
  const Grid grid = Load(arguments);
  fmt::print(
      "{}",
      DescribePlan(grid, PlaceOf(GridFolder(grid, arguments.out), arguments),
                   arguments.launcher.value_or(DefaultLauncher(grid)),
                   TokensOf(arguments)));
  if (!IsMiniature(grid) && !IsRegime(grid)) return ExitCode::kDone;
  const DesignPower power =
      PowerOf(grid,
              KnownRecords(arguments.from.empty() ? fs::path()
                                                  : UserPath(arguments.from)),
              kPowerDraws);
  fmt::print("{}", DescribePower(power, kPowerDraws));
  return power.not_ready.empty() || arguments.exploratory
             ? ExitCode::kDone
             : ExitCode::kInconclusive;
}

// The runs of the grid on disk and in the record of --from. At least one is
// finished.
GridOutcome ReadFinished(const Grid& grid, const Arguments& arguments) {
  const std::optional<RunRecord> from = RecordOf(arguments);
  const GridOutcome outcome = ReadRuns(
      grid,
      from ? GridFolder(grid, arguments.out) : ExistingFolder(grid, arguments),
      from);
  if (std::ranges::none_of(outcome.runs, [](const RunOutcome& run) {
        return run.state == RunState::kFinished;
      })) {
    throw EnvironmentError(fmt::format(
        "{}: no run of grid '{}' with these settings is finished there; give "
        "the --out, --seeds and --set that it was run with",
        GridFolder(grid, arguments.out).string(), grid.name));
  }
  return outcome;
}

// The grid whose runs a record summarizes: the one that reports in the scale's
// own folder, with all seeds, whichever are recorded now. An experiment that is
// not the paper's has its own record.
Grid MainOf(const Grid& grid) {
  if (grid.experiment.empty()) return LoadGrid(grid.path, grid.overrides);
  return LoadExperiment(IsOwnExperiment(grid.experiment)
                            ? grid.experiment
                            : ExperimentNames().front(),
                        grid.path, grid.overrides);
}

ExitCode Record(const Arguments& arguments) {
  const Grid grid = Load(arguments);
  const bool own = IsOwnExperiment(grid.experiment);
  if (own && !IsRegime(grid)) {
    throw ConfigError(fmt::format(
        "experiment '{}' is recorded and judged at --scale=mini with the "
        "settings of its rows; leave out --set and other scales",
        grid.experiment));
  }
  std::optional<GridOutcome> outcome;
  if (!arguments.renew) outcome = ReadFinished(grid, arguments);
  const std::string& name =
      own || grid.scale_grid.empty() ? grid.name : grid.scale_grid;
  const fs::path path =
      UserPath(arguments.record.empty() ? "golden/runs/" + name + ".h5"
                                        : arguments.record);
  MakeFolder(path.parent_path());
  // Without the lock, a concurrent `record` would drop what this one adds.
  const FolderLock lock(path.parent_path());
  RunRecord record =
      arguments.renew ? ReadRunRecord(path) : OpenRunRecord(path);
  RecordChange change;
  if (outcome) {
    change = AddFinishedRuns(*outcome, record);
  } else {
    RequireKnownMargins(record);
  }
  if (!arguments.bench.empty()) {
    const fs::path bench = UserPath(arguments.bench);
    AddBenchmark(ReadWholeFile(bench), bench.string(), record);
  }
  const Grid judged = MainOf(grid);
  const std::string verdicts = SummarizeRecord(judged, record);
  WriteRunRecord(record);
  fmt::print("{}{} runs are new, {} gained evaluations; {}\n",
             DescribeRecord(record), change.added, change.completed,
             FormatBytes(static_cast<int64_t>(fs::file_size(path))));
  fmt::print("{}", DescribeUnjudged(judged, record));
  if (!verdicts.empty()) {
    WriteFileAtomically(VerdictsPath(path), verdicts);
    fmt::print("verdicts on the claims: {}\n", VerdictsPath(path).string());
  }
  return ExitCode::kDone;
}

ExitCode VerifyRecord(const Arguments& arguments) {
  const RunRecord record = ReadRunRecord(UserPath(arguments.record));
  const RecordedRun& run = FindRecorded(record, arguments.run);
  if (!arguments.changed_by.empty()) {
    RequireInChangelog(arguments.changed_by,
                       ReadWholeFile(RunfilePath("CHANGELOG.md")));
  }
  VerifyOptions options;
  // A name that no other folder has: it is deleted at the end.
  std::string name = "verify-" + run.id;
  std::ranges::replace(name, '/', '-');
  const fs::path out =
      UserPath(arguments.out.empty() ? "runs/verify-record" : arguments.out);
  options.folder = out / name;
  options.runtime.threads = arguments.threads;
  options.runtime.isa = arguments.isa;
  options.runtime.device = arguments.device;
  options.quiet = arguments.quiet;
  options.changed_by = arguments.changed_by;
  options.task_files = TaskFilesOf(arguments);
  const RunVerdict verdict = VerifyRecordedRun(record, run, options);
  fmt::print("{}", verdict.text);
  return verdict.code;
}

ExitCode Clean(const Arguments& arguments) {
  Grid grid = Load(arguments);
  // All experiments of a scale share the folder.
  if (!grid.experiment.empty()) {
    grid = UnionOf(LoadAll(grid, arguments));
  }
  const fs::path folder = ExistingFolder(grid, arguments);
  const FolderLock lock(folder);
  const std::pair<const char*, StaleKind> kKinds[] = {
      {"temporary", StaleKind::kTemporary},
      {"checkpoints", StaleKind::kCheckpoint},
      {"runs", StaleKind::kRun}};
  std::vector<StaleItem> items;
  int64_t bytes = 0;
  for (const StaleItem& item : FindStale(grid, folder)) {
    bool wanted = arguments.only.empty();
    for (const auto& [name, kind] : kKinds) {
      for (const std::string& only : arguments.only) {
        wanted |= only == name && item.kind == kind;
      }
    }
    if (!wanted) continue;
    fmt::print("{:>10}  {}\n            {}\n", FormatBytes(item.bytes),
               item.path.lexically_relative(folder).string(), item.reason);
    bytes += item.bytes;
    items.push_back(item);
  }
  const std::string size = FormatBytes(bytes);
  if (items.empty()) {
    fmt::print("{}: nothing to delete\n", folder.string());
  } else if (!arguments.yes) {
    fmt::print("{}: {} could go, {} in all; --yes deletes them\n",
               folder.string(), items.size(), size);
  } else {
    DeleteStale(folder, items);
    fmt::print("{}: deleted {}, {} in all\n", folder.string(), items.size(),
               size);
  }
  return ExitCode::kDone;
}

class CommandLine {
 public:
  CommandLine() : app_(kDescription, "grid") {
    app_.footer(kExamples);
    app_.set_version_flag("--version", CodeVersion(),
                          "the commit that this was built from");
    app_.require_subcommand(1);
    app_.add_subcommand("list", "the grids and experiments of the program");
    CLI::App* plan =
        Add("plan", "what a grid would train and take; runs nothing");
    CLI::App* run = Add("run", "train what is not finished, then report");
    Launching(plan,
              "also print the commands for it: local, mpi or slurm [slurm for "
              "grids with GPUs]");
    Launching(run,
              "local: processes of this machine. mpi: this is one of the "
              "processes of an mpirun or srun, which share the runs; they are "
              "not ranks of one training. slurm: an array of tasks, one for "
              "each row, and wait for it [local]");
    plan->add_option("--ranks", arguments_.ranks.ranks,
                     "ranks of each run, in the commands for slurm [1]")
        ->check(CLI::PositiveNumber);
    trainer::AddExchangeOption(*plan, &arguments_.ranks);
    CLI::App* report =
        Add("report", "write the report again from what is on disk");
    report
        ->add_option("--every", arguments_.report.steps_every,
                     "in steps.csv, the steps that this divides, and the "
                     "last of each run [1: all]")
        ->check(CLI::PositiveNumber);
    Formats(report);
    Add("status", "a table of the runs and how far they are");
    Add("tensorboard",
        "metrics.jsonl of the runs as TensorBoard's event files");
    CLI::App* record =
        Add("record", "keep finished runs in one small file, curves thinned");
    for (CLI::App* command : {run, report, record}) {
      command->add_option("--from", arguments_.from,
                          "a file that `record` wrote: its runs count as "
                          "finished");
    }
    plan->add_option("--from", arguments_.from,
                     "a file that `record` wrote: power with the deviations of "
                     "its runs [the records of this program]");
    for (CLI::App* command : {plan, run}) TaskFiles(command);
    plan->add_flag("--exploratory", arguments_.exploratory,
                   "0 even if these runs cannot show what they are judged for");
    record->add_option("--to", arguments_.record,
                       "the file, which keeps the runs it has "
                       "[golden/runs/GRID.h5]");
    record->add_option("--bench", arguments_.bench,
                       "what //:bench wrote as JSON at the mini grid's sizes: "
                       "throughput by active experts");
    record->add_flag("--renew", arguments_.renew,
                     "write the record anew, as this program does, without "
                     "any run folder");
    AddVerifyRecord();
    CLI::App* clean = Add("clean", "show what could be deleted, or delete it");

    run->add_option("--rows", arguments_.rows, "only these rows: ID,ID,...")
        ->delimiter(',');
    run->add_option("--corpora", arguments_.corpora,
                    "only these corpora: ID,ID,...")
        ->delimiter(',');
    Runtime(run, "--threads", "threads",
            "threads; 0: one per core; never changes the result [0]");
    for (CLI::App* command : {plan, run}) {
      command->add_option_function<Strings>(
          "--place",
          [this](const Strings& places) {
            for (const std::string& place : places) {
              arguments_.runtime.push_back("runtime.place_" + place);
            }
          },
          "owt=PATH or c4=PATH: where the corpus of that name is, if not in "
          "the cache");
    }
    run->add_option("--jobs", arguments_.jobs,
                    "runs side by side, each with its share of the cores, or "
                    "with --threads; never changes the result [1]")
        ->check(CLI::Range(1, 1024));
    AddRankOptions(*run, &arguments_.ranks);
    Runtime(run, "--isa", "isa", "instruction set, v3 or v4 [the best here]");
    Runtime(run, "--device", "device",
            "cpu, or cuda: device 0, or with --ranks one for each rank [cpu]");
    for (CLI::App* command : {plan, run}) {
      command
          ->add_option("--tokens", arguments_.tokens,
                       "CORPUS=PREFIX of token files to train on, for which "
                       "its text is not needed; may be repeated")
          ->take_all();
    }
    run->add_flag("--recheck", arguments_.recheck,
                  "read token files whole again, which this machine remembers "
                  "as long as their size, time and inode stay");
    run->add_flag("--detach", arguments_.detach,
                  "with --launcher=slurm: submit, and do not wait");
    run->add_flag("--quiet", arguments_.quiet, "no progress, only the result");
    run->add_flag("--keep-checkpoints", arguments_.keep_checkpoints,
                  "keep those of finished runs, even if the grid would not");
    clean->add_flag("--yes", arguments_.yes, "delete what is shown");
    clean
        ->add_option("--only", arguments_.only,
                     "only files of this kind: temporary, checkpoints or runs")
        ->check(CLI::IsMember({"temporary", "checkpoints", "runs"}))
        ->delimiter(',');
  }

  int Main(int argc, char** argv) {
    if (argc > 1 && argv[1][0] != '-' && Find(argv[1]) == nullptr) {
      return Refuse(fmt::format("no command '{}'; {}", argv[1],
                                Suggestion(argv[1], Names())));
    }
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ExtrasError& error) {
      return RefuseExtras(error);
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
    }
    // Check before ranks look for each other.
    const int refused = RunMain("grid", [this] {
      CheckLaunch(arguments_);
      return ExitCode::kDone;
    });
    if (refused != 0) return refused;
    trainer::RankMainOptions processes = arguments_.ranks.processes;
    processes.mpi = arguments_.ranks.mpi();
    processes.quiet = arguments_.quiet;
    return RunRankMain("grid", processes, [this](const trainer::Ranks& ranks) {
      return Dispatch(ranks);
    });
  }

 private:
  CLI::App* Add(const std::string& name, const std::string& help) {
    CLI::App* command = app_.add_subcommand(name, help);
    command
        ->add_option("grid", arguments_.grid,
                     "smoke, mini, midi, paper, the path of a .toml file, or, "
                     "with --scale, an experiment: see list")
        ->required();
    command->add_option(
        "--scale", arguments_.scale,
        "that of the experiment: smoke, mini, midi, paper, or the "
        "path of a .toml file");
    command->add_option("--out", arguments_.out,
                        "folder of the results [runs/GRID]");
    command->add_option("--set", arguments_.overrides,
                        "section.key=value for every run; may be repeated");
    command
        ->add_option("--seeds", arguments_.seeds,
                     "these seeds instead of the grid's: N,N,...; x4: the "
                     "first four")
        ->delimiter(',');
    return command;
  }

  void Launching(CLI::App* command, const char* help) {
    const std::map<std::string, Launcher> kNames = {
        {"local", Launcher::kLocal},
        {"mpi", Launcher::kMpi},
        {"slurm", Launcher::kSlurm}};
    command
        ->add_option_function<std::string>(
            "--launcher",
            [this, kNames](const std::string& name) {
              arguments_.launcher = kNames.at(name);
            },
            help)
        ->check(CLI::IsMember({"local", "mpi", "slurm"}));
  }

  void Formats(CLI::App* command) {
    const std::map<std::string, ReportFormat> kNames = {
        {"html", ReportFormat::kHtml},
        {"md", ReportFormat::kMarkdown},
        {"csv", ReportFormat::kCsv},
        {"json", ReportFormat::kJson}};
    command
        ->add_option_function<Strings>(
            "--format",
            [this, kNames](const Strings& names) {
              arguments_.report.formats.clear();
              for (const std::string& name : names) {
                arguments_.report.formats.insert(kNames.at(name));
              }
            },
            "of the page: html, md (report.md), json (report.json), csv (a "
            "file for each table); several: html,csv [html]")
        ->delimiter(',')
        ->check(CLI::IsMember({"html", "md", "csv", "json"}));
  }

  void AddVerifyRecord() {
    CLI::App* verify = app_.add_subcommand(
        "verify-record", "train a recorded run again and compare all bits");
    verify->add_option("file", arguments_.record, "file that `record` wrote")
        ->required();
    verify
        ->add_option("--run", arguments_.run,
                     "which run: CORPUS/ROW/seedN, as `record` names it")
        ->required();
    verify->add_option("--changed-by", arguments_.changed_by,
                       "commit that changed the bits on purpose, as "
                       "CHANGELOG.md names it: then the final loss must agree "
                       "within 3 deviations over seeds");
    verify->add_option("--out", arguments_.out,
                       "folder to train in [runs/verify-record]");
    verify->add_option("--threads", arguments_.threads,
                       "threads; 0: one per core; never changes the result");
    verify->add_option("--isa", arguments_.isa,
                       "instruction set, v3 or v4 [that of the record]");
    verify->add_option("--device", arguments_.device,
                       "cpu or cuda [where it was recorded]");
    TaskFiles(verify);
    verify->add_flag("--quiet", arguments_.quiet,
                     "no progress, only the result");
  }

  void TaskFiles(CLI::App* command) {
    command->add_option("--task-files", arguments_.task_files,
                        "folder of the items of the zero-shot tasks that "
                        "[evaluations] lists");
  }

  void Runtime(CLI::App* command, const char* option, const std::string& key,
               const char* help) {
    command->add_option_function<std::string>(
        option,
        [this, key](const std::string& value) {
          arguments_.runtime.push_back("runtime." + key + "=" + value);
        },
        help);
  }

  Strings Names() const {
    Strings names;
    for (const CLI::App* command : app_.get_subcommands(nullptr)) {
      names.push_back(command->get_name());
    }
    return names;
  }

  const CLI::App* Find(const std::string& name) const {
    for (const CLI::App* command : app_.get_subcommands(nullptr)) {
      if (command->get_name() == name) return command;
    }
    return nullptr;
  }

  int Refuse(const std::string& message) const {
    fmt::print(stderr, "grid: error: {}\nRun with --help for more.\n", message);
    return static_cast<int>(ExitCode::kUsage);
  }

  int RefuseExtras(const CLI::ExtrasError& error) const {
    const Strings extras = app_.remaining(true);
    const auto parsed = app_.get_subcommands();
    if (extras.empty() || parsed.empty()) return Refuse(error.what());
    Strings options;
    for (const CLI::Option* option : parsed.front()->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        options.push_back("--" + name);
      }
    }
    std::string message = fmt::format("{} does not take '{}'",
                                      parsed.front()->get_name(), extras[0]);
    if (extras[0].starts_with("-")) {
      const std::string name = extras[0].substr(0, extras[0].find('='));
      message += "; " + Suggestion(name, options);
    }
    return Refuse(message);
  }

  ExitCode Dispatch(const trainer::Ranks& ranks) const {
    const std::string name = app_.get_subcommands().front()->get_name();
    if (name == "list") {
      fmt::print("{}", DescribeGrids());
      return ExitCode::kDone;
    }
    if (name == "plan") return Plan(arguments_);
    if (name == "run") return Run(arguments_, ranks);
    if (name == "report") return ReportAgain(arguments_);
    if (name == "status") return Status(arguments_);
    if (name == "tensorboard") return TensorBoard(arguments_);
    if (name == "record") return Record(arguments_);
    if (name == "verify-record") return VerifyRecord(arguments_);
    return Clean(arguments_);
  }

  CLI::App app_;
  Arguments arguments_;
};

}  // namespace
}  // namespace softmoe::experiments

int main(int argc, char** argv) {
  return softmoe::experiments::CommandLine().Main(argc, argv);
}
