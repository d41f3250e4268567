// SPDX-License-Identifier: Apache-2.0
//
// The simulated device agrees with everything that devices are asked, and
// others do not.
#include "kernels/cuda/device_probes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "core/testing/message_test_util.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/device/include/cuda_runtime_api.h"
#include "kernels/simt/device/kernel_launch.h"
#include "kernels/simt/shim/simulator.h"

namespace softmoe::kernels {
namespace {

// A device on which SharedKernel does nothing, and ArithmeticKernel gets each
// of its six results wrong, once.
class OtherDevice : public simt::KernelRunner {
 public:
  OtherDevice() { simt::SetKernelRunner(this); }
  ~OtherDevice() override { simt::SetKernelRunner(nullptr); }
  const char* Run(const simt::Grid& grid,
                  const simt::KernelCall& call) override {
    if (call.num_parameters == 1) return nullptr;
    const char* const wrong = simt::RunGrid(grid, call.run);
    std::memcpy(values,
                *static_cast<const float* const*>(call.parameters[0].at),
                sizeof(values));
    float* const results = *static_cast<float* const*>(call.parameters[1].at);
    for (int r = 0; r < 6; ++r) results[6 * r + r] *= -1;
    bytes = simt::LiveBytes();
    return wrong;
  }
  uint32_t values[4] = {};  // the first
  size_t bytes = 0;         // of all, and of the results
};

TEST(DeviceProbes, TheSimulatedDeviceAgreesWithAll) {
  std::set<std::string> names;
  std::vector<std::string> answers;
  for (const DeviceProbe& probe : isa_shim::AskDevice()) {
    EXPECT_TRUE(probe.holds) << probe.name << ": " << probe.answer;
    EXPECT_TRUE(names.insert(probe.name).second) << probe.name;
    answers.push_back(probe.answer);
  }
  const std::string same = "4096 of 4096 are the host's";
  EXPECT_EQ(answers, (std::vector<std::string>{
                         "32", "1024", "it ran", "256", same, same, same, same,
                         same, same, "no NaN of C is in D", "the same",
                         "384 of 384 sums are exact", "accepted", "refused"}));
  EXPECT_EQ(simt::LiveAllocations(), 0);
}

TEST(DeviceProbes, ADeviceThatIsWrongOnceDoesNot) {
  OtherDevice device;
  const std::vector<DeviceProbe> probes = isa_shim::AskDevice();
  EXPECT_EQ(device.bytes, (1 + 6) * 4096 * sizeof(float));
  // s ^ s >> 15, where s begins as 1 and becomes 1664525 s + 1013904223; in
  // every second one an exponent e has become 120 + e % 15, from its sign on.
  EXPECT_EQ(
      std::vector<uint32_t>(device.values, device.values + 4),
      (std::vector<uint32_t>{0x3c88207c, 0x408838ca, 0x81170352, 0xbc725223}));
  for (int i = 0; i < 15; ++i) {
    EXPECT_EQ(probes[i].holds, i != 2 && (i < 4 || i > 9)) << probes[i].name;
  }
  EXPECT_EQ(probes[2].answer, "it did not run");
  EXPECT_EQ(probes[9].answer, "4095 of 4096 are the host's");
}

// Nearly all of it is for five workspaces of 1 MiB; the rest for 24x40 and
// 40x16 floats, twice, and 24x16, each rounded up to 512 bytes.
TEST(DeviceProbes, LittleMemoryIsEnough) {
  simt::SetDeviceLimits(
      {.memory = simt::LiveBytes() + (5 << 20) + 2 * (4096 + 2560) + 1536});
  const int allocations = simt::CallsOf("cudaMalloc");
  const int products = simt::CallsOf("cublasLtMatmul");
  (void)isa_shim::AskDevice();
  // A number, sizes from 1 to 88573, two arrays, seven and five workspaces.
  EXPECT_EQ(simt::CallsOf("cudaMalloc") - allocations, 1 + 11 + 2 + 7 + 5);
  EXPECT_EQ(simt::CallsOf("cublasLtMatmul") - products, 3);
  simt::SetDeviceLimits({});
}

// A device with less shared memory does not agree, and says so.
TEST(DeviceProbes, AnotherDeviceDoesNot) {
  (void)cudaGetLastError();
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
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  simt::SetDeviceLimits({});
}

}  // namespace
}  // namespace softmoe::kernels
