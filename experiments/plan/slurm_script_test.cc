// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/slurm_script.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/process/subprocess.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe::experiments {
namespace {

SlurmJob Job() {
  SlurmJob job;
  job.name = "softmoe-paper-c4";
  job.corpus = "c4";
  job.rows = {"sparse-1", "softmoe-1.5-calibrated"};
  job.command = {"bazel-bin/experiments/grid",
                 "run",
                 "paper",
                 "--corpora",
                 "c4",
                 "--out",
                 "/data/my runs"};
  job.start = "/home/me";
  job.logs = "/data/my runs/slurm";
  job.gpus = 20;
  job.gpus_per_node = 4;
  job.hours = 25.4;
  job.options = {"--partition=gh200"};
  return job;
}

TEST(SlurmScript, IsExactlyThis) {
  EXPECT_EQ(SlurmScript(Job()), R"sh(#!/bin/bash
#SBATCH --job-name=softmoe-paper-c4
#SBATCH --array=0-1
#SBATCH --nodes=5
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=39:00:00
#SBATCH --signal=TERM@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --chdir=/home/me
#SBATCH --output="/data/my runs/slurm/%x-%A_%a.log"
#SBATCH --partition=gh200

rows=(
  sparse-1
  softmoe-1.5-calibrated
)
task=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
kills='/data/my runs/slurm'/kills-$task
# Ranks end each other, with the code of the one that was first.
start=(srun --mpi=pmix --kill-on-bad-exit=0)
if ! srun --mpi=pmix --ntasks=1 --nodes=1 true; then
  start=(timeout 140100 mpirun -n 20 --bind-to none)
fi
status=0
"${start[@]}" bazel-bin/experiments/grid run paper \
  --corpora c4 \
  --out '/data/my runs' \
  --rows "${rows[$SLURM_ARRAY_TASK_ID]}" || status=$?
case $status in
  # Stopped in time, state saved: goes on from there in a new allocation.
  75 | 124) scontrol requeue "$task" ;;
  # Killed, or a rank was silent:
  # goes on from its checkpoint, but whatever it was may come again.
  5 | 137)
    echo "$(hostname) $(date)" >>"$kills" &&
      [ "$(wc -l <"$kills")" -le 3 ] && scontrol requeue "$task"
    ;;
esac
exit "$status"
)sh");
}

TEST(SlurmScript, NodesHoldTheSameNumberOfGpus) {
  const auto layout = [](int64_t gpus, int64_t per_node) {
    const NodeLayout nodes = LayOutNodes(gpus, per_node);
    return std::pair(nodes.nodes, nodes.gpus_per_node);
  };
  EXPECT_EQ(layout(8, 4), std::pair(2L, 4L));
  EXPECT_EQ(layout(8, 8), std::pair(1L, 8L));
  EXPECT_EQ(layout(20, 4), std::pair(5L, 4L));
  EXPECT_EQ(layout(20, 8), std::pair(4L, 5L));  // not 2.5 nodes
  EXPECT_EQ(layout(2, 8), std::pair(1L, 2L));
  EXPECT_EQ(layout(7, 4), std::pair(7L, 1L));
}

TEST(SlurmScript, TimeLimitIsGenerousAndWhole) {
  const auto limit = [](double hours) {
    SlurmJob job = Job();
    job.hours = hours;
    const std::string script = SlurmScript(job);
    const size_t at = script.find("--time=") + 7;
    return script.substr(at, script.find('\n', at) - at);
  };
  EXPECT_EQ(limit(0.01), "01:00:00");
  EXPECT_EQ(limit(2), "03:00:00");
  EXPECT_EQ(limit(2.1), "04:00:00");
  EXPECT_EQ(limit(100), "150:00:00");
}

TEST(SlurmScript, RefusesAJobWithoutRows) {
  SlurmJob job = Job();
  job.rows.clear();
  EXPECT_THROW(SlurmScript(job), InternalError);
}

TEST(ShellQuoted, LeavesPlainWordsAlone) {
  EXPECT_EQ(ShellQuoted("training.steps=10"), "training.steps=10");
  EXPECT_EQ(ShellQuoted("a b"), "'a b'");
  EXPECT_EQ(ShellQuoted("it's"), R"('it'\''s')");
  EXPECT_EQ(ShellQuoted("$(x)"), "'$(x)'");
  EXPECT_EQ(ShellQuoted(""), "''");
}

TEST(SlurmScript, WithoutGpusATaskHasCores) {
  SlurmJob job = Job();
  job.gpus = 0;
  job.cores = 6;
  const std::string script = SlurmScript(job);
  EXPECT_TRUE(
      Says(script, "#SBATCH --nodes=1\n", "#SBATCH --ntasks=1\n",
           "#SBATCH --cpus-per-task=6\n",
           "\nsrun --cpus-per-task=6 bazel-bin/experiments/grid run paper"));
  EXPECT_FALSE(Says(script, "GPU"));
  EXPECT_FALSE(Says(script, "gpu"));
  EXPECT_FALSE(Says(script, "mpi"));

  // Ranks may be on any node.
  job.ranks = 3;
  const std::string ranks = SlurmScript(job);
  EXPECT_TRUE(Says(ranks, "#SBATCH --ntasks=3\n", "#SBATCH --cpus-per-task=6\n",
                   "(srun --mpi=pmix --kill-on-bad-exit=0 --cpus-per-task=6)\n",
                   "mpirun -n 3 "));
  EXPECT_FALSE(Says(ranks, "#SBATCH --nodes"));
}

