// SPDX-License-Identifier: Apache-2.0
//
// Without moves, it is the reference's model up to roundings of double.
#include "property_tests/testing/moved_transformer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "core/config/parameter_layout.h"
#include "core/testing/config_test_util.h"
#include "reference/testing/tiny_model.h"

namespace softmoe::property_tests {
namespace {

using reference::Vector;

constexpr double kLossScale = 0.05, kGroupScale = 0.5;

class MovedTransformerTest : public ::testing::TestWithParam<RouterKind> {
 protected:
  MovedTransformerTest()
      : config_(reference::testing::TinyConfig(GetParam())),
        parameters_(reference::testing::TinyParameters(config_, 3)),
        tokens_(config_, /*num_sequences=*/2, 3) {}

  reference::GroupResultAndGradients Moved(double unit, uint64_t seed) const {
    return MovedTransformer(config_, parameters_, tokens_.Group(),
                            reference::testing::TinyRouting(), kLossScale,
                            kGroupScale, {}, unit, seed);
  }

  Config config_;
  Vector parameters_;
  reference::testing::TinyTokens tokens_;
};

// A rounding of double moves a number by at most 2^-53 relative, and every
// number here is a sum of fewer than 64 numbers rounded once each: 8 sqrt(64)
// times the effect of a move by 2^-53 (model_difference.h), which is 2^-13 of
// that of a move by 2^-40.
TEST_P(MovedTransformerTest, IsTheReferencesModelIfNothingIsMoved) {
  const reference::GroupResultAndGradients expected =
      reference::TransformerLossAndGradients(
          config_, parameters_, tokens_.Group(),
          reference::testing::TinyRouting(), kLossScale, kGroupScale);
  const reference::GroupResultAndGradients got = Moved(0, 1);
  const reference::GroupResultAndGradients moved = Moved(0x1p-40, 1);
  const auto expect_near = [](const Vector& want, const Vector& is,
                              const Vector& perturbed,
                              const std::string& what) {
    EXPECT_LE((is - want).norm(),
              64 * (perturbed - is).norm() * 0x1p-13 + 0x1p-51 * want.norm())
        << what;
    EXPECT_GT((perturbed - is).norm(), 0) << what;
  };
  for (const ParameterTensor& tensor : ParameterLayout(config_).tensors) {
    expect_near(expected.gradients.segment(tensor.offset, tensor.size),
                got.gradients.segment(tensor.offset, tensor.size),
                moved.gradients.segment(tensor.offset, tensor.size),
                tensor.name);
  }
  expect_near(expected.result.token_losses, got.result.token_losses,
              moved.result.token_losses, "losses");
  ASSERT_EQ(got.result.layers.size(), expected.result.layers.size());
  for (size_t l = 0; l < got.result.layers.size(); ++l) {
    const auto flat = [](const reference::Matrix& matrix) {
      return Vector(Eigen::Map<const Vector>(matrix.data(), matrix.size()));
    };
    expect_near(flat(expected.result.layers[l].scores),
                flat(got.result.layers[l].scores),
                flat(moved.result.layers[l].scores), "scores");
    EXPECT_EQ(got.result.layers[l].routing.active,
              expected.result.layers[l].routing.active);
  }
}

TEST_P(MovedTransformerTest, MovesAreAFunctionOfTheSeed) {
  const Vector once = Moved(0x1p-8, 1).gradients;
  EXPECT_EQ(once, Moved(0x1p-8, 1).gradients);
  EXPECT_NE(once, Moved(0x1p-8, 2).gradients);
}

INSTANTIATE_TEST_SUITE_P(Routers, MovedTransformerTest,
                         ::testing::ValuesIn(kRouterKinds), NameOfRouter);

}  // namespace
}  // namespace softmoe::property_tests
