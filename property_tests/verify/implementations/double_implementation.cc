// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>

#include "property_tests/verify/implementations/implementations.h"

namespace softmoe::verify {
namespace {

class DoubleImplementation : public Implementation {
 public:
  explicit DoubleImplementation(const Adapters& adapters)
      : adapters_(adapters.at_double) {}

  std::string name() const override { return "cpu:double"; }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    if (!adapters_.contains(op.name())) return "no kernel body for it";
    return dtype == Dtype::kF64 ? "" : "the bodies run at f64 here";
  }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    (void)schedule;
    return adapters_.at(op.name())(c, inputs);
  }

 private:
  const std::map<std::string, DoubleAdapter>& adapters_;
};

}  // namespace

std::unique_ptr<Implementation> MakeDoubleImplementation(
    const Adapters& adapters) {
  return std::make_unique<DoubleImplementation>(adapters);
}

}  // namespace softmoe::verify
