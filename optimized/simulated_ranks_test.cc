// SPDX-License-Identifier: Apache-2.0
//
// Ranks that compute on simulated devices, one that they share or one each,
// train to the bits of one process on such a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/shim/simulator.h"
#include "optimized/allocation.h"
#include "optimized/communicator/in_process.h"
#include "optimized/device.h"
#include "optimized/initialize.h"
#include "optimized/memory_plan.h"
#include "optimized/model.h"
#include "optimized/parameter_shards.h"
#include "optimized/step_traffic.h"
#include "optimized/testing/ranked_training.h"
#include "optimized/testing/simulated_devices.h"
#include "optimized/updater.h"

namespace softmoe::optimized {
namespace {

// Values of cudaError_t, and of ncclResult_t.
constexpr int kLaunchFailure = 719;
constexpr int kSystemError = 2, kRemoteError = 6;

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

using SimulatedRanks = SimulatedDevices;

Trained Alone(const Config& config, int begin = 0, int end = kFew,
              const TrainedState* from = nullptr) {
  const auto device = MakeDevice(OnCuda());
  return TrainAlone(config, 1, begin, end, from, *device);
}

// Trains ranks, each on its own device.
std::vector<Trained> OnRanks(const Config& config, int ranks, int begin = 0,
                             int end = kFew, const TrainedState* from = nullptr,
                             CarrierKind carrier = CarrierKind::kHost) {
  std::vector<Trained> trained(static_cast<size_t>(ranks));
  RunInProcessRanks(ranks, [&](Communicator& communicator) {
    const auto device = MakeDevice(OnCuda(), communicator.rank());
    trained[static_cast<size_t>(communicator.rank())] =
        TrainRank(config, 1, communicator, begin, end, from, *device, carrier);
  });
  return trained;
}

// Trains ranks that have a device each and exchange arrays over NCCL.
std::vector<Trained> OverNccl(const Config& config, int ranks, int begin = 0,
                              int end = kFew,
                              const TrainedState* from = nullptr) {
  simt::SetDeviceLimits({.devices = ranks});
  return OnRanks(config, ranks, begin, end, from, CarrierKind::kNccl);
}

std::vector<Trained> ThroughTheHost(const Config& config, int ranks, int begin,
                                    int end, const TrainedState* from) {
  return OnRanks(config, ranks, begin, end, from);
}

void ExpectTheBitsOf(const Trained& alone, const std::vector<Trained>& ranks) {
  for (const Trained& rank : ranks) {
    EXPECT_EQ(Digest(rank), Digest(alone)) << ranks.size() << " ranks";
  }
}

// The model of a rank, and what it computes with.
struct RankModel {
  RankModel(const Config& config, Communicator& communicator)
      : device(MakeDevice(OnCuda(), communicator.rank())),
        model(MakeModel(config, 1, pool, *device, Recompute::kNone,
                        &communicator)) {}

