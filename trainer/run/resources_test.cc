// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/resources.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "optimized/memory_plan.h"

namespace softmoe::trainer {
namespace {

// Returns the bytes that the model and its updates hold on all ranks.
int64_t Planned(const Config& config, int ranks) {
  return ranks * (optimized::PlanModel(config, ranks).bytes() +
                  optimized::PlanUpdates(config, ranks).bytes());
}

TEST(EstimateResources, CountsThePaperModel) {
  Config config;
  config.training.global_batch_sequences = 240;
  config.training.balance_group_sequences = 30;
  const ResourceNeed need = EstimateResources(config);
  EXPECT_EQ(need.parameters, 1631409280);  // SPEC.md 3.1
  // Parameters and two moments, fp32; 18000 steps of 41 doubles, which are
  // also in the result and, as text, in the metrics; 8 numbers of the last
  // validation, in checkpoint and metrics; the rest of each file.
  const int64_t history = 18000 * 41 * 8, rest = 256 * 1024;
  EXPECT_EQ(need.checkpoint_bytes,
            12 * need.parameters + history + 8 * 8 + rest);
  EXPECT_EQ(need.disk_bytes,
            2 * need.checkpoint_bytes + history + rest + (18000 * 41 + 8) * 40);
  config.training.eval_every = 7;  // 2571 more validations
  EXPECT_EQ(EstimateResources(config).disk_bytes - need.disk_bytes,
            2571 * 8 * (2 * 8 + 40));
  // Parameters, two moments, the sum and log2(8) buffers of the tree, and a
  // checkpoint's three arrays; tables, reports and blocks are small.
  EXPECT_GT(need.state_bytes, 4 * need.parameters * (3 + 1 + 3 + 3));
  EXPECT_LT(need.state_bytes, 4 * need.parameters * (3 + 1 + 3 + 4));
  EXPECT_EQ(need.state_bytes, Planned(config, 1) + 12 * need.parameters);
}

TEST(EstimateResources, CountsTheArraysOfEveryRank) {
  Config config;
  config.training.global_batch_sequences = 240;
  config.training.balance_group_sequences = 30;
  const int64_t array = 4 * EstimateResources(config).parameters;
  // For a checkpoint, rank 0 holds three arrays, and every other rank one.
  for (const int ranks : {4, 8}) {
    EXPECT_EQ(EstimateResources(config, ranks).state_bytes,
              Planned(config, ranks) + array * (3 + ranks - 1));
  }
}

TEST(EstimateResources, CountsWhatACalibrationRanks) {
  Config config;  // the paper's: 10 layers of 32 experts, 2048 tokens
  config.training.global_batch_sequences = 240;
  EXPECT_EQ(EstimateResources(config).calibration_bytes, 0);  // sparse
  config.router.kind = RouterKind::kSoftLearned;
  config.router.mean_active_experts = 2;
  config.router.expansion_factor = 4;
  // 10 batches of 240 sequences, 8 weights in each of 10 layers.
  EXPECT_EQ(NumCalibrationRatios(config), int64_t{10} * 240 * 2048 * 10 * 8);
  EXPECT_EQ(EstimateResources(config).calibration_bytes, 1572864000);
  EXPECT_EQ(EstimateResources(config, 2).calibration_bytes,
            int64_t{2} * 1572864000);
  config.router.expansion_factor = 20;  // the cap is all experts
  EXPECT_EQ(NumCalibrationRatios(config), int64_t{10} * 240 * 2048 * 10 * 32);
  config.router.tau = 1.5;
  EXPECT_EQ(NumCalibrationRatios(config), 0);
}

TEST(RequireDiskSpace, NamesBothSizesAndTheRemedy) {
  const auto folder = FreshFolder("disk");
  Config config;
  // 2^30 experts per layer: no disk has petabytes to spare.
  config.model.num_experts = int64_t{1} << 30;
  EXPECT_TRUE(Says(
      MessageOf<EnvironmentError>([&] { RequireDiskSpace(config, folder); }),
      folder.string(), "PiB", "--out"));
}

TEST(RequireDiskSpace, CountsWhatIsAlreadyThere) {
  const auto folder = FreshFolder("resume");
  Config config;
  config.model.num_experts = 1;
  // Exceeds the free disk space by less than the old checkpoint holds.
  const int64_t free = FreeDiskBytes(folder);
  int64_t low = 1, high = int64_t{1} << 40;
  while (high - low > 1) {  // the largest number of steps that fits
    config.training.steps = low + (high - low) / 2;
    (EstimateResources(config).disk_bytes <= free ? low : high) =
        config.training.steps;
  }
  // Other programs write to this disk, too: 1 GiB is reserved for them.
  const int64_t room = int64_t{1} << 30;
  const int64_t bytes_per_step =
      EstimateResources(config).disk_bytes / config.training.steps;
  config.training.steps = high + room / bytes_per_step;
  EXPECT_THROW(RequireDiskSpace(config, folder), EnvironmentError);
  std::ofstream(folder / "checkpoint.h5") << "";
  // A sparse file: its size is 3 GiB and it occupies nothing.
  std::filesystem::resize_file(folder / "checkpoint.h5", 3 * room);
  EXPECT_NO_THROW(RequireDiskSpace(config, folder));
}

}  // namespace
}  // namespace softmoe::trainer
