// SPDX-License-Identifier: Apache-2.0
#include "property_tests/testing/model_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <span>

#include "core/comparator.h"
#include "core/config/parameter_layout.h"
#include "core/philox.h"
#include "core/testing/bounded.h"
#include "property_tests/error_bounds.h"
#include "property_tests/routing_margin.h"
#include "property_tests/testing/moved_transformer.h"
#include "property_tests/testing/oracle_bounds.h"
#include "reference/load_balance.h"
#include "reference/testing/tiny_model.h"

namespace softmoe::property_tests {
namespace {

using reference::BoolMatrix;
using reference::Matrix;
using reference::RouterSettings;
using reference::RoutingReplay;
using reference::Vector;

constexpr double kLambda = 8;

// The tolerance rules of a precision; the header gives the reasons.
struct Rule {
  int runs;            // runs of the moved reference
  double meaningless;  // a tolerance of this share of a tensor's norm
};
Rule RuleOf(const Config& config) {
  return config.training.precision == Precision::kBf16 ? Rule{16, 0.5}
                                                       : Rule{4, 1e-3};
}
bool InBf16(const ModelCase& c) {
  return c.config.training.precision == Precision::kBf16;
}

// Every scalar and tensor compared, in a fixed order.
struct Outputs {
  std::vector<std::string> names;
  std::vector<Vector> values;

