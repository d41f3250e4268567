// SPDX-License-Identifier: Apache-2.0
//
// spoilt.h - for tests: spoils the outputs of another implementation.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_SPOILT_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_SPOILT_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

class Spoilt : public Implementation {
 public:
  using Spoil = std::function<void(const TensorMap& inputs, TensorMap& outputs,
                                   int schedule)>;

  // `base` is a name for MakeImplementation; it always runs under its first
  // schedule, whichever of `schedules` is asked for.
  Spoilt(const std::string& base, Spoil spoil, int schedules = 1)
      : base_(MakeImplementation(base)),
        spoil_(std::move(spoil)),
        schedules_(schedules) {}

  std::string name() const override { return "spoilt"; }
  std::string WhyUnsupported(const Operation&, Dtype) const override {
    return "";
  }
  int schedules() const override { return schedules_; }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    TensorMap outputs = base_->Run(op, c, inputs, 0);
    spoil_(inputs, outputs, schedule);
    return outputs;
  }

 private:
  std::unique_ptr<Implementation> base_;
  Spoil spoil_;
  int schedules_;
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_SPOILT_H_
