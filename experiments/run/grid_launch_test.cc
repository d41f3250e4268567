// SPDX-License-Identifier: Apache-2.0
//
// What starts the processes of a grid (--launcher): ranks of an mpirun, and
// Slurm as far as programs with the names of its own can stand in for it.
// grid_slurm_test.cc uses a real one.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/process/process.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "experiments/testing/grid_test_util.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

class GridLaunch : public GridProgram {
 protected:
  void SetUp() override {
    GridProgram::SetUp();
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                             "SLURM_PROCID", "SLURM_JOB_ID", "SQUEUE_STATES"}) {
      ::unsetenv(name);
    }
    fs::create_directory(folder_ / "bin");
    path_ = ::getenv("PATH");
    ::setenv("PATH", ((folder_ / "bin").string() + ":" + path_).c_str(), 1);
  }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }

  // Creates a program with this name that runs `script`.
  void Pretend(const std::string& name, const std::string& script) const {
    WriteFileAtomically(folder_ / "bin" / name, "#!/bin/bash\n" + script);
    fs::permissions(folder_ / "bin" / name, fs::perms::owner_all);
  }

  // sbatch trains every row of the array before it reports that this is job 12.
  void PretendSlurm() const {
    Pretend("sbatch",
            "echo \"$@\" >>'" + (folder_ / "submitted").string() + "'\n" + R"sh(
script=${@: -1}
cd "$(sed -n 's/^#SBATCH --chdir=//p' "$script")"
rows=$(grep -c '^  [a-z]' <(sed -n '/^rows=/,/^)/p' "$script"))
for ((i = 0; i < rows; ++i)); do
  SLURM_JOB_ID=$(($$ + i)) SLURM_ARRAY_JOB_ID=12 SLURM_ARRAY_TASK_ID=$i \
    SLURM_JOB_NODELIST=localhost SCRIPT=$script bash "$script" >&2
done
echo 12
)sh");
    // srun starts as many processes as the script asks for: ranks, for which
    // mpirun stands in, since there is no Slurm that speaks PMIx.
    Pretend("srun", R"sh(
while [[ $1 == --* ]]; do shift; done
ranks=$(sed -n 's/^#SBATCH --ntasks=//p' "$SCRIPT")
[ "$1" != true ] && [ "${ranks:-1}" -gt 1 ] || exec "$@"
unset ${!SLURM_*}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec mpirun --oversubscribe --bind-to none -n "$ranks" "$@"
)sh");
    Pretend("scontrol", "");
    Pretend("squeue", "");
  }

  // The number of submitted jobs.
  int64_t Submissions() const {
    if (!fs::exists(folder_ / "submitted")) return 0;
    const std::string lines = Bytes("submitted");
    return std::count(lines.begin(), lines.end(), '\n');
  }

  static Strings Rank(int rank, const Strings& more = {}) {
    Strings words = {"OMPI_COMM_WORLD_RANK=" + std::to_string(rank),
                     "OMPI_COMM_WORLD_SIZE=2",
                     Program(),
                     "run",
                     "micro.toml",
                     "--launcher=mpi",
                     "--threads",
                     "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  const Strings slurm_ = {"run", "micro.toml", "--launcher=slurm",
                          "--file-delay", "0"};
  std::string path_;
};

TEST_F(GridLaunch, RanksShareTheRowsAndTheFirstOneSpeaks) {
  ASSERT_TRUE(TakeTrained("whole"));
  HeldProgram first("/usr/bin/env", Rank(0), folder_);
  ASSERT_TRUE(first.ReadUntil("row 1/3 sparse-2, grid"));
  HeldProgram second("/usr/bin/env", Rank(1), folder_);
  // The first process waits in row 1 for its reader.
  ASSERT_TRUE(
      WaitFor(60, [&] { return fs::exists(RunFolder(2) / "result.h5"); }));
  EXPECT_FALSE(fs::exists(RunFolder(0) / "result.h5"));
  EXPECT_TRUE(EndedWith(first.Finish(), 0, "row 2/3 star-1.5 finished",
                        "by another process", "3 of 3 runs finished"));
  const ProgramResult silent = second.Finish();
  EXPECT_EQ(silent.exit_status, 0);
  EXPECT_EQ(silent.output, "rank 1 of 2: rank 0 reports\n");
  EXPECT_EQ(Bytes("runs/micro/results.h5"), Bytes("whole/results.h5"));
}

