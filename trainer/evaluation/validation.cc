// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/validation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "core/errors.h"
#include "optimized/communicator/communicator.h"
#include "optimized/gather_stats.h"
#include "optimized/step.h"
#include "trainer/evaluation/routing_totals.h"

namespace softmoe::trainer {

std::vector<optimized::RoutingView> LastRouting(optimized::Model& model) {
  std::vector<optimized::RoutingView> layers;
  for (int64_t l = 0; l < model.config().model.num_layers; ++l) {
    layers.push_back(model.LastRouting(l));
  }
  return layers;
}

int64_t NumEvaluated(const Config& config, const Dataset& data) {
  const int64_t wanted = config.training.eval_sequences;
  const int64_t available = data.num_validation_sequences();
  return wanted == 0 ? available : std::min(wanted, available);
}

Validation Validate(optimized::Model& model, const Dataset& data, double tau,
                    double temperature, const StopPoll& poll,
                    const GroupObserver& observe) {
  optimized::SingleCommunicator alone;
  return Validate(model, data, tau, temperature, alone, poll, observe);
}

Validation Validate(optimized::Model& model, const Dataset& data, double tau,
                    double temperature, optimized::Communicator& communicator,
                    const StopPoll& poll, const GroupObserver& observe) {
  const Config& config = model.config();
  const int64_t length = config.model.sequence_length;
  const int64_t group = config.training.balance_group_sequences;
  const int64_t total = NumEvaluated(config, data);
  if (total < 1) {
    throw DataError(
        "the held-out split has no whole sequence; use more text, a larger "
        "data.validation_fraction or a shorter model.sequence_length");
  }

  const optimized::RoutingState routing{
      .temperature = temperature, .tau = tau, .noise = false, .step = 0};
  std::vector<int32_t> inputs(group * length), targets(group * length);
  const auto pass = [&](int64_t index) {
    const int64_t first = index * group;
    const int64_t count = std::min(group, total - first);
    const std::span<int32_t> in(inputs.data(), count * length);
    const std::span<int32_t> out(targets.data(), count * length);
    data.FillValidation(first, count, in, out);
    return model.Forward({.num_sequences = count,
                          .inputs = in,
                          .targets = out,
                          .first_token = first * length},
                         routing);
  };
  const int64_t groups = (total + group - 1) / group;
  const int64_t ranks = communicator.size();
  RoutingTotals totals(config.model.num_layers, config.model.num_experts);
  for (int64_t first = 0; first < groups; first += ranks) {
    poll();
    // A rank without a group left repeats the last one.
    const optimized::StepStats own[] = {
        pass(std::min(first + communicator.rank(), groups - 1))};
    const std::vector<optimized::StepStats> all =
        optimized::GatherStats(own, config.model, communicator);
    const auto of_groups = std::span(all).first(
        static_cast<size_t>(std::min(ranks, groups - first)));
    for (const optimized::StepStats& stats : of_groups) totals.Add(stats);
    if (observe) observe(of_groups);
  }

  Validation result;
  result.loss = totals.MeanLoss();
  if (!std::isfinite(result.loss)) {
    throw optimized::DivergedError(
        fmt::format("the validation loss is {}; train again with a smaller "
                    "training.learning_rate",
                    result.loss));
  }
  result.num_tokens = totals.num_tokens();
  result.active_experts = totals.MeanActive();
  result.zero_active_fraction = totals.ZeroActiveFraction();
  result.layer_active_experts = totals.LayerActive();
  result.active_histogram = totals.active_histogram();
  result.tokens_per_expert = totals.tokens_per_expert();
  const double layers = static_cast<double>(config.model.num_layers);
  for (const LoadVariance& layer : totals.LayerLoadVariance()) {
    result.relative_load_variance += layer.relative / layers;
    result.load_cv += layer.cv / layers;
    result.load_var_over_mean += layer.var_over_mean / layers;
  }
  return result;
}

}  // namespace softmoe::trainer
