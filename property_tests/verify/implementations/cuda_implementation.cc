// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/implementations/cuda_implementation.h"

#include <map>
#include <string>

#include "property_tests/verify/implementations/row_kernels.h"

#ifdef SOFTMOE_HAS_CUDA
#include "property_tests/verify/implementations/device_kernels.h"
#endif

namespace softmoe::verify {
namespace {

#ifdef SOFTMOE_HAS_CUDA

std::string WhyNoDevice() { return kernels::isa_cuda::WhyNoDevice(); }

RowKernels KernelsOnDevice() { return SOFTMOE_DEVICE_KERNELS(isa_cuda); }

#else

std::string WhyNoDevice() {
  return "built without the CUDA toolkit ($CUDA_HOME or /usr/local/cuda)";
}
RowKernels KernelsOnDevice() { return {}; }

#endif

class CudaImplementation : public Implementation {
 public:
  explicit CudaImplementation(const Adapters& adapters)
      : adapters_(adapters.rows) {}

  std::string name() const override { return "cuda"; }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    if (dtype != Dtype::kF32) return "the CUDA kernels compute in f32";
    if (!adapters_.contains(op.name())) {
      return "no CUDA kernel that does all of it";
    }
    return why_no_device_;
  }
  int schedules() const override { return 2; }  // the device's own, twice
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    (void)schedule;
    return adapters_.at(op.name())(c, inputs, kernels_);
  }

 private:
  const std::map<std::string, RowAdapter>& adapters_;
  const std::string why_no_device_ = WhyNoDevice();
  const RowKernels kernels_ = KernelsOnDevice();
};

}  // namespace

std::unique_ptr<Implementation> MakeCudaImplementation(
    const Adapters& adapters) {
  return std::make_unique<CudaImplementation>(adapters);
}

}  // namespace softmoe::verify
