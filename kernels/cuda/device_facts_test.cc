// SPDX-License-Identifier: Apache-2.0
//
// What is said where the simulated device's answers rule out a run.
#include "kernels/cuda/device_facts.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "kernels/adamw.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/flat_kernels.h"
#include "kernels/cuda/nvidia_libraries.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/device/include/cuda_runtime_api.h"

namespace softmoe::kernels {
namespace {

// Values of cudaError_t.
constexpr int kMemoryAllocation = 2, kInitializationError = 3,
              kInsufficientDriver = 35, kNoDevice = 100, kInvalidDevice = 101,
              kNoKernelImage = 209;

// RequireDevice refuses, with these phrases in this order.
void ExpectRefused(const std::vector<std::string>& phrases) {
  (void)cudaGetLastError();  // of another test
  const std::string text =
      MessageOf<EnvironmentError>([&] { (void)isa_shim::RequireDevice(); });
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  size_t at = 0;
  for (const std::string& phrase : phrases) {
    at = text.find(phrase, at);
    ASSERT_NE(at, std::string::npos)
        << "expected: " << phrase << "\ngot: " << text;
    at += phrase.size();
  }
  // The failure does not stay: the next call finds the device.
  EXPECT_EQ(isa_shim::WhyNoDevice(), "");
}

TEST(DeviceFacts, NamesDeviceAndLibraries) {
  const DeviceFacts facts = isa_shim::RequireDevice();
  EXPECT_EQ(facts.backend, "simulated");
  EXPECT_EQ(facts.model, "simulated device");
  EXPECT_EQ(facts.architecture, "sm_90");
  EXPECT_EQ(facts.libraries, "driver 13.0, CUDA runtime 13.0, cuBLASLt 13.1.0");
  EXPECT_EQ(facts.id, "01" + std::string(30, '0'));
  EXPECT_EQ(isa_shim::WhyNoDevice(), "");
  EXPECT_EQ(simt::LiveAllocations(), 0);
  // The sixteenth has number 16 where the first has 1.
  simt::SetDeviceLimits({.devices = 16});
  EXPECT_EQ(isa_shim::RequireDevice(15).id, "10" + std::string(30, '0'));
  simt::SetDeviceLimits({});
  (void)isa_shim::RequireDevice();
}

// Without a driver the real runtime reports driver version 0, and a driver that
// is too old.
TEST(DeviceFacts, NoDriver) {
  simt::FailCall("cudaDriverGetVersion", 1, kInitializationError);
  simt::FailCall("cudaGetDeviceCount", 1, kInsufficientDriver);
  ExpectRefused(
      {"no NVIDIA driver", "CUDA 13.0 or later", "nvidia-smi", "--gpus all"});
  // It suffices that it has no version.
  simt::FailCall("cudaDriverGetVersion", 1, kInitializationError);
  ExpectRefused({"no NVIDIA driver", "cudaErrorInsufficientDriver"});
  simt::FailCall("cudaRuntimeGetVersion", 1, kInitializationError);
  ExpectRefused({"no CUDA runtime", "part of this program"});
}

TEST(DeviceFacts, ADriverThatIsTooOld) {
  simt::FailCall("cudaGetDeviceCount", 1, kInsufficientDriver);
  ExpectRefused({"driver is too old", "it is for CUDA 13.0",
                 "install one for CUDA 13.0 or later", "older toolkit"});
}

TEST(DeviceFacts, TellsTheVersionOfADriverThatIsTooOld) {
  simt::SetDeviceLimits({.driver = 12990});
  EXPECT_TRUE(Says(isa_shim::WhyNoDevice(), "it is for CUDA 12.99",
                   "cuda-compat", "LD_LIBRARY_PATH"));
  simt::SetDeviceLimits({});
  EXPECT_EQ(isa_shim::WhyNoDevice(), "");
}

TEST(DeviceFacts, TellsTheReleaseOfCublas) {
  for (const auto& [version, release] :
       {std::pair(130000, "13.0.0"), std::pair(120903, "12.9.3"),
        std::pair(129999, "12.99.99")}) {
    simt::SetDeviceLimits({.cublas = size_t(version)});
    EXPECT_TRUE(Says(isa_shim::RequireDevice().libraries,
                     ", cuBLASLt " + std::string(release)));
  }
  EXPECT_EQ(NcclRelease(29999), "2.99.99");
  EXPECT_EQ(NcclRelease(30000), "3.0.0");
  simt::SetDeviceLimits({});
}

// Each context takes memory, and every rank counts the devices.
TEST(DeviceFacts, CountingDevicesMakesNoContext) {
  simt::SetDeviceLimits({.devices = 3});
  EXPECT_EQ(isa_shim::RequireDevices(), 3);
  for (const int device : {0, 1, 2}) EXPECT_FALSE(simt::HasContext(device));
  EXPECT_EQ(isa_shim::RequireDevice(1).count, 3);
  EXPECT_FALSE(simt::HasContext(0));
  EXPECT_TRUE(simt::HasContext(1));
  simt::SetDeviceLimits({});
  (void)isa_shim::RequireDevice();
}

TEST(DeviceFacts, ContextsTakeMemory) {
  simt::SetDeviceLimits({.memory = 4096, .context = 1024});
  EXPECT_EQ(isa_shim::FreeMemory(), 3072);
  simt::SetDeviceLimits({});
}

// Whoever asks CUDA for the last error afterwards, as libraries do, is not told
// of it.
TEST(DeviceFacts, MemoryThatThereIsNotIsNoLastError) {
  simt::SetDeviceLimits({.memory = 4096, .context = 1024});
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>(
                       [] { (void)isa_shim::AllocateOnDevice(1 << 20); }),
                   "1048576 bytes more are needed, 3072 of 4096 are free"));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  simt::FailCall("cudaMallocHost", 1, kMemoryAllocation);
  EXPECT_THROW((void)isa_shim::AllocateOnHost(8), EnvironmentError);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  simt::SetDeviceLimits({});
}

