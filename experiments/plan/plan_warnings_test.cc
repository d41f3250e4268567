// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/plan_warnings.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/testing/message_test_util.h"
#include "experiments/plan/rank_plan.h"

namespace softmoe::experiments {
namespace {

constexpr int64_t kHugeDisk = std::numeric_limits<int64_t>::max();

// A row without problems.
RowEstimate Row(const std::string& id) {
  RowEstimate row;
  row.run.corpus.id = "owt";
  row.run.corpus.gpus = 8;
  row.run.row.id = id;
  row.run.config.router.kind = RouterKind::kSoftFixed;
  row.run.config.router.mean_active_experts = 2;
  row.run.config.router.tau = 1.1;
  row.seeds = 1;
  row.initial.tau = 1.1;
  row.initial.active_experts = 2;
  row.disk_bytes = 1000;
  row.left_bytes = 600;
  return row;
}

std::vector<std::string> Warnings(const std::vector<RowEstimate>& rows,
                                  int64_t disk = kHugeDisk) {
  return PlanWarnings(Grid(), rows, disk);
}

TEST(PlanWarnings, NoneWhereNothingIsWrong) {
  EXPECT_TRUE(Warnings({Row("a"), Row("b")}).empty());
}

// The limit of DESIGN.md, ruling 7.
TEST(PlanWarnings, FewActiveExperts) {
  RowEstimate row = Row("a");
  row.initial.active_experts = 0.5;
  EXPECT_TRUE(Warnings({row}).empty());
  row.initial.active_experts = 0.499;
  row.initial.zero_active_fraction = 0.61;
  const std::vector<std::string> warnings = Warnings({row});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].starts_with("owt/a: with tau = 1.1 at T = 5, 0.499 "))
      << warnings[0];
  EXPECT_TRUE(Says(warnings[0], "(zero AE 61.0%)", "little gradient",
                   "\"calibrated\""));
}

// As T falls from 5 to 1 with tau = 1.8, the mean crosses 0.5 (SPEC.md 2.3: 2.4
// at T = 1); if T stays at 5 it never does.
TEST(PlanWarnings, SaysWhetherTheTemperatureWillMendIt) {
  RowEstimate row = Row("a");
  row.run.config.router.tau = 1.8;
  row.initial = EstimateInitialActivity(row.run.config);
  std::string warning = Warnings({row}).at(0);
  EXPECT_TRUE(Says(warning, "no gradient", "would reach 0.5 after about"));
  row.run.config.router.temperature_end = 5;
  warning = Warnings({row}).at(0);
  EXPECT_TRUE(Says(warning, "below that to the end"));
}

TEST(PlanWarnings, OneForAllRowsWithTheSameProblem) {
  RowEstimate a = Row("a"), b = Row("b"), c = Row("c");
  a.initial.active_experts = b.initial.active_experts = 0.1;
  const std::vector<std::string> warnings = Warnings({a, c, b});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].starts_with("owt/a, owt/b: ")) << warnings[0];
}

TEST(PlanWarnings, BatchThatDoesNotDivide) {
  RowEstimate row = Row("a");
  row.run.corpus.gpus = 20;  // 240 sequences in groups of 30
  const std::vector<std::string> warnings = Warnings({row});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(Says(warnings[0], "owt/a: 8 balance groups of 30"));
  row.run.corpus.gpus = 0;  // CPU: there are no GPUs to divide over
  EXPECT_TRUE(Warnings({row}).empty());
}

TEST(PlanWarnings, MoreMemoryThanAGpuHas) {
  RowEstimate row = Row("a");
  const auto warnings = [&row](double gpu_bytes) {
    Grid grid;
    grid.cluster.gpu_bytes = gpu_bytes;
    return PlanWarnings(grid, {row}, kHugeDisk);
  };
  const auto need = static_cast<double>(
      RankMemory(row.run.config, 8, Recompute::kNone).bytes());
  EXPECT_TRUE(warnings(need).empty());
  ASSERT_EQ(warnings(need - 1).size(), 1u);
  EXPECT_TRUE(Says(warnings(need - 1)[0],
                   "runtime.recompute = \"experts\" makes it fit"));
  row.run.runtime.recompute = Recompute::kExperts;
  EXPECT_TRUE(warnings(need - 1).empty());
  ASSERT_EQ(warnings(1e9).size(), 1u);
  EXPECT_TRUE(Says(warnings(1e9)[0], " GiB on each GPU, which has 0.9 ",
                   "no runtime.recompute makes it fit"));
  row.run.corpus.gpus = 0;
  EXPECT_TRUE(warnings(1e9).empty());
}

TEST(PlanWarnings, MoreDiskThanIsFree) {
  RowEstimate row = Row("a");
  // Two are finished, the third is at its peak: 600 + 600 + 1000.
  row.seeds = 3;
  EXPECT_TRUE(Warnings({row}, 2200).empty());
  const std::vector<std::string> warnings = Warnings({row}, 2199);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(
      Says(warnings[0], "up to 2.1 KiB, the disk has 2.1 KiB", "--out"));
}

}  // namespace
}  // namespace softmoe::experiments
