// SPDX-License-Identifier: Apache-2.0
//
// launch.h - starts a kernel and turns a refused launch into an exception.
#ifndef SOFTMOE_KERNELS_CUDA_LAUNCH_H_
#define SOFTMOE_KERNELS_CUDA_LAUNCH_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "core/errors.h"
#include "kernels/simd/inline.h"

namespace softmoe::kernels::SOFTMOE_ISA {

inline void CheckCuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  const std::string message =
      std::string(what) + ": " + cudaGetErrorString(error);
#ifdef SOFTMOE_CUDA_SHIM
  throw InternalError(message);  // the simulator found a mistake of ours
#else
  throw EnvironmentError(message + "; check the device with nvidia-smi");
#endif
}

// Blocks of a grid: as many as take all items, `per_block` each.
inline int64_t Blocks(int64_t items, int64_t per_block) {
  return (items + per_block - 1) / per_block;
}

// kernel<<<grid, block, shared, stream>>>(args...); does nothing for an empty
// grid.
template <typename... Parameters, typename... Arguments>
void Launch(const char* what, void (*kernel)(Parameters...), int64_t grid,
            int block, size_t shared, cudaStream_t stream,
            const Arguments&... args) {
  if (grid <= 0) return;
  // Up to 48 KiB, static shared memory included, are given without asking.
  if (shared > 32 * 1024) {
    CheckCuda(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared)),
              what);
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(grid));
  config.blockDim = dim3(static_cast<unsigned>(block));
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  CheckCuda(cudaLaunchKernelEx(&config, kernel, Parameters(args)...), what);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

// What SOFTMOE_DECLARE_CUDA_KERNEL_OF declares, by a template of the source:
// Enqueue(args, stream).
#define SOFTMOE_DEFINE_CUDA_KERNEL_OF(Name)                         \
  void Name(const Name##ArgsOf<float>& args, cudaStream_t stream) { \
    Enqueue(args, stream);                                          \
  }                                                                 \
  void Name(const Name##ArgsOf<Bf16>& args, cudaStream_t stream) {  \
    Enqueue(args, stream);                                          \
  }                                                                 \
  static_assert(true)

#endif  // SOFTMOE_KERNELS_CUDA_LAUNCH_H_
