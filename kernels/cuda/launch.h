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

// If a call failed, throws what that means to whoever started the program, the
// same on a device and on the simulated one:
//   NumericsError     what was enqueued failed: an illegal address, say
//   InternalError     the call cannot be: a mistake of this program
//   EnvironmentError  anything else: the device's memory, its driver, its state
inline void CheckCuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  const std::string why = cudaGetErrorString(error);
  const std::string message = std::string(what) + ": " + why;
  switch (error) {
    // Failures of a kernel, which the next call reports.
    case cudaErrorIllegalAddress:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      throw NumericsError("on the device: " + why + " (before or at: " + what +
                          ")");
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidMemcpyDirection:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorLaunchOutOfResources:  // a kernel with too many registers
      throw InternalError(message);
    case cudaErrorMemoryAllocation:
      throw EnvironmentError(message +
                             "; take a device with more memory, or end what "
                             "else uses this one (nvidia-smi shows it)");
    default:
      throw EnvironmentError(message + "; check the device with nvidia-smi");
  }
}

// Blocks of a grid that takes all items, `per_block` each.
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
    const cudaError_t error = cudaFuncSetAttribute(
        reinterpret_cast<const void*>(kernel),
        cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
    if (error == cudaErrorInvalidValue) {
      (void)cudaGetLastError();  // or it stays the last error
      throw EnvironmentError(std::string(what) + ": a block needs " +
                             std::to_string(shared) +
                             " bytes of shared memory, which this device does "
                             "not give (" +
                             cudaGetErrorString(error) + "); take another one");
    }
    CheckCuda(error, what);
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(grid));
  config.blockDim = dim3(static_cast<unsigned>(block));
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  CheckCuda(cudaLaunchKernelEx(&config, kernel, Parameters(args)...), what);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

// Defines what SOFTMOE_DECLARE_CUDA_KERNEL_OF declares, by the source's
// template Enqueue(args, stream).
#define SOFTMOE_DEFINE_CUDA_KERNEL_OF(Name)                         \
  void Name(const Name##ArgsOf<float>& args, cudaStream_t stream) { \
    Enqueue(args, stream);                                          \
  }                                                                 \
  void Name(const Name##ArgsOf<Bf16>& args, cudaStream_t stream) {  \
    Enqueue(args, stream);                                          \
  }                                                                 \
  static_assert(true)

#endif  // SOFTMOE_KERNELS_CUDA_LAUNCH_H_
