// SPDX-License-Identifier: Apache-2.0
#include "optimized/gather_stats.h"

#include <bit>
#include <cstdint>

#include "core/errors.h"
#include "optimized/communicator/shards.h"

namespace softmoe::optimized {
namespace {

// Calls word(&number) for every number of `stats`, whose arrays must already
// have their sizes. Writing and reading share this list, so they agree.
template <typename Stats, typename Word>
void ForEachNumber(Stats& stats, const Word& word) {
  word(&stats.num_tokens);
  word(&stats.loss_sum);
  for (auto& layer : stats.layers) {
    for (auto& count : layer.tokens_per_expert) word(&count);
    for (auto& count : layer.active_histogram) word(&count);
    word(&layer.tokens_below_cutoff);
    word(&layer.load_balance_loss);
    word(&layer.z_loss);
  }
}

// Statistics of the model's sizes, all zero.
StepStats EmptyStats(const ModelConfig& model) {
  const auto experts = static_cast<size_t>(model.num_experts);
  LayerStats layer;
  layer.tokens_per_expert.resize(experts);
  layer.active_histogram.resize(experts + 1);
  StepStats stats;
  stats.layers.resize(static_cast<size_t>(model.num_layers), layer);
  return stats;
}

int64_t CountNumbers(const StepStats& stats) {
  int64_t count = 0;
  ForEachNumber(stats, [&](const auto* /*number*/) { ++count; });
  return count;
}

}  // namespace

int64_t StatsBytes(const ModelConfig& model) {
  return static_cast<int64_t>(sizeof(int64_t)) *
         CountNumbers(EmptyStats(model));
}

std::vector<StepStats> GatherStats(std::span<const StepStats> own,
                                   const ModelConfig& model,
                                   Communicator& communicator) {
  const auto ranks = static_cast<size_t>(communicator.size());
  std::vector<StepStats> all(own.size() * ranks, EmptyStats(model));
  const auto per_rank = CountNumbers(all[0]) * static_cast<int64_t>(own.size());

  std::vector<int64_t> words;
  words.reserve(static_cast<size_t>(per_rank) * ranks);
  words.resize(static_cast<size_t>(communicator.rank() * per_rank));
  for (const StepStats& stats : own) {
    ForEachNumber(stats, [&](const auto* number) {
      words.push_back(std::bit_cast<int64_t>(*number));
    });
  }
  SOFTMOE_CHECK(static_cast<int64_t>(words.size()) ==
                (communicator.rank() + 1) * per_rank)
      << "statistics of another model";
  words.resize(static_cast<size_t>(per_rank) * ranks);
  communicator.Gather<int64_t>(ShareOut(static_cast<int64_t>(words.size()),
                                        per_rank, communicator.size()),
                               words);

  size_t next = 0;
  for (StepStats& stats : all) {
    ForEachNumber(stats, [&]<typename Number>(Number* number) {
      *number = std::bit_cast<Number>(words[next++]);
    });
  }
  return all;
}

}  // namespace softmoe::optimized
