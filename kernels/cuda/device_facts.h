// SPDX-License-Identifier: Apache-2.0
//
// device_facts.h - whether the model can run on this machine's CUDA device,
// and what belongs to the identity of a run there (DESIGN.md, "Determinism").
#ifndef SOFTMOE_KERNELS_CUDA_DEVICE_FACTS_H_
#define SOFTMOE_KERNELS_CUDA_DEVICE_FACTS_H_

#include <string>

namespace softmoe::kernels {

struct DeviceFacts {
  std::string backend;       // "cuda"; "simulated"
  std::string model;         // "NVIDIA H100 80GB HBM3"
  std::string architecture;  // "sm_90"
  // "driver 13.0, CUDA runtime 13.0, cuBLASLt 13.1.0"
  std::string libraries;
  int count = 0;   // devices that this process sees
  std::string id;  // tells this one among all: hexadecimal
};

// isa_shim is the same source on a simulated device (simt/device/README.md).
//
//   RequireDevice  the facts of one device, whose number is below their count;
//                  the calling thread uses it from then on. Errors:
//                  EnvironmentError with what was found, what is needed and
//                  what to do, if there is no driver or an old one, no device,
//                  none that this program holds code for, no cuBLASLt, or a
//                  variable of the environment that changes products. The
//                  device gets this process's context, which takes some 500 MB
//                  of its memory.
//   RequireDevices how many there are, without a context on any. Errors: those
//                  of RequireDevice that do not depend on a device.
//   WhyNoDevice    RequireDevice's error's text; "" if there is none
#define SOFTMOE_DECLARE_DEVICE_FACTS(isa)    \
  namespace isa {                            \
  DeviceFacts RequireDevice(int number = 0); \
  int RequireDevices();                      \
  std::string WhyNoDevice();                 \
  }                                          \
  static_assert(true)

SOFTMOE_DECLARE_DEVICE_FACTS(isa_cuda);
SOFTMOE_DECLARE_DEVICE_FACTS(isa_shim);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_DEVICE_FACTS_H_
