// SPDX-License-Identifier: Apache-2.0
#include "reference/expert.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/errors.h"
#include "core/testing/bounded.h"
#include "core/testing/message_test_util.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference {
namespace {

using testing::RandomMatrix;

TEST(Silu, MatchesHandComputedValuesAndLimits) {
  EXPECT_EQ(Silu(0), 0);
  EXPECT_EQ(SiluDerivative(0), 0.5);
  EXPECT_NEAR(Silu(std::log(3.0)), 0.75 * std::log(3.0), 4 * kUlp);
  EXPECT_NEAR(Silu(-std::log(3.0)), -0.25 * std::log(3.0), 4 * kUlp);
  EXPECT_EQ(Silu(800), 800);
  EXPECT_EQ(Silu(-800), 0);
  EXPECT_EQ(SiluDerivative(800), 1);
  EXPECT_EQ(SiluDerivative(-800), 0);
}

// SiLU(z) - SiLU(-z) = z; both terms are at most |z|.
TEST(Silu, OddPartIsHalfTheArgument) {
  for (double z = -30; z <= 30; z += 0.37) {
    EXPECT_NEAR(Silu(z) - Silu(-z), z, 4 * kUlp * std::abs(z)) << z;
  }
}

// d_model = d_ffn = 1: E(x) = SiLU(g x) u x d.
TEST(Expert, MatchesTheHandComputedValue) {
  Matrix hidden(1, 1), gate_up(1, 2), down(1, 1);
  hidden << 2;
  gate_up << std::log(3.0) / 2, 5;  // gate, then up
  down << 7;
  const double expected = 0.75 * std::log(3.0) * 10 * 7;
  EXPECT_NEAR(ExpertForward(hidden, gate_up, down)(0, 0), expected,
              8 * kUlp * expected);
}

TEST(Expert, ZeroTokenGivesZero) {
  EXPECT_EQ(ExpertForward(Matrix::Zero(1, 4), RandomMatrix(4, 6, 1, 1),
                          RandomMatrix(3, 4, 1, 2)),
            Matrix::Zero(1, 4));
}

TEST(Expert, NoTokensGiveNothingAndZeroGradients) {
  const Matrix none(0, 4);
  const Matrix gate_up = RandomMatrix(4, 6, 2, 1),
               down = RandomMatrix(3, 4, 2, 2);
  EXPECT_EQ(ExpertForward(none, gate_up, down).rows(), 0);
  const ExpertGradients g = ExpertBackward(none, gate_up, down, none);
  EXPECT_EQ(g.d_gate_up_weight, Matrix::Zero(4, 6));
  EXPECT_EQ(g.d_down_weight, Matrix::Zero(3, 4));
}

// Gating the hidden activation or the output is the same, since there is no
// bias: the expert is linear in down_weight.
TEST(Expert, IsLinearInTheDownProjection) {
  const Matrix x = RandomMatrix(3, 4, 3, 1), gate_up = RandomMatrix(4, 6, 3, 2),
               down = RandomMatrix(3, 4, 3, 3);
  EXPECT_EQ(ExpertForward(x, gate_up, 4 * down),
            4 * ExpertForward(x, gate_up, down));
}

TEST(Expert, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(
      ExpertForward(Matrix::Ones(2, 4), Matrix::Ones(4, 6), Matrix::Ones(3, 5)),
      InternalError);
  EXPECT_TRUE(Says(MessageOf<InternalError>([&] {
                     ExpertBackward(Matrix::Ones(2, 4), Matrix::Ones(4, 7),
                                    Matrix::Ones(3, 4), Matrix::Ones(2, 4));
                   }),
                   "gate_up [4, 7], down [3, 4]"));
  EXPECT_THROW(ExpertBackward(Matrix::Ones(2, 4), Matrix::Ones(4, 6),
                              Matrix::Ones(3, 4), Matrix::Ones(3, 4)),
               InternalError);
}

}  // namespace
}  // namespace softmoe::reference
