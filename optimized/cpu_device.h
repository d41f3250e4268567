// SPDX-License-Identifier: Apache-2.0
//
// cpu_device.h - the CPU as a Device, apart from device.cc, so that what trains
// on the CPU alone links no CUDA. Cpu() of device.h is here, too.
#ifndef SOFTMOE_OPTIMIZED_CPU_DEVICE_H_
#define SOFTMOE_OPTIMIZED_CPU_DEVICE_H_

#include <memory>

#include "optimized/device.h"

namespace softmoe::optimized {

// With the instruction set in use (kernels/isa.h).
std::unique_ptr<Device> MakeCpuDevice();

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_CPU_DEVICE_H_
