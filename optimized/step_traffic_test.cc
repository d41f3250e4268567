// SPDX-License-Identifier: Apache-2.0
#include "optimized/step_traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "optimized/communicator/in_process.h"
#include "optimized/parameter_shards.h"
#include "optimized/testing/ranked_training.h"

namespace softmoe::optimized {
namespace {

// What each rank has sent after `updates` updates, as its communicator counts.
std::vector<int64_t> Sent(const Config& config, int ranks, int updates) {
  std::vector<int64_t> sent(static_cast<size_t>(ranks));
  RunInProcessRanks(ranks, [&](Communicator& communicator) {
    TrainRank(config, 1, communicator, 0, updates);
    sent[static_cast<size_t>(communicator.rank())] = communicator.sent_bytes();
  });
  return sent;
}

int64_t Planned(const Config& config, int ranks, int from) {
  int64_t bytes = 0;
  for (int to = 0; to < ranks; ++to) {
    bytes += TrafficOfStep(config, ranks, from, to).total();
  }
  return bytes;
}

// Anything else that is sent, before and after the updates, is the same for any
// number of them.
TEST(TrafficOfStep, IsWhatRanksSendInAnUpdate) {
  for (const Config& config : {LargerConfig(4), GroupsOfOneSequence(4)}) {
    for (const int ranks : {1, 2, 4}) {
      const std::vector<int64_t> one = Sent(config, ranks, 1);
      const std::vector<int64_t> three = Sent(config, ranks, 3);
      int64_t most = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto r = static_cast<size_t>(rank);
        EXPECT_EQ(three[r] - one[r], 2 * Planned(config, ranks, rank))
            << "rank " << rank << " of " << ranks;
        most = std::max(most, (three[r] - one[r]) / 2);
      }
      EXPECT_EQ(MostBytesOfStep(config, ranks), most);
    }
  }
}

// In total it is as much as in a ring: each of n ranks sends (n - 1) / n of the
// gradients and of the parameters.
TEST(TrafficOfStep, IsThatOfARing) {
  const Config config = LargerConfig(4);
  const int64_t bytes = 4 * ParameterLayout(config).total;
  int64_t gradients = 0, parameters = 0;
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      const StepTraffic traffic = TrafficOfStep(config, 4, from, to);
      gradients += traffic.gradients;
      parameters += traffic.parameters;
      if (from == to) {
        EXPECT_EQ(traffic.total(), 0);
      }
    }
  }
  EXPECT_EQ(gradients, 3 * bytes);
  EXPECT_EQ(parameters, 3 * bytes);
}

// Rank 0 of four has the first whole block of each layer's parameters
// (parameter_shards_test.cc). simulated_ranks_test.cc counts what is sent.
TEST(TrafficOfStep, InBf16IsOfTheTypesThatAreRead) {
  Config config = LargerConfig(4);
  ASSERT_EQ(
      SizeOf(PiecesOfRank(ParameterBuckets(ParameterLayout(config), 4), 0)),
      8192);
  const StepTraffic fp32 = TrafficOfStep(config, 4, 0, 1);
  EXPECT_EQ(fp32.parameters, 4 * 8192);
  config.training.precision = Precision::kBf16;
  const StepTraffic bf16 = TrafficOfStep(config, 4, 0, 1);
  // d_model is 32, and there are 4 experts. Sent in fp32, in each of two
  // layers: the norm before the experts and the router's weight.
  EXPECT_EQ(bf16.parameters, 2 * 8192 + 4 * 2 * (32 + 32 * 4));
  EXPECT_EQ(bf16.gradients, fp32.gradients);
  EXPECT_EQ(bf16.norm, fp32.norm);
  EXPECT_EQ(bf16.statistics, fp32.statistics);
}

TEST(TrafficOfStep, RefusesGroupsThatDoNotDivide) {
  EXPECT_THROW(TrafficOfStep(LargerConfig(4), 3, 0, 1), ConfigError);
}

}  // namespace
}  // namespace softmoe::optimized
