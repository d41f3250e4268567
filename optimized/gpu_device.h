// SPDX-License-Identifier: Apache-2.0
//
// gpu_device.h - a CUDA device, and the simulated one, as a Device.
#ifndef SOFTMOE_OPTIMIZED_GPU_DEVICE_H_
#define SOFTMOE_OPTIMIZED_GPU_DEVICE_H_

#include <memory>

#include "optimized/device.h"

namespace softmoe::optimized {

// Device number rank % count(), and a queue on it. Without a CUDA toolkit
// no_cuda_device.cc defines the first, which then always throws.
// Errors   EnvironmentError: RequireDevice of kernels/cuda/device_facts.h, or
//          no memory for the queue.
inline namespace backend_cuda {
std::unique_ptr<Device> MakeGpuDevice(int rank);
}
inline namespace backend_simulated {
std::unique_ptr<Device> MakeGpuDevice(int rank);
}

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_GPU_DEVICE_H_