  std::unique_ptr<Device> device;
  ThreadPool pool{1};
  std::unique_ptr<Model> model;
};

// A context takes some 500 MB of a device: none is made on a device of another
// rank.
TEST_F(SimulatedRanks, TakeNoMemoryOfAnothersDevice) {
  simt::SetDeviceLimits({.devices = 2});
  const int products = simt::CallsOf("cublasLtMatmul");
  const auto device = MakeDevice(OnCuda(), /*rank=*/1);
  EXPECT_FALSE(simt::HasContext(0));
  EXPECT_TRUE(simt::HasContext(1));
  // Loads the code for products of each kind.
  EXPECT_EQ(simt::CallsOf("cublasLtMatmul") - products, 3);
}

TEST_F(SimulatedRanks, ThatShareADeviceTrainToTheBitsOfOneProcess) {
  const Config config = DeviceConfig(4);
  const Trained alone = Alone(config);
  for (const int ranks : {1, 2, 4}) {
    ExpectTheBitsOf(alone, OnRanks(config, ranks));
  }
}

// Each rank holds a shard of the parameters in fp32, and has to read the other
// ranks' updated ones.
TEST_F(SimulatedRanks, TrainInBf16ToTheBitsOfOneProcess) {
  const Config config = DeviceConfig(4, Precision::kBf16);
  const Trained alone = Alone(config);
  for (const int ranks : {1, 2, 4}) {
    ExpectTheBitsOf(alone, OnRanks(config, ranks));
  }
}

// A pass reads updated parameters even if no update follows: a validation.
TEST_F(SimulatedRanks, ReadInBf16WhatOneProcessReads) {
  const Config config = DeviceConfig(4, Precision::kBf16);
  const UpdateText text(7, 4);
  const auto passes = [&](Model& model) {
    std::vector<double> losses;
    for (int64_t group = 0; group < 4; ++group) {
      losses.push_back(model.Forward(text.Group(group), {.tau = 1.0}).loss_sum);
    }
    return losses;
  };
  const TrainedState state = Alone(config).state;
  const std::vector<double> expected = [&] {
    const auto device = MakeDevice(OnCuda());
    ThreadPool pool(1);
    const auto model = MakeModel(config, 1, pool, *device);
    model->WriteParameters(state.parameters, 0);
    return passes(*model);
  }();
  for (const int ranks : {2, 4}) {
    std::vector<std::vector<double>> losses(static_cast<size_t>(2 * ranks));
    RunInProcessRanks(ranks, [&](Communicator& communicator) {
      RankModel rank(config, communicator);
      Model& model = *rank.model;
      // The parameters were updated, then written in parts that are neither
      // tensors nor shards.
      const auto updater = model.MakeUpdater(communicator, CarrierKind::kHost);
      InitializeParameters(model, 4, rank.pool);
      for (int update = 0; update < kFew; ++update) {
        TrainUpdate(*updater, update);
      }
      const auto r = static_cast<size_t>(communicator.rank());
      losses[r] = passes(model);
      const std::span<const float> all = state.parameters;
      model.WriteParameters(std::vector<float>(all.size(), 0.25f), 0);
      model.WriteParameters(all.subspan(5001), 5001);
      model.WriteParameters(all.first(5001), 0);
      losses[static_cast<size_t>(ranks) + r] = passes(model);
    });
    for (const std::vector<double>& of_rank : losses) {
      EXPECT_EQ(of_rank, expected) << ranks << " ranks";
    }
  }
}

TEST_F(SimulatedRanks, OverNcclTrainToTheBitsOfOneProcess) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const Config config = DeviceConfig(4, precision);
    const Trained alone = Alone(config);
    for (const int ranks : {1, 2, 4}) {
      ExpectTheBitsOf(alone, OverNccl(config, ranks));
    }
  }
  // With so few parameters, some ranks have no shard.
  const Config small = GroupsOfOneSequence(4);
  ExpectTheBitsOf(Alone(small), OverNccl(small, 4));
}

// None of it goes through the host's communicator.
TEST_F(SimulatedRanks, OverNcclSendWhatIsPlanned) {
  constexpr int kRanks = 4;
  const auto carried = [] {
    std::vector<int64_t> bytes;
    for (int from = 0; from < kRanks; ++from) {
      for (int to = 0; to < kRanks; ++to) {
        bytes.push_back(simt::NcclBytes(from, to));
      }
    }
    return bytes;
  };
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const Config config = DeviceConfig(kRanks, precision);
    const std::vector<int64_t> before = carried();
    OverNccl(config, kRanks, 0, 3);
    const std::vector<int64_t> after = carried();
    for (int from = 0; from < kRanks; ++from) {
      for (int to = 0; to < kRanks; ++to) {
        const StepTraffic planned = TrafficOfStep(config, kRanks, from, to);
        const size_t pair = static_cast<size_t>(kRanks) * from + to;
        EXPECT_EQ(after[pair] - before[pair],
                  3 * (planned.gradients + planned.parameters))
            << from << " to " << to;
      }
    }
  }
}

