// SPDX-License-Identifier: Apache-2.0
//
// //:grid - plans, trains, reports and tidies the grids of the experiments.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "core/code_version.h"
#include "core/errors.h"
#include "core/text/command_line.h"
#include "core/text/suggestion.h"
#include "experiments/grid_commands.h"
#include "experiments/plan/grid_plan.h"
#include "experiments/report/grid_report.h"
#include "trainer/run/rank_main.h"

namespace softmoe::experiments {
namespace {

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
      also how probable each verdict is at several true differences; ends with
      4 if a claim is likely to be shown at none of them (--exploratory: 0)
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
      a grid of your own; --set applies to every run
  grid run paper --task-files /data/tasks
      the folder with the items of the zero-shot tasks in its [evaluations]
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
  grid record mini --renew     rewrites the record in this program's form; also
                               adds --bench FILE without any run folder
  grid record mini             adds finished runs to golden/runs/mini.h5,
                               without their parameters; runs that it has stay
  grid run regime --scale=mini --from golden/runs/mini.h5
  grid record regime --scale=mini --from golden/runs/mini.h5
      an experiment of this project with a record of its own, regime.h5: soft
      and sparse routing at equal active experts, in the order of its [[waves]]

Experiments of one scale share the folder runs/SCALE, and a run that several
need is trained once, for whichever asks first; their reports are in separate
folders there, EXPERIMENT/report.html. With other --seeds than the file's, or
--set of anything but runtime.*, a report goes into a folder report-HASH/ beside
them, and replaces no other.

After Ctrl-C, SIGTERM, SIGHUP or a crash, the same command continues: finished
runs are read, the interrupted one resumes at its checkpoint, and the bits are
those of an unbroken run. A run that fails does not keep the others from
running; the same command tries it again. --threads and --jobs never change a
result, nor does --ranks, unless a line says so.

The same command, given again while the first is at work, here or on another
machine that has the folder, shares the work: each takes runs that nobody holds,
waits at the end for those of the others, and writes the report.

Results are in runs/GRID, runs/SCALE for experiments, under the working
directory, or in --out; the configuration is part of the name of each run's
folder, so that other settings never mix with these. Corpora and tokenizers are
in $XDG_CACHE_HOME/softmoe.

Exit codes: 0 every row finished, every invariant holds; 1 a row failed or is
missing, an invariant does not hold, or a recorded run has other bits now; 2
usage, configuration, or a damaged file; 3 a recorded run gave other bits on
another instruction set, device or libraries; 4 a plan whose runs cannot show
what they are judged for, or --changed-by where no row of the record has two
seeds; 5 a grid of the paper's scale lacks a GPU, a corpus or disk, a file is
missing, the disk is full, the device failed, another rank is dead or silent, a
lock belongs to a machine that cannot be asked, or Slurm is missing or refuses a
job; 7 two seeds have the same bits; 75 stopped by a signal, state saved.)";

// More than any machine has.
constexpr int kMostRanks = 1 << 20;

class CommandLine {
 public:
  CommandLine() : app_(kDescription, "grid") {
    app_.footer(kExamples);
    app_.set_version_flag("--version", CodeVersion(),
                          "the commit that this was built from");
    app_.require_subcommand(1);
    app_.add_subcommand("list", "the grids and experiments of the program");
    AddPlan();
    AddRun();
    AddReport();
    Add("status", "a table of the runs and their progress");
    Add("tensorboard",
        "metrics.jsonl of the runs as TensorBoard's event files");
    AddRecord();
    AddVerifyRecord();
    AddClean();
  }

  int Main(int argc, char** argv) {
    // What is wrong is refused before ranks look for each other.
    bool has_command = false;  // false: --help or --version was all
    const int code = RunMain("grid", [&] {
      const ExitCode parsed = Parse(argc, argv, &has_command);
      if (has_command) CheckLaunch(arguments_);
      return parsed;
    });
    if (code != 0 || !has_command) return code;
    return RunRankMain(
        "grid", arguments_.ranks,
        [this](const trainer::Ranks& ranks) { return Dispatch(ranks); });
  }

 private:
  // Sets `*has_command` if there is one to be called.
  ExitCode Parse(int argc, char** argv, bool* has_command) {
    const std::string unknown = UnknownCommand(app_, argc, argv);
    if (!unknown.empty()) return Refuse(unknown);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ExtrasError& error) {
      return RefuseExtras(error);
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? ExitCode::kDone : ExitCode::kUsage;
    }
    RequireValues(app_);
    *has_command = true;
    return ExitCode::kDone;
  }

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

  void AddPlan() {
    CLI::App* plan =
        Add("plan", "what a grid would train and need; runs nothing");
    Launching(plan,
              "also print the commands for it: local, mpi or slurm [slurm for "
              "grids with GPUs]");
    plan->add_option("--ranks", arguments_.ranks.ranks,
                     "ranks of each run, in the commands for slurm [1]")
        ->check(CLI::Range(1, kMostRanks, "COUNT"))
        ->check(RefuseOctal);
    trainer::AddExchangeOption(*plan, &arguments_.ranks);
    plan->add_option("--from", arguments_.from,
                     "a file that `record` wrote: power with the deviations of "
                     "its runs [the records of this program]");
    Corpora(plan);
    TaskFiles(plan);
    plan->add_flag(
        "--exploratory", arguments_.exploratory,
        "end with 0 even if these runs cannot show what they are judged for");
  }

