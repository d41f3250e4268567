// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/implementations/shim_implementation.h"

#include <map>
#include <string>

#include "core/errors.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/shim/simulator.h"
#include "property_tests/verify/implementations/device_kernels.h"

namespace softmoe::verify {
namespace {

constexpr simt::Schedule kSchedules[] = {simt::Schedule::kAscending,
                                         simt::Schedule::kDescending,
                                         simt::Schedule::kRandom};

class ShimImplementation : public Implementation {
 public:
  explicit ShimImplementation(const Adapters& adapters)
      : adapters_(adapters.rows) {}

  std::string name() const override { return "shim"; }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    if (dtype != Dtype::kF32) return "the CUDA kernels compute in f32";
    return adapters_.contains(op.name()) ? ""
                                         : "no CUDA kernel that does all of it";
  }
  int schedules() const override { return std::size(kSchedules); }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    simt::SetSchedule(kSchedules[schedule], 3);
    simt::ForgetFailure();  // of another case
    simt::ForgetFreedMemory();
    try {
      return adapters_.at(op.name())(c, inputs, SimulatedKernels());
    } catch (const EnvironmentError& error) {
      // What would mean a broken device elsewhere means a broken kernel here.
      throw NumericsError(error.what());
    }
  }

 private:
  const std::map<std::string, RowAdapter>& adapters_;
};

}  // namespace

RowKernels SimulatedKernels() { return SOFTMOE_DEVICE_KERNELS(isa_shim); }

std::unique_ptr<Implementation> MakeShimImplementation(
    const Adapters& adapters) {
  return std::make_unique<ShimImplementation>(adapters);
}

}  // namespace softmoe::verify