// With so few parameters, some ranks have no shard.
TEST_F(SimulatedRanks, TrainAModelThatIsSmallerThanABlock) {
  Config config = GroupsOfOneSequence(4);
  ExpectTheBitsOf(Alone(config), OnRanks(config, 4));
  config.model.num_heads = 1;
  config.model.d_ffn = 8;
  config.model.vocab_size = 24;
  config.training.precision = Precision::kBf16;
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
    ExpectTheBitsOf(alone, OverNccl(config, 2, 0, 2));
  }
}

void ExpectGoOn(const Config& config) {
  const Trained alone = Alone(config);
  constexpr int kHalf = kFew / 2;
  for (const auto& [first, second] : {std::pair{1, 2}, {2, 4}, {4, 1}}) {
    for (const auto on_ranks : {&ThroughTheHost, &OverNccl}) {
      const TrainedState half =
          on_ranks(config, first, 0, kHalf, nullptr)[0].state;
      for (const Trained& rank : on_ranks(config, second, kHalf, kFew, &half)) {
        EXPECT_TRUE(rank.state == alone.state) << first << ", then " << second;
      }
    }
  }
  const TrainedState half = OnRanks(config, 2, 0, kHalf)[1].state;
  EXPECT_TRUE(Alone(config, kHalf, kFew, &half).state == alone.state);
}

TEST_F(SimulatedRanks, GoOnWithWhatAnotherNumberOfThemLeft) {
  ExpectGoOn(DeviceConfig(4));
  ExpectGoOn(DeviceConfig(4, Precision::kBf16));
}

TEST_F(SimulatedRanks, WouldShowAnotherOrder) {
  const Config config = DeviceConfig(6);
  const std::vector<Trained> ranks = OnRanks(config, 3);  // no subtrees
  EXPECT_FALSE(ranks[0].state == Alone(config).state);
  EXPECT_TRUE(ranks[2].state == ranks[0].state);
}

// What a rank with the largest shard holds in the first step.
int64_t Planned(const Config& config, int ranks) {
  return PlanStep(config, InitialAllocations(config, /*tau=*/0), 1,
                  Recompute::kNone, /*product_workspaces=*/0, ranks)
      .bytes();
}

// The ranks start one after the other, so that what each takes is known.
TEST_F(SimulatedRanks, TakeTheMemoryThatIsPlanned) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    for (const int ranks : {2, 3}) {
      const Config config = DeviceConfig(2 * ranks, precision);
      std::vector<int64_t> taken(static_cast<size_t>(ranks));
      RunInProcessRanks(ranks, [&](Communicator& communicator) {
        const auto device = MakeDevice(OnCuda(), communicator.rank());
        ThreadPool pool(1);
        std::unique_ptr<Model> model;
        std::unique_ptr<Updater> updater;
        for (int rank = 0; rank < ranks; ++rank) {
          communicator.Barrier();
          if (rank != communicator.rank()) continue;
          const auto before = static_cast<int64_t>(simt::LiveBytes());
          model = MakeModel(config, 1, pool, *device, Recompute::kNone,
                            &communicator);
          updater = model->MakeUpdater(communicator, CarrierKind::kHost);
          taken[static_cast<size_t>(rank)] =
              static_cast<int64_t>(simt::LiveBytes()) - before;
        }
        communicator.Barrier();
      });
      EXPECT_EQ(*std::ranges::max_element(taken), Planned(config, ranks));
    }
  }
}

TEST_F(SimulatedRanks, OverNcclTakeTheMemoryThatIsPlanned) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    for (const int ranks : {2, 3}) {
      const Config config = DeviceConfig(2 * ranks, precision);
      simt::SetDeviceLimits({.devices = ranks});
      std::vector<int64_t> taken(static_cast<size_t>(ranks));
      RunInProcessRanks(ranks, [&](Communicator& communicator) {
        const auto device = MakeDevice(OnCuda(), communicator.rank());
        ThreadPool pool(1);
        const int64_t before = device->FreeMemory();
        const auto model = MakeModel(config, 1, pool, *device, Recompute::kNone,
                                     &communicator);
        const auto updater =
            model->MakeUpdater(communicator, CarrierKind::kNccl);
        taken[static_cast<size_t>(communicator.rank())] =
            before - device->FreeMemory();
      });
      EXPECT_EQ(*std::ranges::max_element(taken), Planned(config, ranks));
    }
  }
}

