// SPDX-License-Identifier: Apache-2.0
//
// The trainer's router health against the reference's definitions
// (reference/metrics.h), on the scores of the fast model's own passes.
//
// Tolerance. The reference routes the same float scores, with the kernel's
// numbers for the layer. Its selection may differ only where a soft weight is
// within its error bound (row_bounds.h) of the cutoff. A truncated mass then
// errs by at most the mean, over the tokens, of the bounds of the unselected
// weights.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/parallel_for.h"
#include "core/testing/config_test_util.h"
#include "optimized/model.h"
#include "property_tests/error_bounds.h"
#include "property_tests/testing/model_difference.h"
#include "property_tests/verify/operations/row_bounds.h"
#include "reference/metrics.h"
#include "reference/router.h"
#include "trainer/evaluation/router_health.h"

namespace softmoe::property_tests {
namespace {

using reference::BoolMatrix;
using reference::Matrix;
using trainer::RouterHealth;
using trainer::RouterHealthTotals;

// Appends the rows of `more`.
template <typename M>
void Append(const M& more, M* rows) {
  rows->conservativeResize(rows->rows() + more.rows(), more.cols());
  rows->bottomRows(more.rows()) = more;
}

// One layer over all groups, as the fast model and the reference see it.
struct LayerPasses {
  reference::RouterSettings settings;
  Matrix scores;
  BoolMatrix selected;  // by the fast model
};

// The error bound of every soft weight [tokens, experts].
Matrix WeightBounds(const LayerPasses& layer) {
  Matrix bounds(layer.scores.rows(), layer.scores.cols());
  const double num_experts = static_cast<double>(bounds.cols());
  for (Eigen::Index t = 0; t < bounds.rows(); ++t) {
    // If mean_active is num_experts or more, every weight is 1
    // (kernels/router.h).
    if (layer.settings.mean_active >= num_experts) {
      bounds.row(t).setConstant(num_experts * kFloatUnit);
      continue;
    }
    const verify::LapSumRow row =
        verify::BoundLapSumRow(layer.scores.row(t), layer.settings.mean_active,
                               layer.settings.temperature);
    for (Eigen::Index e = 0; e < bounds.cols(); ++e) {
      bounds(t, e) = row.weights[static_cast<size_t>(e)].error + kUnderflow;
    }
  }
  return bounds;
}

// The defect of one layer's health, or "". Counts the tokens for which floats
// may decide otherwise.
std::string Defect(const LayerPasses& layer, const RouterHealth& got,
                   int64_t* ambiguous) {
  const bool sparse = layer.settings.kind == RouterKind::kSparse;
  const double tokens = static_cast<double>(layer.scores.rows());
  const double experts = static_cast<double>(layer.scores.cols());
  const auto differs = [](const char* what, double value, double expected,
                          double tolerance) {
    // Negated, so that NaN is a defect.
    if (std::abs(value - expected) <= tolerance) return std::string();
    return std::string(what) + ": " + std::to_string(value) + " instead of " +
           std::to_string(expected) + ", tolerance " +
           std::to_string(tolerance);
  };

  const reference::RouterSaved exact =
      reference::RouterForward(layer.settings, layer.scores);
  Matrix bounds = Matrix::Zero(layer.scores.rows(), layer.scores.cols());
  int64_t near = 0;
  if (!sparse) {
    bounds = WeightBounds(layer);
    for (Eigen::Index t = 0; t < bounds.rows(); ++t) {
      near +=
          ((exact.soft_weights.row(t).array() - layer.settings.cutoff).abs() <=
           bounds.row(t).array())
              .any();
    }
  }
  *ambiguous += near;
  int64_t different = 0;
  for (Eigen::Index t = 0; t < bounds.rows(); ++t) {
    different += (exact.active.row(t) != layer.selected.row(t));
  }
  if (different > near) return "selections differ that are not near-ties";

  // Both use the same integers. A logarithm, two products and a sum of a term
  // of at most 1/e per expert, with an entropy of at most ln E.
  const std::vector<int64_t> load = reference::TokensPerExpert(layer.selected);
  const double rounding =
      2 * experts * (4 / std::exp(1.0) + std::log(experts)) * kDoubleUnit;
  std::string defect = differs("load entropy", got.load_entropy,
                               reference::LoadEntropy(load), rounding);
  if (defect.empty()) {
    // Divided by ln E >= ln 2.
    defect = differs("relative load entropy", got.relative_load_entropy,
                     reference::RelativeLoadEntropy(load),
                     rounding / std::log(2.0) + 4 * kDoubleUnit);
  }
  if (defect.empty()) {
    defect = differs("dead experts", static_cast<double>(got.dead_experts),
                     static_cast<double>(reference::DeadExperts(load)), 0);
  }
  // Quotients of integers, each rounded once.
  const double share =
      static_cast<double>(near) / tokens + (near > 0 ? 2 * kDoubleUnit : 0);
  const double cutoff = sparse ? 0 : layer.settings.cutoff;
  if (defect.empty()) {
    defect = differs("at the cap", got.at_cap_fraction,
                     reference::AtCapFraction(exact.soft_weights, cutoff,
                                              layer.settings.max_active),
                     share);
  }
  if (defect.empty()) {
    defect = differs(
        "zero active", got.zero_active_fraction,
        reference::ZeroActiveFraction({exact.soft_weights}, {cutoff}), share);
  }
  if (!defect.empty()) return defect;
  if (got.truncated_mass.has_value() == sparse) {
    return "the sparse router has no truncated mass, a soft one has";
  }
  if (sparse) return "";
  // Sums of tokens*experts doubles on either side, in addition to the bounds.
  const double mass =
      reference::TruncatedMass(exact.soft_weights, layer.selected);
  return differs("truncated mass", *got.truncated_mass, mass,
                 reference::TruncatedMass(bounds, layer.selected) +
                     2 * tokens * experts * kDoubleUnit * mass);
}

// Passes of one model of any shape, group after group.
std::string HealthDefect(int64_t* ambiguous, int64_t* decisions) {
  Config config;
  config.router.kind = *rc::gen::elementOf(kRouterKinds);
  ModelConfig& m = config.model;
  m.num_layers = *rc::gen::inRange<int64_t>(1, 4);
  m.num_heads = 1;
  m.d_model = 2 * *rc::gen::inRange<int64_t>(2, 10);
  m.d_ffn = *rc::gen::inRange<int64_t>(1, 20);
  m.num_experts = *rc::gen::inRange<int64_t>(2, 40);
  m.vocab_size = 50;
  m.sequence_length = *rc::gen::inRange<int64_t>(1, 40);
  config.router.expansion_factor = *rc::gen::inRange(2, 7) / 2.0;
  config.router.fallback = *rc::gen::element(Fallback::kNone, Fallback::kTop1);
  config.router.mean_active_experts =
      config.router.kind == RouterKind::kSparse
          ? static_cast<double>(
                *rc::gen::inRange<int64_t>(1, m.num_experts + 1))
          : 1 + 0.125 * *rc::gen::inRange<int>(
                            0, static_cast<int>(4 * (m.num_experts - 1)));
  const auto seed = *rc::gen::inRange<uint64_t>(0, 1000);
  const optimized::RoutingState routing = {
      .temperature = 1, .tau = *rc::gen::inRange(0, 20) / 8.0};

  constexpr int64_t kSequences = 2;
  ThreadPool pool(2);
  optimized::Model model(config, kSequences, pool);
  RouterHealthTotals totals(config);
  std::vector<LayerPasses> layers(static_cast<size_t>(m.num_layers));
  for (uint64_t group = 0; group < 2; ++group) {
    const ModelCase c = MakeModelCase(config, kSequences, seed + group);
    // One model serves both groups; the second seed is for its text.
    if (group == 0) {
      model.WriteParameters(c.parameters);
    }
    const optimized::StepStats stats = model.Forward(
        {c.num_sequences, c.inputs, c.targets, c.first_token}, routing);
    const auto allocations = model.Allocations(routing);
    std::vector<optimized::RoutingView> views;
    for (size_t l = 0; l < layers.size(); ++l) {
      const auto view = model.LastRouting(static_cast<int64_t>(l));
      views.push_back(view);
      const auto as_float = [](double x) {
        return static_cast<double>(static_cast<float>(x));
      };
      layers[l].settings = {.kind = config.router.kind,
                            .mean_active = as_float(allocations[l].mean_active),
                            .temperature = routing.temperature,
                            .cutoff = as_float(allocations[l].cutoff),
                            .max_active = allocations[l].max_active,
                            .fallback = config.router.fallback};
      Append(AsMatrix(view.scores, stats.num_tokens, m.num_experts),
             &layers[l].scores);
      Append(SelectionOf(view, stats.num_tokens, m.num_experts),
             &layers[l].selected);
    }
    totals.Add(stats, views);
  }
  const std::vector<RouterHealth> health = totals.Get();
  for (size_t l = 0; l < layers.size(); ++l) {
    *decisions += layers[l].scores.rows();
    const std::string defect = Defect(layers[l], health[l], ambiguous);
    if (!defect.empty()) return "layer " + std::to_string(l) + ": " + defect;
  }
  return "";
}

TEST(RouterHealthProperty, IsWhatTheReferenceDefines) {
  int64_t ambiguous = 0, decisions = 0;
  EXPECT_TRUE(rc::check([&] {
    const std::string defect = HealthDefect(&ambiguous, &decisions);
    RC_LOG() << defect;
    RC_ASSERT(defect.empty());
  }));
  // A comparison that calls everything a near-tie shows nothing.
  EXPECT_LE(ambiguous, decisions / 100);
}

}  // namespace
}  // namespace softmoe::property_tests
