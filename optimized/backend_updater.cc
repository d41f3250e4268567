// SPDX-License-Identifier: Apache-2.0
#include "optimized/backend_updater.h"

#include <algorithm>

#include "core/errors.h"
#include "optimized/rank_groups.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

BackendUpdater::BackendUpdater(BackendModel& model)
    : model_(model),
      num_groups_(NumGroups(model.config().training)),
      optimizer_(model.config().training, model.layout(), model.queue()),
      tree_(model.layout().total, num_groups_, model.queue()),
      gradient_(model.layout().total),
      budget_first_moment_(model.host_budget_logits().size()),
      budget_second_moment_(model.host_budget_logits().size()) {}

// Waits once, apart from the waits for each expert's number of rows: everything
// that the host must know arrives together, before anything has changed.
UpdateGradient BackendUpdater::ComputeGradient(const RoutingState& routing,
                                               const GroupBatch& batch) {
  const Config& config = model_.config();
  Queue& queue = model_.queue();
  const double num_tokens = static_cast<double>(
      config.training.global_batch_sequences * config.model.sequence_length);
  UpdateGradient result;
  const auto leaf = [&](int64_t group, std::span<float> gradient) {
    model_.StartGradients(batch(group), 1.0 / num_tokens,
                          1.0 / static_cast<double>(num_groups_), group,
                          gradient.data());
  };
  try {
    model_.StartGroups(routing);
    tree_.Sum(0, num_groups_, leaf, gradient_.span());
    optimizer_.StartGradientNorm(gradient_.span());
    const std::span<const float> budget =
        BudgetPart<const float>(gradient_.span());
    budget_gradient_.Start(queue, budget.data(),
                           static_cast<int64_t>(budget.size()));
    model_.StartReports(num_groups_);
    Finish(queue);
  } catch (...) {
    WaitFor(queue);  // memory still being read will be reused
    throw;
  }
  for (int64_t group = 0; group < num_groups_; ++group) {
    result.groups.push_back(model_.ReadReport(group));
  }
  norm_ = optimizer_.FinishGradientNorm();
  result.norm = norm_;
  return result;
}

void BackendUpdater::Apply(double learning_rate, int64_t completed_updates) {
  if (!budget_first_moment_.empty()) {
    optimizer_.UpdateOnHost(learning_rate, completed_updates, norm_,
                            model_.layout().budget_logits,
                            {.gradient = budget_gradient_.view(),
                             .parameters = model_.host_budget_logits(),
                             .first_moment = budget_first_moment_,
                             .second_moment = budget_second_moment_});
  }
  BackendParameters& parameters = model_.parameters();
  const Shard all = {0, model_.layout().total};
  optimizer_.Update(learning_rate, completed_updates, norm_, gradient_.span(),
                    parameters.Masters(all));
  parameters.CopyMasters(all);
}

template <typename T>
std::span<T> BackendUpdater::BudgetPart(std::span<T> values) const {
  const size_t size = budget_first_moment_.size();
  if (size == 0) return {};
  return values.subspan(static_cast<size_t>(model_.layout().budget_logits),
                        size);
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
  std::ranges::copy(BudgetPart(first), budget_first_moment_.begin());
  std::ranges::copy(BudgetPart(second), budget_second_moment_.begin());
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
