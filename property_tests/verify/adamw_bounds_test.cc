// SPDX-License-Identifier: Apache-2.0
//
// The bounds of AdamW admit programs that apply weight decay before the step,
// and none that applies it elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/verify/engine/check.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/replay.h"

namespace softmoe::verify {
namespace {

enum class Decay { kByFactor, kByProduct, kLast, kInGradient };

// One step of torch.optim.AdamW in float, on a matrix alone, without clipping.
class AdamWInFloat : public Implementation {
 public:
  explicit AdamWInFloat(Decay decay) : decay_(decay) {}
  std::string name() const override { return "torch"; }
  std::string WhyUnsupported(const Operation&, Dtype) const override {
    return "";
  }
  TensorMap Run(const Operation&, const Case& c, const TensorMap& inputs,
                int) override {
    std::vector<float> p = ToFloats(At(inputs, "parameter")),
                       m = ToFloats(At(inputs, "first_moment")),
                       v = ToFloats(At(inputs, "second_moment"));
    const std::vector<float> gradient = ToFloats(At(inputs, "gradient"));
    const double rate = ScalarOf(inputs, "learning_rate"),
                 decay = ScalarOf(inputs, "weight_decay"),
                 beta1 = ScalarOf(inputs, "beta1"),
                 beta2 = ScalarOf(inputs, "beta2"),
                 t = static_cast<double>(c.Size("completed")) + 1;
    const auto as_float = [](double x) { return static_cast<float>(x); };
    const float kept = as_float(1 - rate * decay),
                root = as_float(std::sqrt(1 - std::pow(beta2, t))),
                step = as_float(rate / (1 - std::pow(beta1, t))),
                epsilon = as_float(ScalarOf(inputs, "epsilon"));
    for (size_t i = 0; i < p.size(); ++i) {
      float g = gradient[i];
      if (decay_ == Decay::kByFactor) p[i] *= kept;
      if (decay_ == Decay::kByProduct) {
        p[i] -= as_float(rate) * as_float(decay) * p[i];
      }
      if (decay_ == Decay::kInGradient) g += as_float(decay) * p[i];
      m[i] += as_float(1 - beta1) * (g - m[i]);
      v[i] = v[i] * as_float(beta2) + as_float(1 - beta2) * g * g;
      p[i] -= step * (m[i] / (std::sqrt(v[i]) / root + epsilon));
      if (decay_ == Decay::kLast) p[i] *= kept;
    }
    const auto tensor = [](const std::vector<float>& x) {
      return FromVector(Dtype::kF32, {static_cast<int64_t>(x.size())}, x);
    };
    return {{"parameter", tensor(p)},
            {"first_moment", tensor(m)},
            {"second_moment", tensor(v)}};
  }

 private:
  Decay decay_;
};

CaseResult CheckDecay(Decay decay, const std::string& words) {
  AdamWInFloat implementation(decay);
  return CheckCase(
      ParseCase("op=adamw fill=generic steps=1 matrix_size=300 vector_size=0 "
                "completed=1000 gradient_scale=1 beta1=0.9 beta2=0.95 "
                "epsilon=1e-8 clip_norm=0 impl=torch case=0 " +
                words),
      implementation);
}

TEST(AdamWBounds, HoldADecayBeforeTheStep) {
  for (const Decay decay : {Decay::kByFactor, Decay::kByProduct}) {
    for (const char* const words : {"learning_rate=1e-5 weight_decay=0.3",
                                    "learning_rate=1e-3 weight_decay=0.01",
                                    "learning_rate=0.3 weight_decay=0.01"}) {
      const CaseResult result = CheckDecay(decay, words);
      EXPECT_EQ(result.status, Status::kPass) << ReproLine(result);
    }
  }
}

TEST(AdamWBounds, HoldNoOtherDecay) {
  for (const Decay decay : {Decay::kLast, Decay::kInGradient}) {
    const CaseResult result =
        CheckDecay(decay, "learning_rate=1e-3 weight_decay=0.3");
    EXPECT_EQ(result.output, "parameter") << ReproLine(result);
  }
}

}  // namespace
}  // namespace softmoe::verify
