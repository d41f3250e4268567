// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/train_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/text/progress.h"
#include "optimized/allocation.h"
#include "optimized/step.h"
#include "trainer/evaluation/routing_totals.h"
#include "trainer/run/schedules.h"

namespace softmoe::trainer {
namespace {

int64_t GroupTokens(const Config& config) {
  return config.training.balance_group_sequences * config.model.sequence_length;
}

// Rethrows `error`, of the update after `completed_updates`, with a remedy.
[[noreturn]] void ThrowWithRemedy(const optimized::DivergedError& error,
                                  const Config& config,
                                  int64_t completed_updates) {
  // Resuming from a checkpoint with other settings is no remedy, since it
  // belongs to its configuration.
  const std::string remedy =
      completed_updates == 0
          ? "no update came before, so the learning rate is not the cause: "
            "begin anew with smaller initial weights (model.init_std, "
            "router.init_std), or with another router.tau or temperature"
          : fmt::format(
                "begin anew with a lower training.learning_rate, a longer "
                "training.warmup_fraction or {}",
                config.training.clip_norm > 0
                    ? "a lower training.clip_norm"
                    : "with clipping (training.clip_norm=1)");
  throw optimized::DivergedError(fmt::format(
      "step {} (learning rate {:.3g}): {}. The same configuration fails here "
      "again; {}",
      completed_updates + 1, LearningRate(config.training, completed_updates),
      error.what(), remedy));
}

// Sets the numbers that follow from the routers' totals and the step's caps.
void FillRecord(const RoutingTotals& totals,
                const std::vector<optimized::LayerAllocation>& allocations,
                StepOutcome* outcome) {
  StepRecord& record = outcome->record;
  record.loss = totals.MeanLoss();
  record.load_balance_loss = totals.LoadBalanceLoss();
  record.z_loss = totals.ZLoss();
  record.active_experts = totals.MeanActive();
  record.zero_active_fraction = totals.ZeroActiveFraction();
  record.layer_active_experts = totals.LayerActive();
  for (const optimized::LayerAllocation& layer : allocations) {
    record.allocation.push_back(layer.mean_active);
    outcome->max_active = std::max(outcome->max_active, layer.max_active);
  }
  for (const LoadVariance& layer : totals.LayerLoadVariance()) {
    record.layer_relative_load_variance.push_back(layer.relative);
  }
  outcome->most_active_in_a_token = totals.MostActive();
}

}  // namespace

TrainStep::TrainStep(const optimized::Model& model, optimized::Updater& updater,
                     const Dataset& data)
    : model_(model),
      updater_(updater),
      data_([&data](auto... part) { data.FillBatch(part...); },
            model.config().training.steps),
      inputs_(GroupTokens(model.config())),
      targets_(GroupTokens(model.config())) {}

StepOutcome TrainStep::Run(int64_t completed_updates, double tau) {
  const Config& config = model_.config();
  const int64_t group_sequences = config.training.balance_group_sequences;
  const int64_t group_tokens = GroupTokens(config);
  const int64_t num_tokens = updater_.num_groups() * group_tokens;
  const double start = SteadySeconds();

  const optimized::RoutingState routing{
      .temperature = Temperature(config, completed_updates),
      .tau = tau,
      .noise = true,
      .step = completed_updates};
  const std::vector<optimized::LayerAllocation> allocations =
      model_.Allocations(routing);

  StepOutcome outcome;
  StepRecord& record = outcome.record;
  RoutingTotals totals(config.model.num_layers, config.model.num_experts);
  try {
    const optimized::UpdateGradient gradient =
        updater_.ComputeGradient(routing, [&](int64_t group) {
          data_.FillBatch(completed_updates, group * group_sequences,
                          group_sequences, inputs_, targets_);
          return optimized::Batch{.num_sequences = group_sequences,
                                  .inputs = inputs_,
                                  .targets = targets_,
                                  .first_token = group * group_tokens};
        });
    for (const optimized::StepStats& group : gradient.groups) totals.Add(group);
    record.learning_rate = LearningRate(config.training, completed_updates);
    record.gradient_norm = gradient.norm;
    updater_.Apply(record.learning_rate, completed_updates);
  } catch (const optimized::DivergedError& error) {
    ThrowWithRemedy(error, config, completed_updates);
  }

  FillRecord(totals, allocations, &outcome);
  record.step = completed_updates + 1;
  record.temperature = routing.temperature;
  record.seconds = SteadySeconds() - start;
  record.tokens_per_second = static_cast<double>(num_tokens) / record.seconds;
  return outcome;
}

}  // namespace softmoe::trainer