// sbatch reads quotes in its lines, and replaces %x and the like.
TEST(SlurmScript, NamesTheLogWhateverTheFolderIsCalled) {
  SlurmJob job = Job();
  job.logs = R"(/a b/"100%"\c)";
  EXPECT_TRUE(
      Says(SlurmScript(job), R"(--output="/a b/\"100%%\"\\c/%x-%A_%a.log")"));
  EXPECT_EQ(SlurmLogName(job, "12", 3),
            R"(/a b/"100%"\c/softmoe-paper-c4-12_3.log)");
}

// Runs the script with an srun and an mpirun that print their words and end
// with `status`, and an scontrol that prints its own.
class SlurmScriptRun : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = FreshFolder("slurm");
    const std::string print = "printf '[%s]' \"$(basename $0)\" \"$@\"\n";
    Pretend("srun", "[ \"${@: -1}\" = true ] && exit $NO_PMIX\n" + print +
                        "exit $STATUS\n");
    Pretend("mpirun", print + "exit $STATUS\n");
    Pretend("scontrol", print);
    SlurmJob job = Job();
    job.logs = folder_;
    WriteFileAtomically(folder_ / "job.sh", SlurmScript(job));
  }

  // Creates a program with this name that runs `script`.
  void Pretend(const std::string& name, const std::string& script) const {
    WriteFileAtomically(folder_ / name, "#!/bin/bash\n" + script);
    std::filesystem::permissions(folder_ / name,
                                 std::filesystem::perms::owner_all);
  }

  // Where srun can, or cannot, start ranks.
  ProgramResult Run(int task, int status, bool pmix = true) {
    return RunProgram({"env", "PATH=" + folder_.string() + ":/usr/bin:/bin",
                       std::string("NO_PMIX=") + (pmix ? "0" : "1"),
                       // The last task's is the number of the array.
                       "SLURM_JOB_ID=70", "SLURM_ARRAY_JOB_ID=70",
                       "SLURM_ARRAY_TASK_ID=" + std::to_string(task),
                       "STATUS=" + std::to_string(status), "bash", "job.sh"},
                      folder_);
  }

  static std::string Srun(const std::string& row) {
    return "[srun][--mpi=pmix][--kill-on-bad-exit=0][bazel-bin/experiments/"
           "grid][run][paper][--corpora][c4]"
           "[--out][/data/my runs][--rows][" +
           row + "]";
  }

  std::filesystem::path folder_;
};

TEST_F(SlurmScriptRun, EachTaskRunsItsRowAndRequeuesItselfWhenStopped) {
  const ProgramResult done = Run(1, 0);
  EXPECT_EQ(done.exit_status, 0);
  EXPECT_EQ(done.output, Srun("softmoe-1.5-calibrated"));
  for (int again = 0; again < 5; ++again) {
    const ProgramResult stopped = Run(1, 75);
    EXPECT_EQ(stopped.exit_status, 75);
    EXPECT_EQ(stopped.output,
              Srun("softmoe-1.5-calibrated") + "[scontrol][requeue][70_1]");
  }
  const ProgramResult failed = Run(0, 1);
  EXPECT_EQ(failed.exit_status, 1);
  EXPECT_EQ(failed.output, Srun("sparse-1"));
}

TEST_F(SlurmScriptRun, WithoutPmixMpirunStartsTheRanks) {
  const ProgramResult done = Run(0, 0, /*pmix=*/false);
  EXPECT_EQ(done.exit_status, 0);
  EXPECT_EQ(done.output,
            "[mpirun][-n][20][--bind-to][none][bazel-bin/experiments/grid][run]"
            "[paper][--corpora][c4][--out][/data/my runs][--rows][sparse-1]");
  // What `timeout` ends with.
  EXPECT_TRUE(Says(Run(0, 124, /*pmix=*/false).output, "requeue"));
}

TEST_F(SlurmScriptRun, AKilledTaskRequeuesItselfThreeTimes) {
  for (int again = 0; again < 3; ++again) {
    const ProgramResult killed = Run(1, 137);
    EXPECT_EQ(killed.exit_status, 137);
    EXPECT_EQ(killed.output,
              Srun("softmoe-1.5-calibrated") + "[scontrol][requeue][70_1]");
    // Stops (75) do not count as kills.
    EXPECT_TRUE(Says(Run(1, 75).output, "requeue"));
  }
  EXPECT_EQ(Run(1, 137).output, Srun("softmoe-1.5-calibrated"));
  // As is one with a rank that was silent.
  EXPECT_EQ(Run(1, 5).output, Srun("softmoe-1.5-calibrated"));
  // Another task has its own three retries.
  EXPECT_TRUE(Says(Run(0, 137).output, "requeue"));
}

// Kills that cannot be counted could be retried for ever.
TEST_F(SlurmScriptRun, AKilledTaskThatCannotBeCountedDoesNotRequeueItself) {
  std::filesystem::create_directory(folder_ / "kills-70_1");
  const ProgramResult killed = Run(1, 137);
  EXPECT_EQ(killed.exit_status, 137);
  EXPECT_FALSE(Says(killed.output, "requeue"));
}

}  // namespace
}  // namespace softmoe::experiments
