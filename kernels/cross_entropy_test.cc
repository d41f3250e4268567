// SPDX-License-Identifier: Apache-2.0
//
// What verify, op=lm_head, does not prove: the order of the sum of losses,
// which of equal logits is greedy, and where a small head is computed.
#include "kernels/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/parallel_for.h"
#include "core/profile.h"
#include "kernels/testing/kernel_test_support.h"

namespace softmoe::kernels {
namespace {

struct Head {
  int64_t tokens, d_model, vocab;
  std::vector<float> hidden, weight, loss, d_hidden, d_weight;
  std::vector<int32_t> targets;

  Head(int64_t n, int64_t d, int64_t v)
      : tokens(n),
        d_model(d),
        vocab(v),
        hidden(RandomFloats(n * d, 1)),
        weight(RandomFloats(v * d, 2)),
        loss(n),
        d_hidden(n * d),
        d_weight(v * d) {
    for (int64_t t = 0; t < n; ++t) {
      targets.push_back(static_cast<int32_t>(7 * t % v));
    }
  }
  HeadCrossEntropyArgs Args() {
    return {.num_tokens = tokens,
            .d_model = d_model,
            .vocab_size = vocab,
            .hidden = hidden.data(),
            .head_weight = weight.data(),
            .targets = targets.data(),
            .token_loss = loss.data()};
  }
};

// Losses are added in the order of the tokens, so the bits are those of this
// loop. 1100 tokens make three blocks, 70 tokens with 30000 logits make two.
TEST(HeadCrossEntropy, AddsTheLossesInOrder) {
  ThreadPool pool(2);
  for (Head head :
       {Head(0, 3, 3), Head(1, 1, 2), Head(1100, 4, 40), Head(70, 3, 30000)}) {
    double sum = -1, expected = 0;
    HeadCrossEntropyArgs args = head.Args();
    args.loss_sum = &sum;
    HeadCrossEntropy(args, pool);
    for (const float loss : head.loss) expected += loss;
    EXPECT_EQ(sum, expected);
  }
}

// Logits of small whole numbers, which are exact and often equal, in rows that
// do and do not fill vectors.
TEST(HeadCrossEntropy, TheFirstOfTheLargestLogitsIsGreedy) {
  ThreadPool pool(2);
  for (const int64_t vocab : {1, 2, 7, 16, 33, 100}) {
    for (const int32_t values : {2, 3, 50}) {
      Head head(200, 1, vocab);
      for (float& x : head.weight) {
        x = std::floor(static_cast<float>(values) * (x - std::floor(x)));
      }
      std::vector<int32_t> is_greedy(head.tokens, -1);
      HeadCrossEntropyArgs args = head.Args();
      args.is_greedy = is_greedy.data();
      int greedy = 0;
      for (int64_t t = 0; t < head.tokens; ++t) {
        head.hidden[t] = static_cast<float>(t % 3 - 1);  // all equal, too
      }
      HeadCrossEntropy(args, pool);
      for (int64_t t = 0; t < head.tokens; ++t) {
        int32_t first = 0;
        for (int32_t id = 1; id < vocab; ++id) {
          if (head.hidden[t] * head.weight[id] >
              head.hidden[t] * head.weight[first]) {
            first = id;
          }
        }
        EXPECT_EQ(is_greedy[t], head.targets[t] == first)
            << vocab << " tokens, target " << head.targets[t];
        greedy += is_greedy[t];
      }
      EXPECT_GT(greedy, 0);
    }
  }
}

// Waking a thread would take longer than the work.
TEST(HeadCrossEntropy, ASmallHeadIsComputedByTheCaller) {
  const auto job_seconds = [](Head head) {
    HeadCrossEntropyArgs args = head.Args();
    args.grad_scale = 0.37f;
    args.d_hidden = head.d_hidden.data();
    args.d_head_weight = head.d_weight.data();
    ThreadPool pool(2);
    Profile profile;
    BeginOperation("head");
    HeadCrossEntropy(args, pool);
    return profile.Take().at(0).job_seconds;
  };
  EXPECT_EQ(job_seconds(Head(16, 8, 32)), 0);
  EXPECT_GT(job_seconds(Head(64, 64, 512)), 0);
}

}  // namespace
}  // namespace softmoe::kernels
