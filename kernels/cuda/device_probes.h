// SPDX-License-Identifier: Apache-2.0
//
// device_probes.h - asks a CUDA device whether it is what our code and the
// simulated device assume.
#ifndef SOFTMOE_KERNELS_CUDA_DEVICE_PROBES_H_
#define SOFTMOE_KERNELS_CUDA_DEVICE_PROBES_H_

#include <string>
#include <vector>

namespace softmoe::kernels {

struct DeviceProbe {
  std::string name;    // "warps are 32 threads": a statement
  bool holds = false;  // whether the device agrees
  std::string answer;  // what it said: "32"
};

// All statements, on device 0. The simulated device agrees with each
// (device_probes_test.cc).
// Errors   EnvironmentError if the device or a library refuses what it must do.
namespace isa_cuda {
std::vector<DeviceProbe> AskDevice();
}
namespace isa_shim {
std::vector<DeviceProbe> AskDevice();
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_DEVICE_PROBES_H_
