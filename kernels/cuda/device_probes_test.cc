// SPDX-License-Identifier: Apache-2.0
//
// The simulated device agrees with everything that devices are asked.
#include "kernels/cuda/device_probes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/testing/message_test_util.h"
#include "kernels/simt/device/device.h"

namespace softmoe::kernels {
namespace {

TEST(DeviceProbes, TheSimulatedDeviceAgreesWithAll) {
  std::set<std::string> names;
  for (const DeviceProbe& probe : isa_shim::AskDevice()) {
    EXPECT_TRUE(probe.holds) << probe.name << ": " << probe.answer;
    EXPECT_FALSE(probe.answer.empty()) << probe.name;
    EXPECT_TRUE(names.insert(probe.name).second) << probe.name;
  }
  EXPECT_GE(names.size(), 15u);
  EXPECT_EQ(simt::LiveAllocations(), 0);
}

// A device with less shared memory does not agree, and says so.
TEST(DeviceProbes, AnotherDeviceDoesNot) {
  simt::SetDeviceLimits({.shared_memory_per_block = size_t{48} * 1024});
  for (const DeviceProbe& probe : isa_shim::AskDevice()) {
    const bool about_shared = probe.name.find("shared") != std::string::npos;
    EXPECT_EQ(probe.holds, !about_shared) << probe.name;
    if (probe.name.find("163 KiB") != std::string::npos) {
      // This is no mistake of the program: another device would do.
      EXPECT_TRUE(Says(probe.answer,
                       "a block needs 166912 bytes of shared memory, "
                       "which this device does not give"));
    }
  }
  simt::SetDeviceLimits({});
}

}  // namespace
}  // namespace softmoe::kernels
