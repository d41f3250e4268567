// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "core/errors.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/shim/simulator.h"
#include "property_tests/verify/implementations/device_implementation.h"
#include "property_tests/verify/implementations/device_kernels.h"
#include "property_tests/verify/implementations/implementations.h"

namespace softmoe::verify {
namespace {

template <typename Activation>
RowKernelsOf<Activation> SimulatedKernels() {
  return SOFTMOE_DEVICE_KERNELS(isa_shim, Activation);
}

constexpr simt::Schedule kSchedules[] = {simt::Schedule::kAscending,
                                         simt::Schedule::kDescending,
                                         simt::Schedule::kRandom};

template <typename Activation>
class ShimImplementation : public Implementation {
 public:
  explicit ShimImplementation(const Adapters& adapters) : adapters_(adapters) {}

  std::string name() const override { return DeviceName<Activation>("shim"); }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    return WhyNotOnDevice<Activation>(adapters_, op, dtype);
  }
  int schedules() const override { return std::size(kSchedules); }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    simt::SetSchedule(kSchedules[schedule], 3);
    simt::ForgetFailure();  // another case's
    simt::ForgetFreedMemory();
    try {
      return DeviceAdapters<Activation>(adapters_).at(op.name())(
          c, inputs, SimulatedKernels<Activation>());
    } catch (const EnvironmentError& error) {
      // On a real device this would mean broken hardware; here, a broken
      // kernel.
      throw NumericsError(error.what());
    }
  }

 private:
  const Adapters& adapters_;
};

}  // namespace

std::unique_ptr<Implementation> MakeShimImplementation(
    const std::string& activations, const Adapters& adapters) {
  return MakeDeviceImplementation<ShimImplementation>("shim", activations,
                                                      adapters);
}

}  // namespace softmoe::verify
