// SPDX-License-Identifier: Apache-2.0
//
// Ranks that compute on simulated devices, one that they share or one each,
// train to the bits of one process on such a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/shim/simulator.h"
#include "optimized/communicator/in_process.h"
#include "optimized/device.h"
#include "optimized/memory_plan.h"
#include "optimized/model.h"
#include "optimized/testing/ranked_training.h"
#include "optimized/updater.h"

namespace softmoe::optimized {
namespace {

// Of cudaError_t.
constexpr int kLaunchFailure = 719;

constexpr int kFew = 2;  // updates

const RuntimeConfig& OnCuda() {
  static const RuntimeConfig runtime = [] {
    RuntimeConfig config;
    config.device = "cuda";
    return config;
  }();
  return runtime;
}

// A few blocks of the norm, and sizes that bf16 can have.
Config DeviceConfig(int64_t groups, Precision precision = Precision::kFp32) {
  Config config = LargerConfig(groups);
  config.model.vocab_size = 24;
  config.training.precision = precision;
  return config;
}

class SimulatedRanks : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(simt::LiveAllocations(), 0);
    simt::SetDeviceLimits({});
    simt::SetSchedule(simt::Schedule::kAscending);
  }
};

Trained Alone(const Config& config, int begin = 0, int end = kFew,
              const TrainedState* from = nullptr) {
  const auto device = MakeDevice(OnCuda());
  return TrainAlone(config, 1, begin, end, from, *device);
}

// Of each rank, on the device that is its.
std::vector<Trained> OnRanks(const Config& config, int ranks, int begin = 0,
                             int end = kFew,
                             const TrainedState* from = nullptr) {
  std::vector<Trained> trained(static_cast<size_t>(ranks));
  RunInProcessRanks(ranks, [&](Communicator& communicator) {
    const auto device = MakeDevice(OnCuda(), communicator.rank());
    trained[static_cast<size_t>(communicator.rank())] =
        TrainRank(config, 1, communicator, begin, end, from, *device);
  });
  return trained;
}

void ExpectTheBitsOf(const Trained& alone, const std::vector<Trained>& ranks) {
  for (const Trained& rank : ranks) {
    EXPECT_TRUE(rank.state == alone.state) << ranks.size() << " ranks";
    EXPECT_EQ(Digest(rank), Digest(alone)) << ranks.size() << " ranks";
  }
}

TEST_F(SimulatedRanks, ThatShareADeviceTrainToTheBitsOfOneProcess) {
  const Config config = DeviceConfig(4);
  const Trained alone = Alone(config);
  for (const int ranks : {1, 2, 4}) {
    ExpectTheBitsOf(alone, OnRanks(config, ranks));
  }
  const Config in_bf16 = DeviceConfig(4, Precision::kBf16);
  ExpectTheBitsOf(Alone(in_bf16), OnRanks(in_bf16, 2));
}

// Some ranks have no shard of so few parameters.
TEST_F(SimulatedRanks, TrainAModelThatIsSmallerThanABlock) {
  const Config config = GroupsOfOneSequence(4);
  ExpectTheBitsOf(Alone(config), OnRanks(config, 4));
}

TEST_F(SimulatedRanks, WithADeviceEachTrainToTheSameBits) {
  const Config config = DeviceConfig(4);
  const Trained alone = Alone(config);
  for (const int devices : {3, 4}) {
    simt::SetDeviceLimits({.devices = devices});
    ExpectTheBitsOf(alone, OnRanks(config, 4));
  }
}

TEST_F(SimulatedRanks, GiveTheSameBitsInEverySchedule) {
  const Config config = DeviceConfig(2);
  const Trained alone = Alone(config, 0, 2);
  for (const auto schedule :
       {simt::Schedule::kDescending, simt::Schedule::kRandom}) {
    simt::SetSchedule(schedule, 5);
    ExpectTheBitsOf(alone, OnRanks(config, 2, 0, 2));
  }
}

TEST_F(SimulatedRanks, GoOnWithWhatAnotherNumberOfThemLeft) {
  const Config config = DeviceConfig(4);
  const Trained alone = Alone(config);
  constexpr int kHalf = kFew / 2;
  for (const auto& [first, second] : {std::pair{1, 2}, {2, 4}, {4, 1}}) {
    const TrainedState half = OnRanks(config, first, 0, kHalf)[0].state;
    for (const Trained& rank : OnRanks(config, second, kHalf, kFew, &half)) {
      EXPECT_TRUE(rank.state == alone.state) << first << ", then " << second;
    }
  }
  const TrainedState half = OnRanks(config, 2, 0, kHalf)[1].state;
  EXPECT_TRUE(Alone(config, kHalf, kFew, &half).state == alone.state);
}

