// SPDX-License-Identifier: Apache-2.0
//
// A test that links this uses the simulated device (kernels/simt/device) as
// CUDA's: `device = "cuda"` takes it, and the identity says "simulated".
//
// SOFTMOE_SIMULATED_DEVICE tells a program that a test starts what there is and
// what fails: "memory=65536 driver=12040 cudaStreamCreateWithFlags=100" is a
// device of 64 KiB with a driver for CUDA 12.4, and the first such call returns
// that error.
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

// Whether a test has told this program anything. Words that are not as above
// would leave that test a healthy device: throws. (A call that does not exist,
// such as cudaMemcpyAsnc, is not noticed.)
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
