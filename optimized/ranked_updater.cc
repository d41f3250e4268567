// SPDX-License-Identifier: Apache-2.0
#include "optimized/ranked_updater.h"

#include <algorithm>

#include "core/errors.h"
#include "kernels/adamw.h"
#include "optimized/gather_stats.h"
#include "optimized/memory_plan.h"
#include "optimized/step.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

// A layout of these pieces alone, for the optimizer, which knows tensors by
// place and kind.
ParameterLayout LayoutOf(std::span<const PackedPiece> pieces,
                         ParameterLayout layout) {
  std::vector<ParameterTensor> tensors;
  for (const PackedPiece& piece : pieces) {
    for (ParameterTensor tensor : layout.tensors) {
      const Shard both =
          Overlap({tensor.offset, tensor.offset + tensor.size}, piece.range());
      if (both.size() == 0) continue;
      tensor.offset = piece.packed + (both.begin - piece.offset);
      tensor.size = both.size();
      tensors.push_back(std::move(tensor));
    }
  }
  std::ranges::sort(tensors, {}, &ParameterTensor::offset);
  layout.tensors = std::move(tensors);
  layout.total = SizeOf(pieces);
  return layout;
}

}  // namespace

RankedUpdater::RankedBlocks::RankedBlocks(const std::vector<Bucket>& buckets) {
  const auto ranks = static_cast<int>(buckets.front().shards.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const auto begin = static_cast<int64_t>(blocks.size());
    for (const PackedPiece& piece : PiecesOfRank(buckets, rank)) {
      const int64_t end = kernels::SumOfSquaresScratch(piece.end());
      for (int64_t block = kernels::SumOfSquaresScratch(piece.offset);
           block < end; ++block) {
        blocks.push_back(block);
      }
    }
    of_rank.push_back({begin, static_cast<int64_t>(blocks.size())});
  }
}

RankedUpdater::RankedUpdater(BackendModel& model, Communicator& communicator,
                             CarrierKind carrier)
    : model_(model),
      communicator_(communicator),
      num_groups_(NumGroups(model.config().training)),
      own_groups_(
          GroupsOfRank(num_groups_, communicator.size(), communicator.rank())),
      tree_(model.layout().total, own_groups_.size(), model.queue()),
      gradient_(model.layout().total),
      exchange_(ParameterBuckets(model.layout(), communicator.size()),
                kExchangePiece, carrier, communicator, model.queue()),
      own_(PiecesOfRank(exchange_.buckets(), communicator.rank())),
      blocks_(exchange_.buckets()),
      block_sums_(static_cast<int64_t>(blocks_.blocks.size())),
      sum_of_squares_(1),
      optimizer_(model.config().training, LayoutOf(own_, model.layout()),
                 model.queue()) {}

std::vector<StepStats> RankedUpdater::StartOwnGroups(
    const RoutingState& routing, const GroupBatch& batch) {
  const Config& config = model_.config();
  const double num_tokens = static_cast<double>(
      config.training.global_batch_sequences * config.model.sequence_length);
  // With one group, its gradients are the rank's sum and can be sent at once.
  const bool at_once =
      own_groups_.size() == 1 && exchange_.carrier().RunsBeside();
  const auto down_to = [&](int64_t parameter) {
    if (at_once) exchange_.SumDownTo(parameter, gradient_.span());
  };
  const auto leaf = [&](int64_t group, std::span<float> gradient) {
    model_.StartGradients(batch(group), 1.0 / num_tokens,
                          1.0 / static_cast<double>(num_groups_),
                          group - own_groups_.begin, gradient.data(), down_to);
  };
  model_.StartGroups(routing);
  tree_.Sum(own_groups_.begin, own_groups_.end, leaf, gradient_.span());
  model_.StartReports(own_groups_.size());
  Finish(model_.queue());
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
    // Memory that is still being read will be reused.
    WaitFor(model_.queue());
    throw;
  }
}

// If a number that is not finite spoils the gradient, its rank ends, and all
// others with it, before they have a norm: nothing is updated.
UpdateGradient RankedUpdater::ComputeGradient(const RoutingState& routing,
                                              const GroupBatch& batch) {
  UpdateGradient result;
  WithOthers([&] {
    const std::vector<StepStats> own = StartOwnGroups(routing, batch);
    exchange_.Finish(gradient_.span());
    norm_ = GradientNorm();
    result.groups = GatherStats(own, model_.config().model, communicator_);
  });
  result.norm = norm_;
  return result;
}

