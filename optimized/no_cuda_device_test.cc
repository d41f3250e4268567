// SPDX-License-Identifier: Apache-2.0
//
// What a program built without a CUDA toolkit says of the device.
#include <gtest/gtest.h>

#include <string>

#include "core/errors.h"
#include "optimized/device.h"

namespace softmoe::optimized {
namespace {

TEST(NoCudaDevice, SaysWhatTheBuildNeeds) {
  try {
    (void)backend_cuda::MakeGpuDevice(0);
    FAIL() << "there is a device";
  } catch (const EnvironmentError& error) {
    EXPECT_EQ(error.code(), ExitCode::kEnvironment);
    EXPECT_NE(std::string(error.what()).find("without a CUDA toolkit"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("CUDA_HOME"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace softmoe::optimized
