// SPDX-License-Identifier: Apache-2.0
#include "optimized/ranked_updater.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "core/errors.h"
#include "kernels/adamw.h"
#include "optimized/diverged.h"
#include "optimized/gather_stats.h"
#include "optimized/memory_plan.h"

namespace softmoe::optimized {
namespace {

// A layout of what lies in `shard` alone, for the optimizer, which knows
// tensors by place and kind.
ParameterLayout Clipped(ParameterLayout layout, const Shard& shard) {
  std::vector<ParameterTensor> tensors;
  for (ParameterTensor& tensor : layout.tensors) {
    const int64_t begin = std::max(tensor.offset, shard.begin);
    const int64_t end = std::min(tensor.offset + tensor.size, shard.end);
    if (begin >= end) continue;
    tensor.offset = begin - shard.begin;
    tensor.size = end - begin;
    tensors.push_back(std::move(tensor));
  }
  layout.tensors = std::move(tensors);
  layout.total = shard.size();
  return layout;
}

}  // namespace

RankedUpdater::RankedUpdater(ModelInterface& model, Communicator& communicator,
                             ThreadPool& pool)
    : model_(model),
      communicator_(communicator),
      pool_(pool),
      num_groups_(NumGroups(model.config().training)),
      own_groups_(
          GroupsOfRank(num_groups_, communicator.size(), communicator.rank())),
      tree_(model.layout().total, own_groups_.size(), pool),
      partial_(model.layout().total),
      exchange_(model.layout().total, communicator, pool),
      gradient_(exchange_.own_shard().size()),
      optimizer_(model.config().training,
                 Clipped(model.layout(), exchange_.own_shard()), pool) {}

UpdateGradient RankedUpdater::ComputeGradient(const RoutingState& routing,
                                              const GroupBatch& batch) {
  using Clock = std::chrono::steady_clock;
  const Config& config = model_.config();
  const double num_tokens = static_cast<double>(
      config.training.global_batch_sequences * config.model.sequence_length);
  UpdateGradient result;
  std::vector<StepStats> own;
  const auto leaf = [&](int64_t group, std::span<float> gradient) {
    const Batch tokens = batch(group);
    const auto start = Clock::now();
    own.push_back(model_.ForwardBackward(tokens, routing, 1.0 / num_tokens,
                                         1.0 / static_cast<double>(num_groups_),
                                         gradient));
    result.model_seconds +=
        std::chrono::duration<double>(Clock::now() - start).count();
  };
  tree_.Sum(own_groups_.begin, own_groups_.end, leaf, partial_.span());
  exchange_.Sum(partial_.span(), gradient_.span());
  norm_ = GradientNorm();
  result.norm = norm_;
  result.groups = GatherStats(own, config.model, communicator_);
  return result;
}

double RankedUpdater::GradientNorm() {
  Shards blocks;  // of the norm's block sums
  for (const Shard& shard : exchange_.shards()) {
    blocks.push_back({kernels::SumOfSquaresScratch(shard.begin),
                      kernels::SumOfSquaresScratch(shard.end)});
  }
  std::vector<double> sums(static_cast<size_t>(blocks.back().end));
  const Shard own = blocks[static_cast<size_t>(communicator_.rank())];
  double own_sum = 0;
  kernels::SumOfSquares({.size = gradient_.size(),
                         .x = gradient_.data(),
                         .result = &own_sum,
                         .scratch = sums.data() + own.begin},
                        pool_);
  communicator_.Gather<double>(blocks, sums);
  // As SumOfSquares does.
  double sum_of_squares = 0;
  for (const double sum : sums) sum_of_squares += sum;
  const double norm = std::sqrt(sum_of_squares);
  if (!std::isfinite(norm)) {
    ThrowDiverged("the norm of the gradient is " + std::to_string(norm));
  }
  return norm;
}

void RankedUpdater::Apply(double learning_rate, int64_t completed_updates) {
  std::vector<float> parameters = model_.ReadParameters();
  optimizer_.Update(learning_rate, completed_updates, norm_, gradient_.span(),
                    OwnShard<float>(parameters));
  communicator_.Gather<float>(exchange_.shards(), parameters);
  model_.WriteParameters(parameters, 0);
}

template <typename T>
std::span<T> RankedUpdater::OwnShard(std::span<T> all) const {
  const Shard shard = exchange_.own_shard();
  return all.subspan(static_cast<size_t>(shard.begin),
                     static_cast<size_t>(shard.size()));
}

std::vector<float> RankedUpdater::Gathered(
    std::span<const float> own_shard) const {
  std::vector<float> all(static_cast<size_t>(model_.layout().total));
  std::ranges::copy(own_shard, OwnShard<float>(all).begin());
  communicator_.Gather<float>(exchange_.shards(), all);
  return all;
}

std::vector<float> RankedUpdater::ReadGradient() const {
  return Gathered(gradient_.span());
}

std::vector<float> RankedUpdater::ReadFirstMoment() const {
  return Gathered(optimizer_.first_moment());
}

std::vector<float> RankedUpdater::ReadSecondMoment() const {
  return Gathered(optimizer_.second_moment());
}

void RankedUpdater::WriteMoments(std::span<const float> first,
                                 std::span<const float> second) {
  const auto total = static_cast<size_t>(model_.layout().total);
  SOFTMOE_CHECK(first.size() == total && second.size() == total)
      << first.size() << " and " << second.size() << " moments, expected "
      << total;
  std::ranges::copy(OwnShard(first), optimizer_.first_moment().begin());
  std::ranges::copy(OwnShard(second), optimizer_.second_moment().begin());
}

}  // namespace softmoe::optimized
