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
  job.rows = {"sparse-1", "softmoe-1.5-calibrated"};
  job.command = {"run", "paper", "--corpora", "c4", "--out", "/data/my runs"};
  job.gpus = 20;
  job.gpus_per_node = 4;
  job.hours = 25.4;
  job.options = {"--partition=gh200"};
  return job;
}

TEST(SlurmScript, IsExactlyThis) {
  EXPECT_EQ(SlurmScript(Job()), R"(#!/bin/bash
# Needs the multi-GPU trainer, and tasks that share a results folder. The build
# that printed this has neither.
#SBATCH --job-name=softmoe-paper-c4
#SBATCH --array=0-1
#SBATCH --nodes=5
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=39:00:00
#SBATCH --signal=TERM@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%A_%a.log
#SBATCH --partition=gh200

rows=(
  sparse-1
  softmoe-1.5-calibrated
)
status=0
srun bazel-bin/experiments/grid run paper \
  --corpora c4 \
  --out '/data/my runs' \
  --rows "${rows[$SLURM_ARRAY_TASK_ID]}" || status=$?
# 75: stopped in time, state saved. Go on from there in a new allocation. (The
# SLURM_JOB_ID of the last task is the number of the whole array.)
task=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
if [ "$status" -eq 75 ]; then scontrol requeue "$task"; fi
exit "$status"
)");
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

// Runs the script with an srun that prints its words and ends with `status`,
// and an scontrol that prints its own.
ProgramResult RunScript(int task, int status) {
  const std::filesystem::path folder = FreshFolder("slurm");
  const std::string print =
      "#!/bin/bash\nprintf '[%s]' \"$(basename $0)\" \"$@\"\n";
  WriteFileAtomically(folder / "srun",
                      print + "exit " + std::to_string(status) + "\n");
  WriteFileAtomically(folder / "scontrol", print);
  for (const char* program : {"srun", "scontrol"}) {
    std::filesystem::permissions(folder / program,
                                 std::filesystem::perms::owner_all);
  }
  WriteFileAtomically(folder / "job.sh", SlurmScript(Job()));
  return RunProgram(
      {"env", "PATH=" + folder.string() + ":/usr/bin:/bin",
       // Of the last task it is the number of the array.
       "SLURM_JOB_ID=70", "SLURM_ARRAY_JOB_ID=70",
       "SLURM_ARRAY_TASK_ID=" + std::to_string(task), "bash", "job.sh"},
      folder);
}

TEST(SlurmScript, EachTaskRunsItsRowAndRequeuesItselfWhenStopped) {
  const auto srun = [](const std::string& row) {
    return "[srun][bazel-bin/experiments/grid][run][paper][--corpora][c4]"
           "[--out][/data/my runs][--rows][" +
           row + "]";
  };
  const ProgramResult done = RunScript(1, 0);
  EXPECT_EQ(done.exit_status, 0);
  EXPECT_EQ(done.output, srun("softmoe-1.5-calibrated"));
  const ProgramResult stopped = RunScript(1, 75);
  EXPECT_EQ(stopped.exit_status, 75);
  EXPECT_EQ(stopped.output,
            srun("softmoe-1.5-calibrated") + "[scontrol][requeue][70_1]");
  const ProgramResult failed = RunScript(0, 1);
  EXPECT_EQ(failed.exit_status, 1);
  EXPECT_EQ(failed.output, srun("sparse-1"));
}

}  // namespace
}  // namespace softmoe::experiments
