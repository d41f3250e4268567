// SPDX-License-Identifier: Apache-2.0
//
// The optimizer against the reference's formula for constants of a
// configuration that are not floats. (Those of op=adamw in //:verify are.)
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/comparator.h"
#include "core/config/config_fields.h"
#include "core/testing/config_test_util.h"
#include "core/testing/random_test_util.h"
#include "optimized/optimizer.h"
#include "property_tests/error_bounds.h"
#include "reference/adamw.h"

namespace softmoe::property_tests {
namespace {

// A constant that a program stores as a float.
Bounded AsFloat(double x) {
  return {x, std::abs(static_cast<double>(static_cast<float>(x)) - x)};
}

Comparison Judge(std::span<const float> got,
                 const std::vector<Bounded>& expected) {
  std::vector<double> values, bounds;
  for (const Bounded& x : expected) {
    values.push_back(x.value);
    bounds.push_back(x.error + kUnderflow);
  }
  return Compare(got, values, bounds);
}

// Whether a few updates from zero moments stay as near to the formula as those
// of a program in float that weighs gradients and moments with these betas.
::testing::AssertionResult StaysNear(const Config& config, Bounded beta1,
                                     Bounded beta2) {
  const TrainingConfig& training = config.training;
  const ParameterLayout layout(config);
  ThreadPool pool(2);
  optimized::Optimizer optimizer(training, layout, pool);
  std::vector<float> parameters = NormalFloats(layout.total, 5, 1);
  std::vector<Bounded> p(parameters.begin(), parameters.end()), m(p.size()),
      v(p.size());
  for (uint32_t completed = 0; completed < 5; ++completed) {
    const auto correction = [&](double beta) {
      return Bounded(reference::formula::Correction(beta, completed + 1.0))
          .Rounded();
    };
    const reference::formula::AdamWStep<Bounded> step = {
        .clip = 1,
        .learning_rate = AsFloat(training.learning_rate),
        .beta1 = beta1,
        .beta2 = beta2,
        .epsilon = AsFloat(training.adam_epsilon),
        .first_correction = correction(training.beta1),
        .second_correction = correction(training.beta2)};
    const std::vector<float> gradient =
        NormalFloats(layout.total, 5, 2 + completed);
    for (const ParameterTensor& tensor : layout.tensors) {
      const Bounded decay =
          AsFloat(tensor.weight_decay ? training.weight_decay : 0);
      for (int64_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
        step.Update(gradient[i], decay, &p[i], &m[i], &v[i]);
      }
    }
    optimizer.Update(training.learning_rate, completed,
                     /*norm=*/training.clip_norm, gradient, parameters);
    for (const Comparison& each :
         {Judge(parameters, p), Judge(optimizer.first_moment(), m),
          Judge(optimizer.second_moment(), v)}) {
      if (each.ok()) continue;
      return ::testing::AssertionFailure() << training.beta2 << ", update "
                                           << completed << ": " << each.Text();
    }
  }
  return ::testing::AssertionSuccess();
}

// The kernel adds 1 - float(beta) of a gradient, but corrects by 1 - beta^t:
// the difference is visible beside its roundings.
TEST(Optimizer, StaysAsNearToTheReferenceAsFloatsAreToItsBetas) {
  for (const auto& [beta1, beta2] :
       {std::pair(0.9, 0.95), {0.9, 0.999}, {kBeta.high, kBeta.high}}) {
    Config config = SmallConfig(RouterKind::kSoftLearned);
    config.training.beta1 = beta1;
    config.training.beta2 = beta2;
    EXPECT_TRUE(StaysNear(config, AsFloat(beta1), AsFloat(beta2)));
    EXPECT_FALSE(StaysNear(config, beta1, beta2)) << beta2;
  }
}

}  // namespace
}  // namespace softmoe::property_tests
