// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "property_tests/verify/implementations/device_implementation.h"
#include "property_tests/verify/implementations/implementations.h"
#include "property_tests/verify/implementations/row_kernels.h"

#ifdef SOFTMOE_HAS_CUDA
#include "kernels/cuda/device_facts.h"
#include "property_tests/verify/implementations/device_kernels.h"
#endif

namespace softmoe::verify {
namespace {

#ifdef SOFTMOE_HAS_CUDA

std::string WhyNoDevice() { return kernels::isa_cuda::WhyNoDevice(); }

template <typename Activation>
RowKernelsOf<Activation> KernelsOnDevice() {
  return SOFTMOE_DEVICE_KERNELS(isa_cuda, Activation);
}

#else

std::string WhyNoDevice() {
  return "built without the CUDA toolkit ($CUDA_HOME or /usr/local/cuda)";
}
template <typename Activation>
RowKernelsOf<Activation> KernelsOnDevice() {
  return {};
}

#endif

template <typename Activation>
class CudaImplementation : public Implementation {
 public:
  explicit CudaImplementation(const Adapters& adapters) : adapters_(adapters) {}

  std::string name() const override { return DeviceName<Activation>("cuda"); }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    if (!why_no_device_.empty()) return why_no_device_;
    return WhyNotOnDevice<Activation>(adapters_, op, dtype);
  }
  int schedules() const override { return 2; }  // the device's own, twice
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    (void)schedule;
    return DeviceAdapters<Activation>(adapters_).at(op.name())(c, inputs,
                                                               kernels_);
  }

 private:
  const Adapters& adapters_;
  const std::string why_no_device_ = WhyNoDevice();
  const RowKernelsOf<Activation> kernels_ = KernelsOnDevice<Activation>();
};

}  // namespace

std::unique_ptr<Implementation> MakeCudaImplementation(
    const std::string& activations, const Adapters& adapters) {
  return MakeDeviceImplementation<CudaImplementation>("cuda", activations,
                                                      adapters);
}

}  // namespace softmoe::verify
