// SPDX-License-Identifier: Apache-2.0
//
// The whole model's gradient against finite differences of its loss, for every
// router, fallback, reading of the load balance and kind of noise, in random
// directions over all parameters at once and over each tensor by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/config/parameter_layout.h"
#include "reference/flat_parameters.h"
#include "reference/metrics.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/random_matrix.h"
#include "reference/testing/routing_cases.h"
#include "reference/testing/tiny_model.h"
#include "reference/testing/vjp_check.h"
#include "reference/transformer.h"

namespace softmoe::reference {
namespace {

constexpr double kLossScale = 0.7 / 12;  // on purpose no special value
constexpr double kGroupScale = 0.3;

using testing::CaseConfig;
using testing::CaseRouting;
using testing::RoutingCase;

// The function whose gradient TransformerLossAndGradients defines: as
// Objective, but with what it holds constant (k_l and the fractions of the
// load-balancing loss) kept at the values of the point of expansion, `base`.
double FrozenObjective(const Config& config, const RoutingState& routing,
                       const GroupResult& base, const GroupResult& here) {
  const bool soft_reading =
      config.router.kind != RouterKind::kSparse &&
      config.router.load_balance == LoadBalanceKind::kSoft;
  double objective = here.loss_sum * kLossScale;
  for (size_t l = 0; l < here.layers.size(); ++l) {
    const LayerRouting& layer = here.layers[l];
    Vector probabilities = layer.balance.probabilities;
    if (soft_reading) {
      const LayerAllocation& allocation = base.layers[l].allocation;
      const RouterSaved frozen =
          RouterForward({.kind = config.router.kind,
                         .mean_active = allocation.mean_active,
                         .temperature = routing.temperature,
                         .cutoff = allocation.cutoff,
                         .max_active = allocation.max_active},
                        layer.scores);
      probabilities = frozen.soft_weights.colwise().mean().transpose() /
                      allocation.mean_active;
    }
    const double balance = config.router.aux_loss_coeff *
                           static_cast<double>(config.model.num_experts) *
                           base.layers[l].balance.fractions.dot(probabilities);
    objective += kGroupScale * (balance + layer.z_loss);
  }
  return objective;
}

// True if a discrete choice differs: finite differences mean nothing then.
bool SelectionDiffers(const GroupResult& a, const GroupResult& b) {
  for (size_t l = 0; l < a.layers.size(); ++l) {
    if (a.layers[l].routing.active != b.layers[l].routing.active ||
        a.layers[l].balance.fractions != b.layers[l].balance.fractions ||
        a.layers[l].allocation.max_active !=
            b.layers[l].allocation.max_active) {
      return true;
    }
  }
  return false;
}

class GradientTest : public ::testing::TestWithParam<RoutingCase> {
 protected:
  GradientTest()
      : config_(CaseConfig(GetParam())),
        layout_(config_),
        parameters_(testing::TinyParameters(config_, GetParam().Seed())),
        tokens_(config_, 2, GetParam().Seed()),
        routing_(CaseRouting(GetParam())),
        at_(TransformerLossAndGradients(config_, parameters_, tokens_.Group(),
                                        routing_, kLossScale, kGroupScale)) {}

  // Compares along `direction`; adds to `dropped_` where the selection changes
  // or the curvature of LapSum's F jumps however small the step.
  void Check(const Vector& direction, const std::string& what) {
    const Vector products = at_.gradients.cwiseProduct(direction);
    bool differs = false;
    auto phi = [&](double h) {
      const GroupResult here = TransformerForward(
          config_, parameters_ + h * direction, tokens_.Group(), routing_);
      differs = differs || SelectionDiffers(at_.result, here);
      return FrozenObjective(config_, routing_, at_.result, here);
    };
    for (double step = 0x1p-7; step >= 0x1p-15; step /= 2) {
      differs = false;
      phi(step);
      phi(-step);
      if (differs) continue;
      const testing::DerivativeEstimate estimate =
          testing::DifferentiateAtZero(phi, step);
      if (differs ||
          estimate.smoothness == testing::Smoothness::kInconclusive) {
        continue;
      }
      EXPECT_EQ(testing::DerivativeMismatch(estimate, products.sum(),
                                            products.cwiseAbs().sum()),
                "")
          << what << " at step " << step;
      ++checked_;
      return;
    }
    ++dropped_;
  }

