// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "property_tests/verify/implementations/implementations.h"

namespace softmoe::verify {
namespace {

class ReferenceImplementation : public Implementation {
 public:
  explicit ReferenceImplementation(Dtype dtype) : dtype_(dtype) {}

  std::string name() const override {
    return std::string("reference_") + DtypeName(dtype_);
  }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    if (dtype_ == Dtype::kF64) return "";
    const std::vector<Dtype> dtypes = op.dtypes();
    if (std::ranges::count(dtypes, dtype_) == 0) {
      return op.name() + " has no bounds for " + DtypeName(dtype_);
    }
    return dtype == dtype_ ? "" : name() + " rounds to " + DtypeName(dtype_);
  }
  bool remembers() const override { return false; }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    (void)schedule;
    const Expected expected = ExpectOf(op, c, inputs, {});
    if (dtype_ == Dtype::kF64) return Values(expected);
    const TensorMap outputs = Round(op, c, expected);
    // An implementation that rounds decides by its rounded values.
    const TensorMap choice = op.Decide(c, inputs, outputs);
    return choice.empty() ? outputs
                          : Round(op, c, ExpectOf(op, c, inputs, choice));
  }

 private:
  static TensorMap Values(const Expected& expected) {
    TensorMap outputs;
    for (const auto& [name, output] : expected.outputs) {
      outputs[name] = output.values;
    }
    return outputs;
  }
  static TensorMap Round(const Operation& op, const Case& c,
                         const Expected& expected) {
    TensorMap outputs = Values(expected);
    for (const OutputSpec& spec : op.outputs()) {
      Tensor& output = outputs.at(spec.name);
      if (output.dtype != Dtype::kF64) continue;
      output.dtype = spec.DtypeAt(c.dtype);
      RoundValues(output);
    }
    return outputs;
  }

  Dtype dtype_;
};

}  // namespace

std::unique_ptr<Implementation> MakeReferenceImplementation(Dtype dtype) {
  return std::make_unique<ReferenceImplementation>(dtype);
}

}  // namespace softmoe::verify
