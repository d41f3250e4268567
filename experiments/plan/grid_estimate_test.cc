// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/grid_estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/files/paths.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/run/resources.h"

namespace softmoe::experiments {
namespace {

Grid Shipped(const std::string& name) {
  return LoadGrid(RunfilePath("experiments/grids/" + name + ".toml"), {});
}

TEST(PaperNumber, FindsCellsAndNothingElse) {
  const golden::Document paper = ReadPaper();
  const std::string row = "owt/softmoe_star/k1/a4";
  // T1 and T3 of SPEC.md 6b.
  EXPECT_EQ(PaperNumber(paper, "main_results", row, "train_ae"), 3.64);
  EXPECT_EQ(PaperNumber(paper, "compute", row, "gpu_hours"), 25.7);
  EXPECT_FALSE(PaperNumber(paper, "compute", "owt/sparse/k9", "gpu_hours"));
  EXPECT_FALSE(PaperNumber(paper, "compute", row, "gpu_days"));
  EXPECT_FALSE(PaperNumber(paper, "computing", row, "gpu_hours"));
}

TEST(GridEstimate, PaperRowsHaveThePapersActiveExpertsAndHours) {
  const std::vector<RowEstimate> rows =
      EstimateGrid(Shipped("paper"), ReadPaper());
  ASSERT_EQ(rows.size(), 33u);
  int as_printed = 0;
  for (const RowEstimate& row : rows) {
    EXPECT_TRUE(row.active_from_paper) << row.run.id;
    EXPECT_TRUE(row.paper_gpu_hours) << row.run.id;
    EXPECT_EQ(row.seeds, 1);
    if (row.run.config.router.kind == RouterKind::kSparse) {
      EXPECT_EQ(row.active_experts, row.run.config.router.mean_active_experts);
    }
    const bool learned = TraitsOf(row.run.config).learned_budget;
    EXPECT_EQ(row.cost.parameters, 1'631'409'280 + (learned ? 10 : 0));
    // T1 of SPEC.md 6b; far from k, so that using k by mistake would show.
    if (row.run.paper_id() == "owt/softmoe_star/k1/a4") {
      EXPECT_EQ(row.active_experts, 3.64);
      ++as_printed;
    }
    // 98 % of the tokens of N27 train.
    ASSERT_TRUE(row.epochs);
    EXPECT_DOUBLE_EQ(*row.epochs, row.run.corpus.id == "owt"
                                      ? 8'847'360'000 / (9.0287e9 * 0.98)
                                      : 201'523'200'000 / (2.056e11 * 0.98));
    // 30 sequences per GPU for either batch; ZeRO-1 over 8 or 20.
    const double gpus = row.run.corpus.id == "owt" ? 8 : 20;
    EXPECT_EQ(row.cost.hours, row.cost.gpu_hours / gpus);
  }
  EXPECT_EQ(as_printed, 3);  // two readings of tau, one with two fallbacks
}

// Stand-ins, which the paper does not mention, have epochs, too.
TEST(GridEstimate, EpochsAreOfThePreparedTokens) {
  std::vector<RowEstimate> rows = EstimateGrid(Shipped("midi"), ReadPaper());
  const Config& config = rows.front().run.config;
  trainer::PreparedCorpus corpus;
  corpus.prefix = FreshFolder("prepared") / "tokens";
  corpus.corpus = config.data.corpus;
  corpus.vocab_size = config.model.vocab_size;
  corpus.num_tokens = rows.front().cost.tokens / 3;
  WritePreparedCorpus(corpus);
  UsePrepared({{corpus.corpus, corpus.prefix}}, &rows);
  int used = 0;
  for (const RowEstimate& row : rows) {
    const DataConfig& data = row.run.config.data;
    if (data.corpus != corpus.corpus) {
      EXPECT_FALSE(row.epochs);
      continue;
    }
    ++used;
    ASSERT_TRUE(row.epochs);
    EXPECT_NEAR(*row.epochs, 3 / (1 - data.validation_fraction), 1e-3);
  }
  EXPECT_GT(used, 0);
  // Refused: no such corpus, tokens of another corpus, another vocabulary.
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] {
                     UsePrepared({{"foldok", corpus.prefix}}, &rows);
                   }),
                   "--tokens foldok="));
  EXPECT_TRUE(MessageOf<ConfigError>([&] {
                UsePrepared({{"nothing", corpus.prefix}}, &rows);
              }).ends_with("known are 'gcide' and 'foldoc'"));
  corpus.corpus = "another";
  WritePreparedCorpus(corpus);
  const auto use = [&] {
    UsePrepared({{config.data.corpus, corpus.prefix}}, &rows);
  };
  EXPECT_TRUE(Says(MessageOf<DataError>(use), "tokens of corpus 'another'"));
  corpus.vocab_size += 1;
  WritePreparedCorpus(corpus);
  EXPECT_TRUE(Says(MessageOf<DataError>(use), "of a vocabulary of"));
}

