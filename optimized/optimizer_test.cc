// SPDX-License-Identifier: Apache-2.0
//
// Which tensors of a model decay, and refusal of bad gradients. The update, its
// norm, clipping and bias correction are compared with the reference by
// //:verify, op=adamw, for constants that are floats, and the update for others
// by property_tests/optimizer_property_test.cc.
#include "optimized/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/errors.h"
#include "core/testing/config_test_util.h"
#include "core/testing/random_test_util.h"
#include "optimized/step.h"

namespace softmoe::optimized {
namespace {

class OptimizerTest : public ::testing::Test {
 protected:
  Config config_ = SmallConfig(RouterKind::kSparse);
  ParameterLayout layout_{config_};
  ThreadPool pool_{2};
};

// With a zero gradient the moments stay zero and only decay acts:
// p (1 - lr*decay), in two or three roundings of the kernel's choice.
TEST_F(OptimizerTest, DecaysMatricesOnly) {
  config_.training.weight_decay = 0.25;
  Optimizer optimizer(config_.training, layout_, pool_);
  const std::vector<float> gradient(static_cast<size_t>(layout_.total), 0.0f);
  const std::vector<float> before = NormalFloats(layout_.total, 11, 2);
  std::vector<float> parameters = before;
  optimizer.Update(0.5, 0, optimizer.GradientNorm(gradient), gradient,
                   parameters);
  for (const ParameterTensor& tensor : layout_.tensors) {
    for (int64_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
      const double expected =
          tensor.shape.size() > 1 ? before[i] * (1.0 - 0.5 * 0.25) : before[i];
      EXPECT_NEAR(parameters[i], expected, 3 * 0x1p-24 * std::abs(before[i]))
          << tensor.name;
    }
  }
}

TEST_F(OptimizerTest, RefusesAGradientThatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    Optimizer optimizer(config_.training, layout_, pool_);
    std::vector<float> gradient = NormalFloats(layout_.total, 11, 1);
    gradient[layout_.total / 2] = bad;
    EXPECT_THROW(optimizer.GradientNorm(gradient), DivergedError);
  }
}

}  // namespace
}  // namespace softmoe::optimized
