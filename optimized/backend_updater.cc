// SPDX-License-Identifier: Apache-2.0
#include "optimized/backend_updater.h"

#include <chrono>

#include "core/errors.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

int64_t NumGroups(const TrainingConfig& training) {
  return training.global_batch_sequences / training.balance_group_sequences;
}

}  // namespace

BackendUpdater::BackendUpdater(BackendModel& model)
    : model_(model),
      num_groups_(NumGroups(model.config().training)),
      optimizer_(model.config().training, model.layout(), model.queue()),
      tree_(model.layout().total, num_groups_, model.queue()),
      gradient_(model.layout().total) {}

UpdateGradient BackendUpdater::ComputeGradient(const RoutingState& routing,
                                               const GroupBatch& batch) {
  using Clock = std::chrono::steady_clock;
  const Config& config = model_.config();
  const double num_tokens = static_cast<double>(
      config.training.global_batch_sequences * config.model.sequence_length);
  UpdateGradient result;
  const auto leaf = [&](int64_t group, std::span<float> gradient) {
    const Batch tokens = batch(group);
    const auto start = Clock::now();
    result.groups.push_back(model_.ComputeGradients(
        tokens, routing, 1.0 / num_tokens,
        1.0 / static_cast<double>(num_groups_), gradient.data()));
    result.model_seconds +=
        std::chrono::duration<double>(Clock::now() - start).count();
  };
  tree_.Sum(0, num_groups_, leaf, gradient_.span());
  norm_ = optimizer_.GradientNorm(gradient_.span());
  result.norm = norm_;
  return result;
}

void BackendUpdater::Apply(double learning_rate, int64_t completed_updates) {
  optimizer_.Update(learning_rate, completed_updates, norm_, gradient_.span(),
                    model_.parameters());
}

std::vector<float> BackendUpdater::Read(std::span<const float> values) const {
  std::vector<float> copy(values.size());
  ReadArray<float>(model_.queue(), values.data(), copy);
  return copy;
}

std::vector<float> BackendUpdater::ReadGradient() const {
  return Read(gradient_.span());
}

std::vector<float> BackendUpdater::ReadFirstMoment() const {
  return Read(optimizer_.first_moment());
}

std::vector<float> BackendUpdater::ReadSecondMoment() const {
  return Read(optimizer_.second_moment());
}

void BackendUpdater::WriteMoments(std::span<const float> first,
                                  std::span<const float> second) {
  SOFTMOE_CHECK(first.size() == optimizer_.first_moment().size() &&
                second.size() == optimizer_.second_moment().size())
      << first.size() << " and " << second.size() << " moments, expected "
      << optimizer_.first_moment().size();
  WriteArray(model_.queue(), first, optimizer_.first_moment().data());
  WriteArray(model_.queue(), second, optimizer_.second_moment().data());
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
