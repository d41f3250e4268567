// SPDX-License-Identifier: Apache-2.0
//
// A test that links this has the simulated device (kernels/simt/device) for
// CUDA's: `device = "cuda"` takes it, and the identity says "simulated".
#include "optimized/device.h"
#include "optimized/gpu_device.h"

namespace softmoe::optimized {
namespace {

[[maybe_unused]] const DeviceMaker kSimulated = CudaDeviceMaker() =
    &backend_simulated::MakeGpuDevice;

}  // namespace
}  // namespace softmoe::optimized