TEST_F(GridLaunch, TheFirstRankEndsWithTheExitCodeOfTheGrid) {
  WriteGrid(MicroGrid(60, kDivergingRow));
  HeldProgram first("/usr/bin/env", Rank(0), folder_);
  HeldProgram second("/usr/bin/env", Rank(1), folder_);
  EXPECT_TRUE(EndedWith(first.Finish(), 1,
                        "diverges FAILED: ", "3 of 4 runs finished"));
  const ProgramResult silent = second.Finish();
  EXPECT_EQ(silent.exit_status, 0);
  EXPECT_EQ(silent.output, "rank 1 of 2: rank 0 reports\n");
}

// mpirun ends all processes once one has ended with a nonzero code. A slow
// gnuplot makes the report take long.
TEST_F(GridLaunch, MpirunLetsTheFirstRankReportOnAGridThatFails) {
  WriteGrid(MicroGrid(60, kDivergingRow));
  Pretend("gnuplot", "sleep 2; exit 1");
  const ProgramResult result = RunProgram(
      {"env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
       "mpirun", "-n", "2", "--oversubscribe", "--bind-to", "none", Program(),
       "run", "micro.toml", "--launcher=mpi", "--threads", "1"},
      folder_);
  EXPECT_TRUE(
      EndedWith(result, 1, "diverges FAILED: ", "3 of 4 runs finished"));
  EXPECT_TRUE(fs::exists(folder_ / "runs/micro/report.html"));
}

// The first process has read nothing of what the second one then trains.
TEST_F(GridLaunch, AStopCountsWhatOtherRanksHaveDone) {
  WriteGrid(MicroGrid(60, kDivergingRow));
  HeldProgram first("/usr/bin/env", Rank(0), folder_);
  ASSERT_TRUE(first.ReadUntil("row 1/4 sparse-2, grid"));
  HeldProgram second("/usr/bin/env", Rank(1), folder_);
  ASSERT_TRUE(
      WaitFor(60, [&] { return fs::exists(RunFolder(3) / "problem.txt"); }));
  for (HeldProgram* rank : {&second, &first}) {
    rank->Signal(SIGTERM);
    EXPECT_TRUE(EndedWith(rank->Finish(), 75, "stopped: ", "SIGTERM",
                          "2 of 4 runs are finished, 1 failed"));
  }
}

