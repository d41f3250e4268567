// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/reference_implementation.h"

namespace softmoe::verify {
namespace {

class ReferenceImplementation : public Implementation {
 public:
  std::string name() const override { return "reference_f32"; }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    (void)op;
    return dtype == Dtype::kF32 ? "" : "reference_f32 rounds to f32";
  }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    (void)schedule;
    TensorMap outputs;
    for (const auto& [name, output] : op.Expect(c, inputs, {}).outputs) {
      Tensor rounded = output.values;
      if (rounded.dtype == Dtype::kF64) rounded.dtype = c.dtype;
      RoundValues(rounded);
      outputs[name] = rounded;
    }
    return outputs;
  }
};

}  // namespace

std::unique_ptr<Implementation> MakeReferenceImplementation() {
  return std::make_unique<ReferenceImplementation>();
}

}  // namespace softmoe::verify
