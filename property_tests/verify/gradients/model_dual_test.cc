// SPDX-License-Identifier: Apache-2.0
//
// The adjoint dot test of the whole model: <gradients, v> of the reference's
// hand-written backward pass is the slope along v of the objective over dual
// numbers, for random v over all parameters and over each tensor by itself, for
// every kind of routing. model_dual.h derives the bounds. Planted errors show
// that the test would find one.
#include "property_tests/verify/gradients/model_dual.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "reference/metrics.h"
#include "reference/scalar.h"
#include "reference/testing/random_matrix.h"
#include "reference/testing/routing_cases.h"

namespace softmoe::verify {
namespace {

using reference::Vector;
using reference::testing::RoutingCase;

// A direction in parameter space, and the objective's slope along it.
struct Probe {
  std::string what;
  Vector direction;
  ObjectiveSlope objective;
};

class ModelDualTest : public ::testing::TestWithParam<RoutingCase> {
 protected:
  ModelDualTest()
      : config_(reference::testing::CaseConfig(GetParam())),
        layout_(config_),
        tokens_(config_, 2, GetParam().Seed()) {
    at_.config = config_;
    at_.parameters =
        reference::testing::TinyParameters(config_, GetParam().Seed());
    at_.group = tokens_.Group();
    at_.routing = reference::testing::CaseRouting(GetParam());
    at_.loss_scale = 0.7 / 12;  // deliberately not a special value
    at_.group_scale = 0.3;
    at_.found = Gradients(config_, at_.loss_scale, at_.group_scale);
  }

  reference::GroupResultAndGradients Gradients(const Config& config,
                                               double loss_scale,
                                               double group_scale) const {
    return reference::TransformerLossAndGradients(config, at_.parameters,
                                                  at_.group, at_.routing,
                                                  loss_scale, group_scale);
  }

  Probe Along(const std::string& what, const Vector& direction) const {
    return {what, direction, SlopeAlong(at_, direction)};
  }

  Probe AlongTensor(const ParameterTensor& tensor, uint32_t which) const {
    Vector direction = Vector::Zero(layout_.total);
    direction.segment(tensor.offset, tensor.size) =
        reference::testing::RandomVector(tensor.size, GetParam().Seed(), which);
    return Along(tensor.name, direction);
  }

  std::vector<Probe> Probes() const {
    std::vector<Probe> probes;
    for (uint32_t trial = 0; trial < 3; ++trial) {
      probes.push_back(
          Along("all parameters",
                reference::testing::RandomVector(
                    layout_.total, GetParam().Seed(), 1000 + trial)));
    }
    uint32_t which = 2000;
    for (const ParameterTensor& tensor : layout_.tensors) {
      probes.push_back(AlongTensor(tensor, ++which));
    }
    return probes;
  }

  // |<gradients, v> - slope| divided by its bound; wrong if above 1.
  double ShareOfBound(const Probe& probe, const Vector& gradients) const {
    reference::CompensatedSum<double> product;
    double magnitude = 0;
    for (Eigen::Index i = 0; i < gradients.size(); ++i) {
      const double term = gradients[i] * probe.direction[i];
      product.Add(term);
      magnitude += std::abs(term);
    }
    // Every term is rounded once, and the compensated sum less than once.
    const double bound = probe.objective.error + 0x1p-52 * magnitude;
    return std::abs(product.Get() - probe.objective.slope) / bound;
  }

  bool Found(const Vector& gradients) const {
    return std::ranges::any_of(Probes(), [&](const Probe& probe) {
      return ShareOfBound(probe, gradients) > 1;
    });
  }

