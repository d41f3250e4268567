// SPDX-License-Identifier: Apache-2.0
#include "optimized/device.h"

#include "core/errors.h"
#include "kernels/cuda/bf16_sizes.h"
#include "kernels/isa.h"

namespace softmoe::optimized {

DeviceMaker& CudaDeviceMaker() {
  static DeviceMaker maker = &backend_cuda::MakeGpuDevice;
  return maker;
}

void CheckPrecision(const Config& config, const RuntimeConfig& runtime) {
  if (config.training.precision == Precision::kFp32) return;
  if (runtime.device != "cuda") {
    throw ConfigError(
        "training.precision = \"bf16\": the CPU computes only in fp32; train "
        "on a device (--device=cuda), or leave training.precision out");
  }
  const ModelConfig& m = config.model;
  kernels::CheckBf16Sizes({.d_model = m.d_model,
                           .num_heads = m.num_heads,
                           .d_ffn = m.d_ffn,
                           .vocab_size = m.vocab_size});
}

std::unique_ptr<Device> MakeDevice(const RuntimeConfig& runtime, int rank) {
  if (runtime.device.empty() || runtime.device == "cpu") {
    kernels::SelectIsa(runtime.isa);
    return MakeCpuDevice();
  }
  if (runtime.device != "cuda") {
    throw ConfigError("device = \"" + runtime.device +
                      "\": expected \"cpu\" or \"cuda\"");
  }
  if (!runtime.isa.empty()) {
    throw ConfigError("isa = \"" + runtime.isa +
                      "\" is an instruction set of the CPU; leave it out with "
                      "device = \"cuda\"");
  }
  try {
    return CudaDeviceMaker()(rank);
  } catch (const EnvironmentError& error) {
    throw EnvironmentError("device \"cuda\": " + std::string(error.what()) +
                           ". Without --device the CPU is used");
  }
}

}  // namespace softmoe::optimized