  void AddRun() {
    CLI::App* run = Add("run", "train what is not finished, then report");
    Launching(run,
              "local: processes of this machine. mpi: this is one of the "
              "processes of an mpirun or srun, which share the runs; they are "
              "not ranks of one training. slurm: an array of tasks, one for "
              "each row, and wait for it [local]");
    From(run);
    run->add_option("--rows", arguments_.rows, "only these rows: ID,ID,...")
        ->delimiter(',');
    run->add_option("--corpora", arguments_.corpora,
                    "only these corpora: ID,ID,...")
        ->delimiter(',');
    Corpora(run);
    run->add_flag("--recheck", arguments_.recheck,
                  "read token files in full again, even those that this "
                  "machine has checked before and whose size, times and inode "
                  "are the same");
    TaskFiles(run);
    Runtime(run, "--threads", "threads",
            "threads; 0: one per core; never changes the result [0]");
    run->add_option("--jobs", arguments_.jobs,
                    "runs side by side, each with its share of the cores, or "
                    "with --threads; never changes the result [1]")
        ->check(CLI::Range(1, 1024))
        ->check(RefuseOctal);
    AddRankOptions(*run, &arguments_.ranks);
    Runtime(run, "--isa", "isa", "instruction set, v3 or v4 [the best here]");
    Runtime(run, "--device", "device",
            "cpu, or cuda: device 0, or with --ranks one for each rank [cpu]");
    run->add_flag("--detach", arguments_.detach,
                  "with --launcher=slurm: submit, and do not wait");
    run->add_option("--file-delay", arguments_.file_delay,
                    "with --launcher=slurm: for how many seconds files of "
                    "other machines may stay invisible here, as over NFS [60]")
        ->check(CLI::Range(0, 86400))
        ->check(RefuseOctal);
    run->add_flag("--quiet", arguments_.quiet, "no progress, only the result");
    run->add_flag("--keep-checkpoints", arguments_.keep_checkpoints,
                  "keep those of finished runs, even if the grid would not");
  }

  void AddReport() {
    CLI::App* report =
        Add("report", "write the report again from what is on disk");
    From(report);
    report
        ->add_option("--every", arguments_.report.steps_every,
                     "in steps.csv, the steps that this divides, and the "
                     "last of each run [1: all]")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 40, "COUNT"))
        ->check(RefuseOctal);
    Formats(report);
  }

  void AddRecord() {
    CLI::App* record =
        Add("record", "keep finished runs in one small file, curves thinned");
    CLI::Option* const from = From(record);
    record->add_option("--to", arguments_.record,
                       "the file, which keeps the runs it has "
                       "[golden/runs/GRID.h5]");
    record->add_option("--bench", arguments_.bench,
                       "what //:bench wrote as JSON at the mini grid's sizes: "
                       "throughput by active experts");
    record
        ->add_flag("--renew", arguments_.renew,
                   "write the record anew, as this program does, without "
                   "any run folder")
        ->excludes(from)
        ->excludes("--out");
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
    verify
        ->add_option("--threads", arguments_.threads,
                     "threads; 0: one per core; never changes the result [0]")
        ->check(CLI::Range(0, 1 << 12, "COUNT"))
        ->check(RefuseOctal);
    verify->add_option("--isa", arguments_.isa,
                       "instruction set, v3 or v4 [that of the record]");
    verify->add_option("--device", arguments_.device,
                       "cpu or cuda [where it was recorded]");
    TaskFiles(verify);
    verify->add_flag("--quiet", arguments_.quiet,
                     "no progress, only the result");
  }

  void AddClean() {
    CLI::App* clean = Add("clean", "show what could be deleted, or delete it");
    clean->add_flag("--yes", arguments_.yes, "delete what is shown");
    clean
        ->add_option("--only", arguments_.only,
                     "only files of this kind: temporary, checkpoints or runs")
        ->check(CLI::IsMember({"temporary", "checkpoints", "runs"}))
        ->delimiter(',');
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
        ->check(CLI::IsMember(kNames));
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
        ->check(CLI::IsMember(kNames));
  }

  CLI::Option* From(CLI::App* command) {
    return command->add_option("--from", arguments_.from,
                               "a file that `record` wrote: its runs count as "
                               "finished");
  }

  // Options that say where the corpora or their tokens are.
  void Corpora(CLI::App* command) {
    command->add_option_function<Strings>(
        "--place",
        [this](const Strings& places) {
          for (const std::string& place : places) {
            arguments_.runtime.push_back("runtime.place_" + place);
          }
        },
        "owt=PATH or c4=PATH: where the corpus of that name is, if not in "
        "the cache");
    command
        ->add_option("--tokens", arguments_.tokens,
                     "CORPUS=PREFIX of token files to train on, for which "
                     "its text is not needed; may be repeated")
        ->take_all();
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

  ExitCode Refuse(const std::string& message) const {
    fmt::print(stderr, "grid: error: {}\nRun with --help for more.\n", message);
    return ExitCode::kUsage;
  }

  ExitCode RefuseExtras(const CLI::ExtrasError& error) const {
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
