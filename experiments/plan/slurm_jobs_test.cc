// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/slurm_jobs.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/process/process.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "experiments/grids/grid_file.h"
#include "experiments/plan/grid_estimate.h"

namespace softmoe::experiments {
namespace {

// ---- The script of a job.

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
  EXPECT_TRUE(EqualsFile(SlurmScript(Job()),
                         "experiments/plan/testdata/slurm_script.txt"));
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
  EXPECT_EQ(script.find("mpi"), std::string::npos) << script;

  // Ranks may be on any node.
  job.ranks = 3;
  const std::string ranks = SlurmScript(job);
  for (const char* line :
       {"#SBATCH --ntasks=3\n", "#SBATCH --cpus-per-task=6\n",
        "(srun --mpi=pmix --kill-on-bad-exit=0 --cpus-per-task=6)\n",
        "mpirun -n 3 "}) {
    EXPECT_NE(ranks.find(line), std::string::npos) << line << ranks;
  }
  EXPECT_EQ(ranks.find("#SBATCH --nodes"), std::string::npos) << ranks;
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

// The rest of the name would be a command of the script.
TEST(SlurmScript, RefusesAFolderWithALineBreak) {
  for (std::string SlurmJob::*const folder :
       {&SlurmJob::start, &SlurmJob::logs}) {
    SlurmJob job = Job();
    job.*folder = "/a\nb";
    EXPECT_TRUE(Says(MessageOf<ConfigError>([&] { SlurmScript(job); }),
                     "'/a\nb", "has a line break", "--out"));
  }
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
                       // The last task has the number of the array.
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
            "[mpirun][-n][20][--bind-to][none][--mca]"
            "[odls_base_sigkill_timeout][120][bazel-bin/experiments/grid][run]"
            "[paper][--corpora][c4][--out][/data/my runs]"
            "[--set][runtime.log_every=1000000000][--rows][sparse-1]");
  // 124 is what `timeout` exits with.
  EXPECT_NE(Run(0, 124, /*pmix=*/false).output.find("requeue"),
            std::string::npos);
}

// Five minutes before the job's end according to Slurm; 39 hours is the
// script's own limit.
TEST_F(SlurmScriptRun, MpirunIsEndedInTime) {
  Pretend("date", "echo 1000000");
  Pretend("timeout", "echo \"[timeout][$1][$2]\"");
  const std::pair<const char*, const char*> kEnds[] = {
      {"", "140100"}, {"1014400", "14100"}, {"1000299", "1"}};
  for (const auto& [end, seconds] : kEnds) {
    ::setenv("SLURM_JOB_END_TIME", end, 1);
    EXPECT_EQ(Run(0, 0, /*pmix=*/false).output,
              "[timeout][--foreground][" + std::string(seconds) + "]\n");
  }
  ::unsetenv("SLURM_JOB_END_TIME");
}

// Open MPI's mpirun ends at once if it is told twice, and its ranks then save
// nothing. A second signal would go to its process group, and so to `sleep`,
// which does not catch it.
TEST_F(SlurmScriptRun, MpirunIsToldOnce) {
  Pretend("date", "echo 1000000");
  Pretend("mpirun", R"sh(trap 'told=yes' TERM
sleep 3 &
until [ "$told" ]; do wait $!; done
wait $!
printf '[told, and its group ended with %d]' $?
)sh");
  ::setenv("SLURM_JOB_END_TIME", "1000302", 1);  // in two seconds
  const ProgramResult stopped = Run(0, 0, /*pmix=*/false);
  ::unsetenv("SLURM_JOB_END_TIME");
  EXPECT_EQ(stopped.exit_status, 124);
  EXPECT_EQ(stopped.output,
            "[told, and its group ended with 0][scontrol][requeue][70_0]");
}

TEST_F(SlurmScriptRun, WithoutPmixAndMpirunItEndsAndSaysWhatToInstall) {
  std::filesystem::remove(folder_ / "mpirun");
  const ProgramResult ended = RunProgram(
      {"env", "PATH=" + folder_.string(), "NO_PMIX=1", "SLURM_ARRAY_JOB_ID=70",
       "SLURM_ARRAY_TASK_ID=0", "/bin/bash", "job.sh"},
      folder_);
  EXPECT_EQ(ended.exit_status, 5);
  EXPECT_EQ(ended.output,
            "no PMIx and no mpirun: apt-get install openmpi-bin\n");
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
  // A rank that was silent counts as a kill, too.
  EXPECT_EQ(Run(1, 5).output, Srun("softmoe-1.5-calibrated"));
  // Another task has its own three retries.
  EXPECT_NE(Run(0, 137).output.find("requeue"), std::string::npos);
}

// Kills that cannot be counted might be retried forever.
TEST_F(SlurmScriptRun, AKilledTaskThatCannotBeCountedDoesNotRequeueItself) {
  std::filesystem::create_directory(folder_ / "kills-70_1");
  const ProgramResult killed = Run(1, 137);
  EXPECT_EQ(killed.exit_status, 137);
  EXPECT_EQ(killed.output.find("requeue"), std::string::npos) << killed.output;
}

// ---- The jobs of a grid.

using Words = std::vector<std::string>;

Grid MyGrid() {
  Grid grid;
  grid.path = "/home/me/my.toml";
  grid.name = "my";
  grid.seeds = {3, 7};
  grid.overrides = {"router.fallback=\"top1\""};
  grid.cluster.gpus_per_node = 8;
  grid.cluster.sbatch = {"--account=me"};
  return grid;
}

// `seeds` runs of the row, each taking 6 core hours or 1 hour of all GPUs.
RowEstimate Row(const std::string& corpus, const std::string& row,
                int64_t seeds, int64_t gpus = 0) {
  RowEstimate estimate;
  estimate.run.corpus.id = corpus;
  estimate.run.corpus.gpus = gpus;
  estimate.run.row.id = row;
  estimate.seeds = seeds;
  estimate.cost.core_hours = 6;
  estimate.cost.hours = 1;
  return estimate;
}

SlurmPlace Place() {
  return {.program = "/opt/grid",
          .start = "/home/me/here",
          .folder = "/data/my",
          .options = {"--keep-checkpoints"}};
}

TEST(SlurmJobs, AnArrayForEachCorpusAndATaskForEachRow) {
  const std::vector<SlurmJob> jobs = SlurmJobs(
      MyGrid(), {Row("a", "one", 1), Row("a", "two", 3), Row("b-a", "one", 2)},
      Place());
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].name, "softmoe-my-a");
  EXPECT_EQ(jobs[0].corpus, "a");
  EXPECT_EQ(jobs[0].rows, (Words{"one", "two"}));
  EXPECT_EQ(jobs[0].start, "/home/me/here");
  EXPECT_EQ(jobs[0].logs, "/data/my/slurm");
  EXPECT_EQ(jobs[0].options, Words{"--account=me"});
  EXPECT_EQ(jobs[0].command,
            (Words{"/opt/grid", "run", "/home/me/my.toml", "--seeds", "3,7",
                   "--set", "router.fallback=\"top1\"", "--out", "/data/my",
                   "--keep-checkpoints", "--threads", "4", "--corpora", "a"}));
  EXPECT_EQ(jobs[1].name, "softmoe-my-b-a");
  EXPECT_EQ(jobs[1].corpus, "b-a");
  EXPECT_EQ(jobs[1].rows, Words{"one"});
}

