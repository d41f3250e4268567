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
inline namespace SOFTMOE_BACKEND {
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

// How much of a shard is exchanged at a time.
int64_t PieceOf(const ParameterLayout& layout, int ranks, CarrierKind carrier) {
  return ExchangePiece(
      carrier,
      LargestShard(ShareOut(layout.total, kernels::kSumOfSquaresBlock, ranks)));
}

// The blocks of the norm in each shard.
Shards BlocksOf(const Shards& shards) {
  Shards blocks;
  for (const Shard& shard : shards) {
    blocks.push_back({kernels::SumOfSquaresScratch(shard.begin),
                      kernels::SumOfSquaresScratch(shard.end)});
  }
  return blocks;
}

}  // namespace

RankedUpdater::RankedUpdater(BackendModel& model, Communicator& communicator,
                             CarrierKind carrier)
    : model_(model),
      communicator_(communicator),
      num_groups_(NumGroups(model.config().training)),
      own_groups_(
          GroupsOfRank(num_groups_, communicator.size(), communicator.rank())),
      tree_(model.layout().total, own_groups_.size(), model.queue()),
      partial_(model.layout().total),
      exchange_(model.layout().total,
                PieceOf(model.layout(), communicator.size(), carrier), carrier,
                communicator, model.queue()),
      gradient_(exchange_.own_shard().size()),
      blocks_(BlocksOf(exchange_.shards())),
      block_sums_(blocks_.back().end),
      sum_of_squares_(1),
      optimizer_(model.config().training,
                 Clipped(model.layout(), exchange_.own_shard()),
                 model.queue()) {}

std::vector<StepStats> RankedUpdater::StartOwnGroups(
    const RoutingState& routing, const GroupBatch& batch,
    double* model_seconds) {
  using Clock = std::chrono::steady_clock;
  const Config& config = model_.config();
  const double num_tokens = static_cast<double>(
      config.training.global_batch_sequences * config.model.sequence_length);
  const auto count_time = [&](Clock::time_point start) {
    *model_seconds +=
        std::chrono::duration<double>(Clock::now() - start).count();
  };
  const auto leaf = [&](int64_t group, std::span<float> gradient) {
    const Batch tokens = batch(group);
    const auto start = Clock::now();
    model_.StartGradients(tokens, 1.0 / num_tokens,
                          1.0 / static_cast<double>(num_groups_),
                          group - own_groups_.begin, gradient.data());
    count_time(start);
  };
  model_.StartGroups(routing);
  tree_.Sum(own_groups_.begin, own_groups_.end, leaf, partial_.span());
  model_.StartReports(own_groups_.size());
  const auto start = Clock::now();
  Finish(model_.queue());
  count_time(start);
  std::vector<StepStats> stats;
  for (int64_t group = 0; group < own_groups_.size(); ++group) {
    stats.push_back(model_.ReadReport(group));
  }
  return stats;
}

template <typename Work>
void RankedUpdater::WithOthers(const Work& work) {
  try {
    work();
  } catch (...) {
    exchange_.carrier().Abandon();
    // For what is read from memory that will be used again.
    WaitFor(model_.queue());
    throw;
  }
}

// The other ranks get nothing of a gradient that some number spoils.
UpdateGradient RankedUpdater::ComputeGradient(const RoutingState& routing,
                                              const GroupBatch& batch) {
  UpdateGradient result;
  WithOthers([&] {
    const std::vector<StepStats> own =
        StartOwnGroups(routing, batch, &result.model_seconds);
    exchange_.Sum(partial_.span(), gradient_.span());
    norm_ = GradientNorm();
    result.groups = GatherStats(own, model_.config().model, communicator_);
  });
  result.norm = norm_;
  return result;
}

double RankedUpdater::GradientNorm() {
  Queue& queue = model_.queue();
  const Shard own = blocks_[static_cast<size_t>(communicator_.rank())];
  double* const own_sums = block_sums_.data() + own.begin;
  ops::SumOfSquares({.size = gradient_.size(),
                     .x = gradient_.data(),
                     .result = sum_of_squares_.data(),
                     .scratch = own_sums},
                    queue);
  fetched_.Start(queue, own_sums, own.size());
  exchange_.carrier().Finish();
  std::vector<double> sums(static_cast<size_t>(block_sums_.size()));
  std::ranges::copy(fetched_.view(), sums.begin() + own.begin);
  communicator_.Gather<double>(blocks_, sums);
  // As one process does.
  WriteArray<double>(queue, sums, block_sums_.data());
  ops::SumOfBlocks({.blocks = block_sums_.size(),
                    .scratch = block_sums_.data(),
                    .result = sum_of_squares_.data()},
                   queue);
  fetched_.Start(queue, sum_of_squares_.data(), 1);
  Finish(queue);
  const double norm = std::sqrt(fetched_.view().front());
  if (!std::isfinite(norm)) {
    ThrowDiverged("the norm of the gradient is " + std::to_string(norm));
  }
  return norm;
}

void RankedUpdater::Apply(double learning_rate, int64_t completed_updates) {
  BackendParameters& parameters = model_.parameters();
  const std::span<float> budget = model_.host_budget_logits();
  WithOthers([&] {
    optimizer_.Update(learning_rate, completed_updates, norm_, gradient_.span(),
                      parameters.Masters(exchange_.own_shard()));
    parameters.CopyMasters();
    Carrier& carrier = exchange_.carrier();
    carrier.Gather(exchange_.shards(), parameters.weights());
    if (!parameters.packed().empty()) {
      carrier.Gather(parameters.packed_shards(), parameters.packed());
    }
    if (!budget.empty()) {
      budget_.Start(model_.queue(),
                    parameters.fp32() + parameters.fp32_layout().budget_logits,
                    static_cast<int64_t>(budget.size()));
    }
    carrier.Finish();
  });
  if (!budget.empty()) std::ranges::copy(budget_.view(), budget.begin());
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
  ReadArray<float>(model_.queue(), own_shard.data(),
                   OwnShard<float>(std::span(all)));
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
  WriteArray(model_.queue(), OwnShard(first), optimizer_.first_moment().data());
  WriteArray(model_.queue(), OwnShard(second),
             optimizer_.second_moment().data());
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
