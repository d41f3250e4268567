// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/rank_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "experiments/grids/grid_select.h"

namespace softmoe::experiments {
namespace {

using Numbers = std::vector<int64_t>;

// The first run of the paper's grid on OpenWebText: 8 balance groups.
GridRun PaperRun() { return SelectGrid("paper", "", {}).runs[0]; }

TEST(RankMemory, ShardsTheMomentsAndAddsOwnGroupsInATree) {
  const Config config = PaperRun().config;
  const int64_t total = ParameterLayout(config).total;
  const auto of = [&](int64_t ranks, const char* part) {
    return RankMemory(config, ranks, Recompute::kNone).bytes(part);
  };
  // One rank holds what a lone device does: moments, the sum, and a tree over
  // eight groups.
  const optimized::MemoryPlan alone = optimized::PlanStep(
      config, optimized::InitialAllocations(config, /*tau=*/0),
      config.training.balance_group_sequences, Recompute::kNone,
      optimized::kProductWorkspaces);
  EXPECT_EQ(RankMemory(config, 1, Recompute::kNone).bytes(), alone.bytes());
  EXPECT_EQ(of(1, "gradients"), 4 * total * (1 + 3));

  // 12 buckets (parameter_shards.h) hold 398,294 blocks of 4096 elements; a
  // rank has 1/8, or 1/4, of each, and the rank with the remainders most.
  ASSERT_EQ((total + 4095) / 4096, 398294);
  const int64_t eighth = 4 * 4096 * int64_t{49790};
  const int64_t quarter = 4 * (4096 * int64_t{99579} + 1152);
  EXPECT_EQ(of(8, "moments"), 2 * eighth);
  EXPECT_EQ(of(4, "moments"), 2 * quarter);
  // The sum and the tree of the rank's own groups, and 64 MiB at a time of what
  // comes from each other rank.
  constexpr int64_t kPiece = int64_t{64} << 20;
  EXPECT_EQ(of(8, "gradients"), 4 * total + kPiece * 7);
  EXPECT_EQ(of(4, "gradients"), 4 * total * (1 + 1) + kPiece * 3);
  for (const char* part : {"activations", "products"}) {
    EXPECT_GT(of(8, part), 0) << part;
    EXPECT_EQ(of(8, part), alone.bytes(part)) << part;
  }
  // In bf16: a shard of the parameters in fp32, 2^15 on their way to the copy,
  // all of them in bf16, and the embedding, 21 norms and 10 routers in fp32.
  ASSERT_EQ(config.training.precision, Precision::kBf16);
  const int64_t copy = 2 * total + 256;  // a multiple of 512
  EXPECT_EQ(alone.bytes("parameters"), 4 * total + copy);
  EXPECT_EQ(of(8, "parameters"),
            eighth + (int64_t{4} << 15) + copy +
                4 * (32768 * 640 + 21 * 640 + 10 * 640 * 32));
  EXPECT_LT(RankMemory(config, 8, Recompute::kLayer).bytes(),
            RankMemory(config, 8, Recompute::kNone).bytes());
  EXPECT_THROW(RankMemory(config, 20, Recompute::kNone), ConfigError);
}

TEST(NumbersOfRanks, AreThoseThatDivideTheGroups) {
  EXPECT_EQ(NumbersOfRanks(8).same_bits, (Numbers{1, 2, 4, 8}));
  EXPECT_EQ(NumbersOfRanks(8).own_bits, Numbers{});
  EXPECT_EQ(NumbersOfRanks(20).same_bits, (Numbers{1, 2, 4, 20}));
  EXPECT_EQ(NumbersOfRanks(20).own_bits, (Numbers{5, 10}));
}

TEST(EstimateRankTimes, HidesWhatIsThereBeforeTheBackwardPassEnds) {
  const Config config = PaperRun().config;
  Cluster cluster;
  cluster.gpus = 8;
  cluster.gpus_per_node = 8;
  cluster.peak_flops = 1e15;
  cluster.assumed_mfu = 0.5;
  RankTimes times = EstimateRankTimes(config, 2, cluster);
  const double tokens = 30 * 2048;
  EXPECT_DOUBLE_EQ(
      times.backward,
      2 * CountForwardFlops(config.model, 2).total() * tokens / 0.5e15);
  // Rank 0 has 49,780 blocks of 4096 of the 1,631,409,280 parameters.
  constexpr double kAll = 1631409280, kOwn = 49780 * 4096;
  EXPECT_DOUBLE_EQ(times.gradients, 4 * (kAll - kOwn) / kLinkInNode);
  // Sent as bf16; an eighth of the embedding, routers and the norms before the
  // experts as fp32, and of the norms before attention the first, and of two
  // more what is not in the block before.
  constexpr double kFp32 =
      32768 * 640 / 8.0 + 10 * (640 + 640 * 32) + 640 + 384 + 128;
  EXPECT_DOUBLE_EQ(times.parameters, 7 * (2 * kOwn + 4 * kFp32) / kLinkInNode);
  // All but the embedding and the first layer: norms, attention, router, and
  // 32 experts.
  constexpr double kLast =
      32768 * 640 + 2 * 640 + 4 * 640 * 640 + 640 * 32 + 32 * 3 * 640 * 2560.0;
  ASSERT_GT(times.backward, times.gradients);
  EXPECT_DOUBLE_EQ(times.can_be_hidden, (1 - kLast / kAll) * times.gradients);
  EXPECT_DOUBLE_EQ(times.share(),
                   times.can_be_hidden / (times.gradients + times.parameters));

  // In two nodes, the shards of ranks 4 to 7, of 199,149 blocks and a bit, go
  // through the slower link.
  cluster.gpus_per_node = 4;
  times = EstimateRankTimes(config, 2, cluster);
  EXPECT_DOUBLE_EQ(times.gradients,
                   4 * (199149 * 4096.0 + 1152) / kLinkBetweenNodes);
  // Faster computation hides less.
  cluster.peak_flops = 1e19;
  times = EstimateRankTimes(config, 2, cluster);
  EXPECT_EQ(times.can_be_hidden, times.backward);

  // A rank with two groups sends nothing until it has their sum.
  cluster.gpus = 4;
  EXPECT_EQ(EstimateRankTimes(config, 2, cluster).can_be_hidden, 0);
  cluster.gpus = 1;
  EXPECT_EQ(EstimateRankTimes(config, 2, cluster).share(), 0);
}

TEST(EstimateRankTimes, TakesThePeakOfThePrecision) {
  Config config = PaperRun().config;
  ASSERT_EQ(config.training.precision, Precision::kBf16);
  Cluster cluster;
  const double bf16 = EstimateRankTimes(config, 2, cluster).backward;
  config.training.precision = Precision::kFp32;
  const double fp32 = EstimateRankTimes(config, 2, cluster).backward;
  EXPECT_DOUBLE_EQ(bf16 * 989, fp32 * 66.9);
}

TEST(DescribeRanks, SaysWhatEachGpuHoldsAndSends) {
  RowEstimate row;
  row.run = PaperRun();
  row.active_experts = 1;
  Cluster machine;
  machine.gpus_per_node = 8;
  const std::string text = DescribeRanks({row}, machine);
  for (const char* part :
       {"Ranks of owt: 8 GPUs on 1 node, 8 on each", "1, 2, 4, 8 ranks give",
        // 4 bytes of all but its own shard; of its own shard, to seven others,
        // 2, and 4 of an eighth of the embedding and of most norms and routers.
        "gradients 5,710,041,600", "2,933,930,496, the norm", "sparse-1"}) {
    EXPECT_TRUE(Says(text, part));
  }
  EXPECT_TRUE(
      Says(RankLegend(machine), "ASSUMED", "450 GB/s", "50 GB/s", "96 GB"));
  EXPECT_FALSE(Says(text, "of sparse-1: "));
  // A learned budget adds ten numbers.
  RowEstimate learned = row, sparse = row;
  sparse.run.row.id = "sparse-2";
  sparse.run.config.router.mean_active_experts = 2;  // sends the same
  learned.run.row.id = "softmoe";
  learned.run.config.router.kind = RouterKind::kSoftLearned;
  const std::string three = DescribeRanks({row, learned, sparse}, machine);
  EXPECT_TRUE(Says(three, "  bits: 1, 2,",
                   "  of sparse-1, sparse-2: on the wire: in",
                   "  of softmoe: on the wire: in", "8,646,797,968 bytes",
                   "8,646,756,992 bytes"));
  EXPECT_EQ(three.find("bits:"), three.rfind("bits:"));
  // With other groups the bits differ.
  learned.run.config.training.balance_group_sequences = 10;
  EXPECT_TRUE(Says(DescribeRanks({row, learned}, machine),
                   "  of sparse-1: bits: 1, 2, 4, 8 ranks give",
                   "  of softmoe: bits: 1, 2, "));
  row.run.corpus.gpus = 20;  // do not divide 8 groups: a warning says so
  EXPECT_EQ(DescribeRanks({row}, machine), "");
  row.run.corpus.gpus = 0;
  EXPECT_EQ(DescribeRanks({row}, machine), "");
}

}  // namespace
}  // namespace softmoe::experiments