TEST_F(GridLaunch, OptionsThatDoNotGoTogetherEndWithTwo) {
  const std::pair<Strings, Strings> kCases[] = {
      {{"--launcher=pbs"}, {"--launcher", "slurm"}},
      {{"--launcher=mpi"}, {"mpirun -n 4", "OMPI_COMM_WORLD_RANK", "--jobs"}},
      {{"--launcher=mpi", "--jobs", "2"}, {"--jobs 2", "--launcher=mpi"}},
      {{"--launcher=slurm", "--jobs", "2"}, {"--jobs 2", "--launcher=slurm"}},
      {{"--ranks", "mpi", "--launcher=mpi"}, {"--ranks mpi", "share the runs"}},
      {{"--ranks=mpi", "--launcher=slurm"}, {"--ranks mpi", "a number"}},
      {{"--ranks", "mpi", "--jobs", "2"}, {"--jobs 2", "one run at a time"}},
      {{"--ranks", "two"}, {"--ranks two: give a number of ranks"}},
      {{"--ranks", "0"}, {"0 ranks"}},
      {{"--detach"}, {"--detach", "--launcher=slurm"}},
      {{"--detach", "--launcher=mpi"}, {"--detach", "--launcher=slurm"}}};
  for (const auto& [options, texts] : kCases) {
    Strings arguments = {"run", "micro.toml"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    EXPECT_TRUE(EndedWith(Grid(arguments), 2, texts));
  }
  ::setenv("PMI_RANK", "first", 1);
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml", "--launcher=mpi"}), 5,
                        "PMI_RANK='first'"));
  ::unsetenv("PMI_RANK");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(GridLaunch, WithoutSlurmItEndsWithFive) {
  ::setenv("PATH", (folder_ / "bin").c_str(), 1);
  EXPECT_TRUE(EndedWith(Grid(slurm_), 5, "there is no sbatch in PATH",
                        "slurm-client", "--launcher=local"));
  Pretend("sbatch", "");
  EXPECT_TRUE(EndedWith(Grid(slurm_), 5, "there is no squeue in PATH"));
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

// Each GPU is a rank; only the node can tell that it has GPUs.
TEST_F(GridLaunch, GpusBecomeRanksOfEachTask) {
  std::string grid = MicroGrid(60);
  grid.insert(grid.find("stands_for"), "gpus = 2\n");
  WriteGrid(grid);
  Pretend("sbatch", "echo 12");
  Pretend("squeue", "");
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml", "--launcher=slurm", "--detach"}), 0,
                "job 12: 3 rows"));
  const std::string script = Bytes("runs/micro/slurm/softmoe-micro-text.sh");
  EXPECT_TRUE(
      Says(script, "--ntasks-per-node=2\n", "--device cuda", "--ranks mpi"));
  EXPECT_TRUE(EndedWith(Grid({"plan", "micro.toml"}), 0, script, "never run"));
  // There are two balance groups: other numbers of ranks are not submitted.
  // The plan shows no script that would not be submitted.
  for (const std::string command : {"run", "plan"}) {
    const auto with_ranks = [&](const std::string& ranks) {
      return Grid(
          {command, "micro.toml", "--launcher=slurm", "--ranks", ranks});
    };
    WriteGrid(MicroGrid(60));
    EXPECT_EQ(with_ranks("0").exit_status, 2);
    EXPECT_TRUE(EndedWith(with_ranks("3"), 2, "3 ranks"));
    WriteGrid(grid);
    EXPECT_TRUE(
        EndedWith(with_ranks("2"), 2, "--ranks 2: corpus 'text'", "gpus = 2"));
  }
}

TEST_F(GridLaunch, RanksOfATaskFindEachOther) {
  ASSERT_TRUE(TakeTrained("whole"));
  PretendSlurm();
  const Strings slurm = {"run", "micro.toml", "--launcher=slurm", "--ranks",
                         "2"};
  EXPECT_TRUE(EndedWith(Grid(slurm), 0, "job 12: 3 rows, a task each",
                        "3 of 3 runs finished"));
  EXPECT_EQ(Bytes("runs/micro/results.h5"), Bytes("whole/results.h5"));
  const ProgramResult plan =
      Grid({"plan", "micro.toml", "--launcher", "slurm", "--ranks", "2"});
  EXPECT_TRUE(
      Says(plan.output, Bytes("runs/micro/slurm/softmoe-micro-text.sh")));
  EXPECT_FALSE(Says(plan.output, "--exchange"));
  EXPECT_TRUE(Says(Grid({"plan", "micro.toml", "--launcher", "slurm", "--ranks",
                         "2", "--exchange", "host"})
                       .output,
                   "--exchange host"));
  // --silence-limit is passed on only with several ranks.
  Pretend("sbatch", "echo 12");
  for (const std::string ranks : {"1", "2"}) {
    EXPECT_TRUE(EndedWith(
        Grid({"run", "micro.toml", "--launcher=slurm", "--detach", "--ranks",
              ranks, "--silence-limit", "90", "--out", ranks}),
        0));
    const bool passed_on(Says(Bytes(ranks + "/slurm/softmoe-micro-text.sh"),
                              "--ranks mpi \\\n  --silence-limit 90 \\\n"));
    EXPECT_EQ(passed_on, ranks == "2");
  }
}

