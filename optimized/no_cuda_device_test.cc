// SPDX-License-Identifier: Apache-2.0
//
// What a program built without a CUDA toolkit says of the device.
#include <gtest/gtest.h>

#include <string>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "optimized/device.h"

namespace softmoe::optimized {
namespace {

TEST(NoCudaDevice, SaysWhatTheBuildNeeds) {
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>(
                       [&] { (void)backend_cuda::MakeGpuDevice(0); }),
                   "without a CUDA toolkit", "CUDA_HOME"));
}

}  // namespace
}  // namespace softmoe::optimized