TEST_F(SimulatedRanks, WouldShowAnotherOrder) {
  const Config config = DeviceConfig(6);
  const std::vector<Trained> ranks = OnRanks(config, 3);  // no subtrees
  EXPECT_FALSE(ranks[0].state == Alone(config).state);
  EXPECT_TRUE(ranks[2].state == ranks[0].state);
}

// One after the other, so that what each takes is known.
TEST_F(SimulatedRanks, TakeTheMemoryThatIsPlanned) {
  for (const int ranks : {2, 3}) {
    const Config config = DeviceConfig(2 * ranks);
    std::vector<int64_t> taken(static_cast<size_t>(ranks));
    RunInProcessRanks(ranks, [&](Communicator& communicator) {
      const auto device = MakeDevice(OnCuda(), communicator.rank());
      ThreadPool pool(1);
      Model model(config, 1, pool, *device);
      std::unique_ptr<Updater> updater;
      for (int rank = 0; rank < ranks; ++rank) {
        communicator.Barrier();
        if (rank != communicator.rank()) continue;
        const auto before = static_cast<int64_t>(simt::LiveBytes());
        updater = std::make_unique<Updater>(model, communicator);
        taken[static_cast<size_t>(rank)] =
            static_cast<int64_t>(simt::LiveBytes()) - before;
      }
      communicator.Barrier();
    });
    EXPECT_EQ(*std::ranges::max_element(taken),
              PlanUpdates(config, ranks).bytes());
  }
}

TEST_F(SimulatedRanks, AreToldOfTooLittleMemory) {
  const Config config = DeviceConfig(2);
  const MemoryPlan plan = PlanUpdates(config, 2);
  EXPECT_THROW(RunInProcessRanks(
                   2,
                   [&](Communicator& communicator) {
                     const auto device =
                         MakeDevice(OnCuda(), communicator.rank());
                     ThreadPool pool(1);
                     Model model(config, 1, pool, *device);
                     communicator.Barrier();
                     simt::SetDeviceLimits(
                         {.memory = simt::LiveBytes() +
                                    static_cast<size_t>(plan.bytes() / 2)});
                     Updater updater(model, communicator);
                   }),
               EnvironmentError);
}

TEST_F(SimulatedRanks, EndTogetherWhenACallFails) {
  const Config config = DeviceConfig(4);
  std::vector<std::string> texts(2);
  const auto train = [&](Communicator& communicator) {
    const auto device = MakeDevice(OnCuda(), communicator.rank());
    ThreadPool pool(1);
    Model model(config, 1, pool, *device);
    model.InitializeParameters(4);
    Updater updater(model, communicator);
    const UpdateText text(0, 4);
    communicator.Barrier();
    if (communicator.rank() == 0) {
      simt::FailCall("cudaLaunchKernelEx", 20, kLaunchFailure);
    }
    communicator.Barrier();
    try {
      updater.ComputeGradient({.tau = 1.0},
                              [&](int64_t group) { return text.Group(group); });
    } catch (const Error& error) {
      texts[static_cast<size_t>(communicator.rank())] = error.what();
      throw;
    }
  };
  EXPECT_THROW(RunInProcessRanks(2, train), Error);
  // Whichever made the call.
  const bool first = texts[1].find("rank 0 failed") != std::string::npos;
  EXPECT_NE(texts[first ? 0 : 1].find("as a test ordered"), std::string::npos)
      << texts[0] << "\n"
      << texts[1];
  EXPECT_NE(texts[first ? 1 : 0].find("as a test ordered"), std::string::npos);
}

TEST_F(SimulatedRanks, ANumberThatIsNotFiniteChangesNothingOnAnyRank) {
  const Config config = DeviceConfig(4);
  std::vector<int> unchanged(2, 0);
  EXPECT_THROW(
      RunInProcessRanks(
          2,
          [&](Communicator& communicator) {
            const auto device = MakeDevice(OnCuda(), communicator.rank());
            ThreadPool pool(1);
            Model model(config, 1, pool, *device);
            model.InitializeParameters(4);
            Updater updater(model, communicator);
            if (communicator.rank() == 1) {
              const float infinity[] = {std::numeric_limits<float>::infinity()};
              model.WriteParameters(infinity, model.layout().head_weight + 2);
            }
            const std::vector<float> before = model.ReadParameters();
            const UpdateText text(0, 4);
            try {
              updater.ComputeGradient({.tau = 1.0}, [&](int64_t group) {
                return text.Group(group);
              });
            } catch (const Error& error) {
              unchanged[static_cast<size_t>(communicator.rank())] =
                  model.ReadParameters() == before &&
                  error.code() == ExitCode::kFailed;
              throw;
            }
          }),
      NumericsError);
  EXPECT_EQ(unchanged, (std::vector<int>{1, 1}));
}

}  // namespace
}  // namespace softmoe::optimized
