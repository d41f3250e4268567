// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/train_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/errors.h"
#include "core/profile.h"
#include "trainer/evaluation/routing_totals.h"
#include "trainer/run/schedules.h"

namespace softmoe::trainer {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

int64_t GroupTokens(const Config& config) {
  return config.training.balance_group_sequences * config.model.sequence_length;
}

}  // namespace

TrainStep::TrainStep(optimized::Model& model, optimized::Optimizer& optimizer,
                     const Dataset& data, ThreadPool& pool)
    : model_(model),
      optimizer_(optimizer),
      data_(data),
      num_groups_(model.config().training.global_batch_sequences /
                  model.config().training.balance_group_sequences),
      tree_(model.layout().total, num_groups_, pool),
      gradient_(model.layout().total),
      inputs_(GroupTokens(model.config())),
      targets_(GroupTokens(model.config())) {}

StepOutcome TrainStep::Run(int64_t completed_updates, double tau) {
  const Config& config = model_.config();
  const int64_t group_sequences = config.training.balance_group_sequences;
  const int64_t group_tokens = GroupTokens(config);
  const int64_t num_tokens = num_groups_ * group_tokens;
  const auto start = std::chrono::steady_clock::now();

  const optimized::RoutingState routing{
      .temperature = Temperature(config, completed_updates),
      .tau = tau,
      .noise = true,
      .step = completed_updates};
  const std::vector<optimized::LayerAllocation> allocations =
      model_.Allocations(routing);

  StepOutcome outcome;
  RoutingTotals totals(config.model.num_layers, config.model.num_experts);
  try {
    tree_.Sum(
        0, num_groups_,
        [&](int64_t group, std::span<float> gradient) {
          BeginOperation("batch");
          data_.FillBatch(completed_updates, group * group_sequences,
                          group_sequences, inputs_, targets_);
          const auto model_start = std::chrono::steady_clock::now();
          totals.Add(model_.ForwardBackward(
              {.num_sequences = group_sequences,
               .inputs = inputs_,
               .targets = targets_,
               .first_token = group * group_tokens},
              routing, 1.0 / static_cast<double>(num_tokens),
              1.0 / static_cast<double>(num_groups_), gradient));
          outcome.model_seconds += SecondsSince(model_start);
        },
        gradient_);
    const double loss =
        totals.MeanLoss() + totals.LoadBalanceLoss() + totals.ZLoss();
    if (!std::isfinite(loss)) {
      throw NumericsError(fmt::format(
          "the loss is {} (language model {}, load balance {}, z {})", loss,
          totals.MeanLoss(), totals.LoadBalanceLoss(), totals.ZLoss()));
    }
    StepRecord& record = outcome.record;
    record.learning_rate = LearningRate(config.training, completed_updates);
    record.gradient_norm =
        optimizer_.Update(record.learning_rate, completed_updates, gradient_,
                          model_.parameters());
  } catch (const NumericsError& error) {
    throw NumericsError(fmt::format(
        "step {} (learning rate {:.3g}): {}. The same configuration fails here "
        "again: begin anew with a smaller training.learning_rate or a longer "
        "training.warmup_fraction",
        completed_updates + 1, LearningRate(config.training, completed_updates),
        error.what()));
  }

  BeginOperation("record");
  StepRecord& record = outcome.record;
  record.step = completed_updates + 1;
  record.loss = totals.MeanLoss();
  record.load_balance_loss = totals.LoadBalanceLoss();
  record.z_loss = totals.ZLoss();
  record.active_experts = totals.MeanActive();
  record.zero_active_fraction = totals.ZeroActiveFraction();
  record.layer_active_experts = totals.LayerActive();
  for (const optimized::LayerAllocation& layer : allocations) {
    record.allocation.push_back(layer.mean_active);
    outcome.max_active = std::max(outcome.max_active, layer.max_active);
  }
  for (const LoadVariance& layer : totals.LayerLoadVariance()) {
    record.layer_relative_load_variance.push_back(layer.relative);
  }
  record.temperature = routing.temperature;
  outcome.most_active_in_a_token = totals.MostActive();
  record.seconds = SecondsSince(start);
  record.tokens_per_second = static_cast<double>(num_tokens) / record.seconds;
  return outcome;
}

}  // namespace softmoe::trainer