  void Add(const std::string& name, Vector value) {
    names.push_back(name);
    values.push_back(std::move(value));
  }
  void Add(const std::string& name, double value) {
    Add(name, Vector::Constant(1, value));
  }
};

int64_t NumTokens(const ModelCase& c) {
  return c.num_sequences * c.config.model.sequence_length;
}

// The objective's scales, as in a step of one group; exact in float.
double LossScale(const ModelCase& c) {
  return std::exp2(-std::ceil(std::log2(static_cast<double>(NumTokens(c)))));
}
constexpr double kGroupScale = 0.5;

void AddGradients(const ParameterLayout& layout, const Vector& gradients,
                  Outputs* outputs) {
  for (const ParameterTensor& tensor : layout.tensors) {
    outputs->Add("gradient of " + tensor.name,
                 gradients.segment(tensor.offset, tensor.size));
  }
}

Vector Flat(const Matrix& matrix) {
  return Eigen::Map<const Vector>(matrix.data(), matrix.size());
}

Outputs OutputsOf(const reference::GroupResultAndGradients& all,
                  const ParameterLayout& layout) {
  Outputs outputs;
  outputs.Add("loss", all.result.loss_sum);
  for (size_t l = 0; l < all.result.layers.size(); ++l) {
    const reference::LayerRouting& layer = all.result.layers[l];
    outputs.Add(fmt::format("load balance loss of layer {}", l),
                layer.balance.loss);
    outputs.Add(fmt::format("z loss of layer {}", l), layer.z_loss);
    outputs.Add(fmt::format("scores of layer {}", l), Flat(layer.scores));
  }
  AddGradients(layout, all.gradients, &outputs);
  return outputs;
}

reference::BalanceGroup GroupOf(const ModelCase& c) {
  return {c.num_sequences, c.inputs, c.targets, c.first_token};
}
reference::RoutingState RoutingOf(const ModelCase& c) {
  return {c.temperature, c.tau, c.noise, c.step};
}

Outputs FromReference(const ModelCase& c, const ParameterLayout& layout,
                      const Vector& parameters,
                      const std::vector<RoutingReplay>& replay,
                      reference::GroupResult* result) {
  const reference::GroupResultAndGradients all =
      reference::TransformerLossAndGradients(c.config, parameters, GroupOf(c),
                                             RoutingOf(c), LossScale(c),
                                             kGroupScale, replay);
  if (result) *result = all.result;
  return OutputsOf(all, layout);
}

// The model's pass, with what the reference needs to replay it.
struct ModelPass {
  Outputs outputs;
  optimized::StepStats stats;
  std::vector<optimized::LayerAllocation> allocations;
  std::vector<RoutingReplay> replay;
  std::vector<std::vector<int64_t>> balance_counts;
  std::vector<Vector> scores;                    // of each layer
  std::vector<std::vector<float>> soft_weights;  // of each layer
};

// The experts that a layer selected [num_tokens, num_experts].
BoolMatrix SelectionOf(const optimized::RoutingView& view, int64_t num_tokens,
                       int64_t num_experts) {
  BoolMatrix selection = BoolMatrix::Constant(num_tokens, num_experts, false);
  for (size_t i = 0; i < view.selected.size(); ++i) {
    if (view.selected[i] < 0) continue;
    selection(static_cast<int64_t>(i) / view.max_active, view.selected[i]) =
        true;
  }
  return selection;
}

ModelPass RunModel(const ModelCase& c, const ModelMaker& make_model) {
  const auto owned = make_model(c.config, c.num_sequences);
  optimized::Model& model = *owned;
  model.WriteParameters(c.parameters, 0);
  const optimized::RoutingState routing = {c.temperature, c.tau, c.noise,
                                           c.step};
  std::vector<float> gradients(c.parameters.size(), NAN);
  ModelPass pass;
  pass.stats = model.ForwardBackward(
      {c.num_sequences, c.inputs, c.targets, c.first_token}, routing,
      LossScale(c), kGroupScale, gradients);
  pass.allocations = model.Allocations(routing);
  pass.outputs.Add("loss", pass.stats.loss_sum);
  // All are requested before one is read: each is valid until the next pass.
  std::vector<optimized::RoutingView> views;
  for (int64_t l = 0; l < c.config.model.num_layers; ++l) {
    views.push_back(model.LastRouting(l));
  }
  for (size_t l = 0; l < views.size(); ++l) {
    const optimized::LayerStats& layer = pass.stats.layers[l];
    const optimized::RoutingView& view = views[l];
    const int64_t num_experts = c.config.model.num_experts;
    const int64_t num_tokens = pass.stats.num_tokens;
    pass.outputs.Add(fmt::format("load balance loss of layer {}", l),
                     layer.load_balance_loss);
    pass.outputs.Add(fmt::format("z loss of layer {}", l), layer.z_loss);
    Vector scores(num_tokens * num_experts);
    std::ranges::copy(view.scores, scores.begin());
    pass.outputs.Add(fmt::format("scores of layer {}", l), scores);
    pass.scores.push_back(std::move(scores));
    pass.soft_weights.emplace_back(view.soft_weights.begin(),
                                   view.soft_weights.end());

    RoutingReplay replay;
    replay.active = SelectionOf(view, num_tokens, num_experts);
    Vector counts(num_experts);
    std::ranges::copy(view.balance_counts, counts.begin());
    replay.balance_fractions =
        counts.sum() > 0
            ? Vector(counts / counts.sum())
            : Vector(Vector::Constant(num_experts,
                                      1.0 / static_cast<double>(num_experts)));
    pass.replay.push_back(std::move(replay));
    pass.balance_counts.emplace_back(view.balance_counts.begin(),
                                     view.balance_counts.end());
  }
  Vector as_double(static_cast<Eigen::Index>(gradients.size()));
  std::ranges::copy(gradients, as_double.begin());
  AddGradients(ParameterLayout(c.config), as_double, &pass.outputs);
  return pass;
}

// Outputs of run `r` of the moved reference: parameters are moved by u or, in
// bf16, stored numbers by 2^-8.
Outputs MovedOutputs(const ModelCase& c, const ParameterLayout& layout,
                     const Vector& parameters,
                     const std::vector<RoutingReplay>& replay, int r) {
  if (InBf16(c)) {
    constexpr double kBf16Unit = 0x1p-8;
    return OutputsOf(
        MovedTransformer(c.config, parameters, GroupOf(c), RoutingOf(c),
                         LossScale(c), kGroupScale, replay, kBf16Unit,
                         static_cast<uint64_t>(r)),
        layout);
  }
  Vector moved = parameters;
  const RandomKey key{77, RandomStream::kTestData, static_cast<uint32_t>(r)};
  std::array<uint32_t, 4> words;
  for (Eigen::Index i = 0; i < moved.size(); ++i) {
    if (i % 4 == 0) words = PhiloxWords(key, static_cast<uint64_t>(i / 4));
    moved[i] *= words[i % 4] & 1 ? 1 + kFloatUnit : 1 - kFloatUnit;
  }
  return FromReference(c, layout, moved, replay, nullptr);
}

// The root mean squares, over the runs, of an output's distance from the
// unmoved one and of that of its most moved element.
struct Response {
  double norm, element;
};
std::vector<Response> Responses(const ModelCase& c,
                                const ParameterLayout& layout,
                                const Vector& parameters,
                                const std::vector<RoutingReplay>& replay,
                                const Outputs& expected) {
  const int runs = RuleOf(c.config).runs;
  std::vector<Vector> squares;
  for (const Vector& value : expected.values) {
    squares.emplace_back(Vector::Zero(value.size()));
  }
  for (int r = 0; r < runs; ++r) {
    const Outputs outputs = MovedOutputs(c, layout, parameters, replay, r);
    for (size_t i = 0; i < squares.size(); ++i) {
      squares[i] += (outputs.values[i] - expected.values[i]).cwiseAbs2();
    }
  }
  std::vector<Response> responses;
  for (const Vector& square : squares) {
    responses.push_back({std::sqrt(square.sum() / runs),
                         std::sqrt(square.lpNorm<Eigen::Infinity>() / runs)});
  }
  return responses;
}

class Comparison {
 public:
  Comparison(const ModelCase& c, ModelDifference* difference)
      : case_(c), difference_(*difference) {}

