// SPDX-License-Identifier: Apache-2.0
//
// cuda_runtime.h - stands in for the CUDA toolkit's header of that name when
// g++ or clang compiles a .cu file for the simulator; bazel/shim.bzl includes
// it first, as nvcc does its own. It has what our kernels use; what is missing
// does not compile.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_INCLUDE_CUDA_RUNTIME_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_INCLUDE_CUDA_RUNTIME_H_

#include "kernels/simt/device/include/cuda_runtime_api.h"
#include "kernels/simt/device/kernel_launch.h"
#include "kernels/simt/shim/device_functions.h"

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

// A variable in shared memory, for which C++ has no syntax: see
// simt/shared_memory.h.
#define __shared__ use_SOFTMOE_SHARED_instead
// NOLINTEND(bugprone-reserved-identifier)

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config,
                               void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return softmoe::simt::LaunchKernel<Parameters...>(*config, kernel,
                                                    Parameters(arguments)...);
}

template <typename... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...),
                                 cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute,
                              value);
}
template <typename... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes,
                                  void (*kernel)(Parameters...)) {
  return cudaFuncGetAttributes(attributes,
                               reinterpret_cast<const void*>(kernel));
}

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_INCLUDE_CUDA_RUNTIME_H_