TEST_F(GridLaunch, WhatSlurmRefusesEndsWithFive) {
  Pretend("squeue", "");
  Pretend("sbatch", "echo 'sbatch: error: invalid partition' >&2; exit 1");
  EXPECT_TRUE(EndedWith(
      Grid(slurm_), 5, "runs/micro/slurm/softmoe-micro-text.sh", "ended with 1",
      "invalid partition", "go into sbatch = [...] of [cluster]"));
  Pretend("sbatch", "echo 'Submitted, in a way'");
  EXPECT_TRUE(
      EndedWith(Grid(slurm_), 5, "ended with 0 and said: Submitted, in a way"));
  EXPECT_EQ(FilesIn(folder_ / "runs/micro/slurm"),
            Strings{"softmoe-micro-text.sh"});

  // The error names what was submitted before.
  WriteGrid(MicroGrid(60, R"([[corpora]]
id = "other"
title = "The same sentences"
[corpora.config.data]
corpus = "path:text.txt"
validation_fraction = 0.2
)"));
  Pretend("sbatch",
          "case $2 in *-text.sh) echo 12 ;; *) echo 'no more' >&2; exit 1 ;; "
          "esac");
  EXPECT_TRUE(EndedWith(Grid(slurm_), 5, "softmoe-micro-other.sh", "no more",
                        "continue; follow it with squeue", "scancel 12"));
}

TEST_F(GridLaunch, AJobThatCannotBeRecordedIsNamed) {
  Pretend("squeue", "");
  Pretend("sbatch", "mkdir \"${2%.sh}-12.json\" && echo 12");
  EXPECT_TRUE(EndedWith(Grid(slurm_), 5, "softmoe-micro-text-12.json",
                        "Job 12 continues, but is not recorded",
                        "scancel 12 ends it"));
}

// A terminal signals a process group as a whole.
TEST_F(GridLaunch, AStopDuringSbatchLosesNoJob) {
  Pretend("squeue", "");
  Pretend("sbatch",
          "kill -INT $PPID; [ $(cut -d' ' -f5 /proc/$$/stat) = $$ ] && "
          "echo 12");
  EXPECT_TRUE(EndedWith(Grid(slurm_), 75,
                        "stopped: SIGINT: submitted jobs continue",
                        "scancel 12"));
  Pretend("squeue", "printf '%s|RUNNING|None\\n' 0 1 2");
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml", "--launcher=slurm", "--detach"}), 0,
                "job 12 of an earlier command is still in Slurm's queue"));
}

// The pipe is full before the program begins, and nobody reads it.
TEST_F(GridLaunch, AJobIsRecordedBeforeItIsPrinted) {
  Pretend("squeue", "");
  Pretend("sbatch", "echo 12");
  HeldProgram grid("/bin/sh",
                   {"-c", "printf %4096s; exec '" + Program() +
                              "' run micro.toml --launcher=slurm --detach"},
                   folder_);
  ASSERT_TRUE(WaitFor(60, [&] {
    return fs::exists(folder_ / "runs/micro/slurm/softmoe-micro-text-12.json");
  }));
  // It does not wait for a reader, either.
  grid.Signal(SIGTERM);
  grid.WaitForEnd();
  EXPECT_EQ(grid.Finish().exit_status, 75);
}

