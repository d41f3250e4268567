// SPDX-License-Identifier: Apache-2.0
#include "reference/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/errors.h"
#include "core/testing/bounded.h"
#include "core/testing/message_test_util.h"
#include "reference/flat_parameters.h"
#include "reference/testing/random_matrix.h"
#include "reference/testing/tiny_model.h"

namespace softmoe::reference {
namespace {

using testing::RandomVector;

// The smallest layout with both kinds of tensors: matrices and 1-D tensors.
class AdamWTest : public ::testing::Test {
 protected:
  AdamWTest()
      : layout_(testing::TinyConfig(RouterKind::kSoftLearned)),
        parameters_(RandomVector(layout_.total, 1, 1)),
        state_(InitialAdamWState(layout_)) {
    training_.clip_norm = 0;
  }

  double Update(double learning_rate, const Vector& gradients) {
    return AdamWUpdate(training_, layout_, learning_rate, gradients,
                       &parameters_, &state_);
  }
  Vector Constant(double value) {
    return Vector::Constant(layout_.total, value);
  }

  TrainingConfig training_;
  ParameterLayout layout_;
  Vector parameters_;
  AdamWState state_;
};

// beta = (0.9, 0.95), epsilon 0.5, decay 0.1, lr 0.1, g = 2 then -1, p = 3:
// t=1: m = 0.2, v = 0.2; mhat = 2, vhat = 4; p = 3 - 0.1 (2/2.5 + 0.3) = 2.89
// t=2: m = 0.18 - 0.1 = 0.08, v = 0.19 + 0.05 = 0.24;
//      mhat = 0.08/0.19, vhat = 0.24/0.0975
TEST_F(AdamWTest, MatchesTwoHandComputedUpdates) {
  training_.adam_epsilon = 0.5;
  training_.weight_decay = 0.1;
  parameters_ = Constant(3);
  Update(0.1, Constant(2));
  const int64_t matrix = layout_.embedding;
  const int64_t norm = layout_.final_norm;  // 1-D: no decay
  // In halves of an ulp: p and the literal round once each; the step and the
  // decay, 0.11 together, round ten times.
  const double once = (2 * 3 + 10 * 0.11) / 2 * kUlp;
  EXPECT_NEAR(parameters_[matrix], 2.89, once);
  EXPECT_NEAR(parameters_[norm], 2.92, once);
  Update(0.1, Constant(-1));
  // 1 - beta is off by a quarter of an ulp, which counts 0.6 and 4.6 times (the
  // derivatives of the moments by it), and each product and sum rounds.
  EXPECT_NEAR(state_.first_moment[matrix], 0.08, kUlp);
  EXPECT_NEAR(state_.second_moment[matrix], 0.24, 2 * kUlp);
  // Halves of an ulp: p and its expected value round twice each. The step, 0.2,
  // has the relative errors of the moments (7, and 11 under the root) and of
  // 1 - 0.9^2 = 0.19 (10) and 1 - 0.95^2 = 0.0975 (20, under the root), which
  // cancel, and 10 of its own: 45 at most.
  const double step = (0.08 / 0.19) / (std::sqrt(0.24 / 0.0975) + 0.5);
  const double twice = once + (3 * 3 + 45 * 0.1 * (step + 0.289)) / 2 * kUlp;
  EXPECT_NEAR(parameters_[matrix], 2.89 - 0.1 * (step + 0.289), twice);
  EXPECT_NEAR(parameters_[norm], 2.92 - 0.1 * step, twice);
  EXPECT_EQ(state_.completed_updates, 2);
}

TEST_F(AdamWTest, OnlyTensorsOfTwoDimensionsDecay) {
  training_.weight_decay = 0.5;
  const Vector before = parameters_;
  Update(0.25, Constant(0));
  for (const ParameterTensor& tensor : layout_.tensors) {
    const double factor = tensor.shape.size() > 1 ? 0.875 : 1;
    // Each rounds 7/8 p once.
    EXPECT_EQ(TensorElements(tensor, parameters_),
              factor * TensorElements(tensor, before))
        << tensor.name;
  }
}

// With a constant gradient and epsilon 0, mhat = g and vhat = g^2 at every t,
// so that each update moves by lr in the direction of -g, whatever its size.
TEST_F(AdamWTest, ConstantGradientMovesByTheLearningRate) {
  training_.adam_epsilon = 0;
  training_.weight_decay = 0;
  for (const double size : {1e-8, 1.0, 1e6}) {
    state_ = InitialAdamWState(layout_);
    parameters_ = Constant(1);
    const Vector gradients =
        RandomVector(layout_.total, 2, 1).cwiseSign() * size;
    for (int t = 1; t <= 20; ++t) {
      Update(0.01, gradients);
      // Each of the t steps has the error of 1 - 0.9^t >= 0.1 and of
      // 1 - 0.95^t >= 0.05, in ulps: (1/0.1 + 1/0.05/2 + 8 t) * lr.
      EXPECT_LE((parameters_ - Constant(1) + 0.01 * t * gradients / size)
                    .cwiseAbs()
                    .maxCoeff(),
                t * (20 + 8 * t) * kUlp)
          << t;
    }
  }
}

TEST_F(AdamWTest, LearningRateZeroChangesTheMomentsOnly) {
  const Vector before = parameters_;
  Update(0, RandomVector(layout_.total, 3, 1));
  EXPECT_EQ(parameters_, before);
  EXPECT_GT(state_.first_moment.norm(), 0);
  EXPECT_GT(state_.second_moment.minCoeff(), 0);
}

TEST_F(AdamWTest, ClippingScalesTheWholeGradientToTheNorm) {
  const Vector gradients = RandomVector(layout_.total, 4, 1);
  training_.clip_norm = 0.5;
  const double norm = Update(0.1, gradients);
  // Sums of n squares round n times, half of which the root leaves, and once.
  const double norms = (layout_.total + 2) / 2. * kUlp;
  EXPECT_NEAR(norm, gradients.norm(), norms * norm);
  // The first moment is (1 - beta1) times the clipped gradient: 1 - 0.9 is off
  // by 5 halves of an ulp; two quotients, three products, and 0.1 itself.
  const double clipping = (5 + 2 + 3 + 1) / 2. * kUlp;
  EXPECT_NEAR(state_.first_moment.norm(), 0.1 * 0.5, (norms + clipping) * 0.05);
  EXPECT_LE((state_.first_moment / 0.1 - gradients * (0.5 / norm)).norm(),
            clipping * 0.5);
}

TEST(ClipFactor, IsOneUpToTheNormAndOff) {
  EXPECT_EQ(ClipFactor(0.5, 1), 1);
  EXPECT_EQ(ClipFactor(1, 1), 1);
  EXPECT_EQ(ClipFactor(4, 1), 0.25);
  EXPECT_EQ(ClipFactor(1, 0.5), 0.5);
  EXPECT_EQ(ClipFactor(4, 0), 1);    // off
  EXPECT_EQ(ClipFactor(0, 0.1), 1);  // no gradient, no division by 0
}

TEST(GlobalNorm, IsPythagoras) {
  Vector gradients(4);
  gradients << 3, 0, -4, 12;
  EXPECT_EQ(GlobalNorm(gradients), 13);
}

TEST_F(AdamWTest, NonFiniteGradientsAreRefusedByNameAndChangeNothing) {
  const Vector before = parameters_;
  for (const auto& [element, bad] :
       {std::pair<int, double>{0, std::numeric_limits<double>::quiet_NaN()},
        {5, -std::numeric_limits<double>::infinity()}}) {
    Vector gradients = Constant(1);
    gradients[layout_.layers[1].router_weight + element] = bad;
    EXPECT_TRUE(Says(MessageOf<NumericsError>([&] { Update(0.1, gradients); }),
                     "layers.1.router_weight",
                     "element " + std::to_string(element)));
  }
  EXPECT_TRUE(
      Says(MessageOf<NumericsError>([&] { Update(0.1, Constant(1e200)); }),
           "norm of the gradient overflows"));
  EXPECT_EQ(parameters_, before);
  EXPECT_EQ(state_.first_moment, Constant(0));
  EXPECT_EQ(state_.completed_updates, 0);
}

TEST_F(AdamWTest, VectorsOfAnotherSizeAreRefused) {
  EXPECT_THROW(Update(0.1, Vector::Zero(layout_.total - 1)), InternalError);
}

}  // namespace
}  // namespace softmoe::reference