  const Config config_;
  const ParameterLayout layout_;
  const Vector parameters_;
  const testing::TinyTokens tokens_;
  const RoutingState routing_;
  const GroupResultAndGradients at_;
  int checked_ = 0;
  int dropped_ = 0;
};

TEST_P(GradientTest, MatchesFiniteDifferences) {
  const uint64_t seed = GetParam().Seed();
  for (uint32_t trial = 0; trial < 3; ++trial) {
    Check(testing::RandomVector(layout_.total, seed, 1000 + trial),
          "all parameters");
  }
  uint32_t which = 2000;
  for (const ParameterTensor& tensor : layout_.tensors) {
    Vector direction = Vector::Zero(layout_.total);
    direction.segment(tensor.offset, tensor.size) =
        testing::RandomVector(tensor.size, seed, ++which);
    Check(direction, tensor.name);
  }
  RecordProperty("checked", checked_);
  RecordProperty("dropped", dropped_);
  EXPECT_LE(dropped_, 1) << "of " << checked_ + dropped_ << " directions";
}

TEST_P(GradientTest, FrozenObjectiveIsTheObjectiveWhereItIsFrozen) {
  const double frozen =
      FrozenObjective(config_, routing_, at_.result, at_.result);
  const double objective = at_.result.Objective(kLossScale, kGroupScale);
  // Both multiply the same positive terms, in different orders: 4 products
  // each, and as many sums as the layers have terms.
  const double roundings =
      4 + 2 * static_cast<double>(config_.model.num_layers);
  EXPECT_NEAR(frozen, objective, 2 * roundings * 0x1p-53 * std::abs(objective));
}

// No tensor's gradient is zero by accident, so the comparison above means
// something for each of them.
TEST_P(GradientTest, EveryTensorReceivesAGradient) {
  for (const ParameterTensor& tensor : layout_.tensors) {
    EXPECT_GT(TensorElements(tensor, at_.gradients).norm(), 1e-6)
        << tensor.name;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryRouter, GradientTest,
                         ::testing::ValuesIn(testing::AllRoutingCases()),
                         [](const auto& info) { return info.param.Name(); });

// The cases that routing distinguishes occur in the models tested above.
TEST(GradientCases, ExerciseEveryRoutingCase) {
  int none = 0, several = 0, capped = 0, fallen_back = 0, inactive = 0;
  for (const RoutingCase& c : testing::AllRoutingCases()) {
    if (c.kind == RouterKind::kSparse) continue;
    const Config config = CaseConfig(c);
    const testing::TinyTokens tokens(config, 2, c.Seed());
    const GroupResult result =
        TransformerForward(config, testing::TinyParameters(config, c.Seed()),
                           tokens.Group(), CaseRouting(c));
    for (const LayerRouting& layer : result.layers) {
      const RouterSaved& routing = layer.routing;
      for (Eigen::Index t = 0; t < routing.active.rows(); ++t) {
        const auto above =
            (routing.soft_weights.row(t).array() > layer.allocation.cutoff)
                .count();
        const auto active = routing.active.row(t).count();
        none += active == 0;
        several += active > 1;
        capped += above > active;
        fallen_back += above == 0 && active == 1;
      }
      for (int64_t tokens_of_expert : TokensPerExpert(routing.active)) {
        inactive += tokens_of_expert == 0;
      }
    }
  }
  EXPECT_GT(none, 10);
  EXPECT_GT(several, 100);
  EXPECT_GT(capped, 10);
  EXPECT_GT(fallen_back, 10);
  EXPECT_GT(inactive, 0);
}

}  // namespace
}  // namespace softmoe::reference
