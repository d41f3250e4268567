// SPDX-License-Identifier: Apache-2.0
//
// What the trainer records about routing in passes of the fast model, against
// the reference: a routing trace, read back from its file, and router health by
// the definitions of reference/metrics.h. The reference routes the trace's
// scores with its own k_l, cutoffs and caps.
//
// Tolerance. Soft weights must be within the bounds of the kernels' router
// (verify/operations/row_bounds.h), and their sum within the sum of the bounds.
// The active sets must be those that follow from the trace's own soft weights,
// without tolerance. They may differ from the reference's where a weight is
// within its bound of the cutoff; a truncated mass then errs by at most the
// mean, over the tokens, of the bounds of the weights that are not active.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/comparator.h"
#include "core/hdf5/hdf5_file.h"
#include "core/parallel_for.h"
#include "core/testing/config_test_util.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "optimized/communicator/communicator.h"
#include "optimized/model.h"
#include "property_tests/error_bounds.h"
#include "property_tests/routing_margin.h"
#include "property_tests/testing/model_difference.h"
#include "property_tests/verify/operations/row_bounds.h"
#include "reference/metrics.h"
#include "reference/router.h"
#include "trainer/evaluation/router_health.h"
#include "trainer/evaluation/routing_trace.h"
#include "trainer/evaluation/validation.h"

namespace softmoe::property_tests {
namespace {

using reference::BoolMatrix;
using reference::Matrix;
using reference::RouterSettings;
using trainer::RouterHealth;

Config RandomConfig() {
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
  config.router.noise = NoiseKind::kLogitGauss;  // for training only
  config.router.noise_amplitude = 0.5;
  config.router.mean_active_experts =
      config.router.kind == RouterKind::kSparse
          ? static_cast<double>(
                *rc::gen::inRange<int64_t>(1, m.num_experts + 1))
          : 1 + 0.125 * *rc::gen::inRange<int>(
                            0, static_cast<int>(4 * (m.num_experts - 1)));
  return config;
}

std::vector<Bounded> BoundWeights(const RouterSettings& settings,
                                  const reference::Vector& scores) {
  return settings.kind == RouterKind::kSparse
             ? verify::BoundSoftmaxRow(scores).weights
             : SoftWeightBounds(settings, scores);
}

// One layer of a trace, and what the reference makes of its scores.
struct Layer {
  RouterSettings settings;
  Matrix scores;
  reference::RouterSaved exact;
  std::vector<Bounded> bounds;  // of the soft weights [token, expert]
  Matrix errors;                // including that of numbers near 0
  std::vector<bool> near;       // [token] whether floats may decide otherwise
  std::vector<float> soft_weights;
  BoolMatrix active;

