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

#include "core/config/config_fields.h"
#include "core/testing/config_test_util.h"
#include "core/testing/message_test_util.h"
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

TEST_F(OptimizerTest, RefusesANormWhoseSquareTheSecondMomentCannotHold) {
  const auto error = [&](float largest, double clip_norm) {
    config_.training.clip_norm = clip_norm;
    Optimizer optimizer(config_.training, layout_, pool_);
    std::vector<float> gradient(static_cast<size_t>(layout_.total), 0.0f);
    gradient[1] = largest;
    return MessageOf<DivergedError>([&] { optimizer.GradientNorm(gradient); });
  };
  EXPECT_TRUE(Says(error(1.01e19f, 0), "is 1.01e+19, and AdamW's",
                   "norms above 1e+19", "set training.clip_norm to at most"));
  EXPECT_TRUE(Says(error(3e19f, 2e19), "is 3e+19, after clipping 2e+19,"));
  EXPECT_EQ(error(0.99e19f, 0), kNoError);
  EXPECT_EQ(error(0.99e19f, 2e19), kNoError);
  EXPECT_EQ(error(3e19f, 1e19), kNoError);
  EXPECT_EQ(error(1e30f, 1), kNoError);
}

// A gradient with the largest norm, whatever the betas.
TEST_F(OptimizerTest, MovesParametersByTheLargestGradient) {
  config_.training.clip_norm = 0;
  config_.training.weight_decay = 0;
  for (const double beta2 : {kBeta.low, 0.95, kBeta.high}) {
    config_.training.beta2 = beta2;
    Optimizer optimizer(config_.training, layout_, pool_);
    std::vector<float> gradient(static_cast<size_t>(layout_.total), 0.0f);
    gradient[1] = static_cast<float>(kLargestNorm);
    std::vector<float> parameters(gradient.size(), 0.0f);
    for (int64_t completed = 0; completed < 20; ++completed) {
      const std::vector<float> before = parameters;
      optimizer.Update(0.5, completed, kLargestNorm, gradient, parameters);
      EXPECT_TRUE(std::isfinite(optimizer.second_moment()[1])) << beta2;
      // A step of 1, up to what betas lose as floats (kBeta).
      EXPECT_NEAR(parameters[1] - before[1], -0.5, 0.5 * 4.5e-4) << beta2;
    }
  }
}

}  // namespace
}  // namespace softmoe::optimized
