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
# Rank 0 is on this node; here is where Slurm itself reaches it.
export MASTER_ADDR=$(scontrol show node --oneliner "$SLURMD_NODENAME" |
  grep -o ' NodeAddr=[^ ]*' | cut -d = -f 2)
# What keeps strangers out when ranks connect to each other.
export SOFTMOE_RANKS_SECRET_FILE='/data/my runs/slurm'/secret-$task
rm -f "$SOFTMOE_RANKS_SECRET_FILE"
(umask 077 && head -c 32 /dev/urandom | base64 >"$SOFTMOE_RANKS_SECRET_FILE")
status=0
srun --kill-on-bad-exit=0 bazel-bin/experiments/grid run paper \
  --corpora c4 \
  --out '/data/my runs' \
  --rows "${rows[$SLURM_ARRAY_TASK_ID]}" || status=$?
rm -f "$SOFTMOE_RANKS_SECRET_FILE"
case $status in
  # Stopped in time, state saved: goes on from there in a new allocation.
  75) scontrol requeue "$task" ;;
  # Killed: goes on from its checkpoint, but whatever kills it may do so again.
  137)
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
  for (const char* line :
       {"#SBATCH --nodes=1\n", "#SBATCH --ntasks=1\n",
        "#SBATCH --cpus-per-task=6\n",
        "\nsrun --cpus-per-task=6 bazel-bin/experiments/grid run paper"}) {
    EXPECT_NE(script.find(line), std::string::npos) << line << script;
  }
  EXPECT_EQ(script.find("GPU"), std::string::npos) << script;
  EXPECT_EQ(script.find("gpu"), std::string::npos) << script;
  EXPECT_EQ(script.find("SECRET"), std::string::npos) << script;

  // Ranks may be on any node.
  job.ranks = 3;
  const std::string ranks = SlurmScript(job);
  for (const char* line :
       {"#SBATCH --ntasks=3\n", "#SBATCH --cpus-per-task=6\n",
        "\nsrun --cpus-per-task=6 --kill-on-bad-exit=0 bazel-bin/"}) {
    EXPECT_NE(ranks.find(line), std::string::npos) << line << ranks;
  }
  EXPECT_EQ(ranks.find("--nodes"), std::string::npos) << ranks;
}

// sbatch reads quotes in its lines, and replaces %x and the like.
TEST(SlurmScript, NamesTheLogWhateverTheFolderIsCalled) {
  SlurmJob job = Job();
  job.logs = R"(/a b/"100%"\c)";
  EXPECT_NE(
      SlurmScript(job).find(R"(--output="/a b/\"100%%\"\\c/%x-%A_%a.log")"),
      std::string::npos)
      << SlurmScript(job);
  EXPECT_EQ(SlurmLogName(job, "12", 3),
            R"(/a b/"100%"\c/softmoe-paper-c4-12_3.log)");
}

// Runs the script with an srun that prints its words and ends with `status`,
// and an scontrol that prints its own.
class SlurmScriptRun : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = FreshFolder("slurm");
    for (const char* program : {"srun", "scontrol"}) {
      Pretend(program,
              "printf '[%s]' \"$(basename $0)\" \"$@\"\n"
              "[ $(basename $0) = scontrol ] || exit $STATUS\n");
    }
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

  ProgramResult Run(int task, int status) {
    return RunProgram({"env", "PATH=" + folder_.string() + ":/usr/bin:/bin",
                       // The last task's is the number of the array.
                       "SLURM_JOB_ID=70", "SLURM_ARRAY_JOB_ID=70",
                       "SLURM_ARRAY_TASK_ID=" + std::to_string(task),
                       "STATUS=" + std::to_string(status), "bash", "job.sh"},
                      folder_);
  }

  static std::string Srun(const std::string& row) {
    return "[srun][--kill-on-bad-exit=0][bazel-bin/experiments/"
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

TEST_F(SlurmScriptRun, RanksAreToldWhereRankZeroIs) {
  Pretend("scontrol",
          "echo \"NodeName=$4 Arch=x NodeAddr=10.1.2.3 NodeHost=n\"");
  Pretend("srun", "echo $MASTER_ADDR");
  EXPECT_EQ(Run(0, 0).output, "10.1.2.3\n");
  // By the name of the node, then.
  Pretend("scontrol", "exit 1");
  EXPECT_EQ(Run(0, 0).output, "\n");
}

// Which nobody else can read, and which is gone afterwards.
TEST_F(SlurmScriptRun, EachTaskHasASecretWhileItRuns) {
  Pretend("srun",
          "stat -c '%a %s' \"$SOFTMOE_RANKS_SECRET_FILE\"\n"
          "cat \"$SOFTMOE_RANKS_SECRET_FILE\"\n");
  const std::string first = Run(0, 0).output, second = Run(0, 0).output;
  EXPECT_TRUE(first.starts_with("600 45\n")) << first;
  EXPECT_TRUE(second.starts_with("600 45\n")) << second;
  EXPECT_NE(first, second);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "secret-70_0"));
  // What a killed task has left is not used again, whoever may read it.
  WriteFileAtomically(folder_ / "secret-70_0", "old");
  std::filesystem::permissions(folder_ / "secret-70_0",
                               std::filesystem::perms(0644));
  const std::string third = Run(0, 0).output;
  EXPECT_TRUE(third.starts_with("600 45\n")) << third;
}

TEST_F(SlurmScriptRun, AKilledTaskRequeuesItselfThreeTimes) {
  for (int again = 0; again < 3; ++again) {
    const ProgramResult killed = Run(1, 137);
    EXPECT_EQ(killed.exit_status, 137);
    EXPECT_EQ(killed.output,
              Srun("softmoe-1.5-calibrated") + "[scontrol][requeue][70_1]");
    // Stops (75) do not count as kills.
    EXPECT_NE(Run(1, 75).output.find("requeue"), std::string::npos);
  }
  EXPECT_EQ(Run(1, 137).output, Srun("softmoe-1.5-calibrated"));
  // Another task has its own three retries.
  EXPECT_NE(Run(0, 137).output.find("requeue"), std::string::npos);
}

// Kills that cannot be counted could be retried for ever.
TEST_F(SlurmScriptRun, AKilledTaskThatCannotBeCountedDoesNotRequeueItself) {
  std::filesystem::create_directory(folder_ / "kills-70_1");
  const ProgramResult killed = Run(1, 137);
  EXPECT_EQ(killed.exit_status, 137);
  EXPECT_EQ(killed.output.find("requeue"), std::string::npos) << killed.output;
}

}  // namespace
}  // namespace softmoe::experiments