  void Defect(const std::string& text) { difference_.defects.push_back(text); }

  // Compares all outputs, each with its tolerance.
  void CompareOutputs(const Outputs& got, const Outputs& expected,
                      const std::vector<Response>& responses) {
    for (size_t i = 0; i < expected.values.size(); ++i) {
      const std::string& name = expected.names[i];
      const Vector& want = expected.values[i];
      if (got.names[i] != name || got.values[i].size() != want.size()) {
        Defect(name + ": not the same outputs on both sides");
        continue;
      }
      ++difference_.outputs;
      const double norm = want.norm();
      const double tolerance = Tolerance(responses[i].norm, norm);
      const double error = (got.values[i] - want).norm();
      // Negated, so that NaN is a defect.
      if (!(error <= tolerance)) {
        Defect(
            fmt::format("{}: |error| = {:.3g}, tolerance {:.3g}, |expected| "
                        "= {:.6g}",
                        name, error, tolerance, norm));
      }
      if (norm > 0 && !(tolerance <= RuleOf(case_.config).meaningless * norm)) {
        difference_.mistrusted.push_back(
            fmt::format("{}: MISTRUSTED, tolerance {:.3g} of |expected| = "
                        "{:.3g}",
                        name, tolerance, norm));
      }
      Utilise(name, error / tolerance);
    }
  }

  double Tolerance(double response, double norm) const {
    const double roundings =
        InBf16(case_) ? 1 : LongestSum(case_.config.model, NumTokens(case_));
    return kLambda * std::sqrt(roundings) * response + 4 * kFloatUnit * norm;
  }