// For a stand-in the paper has no number, so k is assumed.
TEST(GridEstimate, StandInsAssumeKAndCountSeeds) {
  const std::vector<RowEstimate> rows =
      EstimateGrid(Shipped("midi"), ReadPaper());
  ASSERT_EQ(rows.size(), 28u);
  for (const RowEstimate& row : rows) {
    EXPECT_EQ(row.seeds, 3);
    EXPECT_FALSE(row.active_from_paper);
    EXPECT_FALSE(row.paper_gpu_hours);
    EXPECT_FALSE(row.epochs);
    EXPECT_EQ(row.active_experts, row.run.config.router.mean_active_experts);
  }
  const GridTotal total = Total(rows);
  EXPECT_EQ(total.runs, 84);
  EXPECT_EQ(total.tokens, 84 * static_cast<double>(rows[0].cost.tokens));
  double hours = 0;
  for (const RowEstimate& row : rows) hours += 3 * row.cost.core_hours;
  EXPECT_EQ(total.core_hours, hours);
}

// One run of the largest sizes that ParseConfig takes has 2^62 tokens.
TEST(GridEstimate, TokensOfAllRunsAreMoreThanAnInt64Holds) {
  std::vector<RowEstimate> rows(3);
  for (RowEstimate& row : rows) {
    row.seeds = 3;
    row.cost.tokens = int64_t{1} << 62;
  }
  EXPECT_EQ(Total(rows).tokens, 9 * 0x1p62);
}

TEST(GridEstimate, MemoryHoldsWhatCalibrationRanks) {
  Grid grid = Shipped("smoke");
  const std::vector<RowEstimate> calibrated = EstimateGrid(grid, ReadPaper());
  for (GridRun& run : grid.runs) run.config.router.tau = 1;
  const std::vector<RowEstimate> given = EstimateGrid(grid, ReadPaper());
  ASSERT_EQ(calibrated.size(), given.size());
  int64_t largest = 0;
  for (size_t r = 0; r < given.size(); ++r) {
    const int64_t bytes = calibrated[r].calibration_bytes;
    EXPECT_EQ(bytes,
              4 * trainer::NumCalibrationRatios(calibrated[r].run.config));
    EXPECT_EQ(calibrated[r].cpu_bytes, given[r].cpu_bytes + bytes);
    EXPECT_EQ(given[r].calibration_bytes, 0);
    largest = std::max(largest, bytes);
  }
  EXPECT_GT(largest, 0);
}

// A finished run leaves one checkpoint or none; a run in training has two.
TEST(GridEstimate, DiskIsWhatRunsLeaveAndThePeakOfOne) {
  Grid grid = Shipped("smoke");
  for (GridRun& run : grid.runs) run.evaluations.keep_checkpoint = true;
  const std::vector<RowEstimate> kept = EstimateGrid(grid, ReadPaper());
  for (GridRun& run : grid.runs) run.evaluations.keep_checkpoint = false;
  const std::vector<RowEstimate> gone = EstimateGrid(grid, ReadPaper());
  int64_t all_kept = 0, all_gone = 0, largest = 0;
  for (size_t r = 0; r < kept.size(); ++r) {
    const int64_t checkpoint =
        trainer::EstimateResources(kept[r].run.config).checkpoint_bytes;
    EXPECT_EQ(kept[r].disk_bytes, gone[r].disk_bytes);
    EXPECT_EQ(kept[r].left_bytes, kept[r].disk_bytes - checkpoint);
    EXPECT_EQ(gone[r].left_bytes, kept[r].disk_bytes - 2 * checkpoint);
    EXPECT_GT(gone[r].left_bytes, 0);
    all_kept += kept[r].seeds * kept[r].left_bytes;
    all_gone += gone[r].seeds * gone[r].left_bytes;
    largest = std::max(largest, checkpoint);
  }
  EXPECT_EQ(Total(kept).disk_bytes, all_kept + largest);
  EXPECT_EQ(Total(gone).disk_bytes, all_gone + 2 * largest);
}

