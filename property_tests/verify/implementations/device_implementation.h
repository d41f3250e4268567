// SPDX-License-Identifier: Apache-2.0
//
// device_implementation.h - what the implementations that run the CUDA kernels
// have in common: "shim" and "cuda", with f32 activations, and "shim:bf16" and
// "cuda:bf16".
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_IMPLEMENTATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_IMPLEMENTATION_H_

#include <fmt/core.h>

#include <memory>
#include <string>

#include "core/errors.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/implementations/adapters.h"
#include "property_tests/verify/implementations/elements.h"

namespace softmoe::verify {

template <typename Activation>
std::string DeviceName(const std::string& family) {
  return family + (kDtypeOf<Activation> == Dtype::kBf16 ? ":bf16" : "");
}

// The implementation of `family` selected by the text after the colon: "" or
// "bf16". Throws ConfigError for anything else.
template <template <typename> class Device>
std::unique_ptr<Implementation> MakeDeviceImplementation(
    const std::string& family, const std::string& activations,
    const Adapters& adapters) {
  if (activations.empty()) return std::make_unique<Device<float>>(adapters);
  if (activations == "bf16") {
    return std::make_unique<Device<kernels::Bf16>>(adapters);
  }
  throw ConfigError(fmt::format(
      "unknown implementation '{0}:{1}'; there are '{0}' and '{0}:bf16'",
      family, activations));
}

// Why no kernel with such activations computes the operation; "" if one does.
template <typename Activation>
std::string WhyNotOnDevice(const Adapters& adapters, const Operation& op,
                           Dtype dtype) {
  if (dtype != kDtypeOf<Activation>) {
    return fmt::format("the activations of these CUDA kernels are {}",
                       DtypeName(kDtypeOf<Activation>));
  }
  if (DeviceAdapters<Activation>(adapters).contains(op.name())) return "";
  return adapters.rows.contains(op.name())
             ? "on a device its tensors are f32, whatever activations are"
             : "no CUDA kernel that does all of it";
}

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_IMPLEMENTATION_H_