  // Compares each layer's selection with the reference's from the same state
  // (in bf16, from the same scores), and the counts with the selection.
  void CompareRouting(const ModelPass& pass,
                      const reference::GroupResult& result,
                      const std::vector<double>& score_responses) {
    for (size_t l = 0; l < result.layers.size(); ++l) {
      reference::LayerRouting layer = result.layers[l];
      const Matrix own_scores = Eigen::Map<const Matrix>(
          pass.scores[l].data(), layer.scores.rows(), layer.scores.cols());
      if (InBf16(case_)) layer.scores = own_scores;
      CompareAllocation(l, pass.allocations[l], layer.allocation);
      const RouterConfig& router = case_.config.router;
      // Kernels take k_l as a float.
      const auto mean_active = static_cast<float>(layer.allocation.mean_active);
      const RouterSettings settings = {router.kind,
                                       mean_active,
                                       case_.temperature,
                                       layer.allocation.cutoff,
                                       layer.allocation.max_active,
                                       router.fallback};
      const double score_error =
          InBf16(case_) ? 0
                        : Tolerance(score_responses[l],
                                    layer.scores.lpNorm<Eigen::Infinity>());
      const BoolMatrix& active = pass.replay[l].active;
      const SelectionCheck check =
          CheckSelection(settings, layer.scores, active, score_error);
      difference_.decisions += active.rows();
      difference_.ambiguous += check.ambiguous;
      if (!check.defect.empty()) {
        Defect(fmt::format("layer {}: {}", l, check.defect));
      }
      if (router.kind != RouterKind::kSparse) {
        CompareSoftWeights(l, settings, own_scores, pass.soft_weights[l]);
      }
      CompareCounts(l, pass.stats.layers[l], active);
      CompareBalanceCounts(l, pass, layer, score_error);
    }
    // Two, so that a pass of few tokens does not fail by chance.
    if (difference_.ambiguous > difference_.decisions / 50 + 2) {
      Defect(fmt::format("{} of {} selections are called near-ties",
                         difference_.ambiguous, difference_.decisions));
    }
  }

 private:
  void Utilise(const std::string& name, double utilisation) {
    if (!(utilisation > difference_.utilisation)) return;
    difference_.utilisation = utilisation;
    difference_.loosest = name;
  }

  void CompareSoftWeights(size_t l, const RouterSettings& settings,
                          const Matrix& own_scores,
                          std::span<const float> got) {
    std::vector<double> expected, bounds;
    for (Eigen::Index t = 0; t < own_scores.rows(); ++t) {
      for (const Bounded& p : SoftWeightBounds(settings, own_scores.row(t))) {
        expected.push_back(p.value);
        bounds.push_back(p.error + kUnderflow);
      }
    }
    const std::string name = fmt::format("soft weights of layer {}", l);
    const softmoe::Comparison comparison = softmoe::Compare(
        got, expected, bounds, {.may_be_constant = true, .may_be_tiny = true});
    ++difference_.outputs;
    if (!comparison.ok()) Defect(name + ": " + comparison.Text());
    Utilise(name, comparison.utilisation);
  }

  void CompareAllocation(size_t l, const optimized::LayerAllocation& got,
                         const reference::LayerAllocation& expected) {
    // Both compute in double: a softmax over the layers plus three roundings.
    const double tolerance =
        (3.0 * static_cast<double>(case_.config.model.num_layers) + 6) *
        0x1p-52 * expected.mean_active;
    if (!(std::abs(got.mean_active - expected.mean_active) <= tolerance) ||
        !(std::abs(got.cutoff - expected.cutoff) <=
          0x1p-50 * expected.cutoff) ||
        got.max_active != expected.max_active) {
      Defect(fmt::format(
          "allocation of layer {}: {}, {}, {} instead of {}, "
          "{}, {}",
          l, got.mean_active, got.cutoff, got.max_active, expected.mean_active,
          expected.cutoff, expected.max_active));
    }
  }

  void CompareCounts(size_t l, const optimized::LayerStats& stats,
                     const BoolMatrix& active) {
    std::vector<int64_t> per_expert(static_cast<size_t>(active.cols()));
    std::vector<int64_t> histogram(per_expert.size() + 1);
    for (Eigen::Index t = 0; t < active.rows(); ++t) {
      ++histogram[active.row(t).count()];
      for (Eigen::Index e = 0; e < active.cols(); ++e) {
        per_expert[e] += active(t, e);
      }
    }
    if (per_expert != stats.tokens_per_expert ||
        histogram != stats.active_histogram) {
      Defect(
          fmt::format("layer {}: counts do not follow from the selection", l));
    }
  }

