// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/rank_devices.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "optimized/communicator/communicator.h"
#include "optimized/communicator/in_process.h"
#include "optimized/model.h"

namespace softmoe::trainer {
namespace {

// One of `count` devices.
class FakeDevice : public optimized::Device {
 public:
  FakeDevice(int count, const std::string& id) : count_(count), id_(id) {}
  optimized::DeviceIdentity identity() const override { return {}; }
  std::unique_ptr<optimized::Model> MakeModel(
      const Config&, int64_t, ThreadPool&, Recompute,
      optimized::Communicator*) override {
    throw InternalError("not asked");
  }
  int64_t FreeMemory() const override { return 0; }
  int count() const override { return count_; }
  std::string id() const override { return id_; }
  std::string WhyNoLink() const override { return why_no_link; }
  std::unique_ptr<Device> OfRank(int) const override { return nullptr; }

  std::string why_no_link;

 private:
  int count_;
  std::string id_;
};

TEST(RankDevices, ThreadsBeyondTheDevicesShareThem) {
  optimized::SingleCommunicator alone;
  EXPECT_EQ(RankOnMachine(alone), 0);
  const auto on_device = [&](int devices, int ranks) {
    return ShareDevices(FakeDevice(devices, "a"), ranks, alone).ranks_on_device;
  };
  EXPECT_EQ(on_device(1, 1), 1);
  EXPECT_EQ(on_device(1, 4), 4);
  EXPECT_EQ(on_device(4, 4), 1);
  EXPECT_EQ(on_device(3, 4), 2);
  EXPECT_EQ(on_device(8, 4), 1);
  EXPECT_EQ(ShareDevices(optimized::Cpu(), 4, alone).ranks_on_device, 1);
  const auto used = [&](int devices, int ranks) {
    return ShareDevices(FakeDevice(devices, "a"), ranks, alone).devices;
  };
  EXPECT_EQ(used(1, 4), 1);
  EXPECT_EQ(used(4, 4), 4);
  EXPECT_EQ(used(3, 4), 3);
  EXPECT_EQ(used(8, 4), 4);
  EXPECT_EQ(ShareDevices(optimized::Cpu(), 4, alone).devices, 0);
}

// Here, ranks of one process stand for processes of one machine.
TEST(RankDevices, ProcessesOfAMachineAreCountedAndShareWhatHasOneId) {
  optimized::RunInProcessRanks(4, [](optimized::Communicator& c) {
    SOFTMOE_CHECK(RankOnMachine(c) == c.rank());
    const auto shared = [&](const std::string& id) {
      return ShareDevices(FakeDevice(1, id), 1, c).ranks_on_device;
    };
    SOFTMOE_CHECK(shared("same") == 4);
    SOFTMOE_CHECK(shared(std::to_string(c.rank())) == 1);
    SOFTMOE_CHECK(shared(c.rank() == 0 ? "a" : "b") == (c.rank() == 0 ? 1 : 3));
    const auto used = [&](const std::string& id) {
      return ShareDevices(FakeDevice(1, id), 1, c).devices;
    };
    SOFTMOE_CHECK(used("same") == 1);
    SOFTMOE_CHECK(used(std::to_string(c.rank())) == 4);
    // Four ranks on three devices: ranks 0 and 3 share one.
    SOFTMOE_CHECK(used(std::to_string(c.rank() % 3)) == 3);
  });
}

using optimized::CarrierKind;

CarrierKind Choose(ExchangeChoice choice, const optimized::Device& device,
                   int ranks, int on_device) {
  optimized::SingleCommunicator alone;
  return ChooseCarrier(choice, device, ranks, on_device, alone);
}

TEST(ChooseCarrier, TakesNcclWhereItCan) {
  FakeDevice device(4, "a");
  EXPECT_EQ(Choose(ExchangeChoice::kAuto, device, 4, 1), CarrierKind::kNccl);
  EXPECT_EQ(Choose(ExchangeChoice::kNccl, device, 4, 1), CarrierKind::kNccl);
  EXPECT_EQ(Choose(ExchangeChoice::kHost, device, 4, 1), CarrierKind::kHost);
  // One rank sends nothing.
  EXPECT_EQ(Choose(ExchangeChoice::kNccl, device, 1, 1), CarrierKind::kHost);
  EXPECT_EQ(Choose(ExchangeChoice::kAuto, device, 4, 2), CarrierKind::kHost);
  EXPECT_EQ(Choose(ExchangeChoice::kAuto, optimized::Cpu(), 4, 1),
            CarrierKind::kHost);
  device.why_no_link = "NCCL is too old";
  EXPECT_EQ(Choose(ExchangeChoice::kAuto, device, 4, 1), CarrierKind::kHost);
}

TEST(ChooseCarrier, SaysWhyNcclCannot) {
  FakeDevice device(4, "a");
  EXPECT_THROW(Choose(ExchangeChoice::kNccl, device, 4, 2), EnvironmentError);
  EXPECT_THROW(Choose(ExchangeChoice::kNccl, optimized::Cpu(), 4, 1),
               ConfigError);
  device.why_no_link = "NCCL is too old: 2.3; install 2.28";
  EXPECT_EQ(MessageOf<EnvironmentError>(
                [&] { Choose(ExchangeChoice::kNccl, device, 4, 1); }),
            "--exchange nccl: NCCL is too old: 2.3; install 2.28, or leave "
            "--exchange out: memory of the host gives the same bits");
}

// One process that cannot use NCCL decides for all.
TEST(ChooseCarrier, IsTheSameOnAllProcesses) {
  const auto choose = [](ExchangeChoice choice) {
    optimized::RunInProcessRanks(3, [&](optimized::Communicator& c) {
      FakeDevice device(1, std::to_string(c.rank()));
      if (c.rank() == 1) device.why_no_link = "there is no NCCL";
      SOFTMOE_CHECK(ChooseCarrier(choice, device, 1, 1, c) ==
                    CarrierKind::kHost);
    });
  };
  choose(ExchangeChoice::kAuto);
  EXPECT_THROW(choose(ExchangeChoice::kNccl), EnvironmentError);
}

}  // namespace
}  // namespace softmoe::trainer