  const Config config_;
  const ParameterLayout layout_;
  const reference::testing::TinyTokens tokens_;
  ModelPoint at_;
};

TEST_P(ModelDualTest, GradientsAreTheSlopeOfTheObjective) {
  double largest = 0;
  for (const Probe& probe : Probes()) {
    const double share = ShareOfBound(probe, at_.found.gradients);
    EXPECT_LE(share, 1) << probe.what;
    largest = std::max(largest, share);
  }
  RecordProperty("largest_share_of_bound", std::to_string(largest));
}

TEST_P(ModelDualTest, ValueIsTheObjective) {
  const ObjectiveSlope objective = SlopeAlong(at_, Vector::Zero(layout_.total));
  EXPECT_EQ(objective.slope, 0);
  EXPECT_LE(objective.error, 1e-300);  // products may lose this to underflow
  const double want =
      at_.found.result.Objective(at_.loss_scale, at_.group_scale);
  EXPECT_LE(std::abs(objective.value.value - want), 2 * objective.value.error);
}

// Values are compared stage by stage: a model that computes something else is
// not the one that was differentiated.
TEST_P(ModelDualTest, RefusesAnotherFunction) {
  const Vector nowhere = Vector::Zero(layout_.total);
  ModelPoint other = at_;
  other.config.router.z_loss_coeff *= 1 + 1e-12;
  EXPECT_THROW(SlopeAlong(other, nowhere), InternalError);
  other = at_;
  other.found.stream[1](7, 3) *= 1 + 1e-9;
  EXPECT_THROW(SlopeAlong(other, nowhere), InternalError);
}

TEST_P(ModelDualTest, FindsOneTensorWrongByOnePartInAMillion) {
  for (const Probe& probe : Probes()) {
    for (const ParameterTensor& tensor : layout_.tensors) {
      if (tensor.name != probe.what) continue;
      Vector faulty = at_.found.gradients;
      faulty.segment(tensor.offset, tensor.size) *= 1 + 1e-6;
      EXPECT_GT(ShareOfBound(probe, faulty), 1) << tensor.name;
    }
  }
}

TEST_P(ModelDualTest, FindsTemperatureMissingFromTheScoresGradient) {
  if (config_.router.kind == RouterKind::kSparse) return;  // has none
  Vector faulty = at_.found.gradients;
  for (const LayerOffsets& layer : layout_.layers) {
    faulty.segment(layer.router_weight,
                   config_.model.d_model * config_.model.num_experts) *=
        at_.routing.temperature;
  }
  EXPECT_TRUE(Found(faulty));
}

TEST_P(ModelDualTest, FindsBudgetGradientWithoutItsMean) {
  if (config_.router.kind != RouterKind::kSoftLearned) return;
  Vector faulty = at_.found.gradients;
  for (int64_t l = 0; l < config_.model.num_layers; ++l) {
    // (K - L) share_l d k_l instead of (K - L) share_l (d k_l - mean), as
    // k_l = 1 + (K - L) share_l.
    faulty[layout_.budget_logits + l] =
        (at_.found.result.layers[l].allocation.mean_active - 1) *
        at_.found.d_mean_active[l];
  }
  EXPECT_TRUE(Found(faulty));
}

TEST_P(ModelDualTest, FindsBalanceGradientWithoutTheGroupsScale) {
  // The gradient is linear in either scale; here, of the load balance alone.
  Config balance_alone = config_;
  balance_alone.router.z_loss_coeff = 0;
  const Vector faulty =
      at_.found.gradients +
      (1 - at_.group_scale) * Gradients(balance_alone, 0, 1).gradients;
  EXPECT_TRUE(Found(faulty));
}

INSTANTIATE_TEST_SUITE_P(
    EveryRouter, ModelDualTest,
    ::testing::ValuesIn(reference::testing::AllRoutingCases()),
    [](const auto& info) { return info.param.Name(); });

// The cases that routing distinguishes occur in the models tested above.
TEST(GradientCases, ExerciseEveryRoutingCase) {
  int none = 0, several = 0, capped = 0, fallen_back = 0, inactive = 0;
  for (const RoutingCase& c : reference::testing::AllRoutingCases()) {
    if (c.kind == RouterKind::kSparse) continue;
    const Config config = reference::testing::CaseConfig(c);
    const reference::testing::TinyTokens tokens(config, 2, c.Seed());
    const reference::GroupResult result = reference::TransformerForward(
        config, reference::testing::TinyParameters(config, c.Seed()),
        tokens.Group(), reference::testing::CaseRouting(c));
    for (const reference::LayerRouting& layer : result.layers) {
      const reference::RouterSaved& routing = layer.routing;
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
      for (int64_t tokens_of_expert :
           reference::TokensPerExpert(routing.active)) {
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
}  // namespace softmoe::verify