// Never more, even while parameters are drawn, updated, read and written.
TEST_F(SimulatedRanks, NeedNoMoreMemoryThanIsPlanned) {
  constexpr int kRanks = 2;
  const Config config = DeviceConfig(kRanks, Precision::kBf16);
  RunInProcessRanks(kRanks, [&](Communicator& communicator) {
    const auto device = MakeDevice(OnCuda(), communicator.rank());
    ThreadPool pool(1);
    communicator.Barrier();
    if (communicator.rank() == 0) {
      simt::SetDeviceLimits(
          {.memory = simt::LiveBytes() +
                     static_cast<size_t>(kRanks * Planned(config, kRanks))});
    }
    communicator.Barrier();
    const auto model =
        MakeModel(config, 1, pool, *device, Recompute::kNone, &communicator);
    const auto updater = model->MakeUpdater(communicator, CarrierKind::kHost);
    InitializeParameters(*model, 4, pool);
    TrainUpdate(*updater, 0);
    model->WriteParameters(model->ReadParameters(), 0);
  });
}

// They are all sent as bf16, and what is read in fp32 also as fp32.
TEST_F(SimulatedRanks, SendWhatIsPlannedInBf16) {
  const Config config = DeviceConfig(4, Precision::kBf16);
  constexpr int kRanks = 4;
  std::vector<int64_t> sent(kRanks);
  RunInProcessRanks(kRanks, [&](Communicator& communicator) {
    RankModel rank(config, communicator);
    const auto updater =
        rank.model->MakeUpdater(communicator, CarrierKind::kHost);
    InitializeParameters(*rank.model, 4, rank.pool);
    const int64_t before = communicator.sent_bytes();
    TrainUpdate(*updater, 0);
    sent[static_cast<size_t>(communicator.rank())] =
        communicator.sent_bytes() - before;
  });
  int64_t parameters = 0;
  for (int from = 0; from < kRanks; ++from) {
    int64_t planned = 0;
    for (int to = 0; to < kRanks; ++to) {
      const StepTraffic traffic = TrafficOfStep(config, kRanks, from, to);
      planned += traffic.total();
      parameters += traffic.parameters;
    }
    EXPECT_EQ(sent[static_cast<size_t>(from)], planned) << from;
  }
  const ParameterLayout layout(config);
  EXPECT_EQ(parameters,
            (kRanks - 1) *
                (2 * layout.total + 4 * Fp32Tensors(layout).packed().total));
}

TEST_F(SimulatedRanks, HaveModelsThatWereMadeForThem) {
  const Config config = DeviceConfig(2, Precision::kBf16);
  EXPECT_THROW(RunInProcessRanks(2,
                                 [&](Communicator& communicator) {
                                   const auto device = MakeDevice(
                                       OnCuda(), communicator.rank());
                                   ThreadPool pool(1);
                                   const auto model =
                                       MakeModel(config, 1, pool, *device);
                                   const auto updater = model->MakeUpdater(
                                       communicator, CarrierKind::kHost);
                                 }),
               InternalError);
  EXPECT_THROW(
      RunInProcessRanks(2,
                        [&](Communicator& communicator) {
                          RankModel(config, communicator).model->MakeUpdater();
                        }),
      InternalError);
}

TEST_F(SimulatedRanks, AreToldOfTooLittleMemory) {
  const Config config = DeviceConfig(2);
  const MemoryPlan plan = PlanUpdates(config, 2);
  const auto make = [&](Communicator& communicator) {
    const RankModel rank(config, communicator);
    communicator.Barrier();
    simt::SetDeviceLimits(
        {.memory = simt::LiveBytes() + static_cast<size_t>(plan.bytes() / 2)});
    const auto updater =
        rank.model->MakeUpdater(communicator, CarrierKind::kHost);
  };
  EXPECT_TRUE(
      Says(MessageOf<EnvironmentError>([&] { RunInProcessRanks(2, make); }),
           "of memory left, and the next allocation needs ", "moments"));
}

