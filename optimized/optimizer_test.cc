// SPDX-License-Identifier: Apache-2.0
//
// What the optimizer adds to kernels/adamw: which tensors decay, clipping, bias
// correction by the count of updates, refusal of bad gradients. The update of
// an element itself is tested against //reference in property_tests.
#include "optimized/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/errors.h"
#include "core/testing/config_test_util.h"
#include "core/testing/random_test_util.h"

namespace softmoe::optimized {
namespace {

// One update, clipped by the norm that it returns.
double Update(Optimizer& optimizer, double learning_rate,
              int64_t completed_updates, const std::vector<float>& gradient,
              std::vector<float>& parameters) {
  const double norm = optimizer.GradientNorm(gradient);
  optimizer.Update(learning_rate, completed_updates, norm, gradient,
                   parameters);
  return norm;
}

class OptimizerTest : public ::testing::Test {
 protected:
  Config config_ = SmallConfig(RouterKind::kSparse);
  ParameterLayout layout_{config_};
  ThreadPool pool_{2};
};

TEST_F(OptimizerTest, ReturnsTheNormBeforeClipping) {
  Optimizer optimizer(config_.training, layout_, pool_);
  const std::vector<float> gradient = NormalFloats(layout_.total, 11, 1);
  std::vector<float> parameters = NormalFloats(layout_.total, 11, 2);
  double squares = 0;
  for (const float g : gradient) squares += static_cast<double>(g) * g;
  // Two orders of summation of n positive doubles differ by at most 2 n u.
  EXPECT_NEAR(
      Update(optimizer, 0.0, 0, gradient, parameters), std::sqrt(squares),
      std::sqrt(squares) * static_cast<double>(layout_.total) * 0x1p-52);
}

TEST_F(OptimizerTest, FirstUpdateHasLearningRateZeroAndOnlyFillsTheMoments) {
  Optimizer optimizer(config_.training, layout_, pool_);
  const std::vector<float> gradient = NormalFloats(layout_.total, 11, 1);
  const std::vector<float> before = NormalFloats(layout_.total, 11, 2);
  std::vector<float> parameters = before;
  Update(optimizer, 0.0, 0, gradient, parameters);
  EXPECT_EQ(parameters, before);
  EXPECT_NE(optimizer.first_moment()[3], 0.0f);
  EXPECT_GT(optimizer.second_moment()[3], 0.0f);
}

// With a zero gradient the moments stay zero and only decay acts:
// p (1 - lr*decay), in two or three roundings of the kernel's choice.
TEST_F(OptimizerTest, DecaysMatricesOnly) {
  config_.training.weight_decay = 0.25;
  Optimizer optimizer(config_.training, layout_, pool_);
  const std::vector<float> gradient(static_cast<size_t>(layout_.total), 0.0f);
  const std::vector<float> before = NormalFloats(layout_.total, 11, 2);
  std::vector<float> parameters = before;
  Update(optimizer, 0.5, 0, gradient, parameters);
  for (const ParameterTensor& tensor : layout_.tensors) {
    for (int64_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
      const double expected =
          tensor.shape.size() > 1 ? before[i] * (1.0 - 0.5 * 0.25) : before[i];
      EXPECT_NEAR(parameters[i], expected, 3 * 0x1p-24 * std::abs(before[i]))
          << tensor.name;
    }
  }
}

// A gradient scaled up beyond the clip norm gives the same moments: 2^k
// commutes with every rounding, but for that of the scale itself (u each in
// the scale, in g, and twice in m).
TEST_F(OptimizerTest, ClipsToTheGlobalNorm) {
  const std::vector<float> gradient = NormalFloats(layout_.total, 11, 1);
  std::vector<float> large = gradient;
  for (float& g : large) g *= 1024.0f;
  std::vector<float> p1 = NormalFloats(layout_.total, 11, 2), p2 = p1;
  Optimizer a(config_.training, layout_, pool_);
  Optimizer b(config_.training, layout_, pool_);
  const double norm = Update(a, 1e-3, 0, gradient, p1);
  ASSERT_GT(norm, config_.training.clip_norm);
  EXPECT_EQ(Update(b, 1e-3, 0, large, p2), 1024.0 * norm);
  double squares = 0;
  for (int64_t i = 0; i < layout_.total; ++i) {
    EXPECT_EQ(a.first_moment()[i], b.first_moment()[i]);
    const double g = a.first_moment()[i] / (1.0 - config_.training.beta1);
    squares += g * g;
  }
  // |g|_2 = clip_norm, each element to within 4 roundings.
  EXPECT_NEAR(std::sqrt(squares), config_.training.clip_norm, 4 * 0x1p-24);
}

TEST_F(OptimizerTest, SmallGradientsAndClipNormZeroAreNotScaled) {
  std::vector<float> gradient = NormalFloats(layout_.total, 11, 1);
  std::vector<float> parameters = NormalFloats(layout_.total, 11, 2);
  // No limit, and one far above the norm.
  for (const double clip_norm : {0.0, 1e6}) {
    config_.training.clip_norm = clip_norm;
    Optimizer unclipped(config_.training, layout_, pool_);
    Update(unclipped, 0.0, 0, gradient, parameters);
    const float one_minus_beta1 = 1.0f - static_cast<float>(0.9);
    for (int64_t i = 0; i < layout_.total; ++i) {
      EXPECT_NEAR(unclipped.first_moment()[i], one_minus_beta1 * gradient[i],
                  2 * 0x1p-24 * std::abs(gradient[i]));
    }
  }
}

TEST_F(OptimizerTest, DoesNotDependOnThreads) {
  config_.model.vocab_size = 4000;  // several blocks
  const ParameterLayout layout(config_);
  std::vector<std::vector<float>> results;
  std::vector<double> norms;
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    Optimizer optimizer(config_.training, layout, pool);
    std::vector<float> parameters = NormalFloats(layout.total, 11, 2);
    for (uint32_t step = 0; step < 3; ++step) {
      norms.push_back(Update(optimizer, 1e-2, step,
                             NormalFloats(layout.total, 11, 5 + step),
                             parameters));
    }
    results.push_back(parameters);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  for (size_t i = 3; i < norms.size(); ++i) EXPECT_EQ(norms[i], norms[i % 3]);
}

TEST_F(OptimizerTest, RefusesAGradientThatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    Optimizer optimizer(config_.training, layout_, pool_);
    std::vector<float> gradient = NormalFloats(layout_.total, 11, 1);
    gradient[layout_.total / 2] = bad;
    EXPECT_THROW(optimizer.GradientNorm(gradient), NumericsError);
  }
}

}  // namespace
}  // namespace softmoe::optimized
