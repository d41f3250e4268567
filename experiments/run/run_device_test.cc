// SPDX-License-Identifier: Apache-2.0
//
// Runs with the simulated device in place of CUDA's.
#include "experiments/run/run_device.h"

#include <gtest/gtest.h>

#include <string>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "kernels/simt/device/device.h"

namespace softmoe::experiments {
namespace {

TEST(IdentifyDevice, OfTheCpuIsItsInstructionSet) {
  RuntimeConfig runtime;
  runtime.isa = "v3";
  const optimized::DeviceIdentity cpu = IdentifyDevice(runtime);
  EXPECT_EQ(cpu.isa, "v3");
  EXPECT_EQ(cpu.backend + cpu.model + cpu.libraries, "");
}

TEST(IdentifyDevice, AsksADeviceInAChild) {
  RuntimeConfig runtime;
  runtime.device = "cuda";
  const optimized::DeviceIdentity there = IdentifyDevice(runtime);
  EXPECT_EQ(simt::CallsOf("cudaGetDeviceCount"), 0);  // in this process
  const optimized::DeviceIdentity here =
      optimized::MakeDevice(runtime)->identity();
  EXPECT_EQ(there.isa, "sm_90");
  EXPECT_EQ(there.isa, here.isa);
  EXPECT_EQ(there.backend, here.backend);
  EXPECT_EQ(there.model, here.model);
  EXPECT_EQ(there.libraries, here.libraries);
}

TEST(IdentifyDevice, PassesOnWhyThereIsNone) {
  RuntimeConfig runtime;
  runtime.device = "cuda";
  simt::FailCall("cudaGetDeviceCount", 1, 100);  // cudaErrorNoDevice
  EXPECT_TRUE(
      Says(MessageOf<EnvironmentError>([&] { (void)IdentifyDevice(runtime); }),
           "no CUDA device", "nvidia-smi"));
}

}  // namespace
}  // namespace softmoe::experiments
