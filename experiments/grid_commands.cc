// SPDX-License-Identifier: Apache-2.0
#include "experiments/grid_commands.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/config/config.h"
#include "core/files/atomic_file.h"
#include "core/files/folder_lock.h"
#include "core/files/paths.h"
#include "core/process/stop_signal.h"
#include "core/stoppable_output.h"
#include "core/text/text_table.h"
#include "experiments/grids/experiment.h"
#include "experiments/grids/grid_file.h"
#include "experiments/grids/grid_select.h"
#include "experiments/plan/slurm_jobs.h"
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
#include "trainer/tokens/token_memory.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

// Made-up records for each true difference; they give a probability to 4 %.
constexpr int kPowerDraws = 200;

Grid Load(const Arguments& arguments) {
  Strings overrides = arguments.overrides;
  // The options for [runtime] are short forms of --set.
  overrides.insert(overrides.end(), arguments.runtime.begin(),
                   arguments.runtime.end());
  return SelectGrid(arguments.grid, arguments.scale, overrides,
                    ParseSeeds(arguments.seeds));
}

// The folder of a grid that must have been run.
fs::path ExistingFolder(const Grid& grid, const Arguments& arguments) {
  const fs::path folder = GridFolder(grid, arguments.out);
  if (fs::is_directory(folder)) return folder;
  throw EnvironmentError(fmt::format(
      "{}: no such folder; create it with `run {}`, or name another with --out",
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

struct FoundRuns {
  GridOutcome outcome;
  Strings notes;  // on the contents of the record
};

// The state of a grid, from disk and from the record.
FoundRuns ReadRuns(const Grid& grid, const fs::path& folder,
                   const std::optional<RunRecord>& record) {
  FoundRuns found = {ReadGrid(grid, folder, /*check_checkpoints=*/false), {}};
  if (record) found.notes = TakeRecordedRuns(*record, found.outcome);
  RequireSameTokens(found.outcome);
  return found;
}

void PrintNotes(const Strings& notes, const Strings& said = {}) {
  for (const std::string& note : notes) {
    if (std::ranges::find(said, note) == said.end()) fmt::print("{}\n", note);
  }
}

std::unique_ptr<FolderLock> LockForReport(const fs::path& grid_folder) {
  const StopSignal stop;
  bool said = false;
  return WaitForFolder(grid_folder, [&](const LockHolder& holder) {
    stop.ThrowIfRequested("no report yet; the same command writes it");
    if (!std::exchange(said, true)) {
      PrintUnlessStopped(
          stderr, fmt::format("{}: waiting for {}\n", grid_folder.string(),
                              Describe(holder)));
    }
  });
}

void Select(const std::vector<size_t>& selected, GridOutcome& outcome) {
  for (RunOutcome& run : outcome.runs) run.selected = false;
  for (const size_t r : selected) outcome.runs[r].selected = true;
}

// Judges the runs that exist, prints and writes the report. One process at a
// time does so, and the last to finish sees all runs. `selected` must finish;
// notes on the record that have been `said` are not repeated.
ExitCode Report(const Grid& grid, const std::optional<RunRecord>& record,
                const Strings& said, const std::vector<size_t>& selected,
                const fs::path& grid_folder, const ReportOptions& options) {
  MakeFolder(grid_folder);  // a record alone has no folder yet
  const auto lock = LockForReport(grid_folder);
  auto [outcome, notes] = ReadRuns(grid, grid_folder, record);
  PrintNotes(notes, said);
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
  fmt::print("{} of {} runs finished; {}\n", finished, selected.size(),
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
  for (const Grid& grid :
       LoadExperiments(all.path, all.overrides, ParseSeeds(arguments.seeds))) {
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

// Reports on the selected runs of a grid or, for "all", on each experiment that
// has some of them. Notes that have been `said` are not repeated.
ExitCode ReportOn(const Grid& grid, const std::vector<size_t>& selected,
                  const fs::path& folder, const Arguments& arguments,
                  const Strings& said) {
  const std::optional<RunRecord> record = RecordOf(arguments);
  const auto report = [&](const Grid& one, const std::vector<size_t>& runs) {
    return Report(one, record, said, runs, folder, arguments.report);
  };
  if (grid.experiment != kAllExperiments) return report(grid, selected);
  return ForEachExperiment(
      grid, selected, arguments,
      [&](const Grid& one, const std::vector<size_t>& runs) {
        fmt::print("\nExperiment {}: {}\n", one.experiment, one.title);
        return report(one, runs);
      });
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
  const double silence = arguments.ranks.silence_limit;
  if (silence != trainer::RankOptions().silence_limit) {
    place.rank_options = {"--silence-limit", fmt::format("{}", silence)};
  }
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
// which share the grid as any processes do. Rank 0 shows progress; the others
// only say so.
void RunAsRank(const Grid& grid, GridRunOptions options,
               const ProcessRank& rank) {
  options.threads = ShareOfCores(rank);
  options.processes_at_work = std::max<int64_t>(1, rank.size);
  options.quiet |= rank.rank > 0;
  if (rank.rank > 0) {
    // Even if quiet: a process in a shell that mpirun started may take itself
    // for such a rank although it is alone.
    fmt::print(
        stderr, "rank {}{}: rank 0 reports\n", rank.rank,
        rank.size > 0 ? fmt::format(" of {}", rank.size) : std::string());
  }
  try {
    RunGrid(grid, options);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("rank {}: {}", rank.rank, error.what()));
  }
}

// The runs of the grid on disk and in the record of --from. At least one is
// finished.
GridOutcome ReadFinished(const Grid& grid, const Arguments& arguments) {
  const std::optional<RunRecord> from = RecordOf(arguments);
  FoundRuns found = ReadRuns(
      grid,
      from ? GridFolder(grid, arguments.out) : ExistingFolder(grid, arguments),
      from);
  PrintNotes(found.notes);
  if (std::ranges::none_of(found.outcome.runs, [](const RunOutcome& run) {
        return run.state == RunState::kFinished;
      })) {
    throw EnvironmentError(fmt::format(
        "{}: no run of grid '{}' with these settings is finished there; give "
        "the --out, --seeds and --set that it was run with",
        GridFolder(grid, arguments.out).string(), grid.name));
  }
  return std::move(found.outcome);
}

// The grid whose runs a record summarizes: the one that reports in the scale's
// own folder, with all seeds, not only those being recorded. An experiment that
// is not the paper's has its own record.
Grid MainOf(const Grid& grid) {
  if (grid.experiment.empty()) return LoadGrid(grid.path, grid.overrides);
  return LoadExperiment(IsOwnExperiment(grid.experiment)
                            ? grid.experiment
                            : ExperimentNames().front(),
                        grid.path, grid.overrides);
}

}  // namespace

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
        "{} does not go with --launcher=slurm, whose scripts make the ranks "
        "find each other; give --ranks a number",
        ranks));
  }
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
  if (launcher == Launcher::kSlurm) {
    RunOnSlurm(grid,
               {.run = options,
                .place = PlaceOf(options.folder, arguments),
                .detach = arguments.detach,
                .file_delay = std::chrono::seconds(arguments.file_delay)});
    if (arguments.detach) return ExitCode::kDone;
  } else if (launcher == Launcher::kMpi) {
    const ProcessRank rank = RankOfEnvironment();
    RunAsRank(grid, options, rank);
    // Rank 0 reports; if another rank exited with the code of a failed grid,
    // mpirun would end rank 0 before it does.
    if (rank.rank > 0) return ExitCode::kDone;
  } else {
    RunGrid(grid, options);
  }
  const ExitCode code =
      ReportOn(grid, options.selected, options.folder, arguments, /*said=*/{});
  if (options.processes != nullptr) ranks.Dismiss(code);
  return code;
}

ExitCode ReportAgain(const Arguments& arguments) {
  const Grid grid = Load(arguments);
  const std::optional<RunRecord> record = RecordOf(arguments);
  const fs::path folder = record ? GridFolder(grid, arguments.out)
                                 : ExistingFolder(grid, arguments);
  const auto [outcome, notes] = ReadRuns(grid, folder, record);
  PrintNotes(notes);
  // The folder or the settings are wrong: an empty report would overwrite that
  // on the runs that exist.
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
  return ReportOn(grid, every, folder, arguments, notes);
}

ExitCode Status(const Arguments& arguments) {
  const Grid grid = Load(arguments);
  const auto status = DescribeStatus(grid, GridFolder(grid, arguments.out));
  fmt::print("{}", status.text);
  return status.problems.code();
}

// Writes event files of all runs that have begun, to a folder in which `clean`
// deletes only what dead processes left. A run whose files are damaged or
// unusable does not keep other runs from theirs.
ExitCode TensorBoard(const Arguments& arguments) {
  const Grid grid = Load(arguments);
  const fs::path folder = ExistingFolder(grid, arguments);
  const fs::path board = folder / "tensorboard";
  const auto log_of = [&folder](const GridRun& run) {
    return folder / RunFolderName(run) / trainer::kMetricsName;
  };
  RunProblems problems;
  std::string text;
  const auto note = [&](const GridRun& run, const std::function<void()>& use) {
    if (const auto error = problems.Note(use)) {
      text += fmt::format("\n{}: {}\n", run.id, error->what());
    }
  };
  std::vector<const GridRun*> begun;
  for (const GridRun& run : grid.runs) {
    note(run, [&] {
      if (fs::exists(log_of(run))) begun.push_back(&run);
    });
  }
  std::optional<FolderLock> lock;
  if (!begun.empty()) {
    MakeFolder(board);
    lock.emplace(board);
  }
  std::map<trainer::EventFileChange, int> runs;
  for (const GridRun* run : begun) {
    note(*run, [&] {
      const fs::path of_run = board / RunFolderName(*run);
      MakeFolder(of_run);
      ++runs[trainer::UpdateEventFile(log_of(*run), ConfigHash(run->config),
                                      of_run / trainer::kEventFileName)];
    });
  }
  if (runs.empty() && text.empty()) {
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
  fmt::print("{}", text);
  return problems.code();
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
  const Grid judged = MainOf(grid);
  RequireRunsOf(grid, judged, record);
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
  // The folder is deleted at the end, so no other folder may have its name.
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
  const fs::path folder = ExistingFolder(grid, arguments);
  // All experiments of a scale share the folder, including a user's own scale
  // and any --seeds: FindStale looks for every seed.
  std::vector<std::string> unreadable;
  bool builds_on_it = false;
  for (const Grid& other :
       ReadableExperiments(grid.path, grid.overrides, &unreadable)) {
    builds_on_it |= !TakesEveryRow(other, grid);
    for (const GridRun& run : other.runs) {
      grid.runs.push_back(run);
      grid.runs.back().evaluations = {};  // asked for by those who name it
    }
  }
  if (!builds_on_it) unreadable.clear();  // a grid that is no scale
  for (const std::string& problem : unreadable) {
    fmt::print(
        "an experiment cannot be read, so its runs are listed as foreign: {}\n",
        problem);
  }
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
    fmt::print("{}: {} could be deleted, {} in all; --yes deletes them\n",
               folder.string(), items.size(), size);
  } else {
    DeleteStale(folder, items);
    fmt::print("{}: deleted {}, {} in all\n", folder.string(), items.size(),
               size);
  }
  return ExitCode::kDone;
}

}  // namespace softmoe::experiments