TEST_F(GridLaunch, SubmitsWaitsAndReports) {
  ASSERT_TRUE(TakeTrained("whole"));
  PretendSlurm();
  EXPECT_TRUE(EndedWith(Grid(slurm_), 0, "job 12: 3 rows, a task each",
                        "squeue --jobs=12", "scancel 12",
                        "3 of 3 runs finished"));
  EXPECT_EQ(Bytes("runs/micro/results.h5"), Bytes("whole/results.h5"));
  // The plan shows the submitted script byte for byte.
  const ProgramResult plan =
      Grid({"plan", "micro.toml", "--launcher", "slurm"});
  EXPECT_TRUE(Says(plan.output, "runs/micro/slurm",
                   Bytes("runs/micro/slurm/softmoe-micro-text.sh")));
  EXPECT_TRUE(EndedWith(Grid(slurm_), 0, "3 of 3 runs finished"));
  EXPECT_EQ(Submissions(), 1) << "nothing was left to do";
  EXPECT_TRUE(
      EndedWith(Grid({"clean", "micro.toml", "--only", "temporary,runs"}), 0,
                "nothing to delete"));

  // Submits only unfinished rows, in the user's folder.
  fs::remove(RunFolder(1) / "result.h5");
  EXPECT_TRUE(
      EndedWith(Grid(slurm_), 0, "job 12: 1 rows", "3 of 3 runs finished"));
  EXPECT_EQ(Bytes("runs/micro/results.h5"), Bytes("whole/results.h5"));
}

// If they are submitted, their tasks train them.
TEST_F(GridLaunch, RecordedRunsOnOtherTokensAreSubmitted) {
  ASSERT_TRUE(TakeTrained());
  ASSERT_EQ(Grid({"record", "micro.toml", "--to", "a.h5"}).exit_status, 0);
  Pretend("sbatch", "echo 12");
  Pretend("squeue", "");
  const auto submit = [&](const std::string& out) {
    return Grid({"run", "micro.toml", "--launcher=slurm", "--detach", "--from",
                 "a.h5", "--out", out});
  };
  const Strings nothing = {"a.h5: 3 runs count as finished",
                           "nothing to submit: all 3 runs are finished"};
  const ProgramResult same = submit("same");
  EXPECT_TRUE(EndedWith(same, 0, nothing));
  EXPECT_FALSE(Says(same.output, "not compared"));
  WriteFileAtomically(folder_ / "text.txt",
                      Bytes("text.txt") + "\n\nOne document more.\n");
  const ProgramResult unknown = submit("unknown");
  EXPECT_TRUE(EndedWith(unknown, 0, nothing));
  EXPECT_TRUE(Says(unknown.output,
                   "path:text.txt are not here, so they are not compared"));
  ASSERT_EQ(Grid({"run", "micro.toml", "--rows", "sparse-2", "--out", "tokens"})
                .exit_status,
            0);
  EXPECT_TRUE(EndedWith(submit("known"), 0, "does not count as finished",
                        "job 12: 3 rows"));
}

// Waves train seeds of many rows one after the other; a task has a row's.
TEST_F(GridLaunch, ATaskTrainsAllSeedsOfItsRow) {
  WriteMini(MicroRegime());
  Pretend("sbatch", "echo 12");
  Pretend("squeue", "");
  EXPECT_TRUE(EndedWith(Grid({"run", "regime", "--scale=micro.toml",
                              "--launcher=slurm", "--detach"}),
                        0, "job 12: 11 rows, a task each"));
  // The rows are in the order of the grid, as in its plan.
  EXPECT_TRUE(Says(Bytes("runs/mini/slurm/softmoe-regime-gcide.sh"),
                   "rows=(\n  sparse-1\n  sparse-2\n  sparse-3\n"));
}

// As over NFS, where the task has written its result and nobody here sees it.
TEST_F(GridLaunch, AResultThatIsSeenLateIsNotMissing) {
  ASSERT_TRUE(TakeTrained("elsewhere"));
  Pretend("sbatch", "echo 12");
  Pretend("squeue", "(sleep 1; cd '" + folder_.string() +
                        "'; mv elsewhere/*-* runs/micro) >/dev/null 2>&1 &");
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml", "--launcher=slurm"}), 0,
                        "job 12: 3 rows", "3 of 3 runs finished"));
}

TEST_F(GridLaunch, ItsExitCodeIsThatOfTheRows) {
  WriteGrid(MicroGrid(60, kDivergingRow));
  PretendSlurm();
  EXPECT_TRUE(EndedWith(
      Grid(slurm_), 1,
      "text/diverges/seed7: not finished, and Slurm has ended its task",
      "slurm/softmoe-micro-text-12_3.log", "3 of 4 runs finished"));
}

