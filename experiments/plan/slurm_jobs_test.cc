// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/slurm_jobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"
#include "experiments/plan/grid_estimate.h"

namespace softmoe::experiments {
namespace {

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

// Several processes for each row, which find each other.
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
