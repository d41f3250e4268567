// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/score_requests.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/errors.h"
#include "optimized/communicator/shards.h"

namespace softmoe::trainer {
namespace {

// Sequences in batches have a length that is a multiple of this: few shapes,
// and rows that a device accepts in bf16.
constexpr int64_t kLengthStep = 32;

// Requests of one length, by their places in `order`.
struct RequestBatch {
  int64_t length;  // of each sequence, padded
  int64_t begin, end;
};

int64_t BatchLength(const RequestTokens& request, int64_t window) {
  const auto inputs = static_cast<int64_t>(request.ids.size()) - 1;
  const int64_t steps = (inputs + kLengthStep - 1) / kLengthStep;
  return std::min(std::max<int64_t>(steps, 1) * kLengthStep, window);
}

// Puts the places of all requests into `order`, the shortest first, and cuts it
// into batches.
std::vector<RequestBatch> MakeBatches(std::span<const RequestTokens> requests,
                                      int64_t window, int64_t batch_tokens,
                                      std::vector<size_t>* order) {
  const auto length = [&](size_t request) {
    return BatchLength(requests[request], window);
  };
  order->resize(requests.size());
  std::iota(order->begin(), order->end(), size_t{0});
  std::ranges::stable_sort(*order, {}, length);
  std::vector<RequestBatch> batches;
  for (int64_t i = 0; i < static_cast<int64_t>(order->size()); ++i) {
    const int64_t own = length((*order)[static_cast<size_t>(i)]);
    if (batches.empty() || batches.back().length != own ||
        (i + 1 - batches.back().begin) * own > batch_tokens) {
      batches.push_back({own, i, i});
    }
    batches.back().end = i + 1;
  }
  return batches;
}

}  // namespace

std::vector<RequestScore> ScoreRequests(std::span<const RequestTokens> requests,
                                        optimized::Model& model,
                                        const optimized::RoutingState& routing,
                                        int64_t batch_tokens,
                                        optimized::Communicator& communicator,
                                        const std::function<void()>& poll) {
  const int64_t window = model.config().model.sequence_length;
  SOFTMOE_CHECK(batch_tokens >= window) << batch_tokens << " tokens at once";
  std::vector<size_t> order;
  const std::vector<RequestBatch> batches =
      MakeBatches(requests, window, batch_tokens, &order);

  std::vector<RequestScore> ordered(requests.size());
  std::vector<int32_t> inputs, targets;
  const auto score = [&](const RequestBatch& batch) {
    const int64_t length = batch.length, count = batch.end - batch.begin;
    inputs.assign(static_cast<size_t>(count * length), 0);
    targets.assign(inputs.size(), 0);
    for (int64_t s = 0; s < count; ++s) {
      const RequestTokens& request = requests[order[batch.begin + s]];
      std::copy(request.ids.begin(), request.ids.end() - 1,
                inputs.begin() + s * length);
      std::copy(request.ids.begin() + 1, request.ids.end(),
                targets.begin() + s * length);
    }
    model.Forward({.num_sequences = count,
                   .inputs = inputs,
                   .targets = targets,
                   .sequence_length = length},
                  routing);
    const std::span<const float> losses = model.LastTokenLosses();
    const std::span<const int32_t> greedy = model.LastTokensGreedy();
    for (int64_t s = 0; s < count; ++s) {
      const RequestTokens& request = requests[order[batch.begin + s]];
      const auto end =
          s * length + static_cast<int64_t>(request.ids.size()) - 1;
      double sum = 0;
      bool is_greedy = true;
      for (int64_t t = end - request.scored; t < end; ++t) {
        sum += losses[t];
        is_greedy &= greedy[t] != 0;
      }
      ordered[static_cast<size_t>(batch.begin + s)] = {-sum, is_greedy};
    }
  };

  // Batches have about as many tokens each, so ranks take equally many batches.
  optimized::Shards shards = optimized::ShareOut(
      static_cast<int64_t>(batches.size()), 1, communicator.size());
  const optimized::Shard own = shards[static_cast<size_t>(communicator.rank())];
  int64_t most = 0;
  for (const optimized::Shard& shard : shards) {
    most = std::max(most, shard.end - shard.begin);
  }
  // A poll may ask all ranks, so each polls as often as the others.
  for (int64_t b = own.begin; b < own.begin + most; ++b) {
    poll();
    if (b < own.end) score(batches[static_cast<size_t>(b)]);
  }
  const auto first_request = [&](int64_t batch) {
    return batch < static_cast<int64_t>(batches.size())
               ? batches[static_cast<size_t>(batch)].begin
               : static_cast<int64_t>(requests.size());
  };
  for (optimized::Shard& shard : shards) {
    shard = {first_request(shard.begin), first_request(shard.end)};
  }
  communicator.Gather<RequestScore>(shards, ordered);

  std::vector<RequestScore> scores(requests.size());
  for (size_t i = 0; i < order.size(); ++i) scores[order[i]] = ordered[i];
  return scores;
}

ScoredTask ScoreTask(TaskItems task, optimized::Model& model,
                     const optimized::RoutingState& routing,
                     const EncodeText& encode, int32_t end_of_document,
                     optimized::Communicator& communicator,
                     const std::function<void()>& poll) {
  const Config& config = model.config();
  const int64_t window = config.model.sequence_length;
  ScoredTask scored;
  std::vector<RequestTokens> requests;
  for (size_t i = 0; i < task.items.size(); ++i) {
    for (const std::string& choice : task.items[i].choices) {
      try {
        requests.push_back(TokenizeRequest(task.items[i].context,
                                           Continuation(choice), encode,
                                           end_of_document, window));
      } catch (const DataError& error) {
        throw DataError(fmt::format("{}, item {}: {}", task.file.string(), i,
                                    error.what()));
      }
      scored.cut_contexts += requests.back().context_cut;
      scored.cut_continuations += requests.back().continuation_cut;
    }
  }
  const std::vector<RequestScore> of_requests = ScoreRequests(
      requests, model, routing,
      config.training.balance_group_sequences * window, communicator, poll);

  size_t next = 0;
  for (const TaskItem& item : task.items) {
    std::vector<ChoiceScore> choices;
    for (size_t c = 0; c < item.choices.size(); ++c, ++next) {
      choices.push_back({of_requests[next].log_likelihood,
                         requests[next].scored, of_requests[next].is_greedy});
    }
    scored.scores.push_back(ScoreItem(item, std::move(choices)));
  }
  scored.task = std::move(task);
  return scored;
}

}  // namespace softmoe::trainer