// What each of two ranks throws in the end, if both update a model and the
// `n`-th call of `call` from then on fails.
std::vector<std::string> WhereACallFails(CarrierKind carrier, const char* call,
                                         int n, int error) {
  const Config config = DeviceConfig(4);
  std::vector<std::string> texts(2);
  const auto train = [&](Communicator& communicator) {
    RankModel rank(config, communicator);
    InitializeParameters(*rank.model, 4, rank.pool);
    try {
      const auto updater = rank.model->MakeUpdater(communicator, carrier);
      const UpdateText text(0, 4);
      communicator.Barrier();
      if (communicator.rank() == 0) simt::FailCall(call, n, error);
      communicator.Barrier();
      for (int update = 0; update < 2; ++update) {
        updater->ComputeGradient(
            {.tau = 1.0}, [&](int64_t group) { return text.Group(group); });
        updater->Apply(0.05, update);
      }
    } catch (const Error& error) {
      texts[static_cast<size_t>(communicator.rank())] = error.what();
      throw;
    }
  };
  EXPECT_THROW(RunInProcessRanks(2, train), Error) << call << " " << n;
  EXPECT_EQ(simt::LiveAllocations(), 0) << call << " " << n;
  return texts;
}

// It does not matter which rank made the call.
void ExpectThatBothSayIt(const std::vector<std::string>& texts) {
  const bool first = texts[1].find("rank 0 failed") != std::string::npos;
  EXPECT_TRUE(Says(texts[first ? 0 : 1], "as a test ordered"))
      << texts[0] << texts[1];
  EXPECT_TRUE(Says(texts[first ? 1 : 0], "as a test ordered"));
  EXPECT_TRUE(Says(texts[first ? 1 : 0], " failed: ")) << texts[0] << texts[1];
}

TEST_F(SimulatedRanks, EndTogetherWhenACallFails) {
  ExpectThatBothSayIt(WhereACallFails(CarrierKind::kHost, "cudaLaunchKernelEx",
                                      20, kLaunchFailure));
}

// How many products rank 0 has asked for when it first asks NCCL for something,
// while rank 1 does nothing.
int ProductsBeforeTheExchange(const Config& config) {
  int products = -1;
  const auto train = [&](Communicator& communicator) {
    RankModel rank(config, communicator);
    InitializeParameters(*rank.model, 4, rank.pool);
    const auto updater =
        rank.model->MakeUpdater(communicator, CarrierKind::kNccl);
    const UpdateText text(0, updater->num_groups());
    communicator.Barrier();
    if (communicator.rank() == 0) {
      simt::FailCall("ncclGroupStart", 1, kSystemError);
    }
    const int before = simt::CallsOf("cublasLtMatmul");
    try {
      updater->ComputeGradient({.tau = 1.0}, [&](int64_t group) {
        while (communicator.rank() == 1) communicator.CheckOthers();
        return text.Group(group);
      });
    } catch (const EnvironmentError&) {
      products = simt::CallsOf("cublasLtMatmul") - before;
      throw;
    }
  };
  EXPECT_THROW(RunInProcessRanks(2, train), EnvironmentError);
  return products;
}

TEST_F(SimulatedRanks, OverNcclExchangeWhileTheyCompute) {
  simt::SetDeviceLimits({.devices = 2});
  for (const int64_t own_groups : {1, 2}) {
    const Config config = DeviceConfig(2 * own_groups);
    const int all = [&] {
      const auto device = MakeDevice(OnCuda());
      ThreadPool pool(1);
      const auto model = MakeModel(config, 1, pool, *device);
      InitializeParameters(*model, 4, pool);
      std::vector<float> gradients(static_cast<size_t>(model->layout().total));
      const int before = simt::CallsOf("cublasLtMatmul");
      for (int64_t group = 0; group < own_groups; ++group) {
        model->ForwardBackward(UpdateText(0, 2 * own_groups).Group(group),
                               {.tau = 1.0}, 1, 1, gradients);
      }
      return simt::CallsOf("cublasLtMatmul") - before;
    }();
    const int products = ProductsBeforeTheExchange(config);
    EXPECT_GT(products, 0);
    if (own_groups == 1) {
      EXPECT_LT(products, all);
    } else {
      // Nothing is complete before the last group's gradients are added.
      EXPECT_EQ(products, all);
    }
  }
}

