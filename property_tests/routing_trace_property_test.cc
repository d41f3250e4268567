// SPDX-License-Identifier: Apache-2.0
//
// A routing trace, read back from its file, against the reference: what it
// makes of the trace's own scores, k_l, cutoffs and caps.
//
// Tolerance. Soft weights within the bounds of the kernels' router
// (verify/operations/row_bounds.h), their sum within the sum of these. The
// active sets may differ only where a soft weight is within its bound of the
// cutoff; scores are the same on both sides, so cap and top-k leave no doubt.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

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
#include "optimized/model.h"
#include "property_tests/error_bounds.h"
#include "property_tests/testing/model_difference.h"
#include "property_tests/verify/operations/row_bounds.h"
#include "reference/router.h"
#include "trainer/evaluation/routing_trace.h"
#include "trainer/evaluation/validation.h"

namespace softmoe::property_tests {
namespace {

// Any model in which no k_l reaches the number of experts, where every weight
// is 1.
Config RandomConfig() {
  Config config;
  config.router.kind = *rc::gen::elementOf(kRouterKinds);
  ModelConfig& m = config.model;
  m.num_layers = *rc::gen::inRange<int64_t>(1, 4);
  m.num_heads = 1;
  m.d_model = 2 * *rc::gen::inRange<int64_t>(2, 10);
  m.d_ffn = *rc::gen::inRange<int64_t>(1, 20);
  m.num_experts = *rc::gen::inRange<int64_t>(6, 40);
  m.vocab_size = 50;
  m.sequence_length = *rc::gen::inRange<int64_t>(1, 30);
  config.router.expansion_factor = *rc::gen::inRange(2, 7) / 2.0;
  config.router.fallback = *rc::gen::element(Fallback::kNone, Fallback::kTop1);
  config.router.noise = NoiseKind::kLogitGauss;  // for training, not for this
  config.router.noise_amplitude = 0.5;
  const int64_t spare = (m.num_experts - 2) / m.num_layers;
  config.router.mean_active_experts =
      config.router.kind == RouterKind::kSparse
          ? static_cast<double>(*rc::gen::inRange<int64_t>(1, m.num_experts))
          : 1 + 0.125 * *rc::gen::inRange<int>(0, static_cast<int>(8 * spare));
  return config;
}

// The defect of one layer of the file, or "". Counts the tokens whose active
// set floats may decide otherwise.
std::string Defect(const Hdf5Reader& file, const Config& config, int64_t layer,
                   int64_t* ambiguous, int64_t* decisions) {
  const auto scores_of_all = file.ReadDataset<float>("/scores");
  const auto weights_of_all = file.ReadDataset<float>("/soft_weights");
  const auto active_of_all = file.ReadDataset<uint8_t>("/active");
  const int64_t tokens = scores_of_all.shape[1];
  const int64_t experts = scores_of_all.shape[2];
  const auto pairs = static_cast<size_t>(tokens * experts);
  const auto first = static_cast<size_t>(layer) * pairs;
  const auto weights = std::span(weights_of_all.values).subspan(first, pairs);
  const auto active = std::span(active_of_all.values).subspan(first, pairs);
  const reference::Matrix scores = AsMatrix(
      std::span(scores_of_all.values).subspan(first, pairs), tokens, experts);

  const auto number = [&](const char* name) {
    const double x = file.ReadDataset<double>(name).values[layer];
    return static_cast<double>(static_cast<float>(x));
  };
  const bool sparse = config.router.kind == RouterKind::kSparse;
  const reference::RouterSettings settings = {
      .kind = config.router.kind,
      .mean_active = number("/mean_active"),
      .temperature = file.ReadDouble("/", "temperature"),
      .cutoff = number("/cutoff"),
      .max_active = file.ReadDataset<int64_t>("/max_active").values[layer],
      .fallback = config.router.fallback};
  const reference::RouterSaved exact =
      reference::RouterForward(settings, scores);

  std::vector<Bounded> bounds;
  for (int64_t t = 0; t < tokens; ++t) {
    const reference::Vector row = scores.row(t);
    const std::vector<Bounded> of_row =
        sparse ? verify::BoundSoftmaxRow(row).weights
               : verify::BoundLapSumRow(row, settings.mean_active,
                                        settings.temperature)
                     .weights;
    bounds.insert(bounds.end(), of_row.begin(), of_row.end());
    double sum = 0, limit = 0;
    bool near = false, differs = false;
    for (int64_t e = 0; e < experts; ++e) {
      const auto i = static_cast<size_t>(t * experts + e);
      const double error = of_row[e].error + kUnderflow;
      sum += static_cast<double>(weights[i]);
      limit += error + 2 * kDoubleUnit * static_cast<double>(experts);
      near |= !sparse &&
              std::abs(exact.soft_weights(t, e) - settings.cutoff) <= error;
      differs |= (active[i] == 1) != exact.active(t, e) || active[i] > 1;
    }
    ++*decisions;
    *ambiguous += near ? 1 : 0;
    if (differs && !near)
      return "another active set of token " + std::to_string(t);
    const double whole = sparse ? 1 : settings.mean_active;
    if (!(std::abs(sum - whole) <= limit)) {
      return "the soft weights of token " + std::to_string(t) + " add up to " +
             std::to_string(sum) + " instead of " + std::to_string(whole);
    }
  }
  const verify::ExpectedOutput expected = verify::FromBounds(
      "soft weights", verify::ToTensor(exact.soft_weights, {tokens, experts}),
      bounds, "");
  const Comparison comparison =
      Compare(weights, expected.values.values, expected.bounds,
              {.may_be_constant = true, .may_be_tiny = true});
  return comparison.ok() ? "" : "soft weights: " + comparison.Text();
}

TEST(RoutingTraceProperty, IsWhatTheReferenceRoutes) {
  const auto path = FreshFolder("routing_trace_property") / "trace.h5";
  int64_t ambiguous = 0, decisions = 0;
  EXPECT_TRUE(rc::check([&] {
    const Config config = RandomConfig();
    const auto seed = *rc::gen::inRange<uint64_t>(0, 1000);
    const optimized::RoutingState routing = {
        .temperature = 1, .tau = *rc::gen::inRange(0, 20) / 8.0};
    ThreadPool pool(2);
    optimized::Model model(config, 2, pool);
    trainer::RoutingTrace trace(config, 3);
    std::vector<int32_t> tokens, targets;
    // A whole group and a part of one.
    for (const int64_t sequences : {2, 1}) {
      const ModelCase c = MakeModelCase(
          config, sequences, seed + static_cast<uint64_t>(sequences));
      if (tokens.empty()) model.WriteParameters(c.parameters);
      model.Forward({c.num_sequences, c.inputs, c.targets, c.first_token},
                    routing);
      trace.Add(trainer::LastRouting(model));
      tokens.insert(tokens.end(), c.inputs.begin(), c.inputs.end());
      targets.insert(targets.end(), c.targets.begin(), c.targets.end());
    }
    trainer::TracedModel traced{
        .identity = {}, .tau = routing.tau, .temperature = routing.temperature};
    traced.identity.config = config;
    trace.Write(path, traced, tokens, targets, model.Allocations(routing));

    const Hdf5Reader file(path, trainer::RoutingTraceKind());
    for (int64_t l = 0; l < config.model.num_layers; ++l) {
      const std::string defect =
          Defect(file, config, l, &ambiguous, &decisions);
      RC_LOG() << "layer " << l << ": " << defect;
      RC_ASSERT(defect.empty());
    }
  }));
  // A comparison that calls everything a near-tie shows nothing.
  EXPECT_LE(ambiguous, decisions / 100);
}

}  // namespace
}  // namespace softmoe::property_tests
