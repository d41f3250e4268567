// SPDX-License-Identifier: Apache-2.0
//
// Runs on the simulated device, which reports the failure of enqueued work to
// every later call, as a real one does.
#include "property_tests/verify/implementations/device_watch.h"

#include <gtest/gtest.h>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "kernels/cuda/device.h"
#include "kernels/simt/device/device.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {
namespace {

namespace device = kernels::isa_shim;

DeviceWatch Watch() {
  return DeviceWatch([] { device::FinishStream(device::DeviceStream()); });
}

// Copies a number to the device. The enqueued copy fails if the host overwrites
// the number before it has arrived.
TensorMap Copy(bool too_early) {
  struct Memory {
    float* host = static_cast<float*>(device::AllocateOnHost(sizeof(float)));
    void* copy = device::AllocateOnDevice(sizeof(float));
    ~Memory() {
      device::FreeOnHost(host);
      device::FreeOnDevice(copy);
    }
  } memory;
  *memory.host = 1;
  device::StartCopy(memory.copy, memory.host, sizeof(float),
                    device::DeviceStream());
  if (too_early) *memory.host = 2;
  device::FinishStream(device::DeviceStream());
  return {};
}
TensorMap Right() { return Copy(/*too_early=*/false); }
TensorMap Wrong() { return Copy(/*too_early=*/true); }

TEST(DeviceWatch, EndsWhatNoDeviceComputes) {
  DeviceWatch watch = Watch();
  EXPECT_TRUE(watch.Run(Right).empty());
  // Only this case fails.
  EXPECT_TRUE(Says(MessageOf<NumericsError>([&] { watch.Run(Wrong); }),
                   "on the device: "));
  int calls = 0;
  const auto again = [&] {
    watch.Run([&] {
      ++calls;
      return Right();
    });
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(Says(MessageOf<EnvironmentError>(again),
                     "earlier case (on the ", "REPRO line of that case"));
  }
  simt::ForgetFailure();
  // A lost device needs a new process.
  EXPECT_THROW(again(), EnvironmentError);
  EXPECT_EQ(calls, 0);
}

// After a write that canaries found, the next case may run.
TEST(DeviceWatch, GoesOnWhereTheDeviceAnswers) {
  DeviceWatch watch = Watch();
  EXPECT_TRUE(Says(MessageOf<NumericsError>([&] {
                     watch.Run([]() -> TensorMap {
                       throw NumericsError("y: written past the end");
                     });
                   }),
                   "y: written past the end"));
  EXPECT_TRUE(watch.Run(Right).empty());
}

}  // namespace
}  // namespace softmoe::verify