  bool sparse() const { return settings.kind == RouterKind::kSparse; }
};

Layer MakeLayer(const RouterSettings& settings, const Matrix& scores,
                std::span<const float> soft_weights, const BoolMatrix& active) {
  Layer layer;
  layer.settings = settings;
  layer.scores = scores;
  layer.exact = reference::RouterForward(settings, scores);
  layer.soft_weights.assign(soft_weights.begin(), soft_weights.end());
  layer.active = active;
  layer.errors.resize(scores.rows(), scores.cols());
  for (int64_t t = 0; t < scores.rows(); ++t) {
    const std::vector<Bounded> row = BoundWeights(settings, scores.row(t));
    layer.bounds.insert(layer.bounds.end(), row.begin(), row.end());
    bool near = false;
    for (int64_t e = 0; e < scores.cols(); ++e) {
      const double error = row[e].error + kUnderflow;
      layer.errors(t, e) = error;
      near |= !layer.sparse() && std::abs(layer.exact.soft_weights(t, e) -
                                          settings.cutoff) <= error;
    }
    layer.near.push_back(near);
  }
  return layer;
}

Layer ReadLayer(const Hdf5Reader& trace, const Config& config, int64_t l) {
  const auto scores_of_all = trace.ReadDataset<float>("/scores");
  const auto weights_of_all = trace.ReadDataset<float>("/soft_weights");
  const auto active_of_all = trace.ReadDataset<uint8_t>("/active");
  const int64_t tokens = scores_of_all.shape[1];
  const int64_t experts = scores_of_all.shape[2];
  const auto of_layer = [&](const auto& all) {
    const auto pairs = static_cast<size_t>(tokens * experts);
    return std::span(all.values).subspan(static_cast<size_t>(l) * pairs, pairs);
  };
  const auto number = [&](const char* name) {
    const double x = trace.ReadDataset<double>(name).values[l];
    return static_cast<double>(static_cast<float>(x));
  };
  const RouterSettings settings = {
      .kind = config.router.kind,
      .mean_active = number("/mean_active"),
      .temperature = trace.ReadDouble("/", "temperature"),
      .cutoff = number("/cutoff"),
      .max_active = trace.ReadDataset<int64_t>("/max_active").values[l],
      .fallback = config.router.fallback};
  BoolMatrix active(tokens, experts);
  std::ranges::copy(of_layer(active_of_all), active.data());
  return MakeLayer(settings, AsMatrix(of_layer(scores_of_all), tokens, experts),
                   of_layer(weights_of_all), active);
}

// The defect of one layer of the trace, or "".
std::string TraceDefect(const Layer& layer) {
  const int64_t tokens = layer.active.rows(), experts = layer.active.cols();
  const double whole = layer.sparse() ? 1
                                      : std::min(layer.settings.mean_active,
                                                 static_cast<double>(experts));
  const BoolMatrix own =
      OwnSelection(layer.settings, layer.scores,
                   AsMatrix(layer.soft_weights, tokens, experts));
  for (int64_t t = 0; t < tokens; ++t) {
    if (layer.active.row(t) != own.row(t)) {
      return "another active set of token " + std::to_string(t);
    }
    double sum = 0, limit = 0;
    for (int64_t e = 0; e < experts; ++e) {
      sum += static_cast<double>(layer.soft_weights[t * experts + e]);
      limit +=
          layer.errors(t, e) + 2 * kDoubleUnit * static_cast<double>(experts);
    }
    if (!(std::abs(sum - whole) <= limit)) {
      return "the soft weights of token " + std::to_string(t) + " add up to " +
             std::to_string(sum) + " instead of " + std::to_string(whole);
    }
  }
  const verify::ExpectedOutput expected = verify::FromBounds(
      "soft weights",
      verify::ToTensor(layer.exact.soft_weights, {tokens, experts}),
      layer.bounds, "");
  const Comparison comparison = Compare(
      std::span<const float>(layer.soft_weights), expected.values.values,
      expected.bounds, {.may_be_constant = true, .may_be_tiny = true});
  return comparison.ok() ? "" : "soft weights: " + comparison.Text();
}

// The defect of one layer's health, or "".
std::string HealthDefect(const Layer& layer, const RouterHealth& got) {
  const double tokens = static_cast<double>(layer.active.rows());
  const double experts = static_cast<double>(layer.active.cols());
  const Matrix& soft_weights = layer.exact.soft_weights;
  const double cutoff = layer.settings.cutoff;
  const auto differs = [](const char* what, double value, double expected,
                          double tolerance) {
    // Negated, so that NaN is a defect.
    if (std::abs(value - expected) <= tolerance) return std::string();
    return std::string(what) + ": " + std::to_string(value) + " instead of " +
           std::to_string(expected) + ", tolerance " +
           std::to_string(tolerance);
  };

  // Both use the same integers. A logarithm, two products and a sum of a term
  // of at most 1/e per expert, with an entropy of at most ln E.
  const std::vector<int64_t> load = reference::TokensPerExpert(layer.active);
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
  // The values are quotients of integers, each rounded once.
  const auto near = static_cast<double>(std::ranges::count(layer.near, true));
  const double share = near / tokens + (near > 0 ? 2 * kDoubleUnit : 0);
  if (defect.empty()) {
    defect = differs("at the cap", got.at_cap_fraction,
                     reference::AtCapFraction(
                         soft_weights, layer.sparse() ? -HUGE_VAL : cutoff,
                         layer.settings.max_active),
                     share);
  }
  if (defect.empty()) {
    defect =
        differs("zero active", got.zero_active_fraction,
                reference::ZeroActiveFraction({soft_weights}, {cutoff}), share);
  }
  if (!defect.empty()) return defect;
  if (got.truncated_mass.has_value() == layer.sparse()) {
    return "the sparse router has no truncated mass, a soft one has";
  }
  if (layer.sparse()) return "";
  // In addition to the bounds, sums of tokens*experts doubles on either side.
  const double mass = reference::TruncatedMass(soft_weights, layer.active);
  return differs("truncated mass", *got.truncated_mass, mass,
                 reference::TruncatedMass(layer.errors, layer.active) +
                     2 * tokens * experts * kDoubleUnit * mass);
}

// Four equal scores and one far below them: the sum of the five weights is the
// float below 5, 8 u less, and all of it is missing from the lowest.
TEST(RoutingProperty, AllWeightsMayMissOneWholeStepOfTheirSum) {
  const std::vector<Bounded> weights =
      BoundWeights({.kind = RouterKind::kSoftFixed, .mean_active = 5},
                   reference::Vector{{0, 0, 0, 0, -20}});
  EXPECT_GE(weights[4].error, 8 * kFloatUnit);
}

// One weight at the cutoff excuses none of the others.
TEST(RoutingProperty, ATokenNearTheCutoffHasTheSetOfItsWeights) {
  RouterSettings settings = {.kind = RouterKind::kSoftFixed,
                             .mean_active = 1.5,
                             .cutoff = 0,
                             .max_active = 3};
  const Matrix scores{{1, 0.25, -1.5}};
  const Matrix exact = reference::RouterForward(settings, scores).soft_weights;
  const std::vector<float> weights(exact.data(), exact.data() + exact.size());
  settings.cutoff = static_cast<double>(weights[1]);
  BoolMatrix active{{true, false, false}};
  EXPECT_EQ(TraceDefect(MakeLayer(settings, scores, weights, active)), "");
  for (const int64_t e : {0, 1, 2}) {
    BoolMatrix flipped = active;
    flipped(0, e) = !flipped(0, e);
    const Layer layer = MakeLayer(settings, scores, weights, flipped);
    EXPECT_TRUE(layer.near[0]);
    EXPECT_TRUE(Says(TraceDefect(layer), "another active set"));
  }
}

TEST(RoutingProperty, IsWhatTheReferenceDefines) {
  const auto path = FreshFolder("routing_property") / "trace.h5";
  int64_t ambiguous = 0, decisions = 0;
  EXPECT_TRUE(rc::check([&] {
    const Config config = RandomConfig();
    const auto seed = *rc::gen::inRange<uint64_t>(0, 1000);
    const optimized::RoutingState routing = {
        .temperature = 1, .tau = *rc::gen::inRange(0, 20) / 8.0};
    ThreadPool pool(2);
    const auto model = optimized::MakeModel(config, 2, pool);
    trainer::RoutingTrace trace(config, 3);
    trainer::RouterHealthTotals totals(config);
    optimized::SingleCommunicator alone;
    std::vector<int32_t> tokens, targets;
    // A whole group and a part of one.
    for (const int64_t sequences : {2, 1}) {
      const ModelCase c = MakeModelCase(
          config, sequences, seed + static_cast<uint64_t>(sequences));
      if (tokens.empty()) model->WriteParameters(c.parameters, 0);
      const optimized::StepStats stats = model->Forward(
          {c.num_sequences, c.inputs, c.targets, c.first_token}, routing);
      const auto views = trainer::LastRouting(*model);
      trace.Add(views);
      totals.Add({&stats, 1}, views, alone);
      tokens.insert(tokens.end(), c.inputs.begin(), c.inputs.end());
      targets.insert(targets.end(), c.targets.begin(), c.targets.end());
    }
    trainer::TracedModel traced{
        .identity = {}, .tau = routing.tau, .temperature = routing.temperature};
    traced.identity.config = config;
    trace.Write(path, traced, tokens, targets, model->Allocations(routing));

    const Hdf5Reader file(path, trainer::RoutingTraceKind());
    RC_ASSERT(std::ranges::max(file.ReadDataset<uint8_t>("/active").values) <=
              1);
    const std::vector<RouterHealth> health = totals.Get();
    for (int64_t l = 0; l < config.model.num_layers; ++l) {
      const Layer layer = ReadLayer(file, config, l);
      ambiguous += std::ranges::count(layer.near, true);
      decisions += std::ssize(layer.near);
      std::string defect = TraceDefect(layer);
      if (defect.empty()) defect = HealthDefect(layer, health[l]);
      RC_LOG() << "layer " << l << ": " << defect;
      RC_ASSERT(defect.empty());
    }
  }));
  // A comparison that calls everything a near-tie shows nothing.
  EXPECT_LE(ambiguous, decisions / 100);
}

}  // namespace
}  // namespace softmoe::property_tests