// Several processes train each row, and find each other.
TEST(SlurmJobs, RanksShareTheWorkOfATask) {
  SlurmPlace place = Place();
  place.ranks = 2;
  SlurmJob job = SlurmJobs(MyGrid(), {Row("a", "one", 3)}, place)[0];
  EXPECT_EQ(job.num_ranks(), 2);
  EXPECT_EQ(job.hours, 3 * 6 / 8.0);
  EXPECT_EQ(Words(job.command.end() - 6, job.command.end()),
            (Words{"--threads", "4", "--ranks", "mpi", "--corpora", "a"}));
  // A GPU is a rank.
  RowEstimate row = Row("owt", "one", 1, 8);
  job = SlurmJobs(MyGrid(), {row}, Place())[0];
  EXPECT_EQ(job.num_ranks(), 8);
  EXPECT_EQ(Words(job.command.end() - 6, job.command.end()),
            (Words{"--device", "cuda", "--ranks", "mpi", "--corpora", "owt"}));
  row.run.runtime.device = "cpu";
  row.run.corpus.gpus = 1;
  job = SlurmJobs(MyGrid(), {row}, Place())[0];
  EXPECT_EQ(std::count(job.command.begin(), job.command.end(), "--device"), 0);
  EXPECT_EQ(std::count(job.command.begin(), job.command.end(), "--ranks"), 0);
}

// The longest task trains all seeds of its row, one after the other.
TEST(SlurmJobs, HoursAreThoseOfAllSeedsOnTheCoresOfATask) {
  std::vector<RowEstimate> rows = {Row("a", "one", 1), Row("a", "two", 3)};
  EXPECT_EQ(SlurmJobs(MyGrid(), rows, Place())[0].hours, 3 * 6 / 4.0);
  for (RowEstimate& row : rows) row.run.runtime.threads = 2;
  const SlurmJob job = SlurmJobs(MyGrid(), rows, Place())[0];
  EXPECT_EQ(job.cores, 2);
  EXPECT_EQ(job.hours, 3 * 6 / 2.0);
  // The settings already say so.
  EXPECT_EQ(std::count(job.command.begin(), job.command.end(), "--threads"), 0);
}

TEST(SlurmJobs, OnGpusThePapersHoursCountIfTheyAreLonger) {
  RowEstimate row = Row("owt", "one", 2, 8);
  SlurmJob job = SlurmJobs(MyGrid(), {row}, Place())[0];
  EXPECT_EQ(job.gpus, 8);
  EXPECT_EQ(job.gpus_per_node, 8);
  EXPECT_EQ(job.hours, 2);
  EXPECT_EQ(std::count(job.command.begin(), job.command.end(), "--threads"), 0);
  row.paper_gpu_hours = 24;
  EXPECT_EQ(SlurmJobs(MyGrid(), {row}, Place())[0].hours, 2 * 3);
  row.paper_gpu_hours = 4;
  EXPECT_EQ(SlurmJobs(MyGrid(), {row}, Place())[0].hours, 2);
}

TEST(SlurmJobs, RelativeFoldersAreThoseOfTheCaller) {
  SlurmPlace place = Place();
  place.start = ".";
  place.folder = "runs/my";
  const SlurmJob job = SlurmJobs(MyGrid(), {Row("a", "one", 1)}, place)[0];
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_EQ(job.logs, (here / "runs/my/slurm").string());
  EXPECT_EQ(std::count(job.command.begin(), job.command.end(),
                       (here / "runs/my").string()),
            1);
  EXPECT_EQ(job.start, here.string());
}

}  // namespace

}  // namespace softmoe::experiments
