// SPDX-License-Identifier: Apache-2.0
//
// tiny_model.h - a model small enough to be differentiated along many
// directions, with parameters so large that every routing case occurs: tokens
// without, with one and with several active experts, and tokens at the cap.
#ifndef SOFTMOE_REFERENCE_TESTING_TINY_MODEL_H_
#define SOFTMOE_REFERENCE_TESTING_TINY_MODEL_H_

#include <cstdint>
#include <vector>

#include "core/config/config.h"
#include "reference/matrix.h"
#include "reference/transformer.h"

namespace softmoe::reference::testing {

// 2 layers, d_model 8, 2 heads, 5 experts of width 12, vocabulary 11, sequences
// of 6 tokens; both auxiliary losses on. Sparse: k = 2; soft: k = 1.5.
Config TinyConfig(RouterKind kind);

// The routing that goes with TinyConfig: temperature and tau at which some
// tokens have no active expert and some have as many as the cap allows.
RoutingState TinyRouting();

// Random parameters of the layout of `config`, of a size at which activations
// stay of size 1: norms around 1, matrices N(0, 1/rows), and router scores and
// budget logits that spread.
Vector TinyParameters(const Config& config, uint64_t seed);

// Random token ids of `num_sequences` sequences, and their balance group.
struct TinyTokens {
  TinyTokens(const Config& config, int64_t num_sequences, uint64_t seed);
  BalanceGroup Group() const;

  int64_t num_sequences;
  std::vector<int32_t> inputs, targets;
};

}  // namespace softmoe::reference::testing

#endif  // SOFTMOE_REFERENCE_TESTING_TINY_MODEL_H_
