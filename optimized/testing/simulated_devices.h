// SPDX-License-Identifier: Apache-2.0
//
// simulated_devices.h - tests on simulated devices must leave nothing behind.
#ifndef SOFTMOE_OPTIMIZED_TESTING_SIMULATED_DEVICES_H_
#define SOFTMOE_OPTIMIZED_TESTING_SIMULATED_DEVICES_H_

#include <gtest/gtest.h>

#include "kernels/simt/device/device.h"
#include "kernels/simt/shim/simulator.h"

namespace softmoe::optimized {

class SimulatedDevices : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(simt::LiveAllocations(), 0);
    EXPECT_EQ(simt::LiveNcclCommunicators(), 0);
    simt::SetDeviceLimits({});
    simt::SetSchedule(simt::Schedule::kAscending);
  }
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_TESTING_SIMULATED_DEVICES_H_
