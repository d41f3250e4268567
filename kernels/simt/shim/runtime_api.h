// SPDX-License-Identifier: Apache-2.0
//
// runtime_api.h - as much of the CUDA runtime API as our launchers call, for
// the simulator. A kernel has run when its launch returns; a stream is any
// pointer.
#ifndef SOFTMOE_KERNELS_SIMT_SHIM_RUNTIME_API_H_
#define SOFTMOE_KERNELS_SIMT_SHIM_RUNTIME_API_H_

#include <cstddef>

#include "kernels/simt/shim/simulator.h"

struct CUstream_st;
using cudaStream_t = CUstream_st*;

struct dim3 {
  unsigned x, y, z;
  // NOLINTNEXTLINE(google-explicit-constructor): as CUDA's is
  constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1)
      : x(x_size), y(y_size), z(z_size) {}
};

enum cudaError_t { cudaSuccess = 0, cudaErrorLaunchFailure = 719 };

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
};

namespace softmoe::simt {

// What is wrong with the last launch.
inline const char*& LastError() {
  static const char* message = "no error";
  return message;
}

// The dynamic shared memory that a kernel was allowed. (Not a std::map: MSan
// does not see what the compiled half of the library does.)
struct SharedMemoryLimit {
  const void* kernel = nullptr;
  size_t bytes = Grid().dynamic_shared_limit;
};
inline SharedMemoryLimit& LimitOf(const void* kernel) {
  static SharedMemoryLimit limits[256];
  SharedMemoryLimit* limit = limits;
  while (limit->kernel != nullptr && limit->kernel != kernel) ++limit;
  limit->kernel = kernel;
  return *limit;
}

}  // namespace softmoe::simt

// A device would give the fixed text of the error's number.
inline const char* cudaGetErrorString(cudaError_t) {
  return softmoe::simt::LastError();
}

inline cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute,
                                        int value) {
  softmoe::simt::LimitOf(kernel).bytes = static_cast<size_t>(value);
  return cudaSuccess;
}

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config,
                               void (*kernel)(Parameters...),
                               Arguments... arguments) {
  softmoe::simt::Grid grid;
  grid.blocks = {config->gridDim.x, config->gridDim.y, config->gridDim.z};
  grid.threads = {config->blockDim.x, config->blockDim.y, config->blockDim.z};
  grid.dynamic_shared = config->dynamicSmemBytes;
  grid.dynamic_shared_limit =
      softmoe::simt::LimitOf(reinterpret_cast<const void*>(kernel)).bytes;
  // Each thread gets its own copy of the arguments, as on a device.
  auto call = [&] { kernel(Parameters(arguments)...); };
  softmoe::simt::kernel_argument = &call;
  const char* error = softmoe::simt::RunGrid(grid, [] {
    (*static_cast<decltype(call)*>(softmoe::simt::kernel_argument))();
  });
  if (error == nullptr) return cudaSuccess;
  softmoe::simt::LastError() = error;
  return cudaErrorLaunchFailure;
}

#endif  // SOFTMOE_KERNELS_SIMT_SHIM_RUNTIME_API_H_
