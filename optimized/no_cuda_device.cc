// SPDX-License-Identifier: Apache-2.0
//
// The CUDA device of a build without a toolkit.
#include "core/errors.h"
#include "optimized/device.h"

namespace softmoe::optimized {
inline namespace backend_cuda {

std::unique_ptr<Device> MakeGpuDevice(int /*rank*/) {
  throw EnvironmentError(
      "this program was built without a CUDA toolkit; install one of version "
      "12.0 or later in /usr/local/cuda, or set CUDA_HOME to its folder, and "
      "build again");
}

}  // namespace backend_cuda
}  // namespace softmoe::optimized
