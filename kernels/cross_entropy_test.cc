// SPDX-License-Identifier: Apache-2.0
//
// Against naive loops over a number type; see kernel_test_support.h.
#include "kernels/cross_entropy.h"

#include <gtest/gtest.h>

#include "core/parallel_for.h"
#include "core/profile.h"
#include "kernels/testing/kernel_test_support.h"

namespace softmoe::kernels {
namespace {

struct Case {
  int64_t tokens, d_model, vocab;
  float grad_scale = 0.37f;
  std::vector<float> hidden, head_weight;
  std::vector<int32_t> targets;

  Case(int64_t n, int64_t d, int64_t v, float spread = 1.0f)
      : tokens(n), d_model(d), vocab(v) {
    hidden = RandomFloats(n * d, 1);
    for (float& x : hidden) x *= spread;
    head_weight = RandomFloats(v * d, 2);
    const auto draw = RandomFloats(n, 3);
    for (int64_t t = 0; t < n; ++t) {
      targets.push_back(
          static_cast<int32_t>((draw[t] + 1) / 2 * static_cast<float>(v)));
    }
    targets[0] = static_cast<int32_t>(v - 1);
  }
};

template <typename T>
struct Result {
  std::vector<T> loss, d_hidden, d_head_weight;
};

// The naive loops; gradients of grad_scale * sum of losses.
template <typename T>
Result<T> Naive(const Case& c, const std::vector<T>& hidden,
                const std::vector<T>& weight) {
  Result<T> result;
  std::vector<Sum<T>> d_hidden(hidden.size()), d_weight(weight.size());
  for (int64_t t = 0; t < c.tokens; ++t) {
    std::vector<T> logits;
    T largest(-1e30);
    for (int64_t v = 0; v < c.vocab; ++v) {
      Sum<T> sum;
      for (int64_t j = 0; j < c.d_model; ++j) {
        sum.Add(hidden[t * c.d_model + j] * weight[v * c.d_model + j]);
      }
      logits.push_back(sum.Get());
      if (Value(logits.back()) > Value(largest)) largest = logits.back();
    }
    Sum<T> total;
    for (T& logit : logits) {
      logit = logit - largest;
      total.Add(Exp(logit));
    }
    result.loss.push_back(Log(total.Get()) - logits[c.targets[t]]);
    for (int64_t v = 0; v < c.vocab; ++v) {
      T d_logit = Exp(logits[v]) * (T(c.grad_scale) / total.Get());
      if (v == c.targets[t]) d_logit = d_logit - T(c.grad_scale);
      for (int64_t j = 0; j < c.d_model; ++j) {
        d_hidden[t * c.d_model + j].Add(d_logit * weight[v * c.d_model + j]);
        d_weight[v * c.d_model + j].Add(d_logit * hidden[t * c.d_model + j]);
      }
    }
  }
  for (const auto& sum : d_hidden) result.d_hidden.push_back(sum.Get());
  for (const auto& sum : d_weight) result.d_head_weight.push_back(sum.Get());
  return result;
}

template <typename T>
std::vector<T> As(const std::vector<float>& x) {
  return {x.begin(), x.end()};
}

std::vector<std::vector<float>> RunHead(const Case& c, bool gradients,
                                        ThreadPool& pool) {
  Guarded loss(c.tokens), d_hidden(c.hidden.size());
  Guarded d_head_weight(c.head_weight.size());
  HeadCrossEntropyArgs args{c.tokens,
                            c.d_model,
                            c.vocab,
                            c.hidden.data(),
                            c.head_weight.data(),
                            c.targets.data(),
                            loss.data()};
  if (gradients) {
    args.grad_scale = c.grad_scale;
    args.d_hidden = d_hidden.data();
    args.d_head_weight = d_head_weight.data();
  }
  HeadCrossEntropy(args, pool);
  return {loss.Take(), d_hidden.Take(), d_head_weight.Take()};
}

// 1100 tokens are three blocks of tokens, 30000 x 70 two.
TEST(HeadCrossEntropy, IsWithinTheDerivedBounds) {
  for (const Case& c :
       {Case(1, 1, 1), Case(3, 5, 7), Case(20, 33, 100), Case(50, 16, 517),
        Case(1100, 4, 40), Case(70, 3, 30000), Case(9, 300, 33, 4.0f)}) {
    SCOPED_TRACE(std::to_string(c.tokens) + " x " + std::to_string(c.vocab));
    const auto got = SameForAllIsasAndThreads(
        [&](ThreadPool& pool) { return RunHead(c, true, pool); });
    const auto want =
        Naive(c, As<Bounded>(c.hidden), As<Bounded>(c.head_weight));
    ExpectWithin(got[0], want.loss, "token_loss");
    ExpectWithin(got[1], want.d_hidden, "d_hidden");
    ExpectWithin(got[2], want.d_head_weight, "d_head_weight");
    ThreadPool pool(2);
    EXPECT_EQ(RunHead(c, false, pool)[0], got[0]) << "loss without gradients";
  }
}

// The order is that of the tokens, so the bits are those of this loop.
TEST(HeadCrossEntropy, AddsTheLossesInOrder) {
  ThreadPool pool(2);
  for (const Case& c : {Case(1, 1, 2), Case(1100, 4, 40), Case(70, 3, 30000)}) {
    std::vector<float> losses(c.tokens);
    double sum = -1;
    HeadCrossEntropyArgs args{c.tokens,
                              c.d_model,
                              c.vocab,
                              c.hidden.data(),
                              c.head_weight.data(),
                              c.targets.data(),
                              losses.data()};
    args.loss_sum = &sum;
    HeadCrossEntropy(args, pool);
    double expected = 0;
    for (const float loss : losses) expected += loss;
    EXPECT_EQ(sum, expected);
  }
  double sum = -1;
  HeadCrossEntropyArgs none{};
  none.vocab_size = none.d_model = 3;
  none.loss_sum = &sum;
  HeadCrossEntropy(none, pool);
  EXPECT_EQ(sum, 0);
}

TEST(HeadCrossEntropy, NoTokensHaveNoLossAndNoGradient) {
  const std::vector<float> weight = RandomFloats(5 * 3, 1);
  ThreadPool pool(2);
  for (const bool with_gradient : {false, true}) {
    Guarded d_weight(5 * 3);
    double loss = -1;
    HeadCrossEntropy(
        {.num_tokens = 0,
         .d_model = 3,
         .vocab_size = 5,
         .hidden = nullptr,
         .head_weight = weight.data(),
         .targets = nullptr,
         .token_loss = nullptr,
         .grad_scale = 1,
         .d_head_weight = with_gradient ? d_weight.data() : nullptr,
         .loss_sum = &loss},
        pool);
    EXPECT_EQ(loss, 0);
    if (with_gradient) {
      EXPECT_EQ(d_weight.Take(), std::vector<float>(5 * 3));
    }
  }
}

// In double, for random directions of hidden and head_weight.
TEST(HeadCrossEntropy, ExpectedGradientIsTheAdjointOfTheForwardPass) {
  const Case c(7, 6, 11);
  const auto gradient =
      Naive(c, As<double>(c.hidden), As<double>(c.head_weight));
  const auto bounds =
      Naive(c, As<Bounded>(c.hidden), As<Bounded>(c.head_weight));
  double from_backward = 0, magnitude = 0, error = 0;
  const auto direct = [&](const std::vector<float>& x,
                          const std::vector<double>& slope,
                          const std::vector<Bounded>& bound, uint32_t stream) {
    const auto v = RandomFloats(x.size(), stream);
    std::vector<Dual> moved;
    for (size_t i = 0; i < x.size(); ++i) {
      moved.push_back({x[i], v[i]});
      from_backward += slope[i] * v[i];
      magnitude += std::abs(slope[i] * v[i]);
      error += std::abs(v[i]) * bound[i].error;
    }
    return moved;
  };
  const auto hidden = direct(c.hidden, gradient.d_hidden, bounds.d_hidden, 11);
  const auto weight =
      direct(c.head_weight, gradient.d_head_weight, bounds.d_head_weight, 12);
  double from_forward = 0, forward_magnitude = 0;
  for (const Dual& loss : Naive(c, hidden, weight).loss) {
    from_forward += c.grad_scale * loss.slope;
    forward_magnitude += std::abs(c.grad_scale * loss.slope);
  }
  const double terms = hidden.size() + weight.size();
  EXPECT_NEAR(
      from_forward, from_backward,
      AdjointBound(error, terms * magnitude + c.tokens * forward_magnitude));
  EXPECT_GT(std::abs(from_forward), 1e-3 * magnitude)
      << "the test sees nothing";
}

// Waking a thread would take longer than the work.
TEST(HeadCrossEntropy, ASmallHeadIsComputedByTheCaller) {
  const auto job_seconds = [](const Case& c) {
    std::vector<float> loss(c.tokens), d_hidden(c.hidden.size());
    std::vector<float> d_head_weight(c.head_weight.size());
    ThreadPool pool(2);
    Profile profile;
    BeginOperation("head");
    HeadCrossEntropy({.num_tokens = c.tokens,
                      .d_model = c.d_model,
                      .vocab_size = c.vocab,
                      .hidden = c.hidden.data(),
                      .head_weight = c.head_weight.data(),
                      .targets = c.targets.data(),
                      .token_loss = loss.data(),
                      .grad_scale = c.grad_scale,
                      .d_hidden = d_hidden.data(),
                      .d_head_weight = d_head_weight.data()},
                     pool);
    return profile.Take().at(0).job_seconds;
  };
  EXPECT_EQ(job_seconds(Case(16, 8, 32)), 0);
  EXPECT_GT(job_seconds(Case(64, 64, 512)), 0);
}

// Uniform logits: the loss is log(vocab), the gradient of hidden is the mean
// row of the head less the target's, times the scale.
TEST(HeadCrossEntropy, ZeroHiddenGivesTheUniformDistribution) {
  ThreadPool pool(4);
  Case c(10, 8, 64);
  std::fill(c.hidden.begin(), c.hidden.end(), 0.0f);
  const auto got = RunHead(c, true, pool);
  for (const float loss : got[0]) {
    EXPECT_NEAR(loss, std::log(64.0), 2 * kFloatUnit * std::log(64.0));
  }
  for (const float d : got[2]) EXPECT_EQ(d, 0);
}

// Logits beyond e^88.7: no overflow, and the loss is the gap to the largest.
TEST(HeadCrossEntropy, LargeLogitsDoNotOverflow) {
  ThreadPool pool(4);
  Case c(4, 1, 3);
  c.hidden = {1000, 1000, -1000, 500};
  c.head_weight = {1, 0, -1};
  c.targets = {0, 2, 0, 1};
  const auto got = RunHead(c, true, pool);
  EXPECT_EQ(got[0], (std::vector<float>{0, 2000, 2000, 500}));
}

TEST(HeadCrossEntropy, NanInOneTokenStaysInThatToken) {
  ThreadPool pool(4);
  Case c(30, 8, 20);
  c.hidden[5 * 8 + 2] = std::nanf("");
  const auto got = RunHead(c, true, pool);
  for (int64_t t = 0; t < 30; ++t) {
    EXPECT_EQ(std::isnan(got[0][t]), t == 5) << t;
    EXPECT_EQ(std::isnan(got[1][t * 8]), t == 5) << t;
  }
}

}  // namespace
}  // namespace softmoe::kernels
