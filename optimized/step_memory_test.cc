// SPDX-License-Identifier: Apache-2.0
#include "optimized/step_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "optimized/allocation.h"
#include "optimized/memory_plan.h"

namespace softmoe::optimized {
namespace {

// SoftMoE-2 at the paper's sizes: the default, except for the router.
Config PaperStep() {
  Config config;
  config.router.kind = RouterKind::kSoftLearned;
  config.router.mean_active_experts = 2;
  return config;
}

TEST(LeastRecompute, IsTheFirstThatFits) {
  Config config = PaperStep();
  const auto fitting = [&](int64_t gigabytes) {
    return LeastRecompute(config, InitialAllocations(config, 0), 30,
                          kProductWorkspaces, gigabytes * 1'000'000'000);
  };
  EXPECT_EQ(fitting(80), Recompute::kExperts);
  EXPECT_EQ(fitting(141), Recompute::kNone);
  EXPECT_EQ(fitting(70), Recompute::kLayer);
  EXPECT_EQ(fitting(40), std::nullopt);
  config.training.global_batch_sequences = 30;  // one balance group
  EXPECT_EQ(fitting(80), Recompute::kExperts);
  EXPECT_EQ(fitting(40), std::nullopt);
  config.training.precision = Precision::kBf16;
  EXPECT_EQ(fitting(80), Recompute::kNone);
}

TEST(StepMemoryText, ShowsPartsAndWhatAnH100Holds) {
  Config config = PaperStep();
  const std::string text = StepMemoryText(config, Recompute::kExperts);
  const MemoryPlan plan = PlanStep(config, InitialAllocations(config, 0), 30,
                                   Recompute::kExperts, kProductWorkspaces);
  EXPECT_TRUE(Says(
      text,
      "of a step on the device, runtime.recompute = \"experts\":", plan.Text(),
      "\"none\" takes ", ", \"experts\" takes ", ", \"layer\" takes ",
      "; an H100 with 80 GB holds the step with \"experts\"\n"));
  EXPECT_TRUE(Says(StepMemoryText(config, Recompute::kNone, 8),
                   "a step on the device of each of 8 ranks, runtime."));
  config.training.balance_group_sequences = 240;
  config.training.micro_batch_sequences = 240;
  EXPECT_TRUE(Says(StepMemoryText(config, Recompute::kNone),
                   "; an H100 with 80 GB cannot hold any of these: take "
                   "smaller groups (training.balance_group_sequences)\n"));
}

// The message on a device with `bytes` for the step, besides what is reserved.
std::string StepMemoryError(const Config& config, int64_t bytes) {
  return MessageOf<EnvironmentError>([&] {
    RequireStepMemory(config, Recompute::kNone, bytes + 2'000'000'000);
  });
}

TEST(RequireStepMemory, NamesTheSettingThatFits) {
  const Config config = PaperStep();
  const auto takes = [&](Recompute recompute) {
    return PlanStep(config, InitialAllocations(config, 0), 30, recompute,
                    /*product_workspaces=*/0)
        .bytes();
  };
  EXPECT_EQ(StepMemoryError(config, takes(Recompute::kNone)), kNoError);
  EXPECT_TRUE(Says(StepMemoryError(config, takes(Recompute::kExperts)),
                   "of memory left after keeping 1.9 GiB for what a run loads "
                   "later (kernels, algorithms of products), and the next "
                   "allocation needs ",
                   "moments", "total",
                   "\nset runtime.recompute to \"experts\", which needs "));
  EXPECT_TRUE(Says(StepMemoryError(config, takes(Recompute::kExperts) - 1),
                   "set runtime.recompute to \"layer\", which needs "));
  EXPECT_TRUE(Says(StepMemoryError(config, takes(Recompute::kLayer) - 1),
                   "no runtime.recompute makes it fit: take smaller groups "
                   "(training.balance_group_sequences)"));
}

TEST(PlannableMemory, LeavesRoomForWhatIsLoadedLater) {
  constexpr int64_t kFree = 80'000'000'000;
  EXPECT_EQ(PlannableMemory(kFree, 1), 78'000'000'000);
  EXPECT_EQ(PlannableMemory(kFree, 8), 77'000'000'000);
  // NCCL joins ranks only if each has a device; of a shared device each rank
  // takes its part of what is left.
  const Config config = PaperStep();
  const int64_t one = PlanStep(config, InitialAllocations(config, 0), 30,
                               Recompute::kNone, 0, 2)
                          .bytes();
  const auto fits = [&](int64_t free_bytes, int on_device, int new_queues) {
    return MessageOf<EnvironmentError>([&] {
             RequireStepMemory(config, Recompute::kNone, free_bytes, 2,
                               on_device, new_queues);
           }) == kNoError;
  };
  EXPECT_TRUE(fits(one + 3'000'000'000, 1, 0));
  EXPECT_FALSE(fits(one + 2'999'999'999, 1, 0));
  // Two processes have their queues, two threads one.
  for (const int new_queues : {0, 1}) {
    const int64_t two =
        2 * one + new_queues * kProductWorkspaces + 2'000'000'000;
    EXPECT_TRUE(fits(two, 2, new_queues));
    EXPECT_FALSE(fits(two - 2, 2, new_queues));
  }
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] {
                     RequireStepMemory(config, Recompute::kNone, 0, 2);
                   }),
                   "has 0 B of memory left after keeping 2.8 GiB for ",
                   ", NCCL's buffers)"));
}

TEST(RequireMemory, NamesPartsSizesAndWhatHelps) {
  MemoryPlan plan;
  plan.Add("routed rows", "gate_up", 3 << 20);
  EXPECT_NO_THROW(RequireMemory(plan, 3 << 20));
  EXPECT_EQ(
      MessageOf<EnvironmentError>([&] { RequireMemory(plan, (3 << 20) - 1); }),
      "the device has 3.0 MiB of memory left, and the next allocation needs "
      "3.0 MiB:\n" +
          plan.Text() +
          "set runtime.recompute to \"experts\" or \"layer\", which trades "
          "time for memory and changes no result, or take smaller groups "
          "(training.balance_group_sequences)");
}

}  // namespace
}  // namespace softmoe::optimized