// Code is loaded when it is first used, once on each device.
TEST(DeviceFacts, FirstUsesTakeMemory) {
  simt::SetDeviceLimits({.memory = 4096, .first_use = 1024});
  float* const x = static_cast<float*>(isa_shim::AllocateOnDevice(8));
  isa_shim::ClearOnDevice(x, 8, isa_shim::DeviceStream());
  const int64_t before = isa_shim::FreeMemory();
  const auto add = [&] {
    isa_shim::Add({.size = 1, .x = x, .y = x + 1}, isa_shim::DeviceStream());
  };
  for (int i = 0; i < 2; ++i) {
    add();
    EXPECT_EQ(isa_shim::FreeMemory(), before - 1024);
  }
  simt::SetDeviceLimits({.memory = 4096, .first_use = 4096});
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>(add),
                   "a kernel that is loaded at its "
                   "first use takes 4096 bytes of memory: ",
                   " are free", "take a device with more memory"));
  isa_shim::FinishStream(isa_shim::DeviceStream());
  isa_shim::FreeOnDevice(x);
  simt::SetDeviceLimits({});
}

TEST(DeviceFacts, VariablesThatChangeProductsAreRefused) {
  for (const char* name :
       {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION",
        "CUBLAS_EMULATION_STRATEGY", "CUBLASLT_HEURISTICS_LUT_FILE"}) {
    setenv(name, "0", 1);
    EXPECT_TRUE(Says(isa_shim::WhyNoDevice(), name, "unset"));
    EXPECT_TRUE(Says(
        MessageOf<EnvironmentError>([] { (void)isa_shim::RequireDevices(); }),
        name));
    unsetenv(name);
  }
  // What changes no bit: of another library, and what is written down.
  for (const char* name : {"CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_LOG_LEVEL"}) {
    setenv(name, "1", 1);
    EXPECT_EQ(isa_shim::WhyNoDevice(), "");
    unsetenv(name);
  }
}

TEST(DeviceFacts, NoDevice) {
  simt::FailCall("cudaGetDeviceCount", 1, kNoDevice);
  ExpectRefused({"no CUDA device (driver 13.0)", "CUDA_VISIBLE_DEVICES"});
  simt::SetDeviceLimits({.devices = 0});
  const std::string text = isa_shim::WhyNoDevice();
  simt::SetDeviceLimits({});
  EXPECT_TRUE(text.starts_with("no CUDA device (driver 13.0)")) << text;
}

TEST(DeviceFacts, ADeviceThatDoesNotAnswer) {
  for (const char* call : {"cudaSetDevice", "cudaGetDeviceProperties"}) {
    simt::FailCall(call, 1, kInvalidDevice);
    ExpectRefused({"device 0 does not answer", "nvidia-smi"});
  }
}

TEST(DeviceFacts, AnotherArchitecture) {
  simt::FailCall("cudaFuncGetAttributes", 1, kNoKernelImage);
  ExpectRefused({"simulated device is sm_90", "holds code for sm_80, sm_90",
                 "cuda_configure.bzl"});
}

TEST(DeviceFacts, NoCublas) {
  simt::FailCall("cublasLtGetVersion", 1, 1);
  ExpectRefused({"no cuBLASLt"});
}

}  // namespace
}  // namespace softmoe::kernels
