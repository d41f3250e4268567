// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/score_requests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include "core/config/config.h"
#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/testing/config_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/testing/random_test_util.h"
#include "optimized/communicator/in_process.h"
#include "optimized/initialize.h"
#include "optimized/model.h"

namespace softmoe::trainer {
namespace {

constexpr int64_t kWindow = 100;
const optimized::RoutingState kRouting{.temperature = 1.5, .tau = 1.1};

Config LongConfig(RouterKind kind = RouterKind::kSoftLearned) {
  Config config = SmallConfig(kind);
  config.model.sequence_length = kWindow;
  config.training.balance_group_sequences = 2;
  return config;
}

// Requests of all lengths up to the window's, in no order.
std::vector<RequestTokens> Requests(const Config& config, int64_t count) {
  std::vector<RequestTokens> requests;
  Draws draws(7);
  for (int64_t i = 0; i < count; ++i) {
    RequestTokens request;
    const int64_t inputs = i == 0 ? kWindow : draws.Integer(1, kWindow);
    for (int64_t t = 0; t <= inputs; ++t) {
      request.ids.push_back(
          static_cast<int32_t>(draws.Integer(0, config.model.vocab_size - 1)));
    }
    request.scored = draws.Integer(1, inputs);
    requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<RequestScore> Score(const Config& config,
                                std::span<const RequestTokens> requests,
                                int threads, int64_t group_sequences,
                                optimized::Communicator& communicator) {
  ThreadPool pool(threads);
  const auto model = optimized::MakeModel(config, group_sequences, pool);
  optimized::InitializeParameters(*model, 3, pool);
  // All ranks poll together.
  return ScoreRequests(requests, *model, kRouting, group_sequences * kWindow,
                       communicator, [&] { communicator.Barrier(); });
}

class ScoreRequestsTest : public testing::TestWithParam<RouterKind> {};

TEST_P(ScoreRequestsTest, AddsTheLossesOfTheContinuationAlone) {
  const Config config = LongConfig(GetParam());
  const auto requests = Requests(config, 9);
  optimized::SingleCommunicator alone;
  const auto scores = Score(config, requests, 1, 4, alone);

  ThreadPool pool(1);
  const auto model = optimized::MakeModel(config, 1, pool);
  optimized::InitializeParameters(*model, 3, pool);
  for (size_t i = 0; i < requests.size(); ++i) {
    // One sequence of the model's own length, padded with other tokens.
    const RequestTokens& request = requests[i];
    std::vector<int32_t> inputs(kWindow, 5), targets(kWindow, 6);
    std::copy(request.ids.begin(), request.ids.end() - 1, inputs.begin());
    std::copy(request.ids.begin() + 1, request.ids.end(), targets.begin());
    const double whole =
        model
            ->Forward(
                {.num_sequences = 1, .inputs = inputs, .targets = targets},
                kRouting)
            .loss_sum;
    const std::span<const float> losses = model->LastTokenLosses();
    ASSERT_EQ(losses.size(), static_cast<size_t>(kWindow));
    double sum = 0, all = 0;
    for (const float loss : losses) all += loss;
    EXPECT_EQ(all, whole);
    const auto end = static_cast<int64_t>(request.ids.size()) - 1;
    for (int64_t t = end - request.scored; t < end; ++t) sum += losses[t];
    EXPECT_EQ(scores[i].log_likelihood, -sum) << "request " << i;
    EXPECT_LT(scores[i].log_likelihood, 0);
  }
}

TEST_P(ScoreRequestsTest, GivesTheSameBitsForAnyBatchThreadsAndRanks) {
  const Config config = LongConfig(GetParam());
  const auto requests = Requests(config, 40);
  optimized::SingleCommunicator alone;
  const auto scores = Score(config, requests, 1, 1, alone);
  for (const int threads : {1, 3}) {
    for (const int64_t group : {2, 5}) {
      EXPECT_EQ(Score(config, requests, threads, group, alone), scores)
          << threads << " threads, " << group << " sequences";
    }
  }
  for (const int ranks : {2, 3, 50}) {  // more than there are batches
    std::mutex lock;
    optimized::RunInProcessRanks(ranks, [&](optimized::Communicator& rank) {
      const auto all = Score(config, requests, 1, 2, rank);
      const std::lock_guard guard(lock);
      EXPECT_EQ(all, scores) << ranks << " ranks";
    });
  }
}

// Compares with the losses of every other token in the target's place.
TEST_P(ScoreRequestsTest, IsGreedyIfEachTokenIsTheMostLikelyOne) {
  const Config config = LongConfig(GetParam());
  ThreadPool pool(1);
  const auto model = optimized::MakeModel(config, 2, pool);
  optimized::InitializeParameters(*model, 3, pool);
  const auto most_likely = [&](const std::vector<int32_t>& context) {
    std::vector<int32_t> inputs(kWindow), targets(kWindow);
    std::ranges::copy(context, inputs.begin());
    const size_t last = context.size() - 1;
    int32_t best = 0;
    float least = std::numeric_limits<float>::infinity();
    for (int32_t id = 0; id < config.model.vocab_size; ++id) {
      targets[last] = id;
      model->Forward({.num_sequences = 1, .inputs = inputs, .targets = targets},
                     kRouting);
      const float loss = model->LastTokenLosses()[last];
      if (loss < least) best = id, least = loss;
    }
    return best;
  };
  RequestTokens said{.ids = {4, 2, 7}, .scored = 3};
  for (int i = 0; i < 3; ++i) said.ids.push_back(most_likely(said.ids));
  std::vector<RequestTokens> requests(4, said);
  const auto other = [&](int32_t id) {
    return static_cast<int32_t>((id + 1) % config.model.vocab_size);
  };
  requests[1].ids[3] = other(said.ids[3]);  // its first token
  requests[2].ids[5] = other(said.ids[5]);  // its last
  requests[3].scored = 1;
  optimized::SingleCommunicator alone;
  const auto scores = Score(config, requests, 1, 2, alone);
  EXPECT_TRUE(scores[0].is_greedy);
  EXPECT_FALSE(scores[1].is_greedy);
  EXPECT_FALSE(scores[2].is_greedy);
  EXPECT_TRUE(scores[3].is_greedy);
}

INSTANTIATE_TEST_SUITE_P(Routers, ScoreRequestsTest,
                         testing::ValuesIn(kRouterKinds), NameOfRouter);

TEST(ScoreRequests, PollsBeforeEveryBatch) {
  const Config config = LongConfig();
  const auto requests = Requests(config, 12);
  ThreadPool pool(1);
  const auto model = optimized::MakeModel(config, 2, pool);
  optimized::InitializeParameters(*model, 3, pool);
  optimized::SingleCommunicator alone;
  int polls = 0;
  EXPECT_THROW(ScoreRequests(requests, *model, kRouting, 2 * kWindow, alone,
                             [&] {
                               if (++polls == 3) throw StoppedError("now");
                             }),
               StoppedError);
  EXPECT_TRUE(
      ScoreRequests({}, *model, kRouting, 2 * kWindow, alone, [] {}).empty());

  // In 200 tokens: six sequences of 32 and one, three of 64, two of 96, two of
  // the window.
  std::vector<RequestTokens> mixed;
  for (const size_t inputs :
       {32, 100, 1, 64, 96, 33, 32, 97, 32, 64, 65, 32, 32, 32}) {
    mixed.push_back({.ids = std::vector<int32_t>(inputs + 1, 2), .scored = 1});
  }
  polls = 0;
  ScoreRequests(mixed, *model, kRouting, 2 * kWindow, alone, [&] { ++polls; });
  EXPECT_EQ(polls, 5);
}

TEST(ScoreTask, AsksEveryChoiceAndCountsWhatWasCut) {
  const Config config = LongConfig();
  ThreadPool pool(1);
  const auto model = optimized::MakeModel(config, 2, pool);
  optimized::InitializeParameters(*model, 3, pool);
  optimized::SingleCommunicator alone;
  const EncodeText encode = [&](std::string_view text) {
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(static_cast<uint8_t>(c) % 60);
    return ids;
  };
  const auto score = [&](const std::vector<TaskItem>& items) {
    return ScoreTask(
        {.name = "piqa", .file = "p.jsonl", .sha256 = "", .items = items},
        *model, kRouting, encode, 1, alone, [] {});
  };
  const ScoredTask scored = score({{"a", {"b", "cc"}, 0, {}},
                                   {std::string(100, 'x'), {"b", ""}, 0, {}},
                                   {"a", {std::string(100, 'y'), "z"}, 1, {}}});
  ASSERT_EQ(scored.scores.size(), 3u);
  EXPECT_EQ(scored.scores[0].choices[0].tokens, 2);
  EXPECT_EQ(scored.scores[0].choices[1].tokens, 3);
  EXPECT_EQ(scored.scores[2].choices[0].tokens, kWindow);
  EXPECT_EQ(scored.cut_contexts, 2);
  EXPECT_EQ(scored.cut_continuations, 1);
  // An item is answered as if it were alone.
  const ScoredTask one = score({{"a", {"b", "cc"}, 0, {}}});
  EXPECT_EQ(one.scores[0].choices[1].log_likelihood,
            scored.scores[0].choices[1].log_likelihood);
}

}  // namespace
}  // namespace softmoe::trainer