// A call fails within passes, in the exchange, or while parameters are
// gathered: the rank computes, or waits for the other one.
TEST_F(SimulatedRanks, OverNcclEndTogetherWhenACallFails) {
  simt::SetDeviceLimits({.devices = 2});
  for (const int n : {20, 300}) {
    ExpectThatBothSayIt(WhereACallFails(
        CarrierKind::kNccl, "cudaLaunchKernelEx", n, kLaunchFailure));
  }
  for (const auto& [call, n] : {std::pair{"ncclSend", 1},
                                {"ncclRecv", 3},
                                {"ncclBroadcast", 2},
                                {"ncclGroupEnd", 5},
                                // of what is sent to the device, of the link
                                {"cudaEventQuery", 2},
                                {"cudaEventQuery", 40}}) {
    ExpectThatBothSayIt(
        WhereACallFails(CarrierKind::kNccl, call, n, kSystemError));
  }
  ExpectThatBothSayIt(WhereACallFails(
      CarrierKind::kNccl, "ncclCommGetAsyncError", 9, kRemoteError));
}

// One rank fails by itself, while the other one waits for it in NCCL.
TEST_F(SimulatedRanks, OverNcclEndWhenOneFailsElsewhere) {
  simt::SetDeviceLimits({.devices = 2});
  const Config config = DeviceConfig(4);
  for (const int update : {0, 1}) {
    std::string text;
    const auto train = [&](Communicator& communicator) {
      const RankModel rank(config, communicator);
      const auto updater =
          rank.model->MakeUpdater(communicator, CarrierKind::kNccl);
      const UpdateText tokens(0, 4);
      try {
        for (int done = 0; done < 2; ++done) {
          updater->ComputeGradient({.tau = 1.0}, [&](int64_t group) {
            if (communicator.rank() == 1 && done == update) {
              throw DataError("token 7");
            }
            return tokens.Group(group);
          });
          updater->Apply(0.05, done);
        }
      } catch (const RankError& error) {
        text = error.what();
        throw;
      }
    };
    EXPECT_THROW(RunInProcessRanks(2, train), DataError);
    EXPECT_EQ(text, "rank 1 failed: token 7");
  }
}

// One rank fails while the others wait for it to join.
TEST_F(SimulatedRanks, OverNcclEndWhenOneHasTooLittleMemory) {
  simt::SetDeviceLimits({.devices = 2});
  const Config config = DeviceConfig(2);
  std::string text;
  const auto train = [&](Communicator& communicator) {
    const RankModel rank(config, communicator);
    try {
      if (communicator.rank() == 1) throw EnvironmentError("no memory");
      const auto updater =
          rank.model->MakeUpdater(communicator, CarrierKind::kNccl);
    } catch (const RankError& error) {
      text = error.what();
      throw;
    }
  };
  EXPECT_THROW(RunInProcessRanks(2, train), EnvironmentError);
  EXPECT_EQ(text, "rank 1 failed: no memory");
}

// NCCL refuses it, and every rank hears of that.
TEST_F(SimulatedRanks, OverNcclRefuseToShareADevice) {
  simt::SetDeviceLimits({.devices = 1});
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] {
                     OnRanks(DeviceConfig(2), 2, 0, 1, nullptr,
                             CarrierKind::kNccl);
                   }),
                   "Duplicate GPU detected"));
}

TEST_F(SimulatedRanks, ANumberThatIsNotFiniteChangesNothingOnAnyRank) {
  const Config config = DeviceConfig(4);
  std::vector<int> unchanged(2, 0);
  EXPECT_THROW(RunInProcessRanks(2,
                                 [&](Communicator& communicator) {
                                   const RankModel rank(config, communicator);
                                   UpdateWithInfinity(*rank.model, communicator,
                                                      unchanged);
                                 }),
               NumericsError);
  EXPECT_EQ(unchanged, (std::vector<int>{1, 1}));
}

}  // namespace
}  // namespace softmoe::optimized
