// SPDX-License-Identifier: Apache-2.0
#include "optimized/device.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "core/errors.h"
#include "core/parallel_for.h"

namespace softmoe::optimized {
namespace {

RuntimeConfig On(const std::string& device, const std::string& isa = "") {
  RuntimeConfig runtime;
  runtime.device = device;
  runtime.isa = isa;
  return runtime;
}

TEST(MakeDevice, TheCpuIsItsInstructionSet) {
  for (const char* name : {"", "cpu"}) {
    const DeviceIdentity identity = MakeDevice(On(name, "v3"))->identity();
    EXPECT_EQ(identity.isa, "v3");
    EXPECT_EQ(identity.backend + identity.model + identity.libraries, "");
    EXPECT_EQ(Cpu().identity().isa, "v3");
  }
}

TEST(MakeDevice, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(MakeDevice(On("tpu")), ConfigError);
  EXPECT_THROW(MakeDevice(On("cpu", "v9")), ConfigError);
  EXPECT_THROW(MakeDevice(On("cuda", "v3")), ConfigError);
}

// Where the machine has a device, there is one.
TEST(MakeDevice, WithoutACudaDeviceSaysWhatElseThereIs) {
  try {
    EXPECT_EQ(MakeDevice(On("cuda"))->identity().backend, "cuda");
  } catch (const EnvironmentError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("device \"cuda\": ")) << text;
    EXPECT_TRUE(text.ends_with("Without --device the CPU is used")) << text;
  }
}

}  // namespace
}  // namespace softmoe::optimized
