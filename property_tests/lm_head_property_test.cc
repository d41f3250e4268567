// SPDX-License-Identifier: Apache-2.0
//
// LM head with cross-entropy: kernel against the reference.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "kernels/cross_entropy.h"
#include "property_tests/error_bounds.h"
#include "property_tests/kernel_case.h"
#include "reference/lm_head.h"

namespace softmoe::property_tests {
namespace {

struct HeadCase {
  int64_t num_tokens = *rc::gen::inRange<int64_t>(1, 40);
  int64_t d_model = *rc::gen::inRange<int64_t>(1, 40);
  int64_t vocab_size = *rc::gen::inRange<int64_t>(1, 90);
  uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  double size = *rc::gen::element(0.1, 1.0, 3.0);  // of the hidden state
  Floats hidden = NormalFloats(num_tokens * d_model, seed, 1, size);
  Floats weight = NormalFloats(vocab_size * d_model, seed, 2);
  std::vector<int32_t> targets = RandomIds(num_tokens, vocab_size, seed, 3);
  float grad_scale = 0.0625f;
};

RC_GTEST_PROP(LmHeadDifference, LossAndGradientsAreWithinTheirBounds, ()) {
  const HeadCase c;
  const int64_t n = c.num_tokens, d = c.d_model, v = c.vocab_size;
  const auto levels = RunAtEveryLevel([&](ThreadPool& pool) {
    Floats loss(n), loss_only(n), d_hidden(n * d), d_weight(v * d);
    kernels::HeadCrossEntropy(
        {n, d, v, c.hidden.data(), c.weight.data(), c.targets.data(),
         loss.data(), c.grad_scale, d_hidden.data(), d_weight.data()},
        pool);
    kernels::HeadCrossEntropy({n, d, v, c.hidden.data(), c.weight.data(),
                               c.targets.data(), loss_only.data()},
                              pool);
    RC_ASSERT(loss == loss_only);
    return std::vector<Floats>{loss, d_hidden, d_weight};
  });

  std::vector<Bounded> losses, d_hiddens, d_weights;
  std::vector<BoundedSum> d_weight(v * d);
  for (int64_t t = 0; t < n; ++t) {
    std::vector<Bounded> logits;
    for (int64_t w = 0; w < v; ++w) {
      BoundedSum dot;
      for (int64_t j = 0; j < d; ++j) {
        dot.Add(Bounded(c.hidden[t * d + j]) * Bounded(c.weight[w * d + j]));
      }
      logits.push_back(dot.Get());
    }
    // Panels of the vocabulary have at least 16 entries: at most 6 steps.
    const BoundedSoftmax softmax = SoftmaxOf(logits, 6);
    losses.push_back(softmax.log_sum_exp - logits[c.targets[t]]);
    std::vector<BoundedSum> d_hidden(d);
    for (int64_t w = 0; w < v; ++w) {
      const Bounded hit(w == c.targets[t] ? 1.0 : 0.0);
      const Bounded d_logit =
          Bounded(c.grad_scale) * (Exp(logits[w] - softmax.log_sum_exp) - hit);
      for (int64_t j = 0; j < d; ++j) {
        d_hidden[j].Add(d_logit * Bounded(c.weight[w * d + j]));
        d_weight[w * d + j].Add(d_logit * Bounded(c.hidden[t * d + j]));
      }
    }
    for (const BoundedSum& sum : d_hidden) d_hiddens.push_back(sum.Get());
  }
  for (const BoundedSum& sum : d_weight) d_weights.push_back(sum.Get());

  const reference::Matrix hidden = AsMatrix(c.hidden, n, d);
  const reference::Matrix weight = AsMatrix(c.weight, v, d);
  const reference::LmHeadGradients gradients = reference::LmHeadBackward(
      hidden, weight, c.targets, reference::Vector::Constant(n, c.grad_scale));
  for (const auto& got : levels) {
    RC_ASSERT(Mismatch("loss", got[0],
                       reference::TokenLosses(
                           reference::LmHeadLogits(hidden, weight), c.targets),
                       losses) == "");
    RC_ASSERT(Mismatch("d_hidden", got[1], gradients.d_hidden, d_hiddens) ==
              "");
    RC_ASSERT(Mismatch("d_head_weight", got[2], gradients.d_head_weight,
                       d_weights) == "");
  }
}

}  // namespace
}  // namespace softmoe::property_tests
