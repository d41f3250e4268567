// SPDX-License-Identifier: Apache-2.0
//
// cuda_runtime.h - stands in for the CUDA toolkit's header of that name when
// g++ or clang compiles a .cu file for the simulator (bazel/shim.bzl), which
// includes it first, as nvcc does its own. It has what our kernels use; what is
// missing does not compile.
#ifndef SOFTMOE_KERNELS_SIMT_SHIM_CUDA_RUNTIME_H_
#define SOFTMOE_KERNELS_SIMT_SHIM_CUDA_RUNTIME_H_

#include "kernels/simt/shim/device_functions.h"
#include "kernels/simt/shim/runtime_api.h"

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

#endif  // SOFTMOE_KERNELS_SIMT_SHIM_CUDA_RUNTIME_H_