  // Compares what the load balance counts: the active set (soft routers), or
  // the top scores.
  void CompareBalanceCounts(size_t l, const ModelPass& pass,
                            const reference::LayerRouting& layer,
                            double score_error) {
    const RouterConfig& router = case_.config.router;
    const bool soft = router.kind != RouterKind::kSparse &&
                      router.load_balance == LoadBalanceKind::kSoft;
    const std::vector<int64_t>& got = pass.balance_counts[l];
    BoolMatrix counted = pass.replay[l].active;
    int64_t allowed = 0;
    if (!soft) {
      const int64_t top =
          router.kind == RouterKind::kSparse
              ? layer.allocation.max_active
              : reference::BalanceTop(layer.allocation.mean_active,
                                      counted.cols());
      counted =
          reference::RouterForward(
              {.kind = RouterKind::kSparse, .max_active = top}, layer.scores)
              .active;
      // Each ambiguous token moves one pair from one expert to another.
      allowed = 2 * AmbiguousTop(layer.scores, top, score_error);
    }
    int64_t different = 0;
    for (Eigen::Index e = 0; e < counted.cols(); ++e) {
      different += std::abs(got[e] - counted.col(e).count());
    }
    if (different > allowed) {
      Defect(
          fmt::format("layer {}: balance counts [{}] differ from the "
                      "reference's by {} where {} could be near-ties",
                      l, fmt::join(got, ", "), different, allowed));
    }
  }

  const ModelCase& case_;
  ModelDifference& difference_;
};

}  // namespace

ModelCase MakeModelCase(const Config& config, int64_t num_sequences,
                        uint64_t seed) {
  ModelCase c;
  c.config = config;
  c.num_sequences = num_sequences;
  const Vector parameters = reference::testing::TinyParameters(config, seed);
  c.parameters.assign(parameters.begin(), parameters.end());
  const reference::testing::TinyTokens tokens(config, num_sequences, seed);
  c.inputs = tokens.inputs;
  c.targets = tokens.targets;
  c.first_token = tokens.Group().first_token;
  return c;
}

namespace {

ModelDifference Compare(const ModelCase& model_case,
                        const ModelCase& reference_case,
                        const ModelMaker& make_model) {
  const ParameterLayout layout(model_case.config);
  const ModelPass pass = RunModel(model_case, make_model);
  const Vector parameters =
      Eigen::Map<const Eigen::VectorXf>(
          reference_case.parameters.data(),
          static_cast<Eigen::Index>(reference_case.parameters.size()))
          .cast<double>();
  reference::GroupResult result;
  const Outputs expected =
      FromReference(reference_case, layout, parameters, pass.replay, &result);
  const std::vector<Response> responses =
      Responses(reference_case, layout, parameters, pass.replay, expected);

  ModelDifference difference;
  Comparison comparison(reference_case, &difference);
  comparison.CompareOutputs(pass.outputs, expected, responses);
  std::vector<double> score_responses;
  for (size_t i = 0; i < responses.size(); ++i) {
    if (expected.names[i].starts_with("scores")) {
      score_responses.push_back(responses[i].element);
    }
  }
  comparison.CompareRouting(pass, result, score_responses);
  return difference;
}

}  // namespace

std::string ModelDifference::Text() const {
  return fmt::format(
      "{} of {} selections ambiguous, utilisation {:.3f} ({})\n{}\n{}",
      ambiguous, decisions, utilisation, loosest, fmt::join(defects, "\n"),
      fmt::join(mistrusted, "\n"));
}

ModelDifference CompareModels(const ModelCase& model_case,
                              const ModelMaker& make_model) {
  return Compare(model_case, model_case, make_model);
}

ModelDifference CompareModels(const ModelCase& model_case, ThreadPool& pool) {
  return CompareModels(model_case, model_case, pool);
}

ModelDifference CompareModels(const ModelCase& model_case,
                              const ModelCase& reference_case,
                              ThreadPool& pool) {
  return Compare(model_case, reference_case,
                 [&pool](const Config& config, int64_t group_sequences) {
                   return optimized::MakeModel(config, group_sequences, pool);
                 });
}

}  // namespace softmoe::property_tests