TEST_F(GridLaunch, DetachedItDoesNotWait) {
  Pretend("sbatch", "echo 'sbatch: warning: slow today' >&2; echo '12;east'");
  Pretend("squeue", "exit 1");
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml", "--launcher=slurm", "--detach"}), 0,
                "job 12: 3 rows", "squeue --clusters=east --jobs=12",
                "scancel --clusters=east 12"));
  EXPECT_EQ(FilesIn(folder_ / "runs/micro"), Strings{"slurm"});
}

TEST_F(GridLaunch, StoppedWhileWaitingItLeavesTheJobs) {
  Pretend("sbatch",
          "echo x >>'" + (folder_ / "submitted").string() + "'; echo 12");
  // A user's own setting for squeue must not hide tasks.
  ::setenv("SQUEUE_STATES", "COMPLETED", 1);
  Pretend("squeue",
          "[ \"$SQUEUE_STATES\" ] && exit; printf '%s|RUNNING|None\\n' 0 1; "
          "echo '2|PENDING|Priority'");
  for (const std::string when : {"submitted", "again"}) {
    HeldProgram waiting(Program(), slurm_, folder_);
    if (when == "again") {
      ASSERT_TRUE(waiting.ReadUntil(
          "job 12 of an earlier command is still in Slurm's queue"));
    }
    ASSERT_TRUE(waiting.ReadUntil("1 pending (Priority), 2 running; 0 of 3"));
    waiting.Signal(SIGINT);
    EXPECT_TRUE(EndedWith(waiting.Finish(), 75,
                          "stopped: SIGINT: submitted jobs continue",
                          "squeue --jobs=12", "scancel 12",
                          "the same command waits for it again"));
    EXPECT_EQ(Submissions(), 1);
  }
  // A row whose task has ended is submitted again. The second number is no
  // task's.
  Pretend("squeue", "printf '%s|RUNNING|None\\n' 1 99999999999999999999");
  EXPECT_TRUE(EndedWith(
      Grid({"run", "micro.toml", "--launcher=slurm", "--detach"}), 0,
      "job 12 of an earlier command is still in Slurm's queue: 1 running",
      "job 12: 2 rows"));
  EXPECT_EQ(Submissions(), 2);
  // Job numbers recur: job 12 belongs to another user.
  Pretend("squeue", "[[ $* == *--user=* ]] || echo '1|RUNNING|None'");
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml", "--launcher=slurm", "--detach"}), 0,
                "job 12: 3 rows"));
  EXPECT_EQ(Submissions(), 3);
  // Without an answer from Slurm, whether a job is running cannot be guessed.
  Pretend("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1");
  EXPECT_TRUE(EndedWith(Grid(slurm_), 5, "squeue --jobs=12 failed",
                        "Unable to contact", "try again"));
  EXPECT_EQ(Submissions(), 3);
  // Slurm has forgotten the job: its rows are submitted again, end, and are
  // missing.
  Pretend("squeue", "echo 'error: Invalid job id specified' >&2; exit 1");
  EXPECT_TRUE(EndedWith(Grid(slurm_), 1, "job 12: 3 rows",
                        "text/sparse-2/seed7: not finished",
                        "0 of 3 runs finished"));
  EXPECT_EQ(Submissions(), 4);
  // If another job trains a row again, the row's log is that job's.
  Pretend("sbatch", "echo 13");
  const std::string asked = (folder_ / "asked").string();
  Pretend("squeue", "[ -e '" + asked + "' ] || echo '1|RUNNING|None'\ntouch '" +
                        asked + "'");
  EXPECT_TRUE(EndedWith(
      Grid(slurm_), 1, "job 13: 2 rows", "softmoe-micro-text-13_0.log",
      "softmoe-micro-text-12_1.log", "softmoe-micro-text-13_1.log"));
}

}  // namespace
}  // namespace softmoe::experiments