double RankedUpdater::GradientNorm() {
  Queue& queue = model_.queue();
  for (const PackedPiece& piece : own_) {
    if (piece.size == 0) continue;
    const int64_t first_block = piece.offset / kernels::kSumOfSquaresBlock;
    ops::SumOfSquares({.size = piece.size,
                       .x = gradient_.data() + piece.offset,
                       .result = sum_of_squares_.data(),
                       .scratch = block_sums_.data() + first_block},
                      queue);
  }
  fetched_.Start(queue, block_sums_.data(), block_sums_.size());
  exchange_.carrier().Finish();
  std::vector<double> sums(fetched_.view().begin(), fetched_.view().end());
  GatherBlockSums(sums);
  // The order is that of one process.
  WriteArray<double>(queue, sums, block_sums_.data());
  ops::SumOfBlocks({.blocks = block_sums_.size(),
                    .scratch = block_sums_.data(),
                    .result = sum_of_squares_.data()},
                   queue);
  fetched_.Start(queue, sum_of_squares_.data(), 1);
  Finish(queue);
  return NormOf(fetched_.view().front(), model_.config().training.clip_norm);
}

void RankedUpdater::GatherBlockSums(std::span<double> sums) {
  std::vector<double> by_rank;
  for (const int64_t block : blocks_.blocks) by_rank.push_back(sums[block]);
  communicator_.Gather<double>(blocks_.of_rank, by_rank);
  for (size_t i = 0; i < by_rank.size(); ++i) {
    sums[blocks_.blocks[i]] = by_rank[i];
  }
}

void RankedUpdater::Apply(double learning_rate, int64_t completed_updates) {
  BackendParameters& parameters = model_.parameters();
  const std::span<float> budget = model_.host_budget_logits();
  WithOthers([&] {
    Carrier& carrier = exchange_.carrier();
    for (size_t b = 0; b < own_.size(); ++b) {
      const Shard own = own_[b].range();
      if (own.size() > 0) {
        optimizer_.Update(learning_rate, completed_updates, norm_,
                          PartOf(gradient_.span(), own),
                          parameters.Masters(own), own_[b].packed);
        parameters.CopyMasters(own);
      }
      // Send these, still in caches, while the next ones are updated.
      carrier.Gather(exchange_.buckets()[b].shards, parameters.weights());
      if (parameters.shared()) {
        carrier.Gather(parameters.packed_shards(b), parameters.packed());
      }
    }
    carrier.Join();
    if (!budget.empty()) {
      budget_.Start(model_.queue(),
                    parameters.fp32() + parameters.fp32_layout().budget_logits,
                    static_cast<int64_t>(budget.size()));
    }
    carrier.Finish();
  });
  if (!budget.empty()) std::ranges::copy(budget_.view(), budget.begin());
}

template <typename At>
std::vector<float> RankedUpdater::Gathered(const At& at) const {
  std::vector<float> all(static_cast<size_t>(model_.layout().total));
  for (const PackedPiece& piece : own_) {
    ReadArray<float>(model_.queue(), at(piece),
                     PartOf(std::span(all), piece.range()));
  }
  for (const Bucket& bucket : exchange_.buckets()) {
    communicator_.Gather<float>(bucket.shards, all);
  }
  return all;
}

std::vector<float> RankedUpdater::ReadGradient() const {
  return Gathered([&](const PackedPiece& piece) {
    return gradient_.data() + piece.offset;
  });
}

std::vector<float> RankedUpdater::ReadFirstMoment() const {
  return Gathered([&](const PackedPiece& piece) {
    return optimizer_.first_moment().data() + piece.packed;
  });
}

std::vector<float> RankedUpdater::ReadSecondMoment() const {
  return Gathered([&](const PackedPiece& piece) {
    return optimizer_.second_moment().data() + piece.packed;
  });
}

void RankedUpdater::WriteMoments(std::span<const float> first,
                                 std::span<const float> second) {
  const auto total = static_cast<size_t>(model_.layout().total);
  SOFTMOE_CHECK(first.size() == total && second.size() == total)
      << first.size() << " and " << second.size() << " moments, expected "
      << total;
  for (const PackedPiece& piece : own_) {
    WriteArray(model_.queue(), PartOf(first, piece.range()),
               optimizer_.first_moment().data() + piece.packed);
    WriteArray(model_.queue(), PartOf(second, piece.range()),
               optimizer_.second_moment().data() + piece.packed);
  }
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
