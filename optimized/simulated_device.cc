// SPDX-License-Identifier: Apache-2.0
//
// A test that links this file gets the simulated device (kernels/simt/device)
// for `device = "cuda"`; its identity says "simulated".
//
// The environment variable SOFTMOE_SIMULATED_DEVICE tells a program started by
// a test what there is and what fails: "memory=65536 driver=12040
// cudaStreamCreateWithFlags=100" is a device of 64 KiB with a driver for CUDA
// 12.4, whose first cudaStreamCreateWithFlags returns error 100.
#include <cstdint>
#include <cstdlib>
#include <list>
#include <sstream>
#include <string>

#include "core/errors.h"
#include "kernels/simt/device/device.h"
#include "optimized/device.h"

namespace softmoe::optimized {
namespace {

// Reads the variable; returns whether it is set. Throws if its words are not as
// above, which would leave the test a healthy device. (A call that does not
// exist, such as cudaMemcpyAsnc, is not noticed.)
bool ReadEnvironment() {
  const char* const told = std::getenv("SOFTMOE_SIMULATED_DEVICE");
  if (told == nullptr) return false;
  static std::list<std::string> calls;  // their names are kept
  simt::DeviceLimits limits;
  std::istringstream words(told);
  for (std::string word; words >> word;) {
    std::istringstream pair(word);
    std::string name;
    int64_t number = 0;
    const bool is_pair =
        std::getline(pair, name, '=') && pair >> number && pair.eof();
    const bool is_known =
        name == "memory" || name == "driver" || name.starts_with("cuda") ||
        name.starts_with("cublas") || name.starts_with("nccl");
    SOFTMOE_CHECK(is_pair && is_known)
        << "SOFTMOE_SIMULATED_DEVICE: '" << word
        << "': expected memory=N, driver=N or CALL=N, a call of CUDA, cuBLAS "
           "or NCCL";
    if (name == "memory") {
      limits.memory = static_cast<size_t>(number);
    } else if (name == "driver") {
      limits.driver = static_cast<int>(number);
    } else {
      simt::FailCall(calls.emplace_back(name).c_str(), 1,
                     static_cast<int>(number));
    }
  }
  simt::SetDeviceLimits(limits);
  return true;
}

std::unique_ptr<Device> MakeSimulatedDevice(int rank) {
  [[maybe_unused]] static const bool kTold = ReadEnvironment();
  return backend_simulated::MakeGpuDevice(rank);
}

[[maybe_unused]] const DeviceMaker kSimulated = CudaDeviceMaker() =
    &MakeSimulatedDevice;

}  // namespace
}  // namespace softmoe::optimized
