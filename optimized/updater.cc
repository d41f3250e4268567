// SPDX-License-Identifier: Apache-2.0
#include "optimized/updater.h"

#include <algorithm>
#include <chrono>

#include "core/errors.h"

namespace softmoe::optimized {
namespace {

int64_t NumGroups(const TrainingConfig& training) {
  return training.global_batch_sequences / training.balance_group_sequences;
}

std::vector<float> Copy(std::span<const float> values) {
  return {values.begin(), values.end()};
}

}  // namespace

Updater::Updater(Model& model, ThreadPool& pool)
    : model_(model),
      num_groups_(NumGroups(model.config().training)),
      optimizer_(model.config().training, model.layout(), pool),
      tree_(model.layout().total, num_groups_, pool),
      gradient_(model.layout().total) {}

UpdateGradient Updater::ComputeGradient(const RoutingState& routing,
                                        const GroupBatch& batch) {
  using Clock = std::chrono::steady_clock;
  const Config& config = model_.config();
  const double num_tokens = static_cast<double>(
      config.training.global_batch_sequences * config.model.sequence_length);
  UpdateGradient result;
  const auto leaf = [&](int64_t group, std::span<float> gradient) {
    const Batch tokens = batch(group);
    const auto start = Clock::now();
    result.groups.push_back(model_.ForwardBackward(
        tokens, routing, 1.0 / num_tokens,
        1.0 / static_cast<double>(num_groups_), gradient));
    result.model_seconds +=
        std::chrono::duration<double>(Clock::now() - start).count();
  };
  tree_.Sum(0, num_groups_, leaf, gradient_.span());
  norm_ = optimizer_.GradientNorm(gradient_.span());
  result.norm = norm_;
  return result;
}

void Updater::Apply(double learning_rate, int64_t completed_updates) {
  optimizer_.Update(learning_rate, completed_updates, norm_, gradient_.span(),
                    model_.MutableParameters());
}

std::vector<float> Updater::ReadGradient() const {
  return Copy(gradient_.span());
}

std::vector<float> Updater::ReadFirstMoment() const {
  return Copy(optimizer_.first_moment());
}

std::vector<float> Updater::ReadSecondMoment() const {
  return Copy(optimizer_.second_moment());
}

void Updater::WriteMoments(std::span<const float> first,
                           std::span<const float> second) {
  SOFTMOE_CHECK(first.size() == optimizer_.first_moment().size() &&
                second.size() == optimizer_.second_moment().size())
      << first.size() << " and " << second.size() << " moments, expected "
      << optimizer_.first_moment().size();
  std::ranges::copy(first, optimizer_.first_moment().begin());
  std::ranges::copy(second, optimizer_.second_moment().begin());
}

}  // namespace softmoe::optimized