// A row has only one run at work, whatever its seeds.
TEST(GridEstimate, DiskHoldsThePeaksOfAllThatAreAtWork) {
  std::vector<RowEstimate> rows(3);
  for (size_t r = 0; r < rows.size(); ++r) {
    rows[r].seeds = 2;
    rows[r].left_bytes = 100;
    rows[r].disk_bytes = 101 + static_cast<int64_t>(r);
  }
  EXPECT_EQ(Total(rows).disk_bytes, 600 + 3);
  EXPECT_EQ(Total(rows, 2).disk_bytes, 600 + 3 + 2);
  EXPECT_EQ(Total(rows, 3).disk_bytes, 600 + 3 + 2 + 1);
  EXPECT_EQ(Total(rows, 9).disk_bytes, 600 + 3 + 2 + 1);
}

TEST(GridEstimate, HoursAreOfWhatACorpusHas) {
  RowEstimate gpu, cpu;
  gpu.run.corpus.gpus = 8;
  gpu.seeds = 2;
  cpu.seeds = 3;
  gpu.cost.gpu_hours = cpu.cost.gpu_hours = 5;
  gpu.cost.core_hours = cpu.cost.core_hours = 7;
  const GridTotal total = Total({gpu, cpu});
  EXPECT_EQ(total.runs, 5);
  EXPECT_EQ(total.gpu_runs, 2);
  EXPECT_EQ(total.gpu_hours, 2 * 5);
  EXPECT_EQ(total.core_hours, 3 * 7);
}

TEST(CheckPrecisionOfTasks, TasksWithGpusTrainOnThem) {
  GridRun run;
  run.config.training.precision = Precision::kBf16;
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] { CheckPrecisionOfTasks(run); }),
                   "the CPU computes only in fp32"));
  run.corpus.gpus = 8;
  EXPECT_NO_THROW(CheckPrecisionOfTasks(run));
  run.config.model.vocab_size = 50257;
  EXPECT_THROW(CheckPrecisionOfTasks(run), ConfigError);
  run.config.model.vocab_size = 32768;
  run.runtime.device = "cpu";
  EXPECT_THROW(CheckPrecisionOfTasks(run), ConfigError);
  run.corpus.gpus = 0;
  run.runtime.device = "cuda";
  EXPECT_NO_THROW(CheckPrecisionOfTasks(run));
}

TrainingConfig Batch(int64_t global, int64_t micro, int64_t group) {
  TrainingConfig training;
  training.global_batch_sequences = global;
  training.micro_batch_sequences = micro;
  training.balance_group_sequences = group;
  return training;
}

TEST(BatchSplit, PapersBatchesDivide) {
  for (const auto& [global, gpus] : {std::pair(240, 8), std::pair(600, 20)}) {
    const BatchSplit split = SplitBatch(Batch(global, 30, 30), gpus);
    EXPECT_EQ(split.problem, "");
    EXPECT_EQ(split.groups_per_gpu, 1);
    EXPECT_EQ(split.micro_batches, 1);
  }
  const BatchSplit small = SplitBatch(Batch(240, 10, 5), 8);
  EXPECT_EQ(small.problem, "");
  EXPECT_EQ(small.groups_per_gpu, 6);
  EXPECT_EQ(small.micro_batches, 3);
}

// The problem names the numbers and suggests ones that divide.
TEST(BatchSplit, SaysWhatDoesNotDivide) {
  // 8 groups over 20 GPUs; 240/20 = 12 sequences each.
  const BatchSplit groups = SplitBatch(Batch(240, 30, 30), 20);
  EXPECT_TRUE(
      Says(groups.problem, "8 balance groups of 30", "a divisor of 12"));
  EXPECT_EQ(groups.groups_per_gpu, 0);
  // 240 sequences do not divide over 7 GPUs whatever the groups are.
  const BatchSplit sequences = SplitBatch(Batch(240, 30, 30), 7);
  EXPECT_TRUE(Says(sequences.problem, "set the GPUs to a divisor of 8"));
  // The groups divide, but micro-batches exceed a GPU's share.
  const BatchSplit micro = SplitBatch(Batch(240, 30, 5), 16);
  EXPECT_TRUE(Says(micro.problem,
                   "micro-batches of 30 sequences do not divide "
                   "the 15 sequences"));
  EXPECT_EQ(micro.groups_per_gpu, 3);
  EXPECT_EQ(micro.micro_batches, 0);
}

}  // namespace
}  // namespace softmoe::experiments
