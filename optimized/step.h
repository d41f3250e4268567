// SPDX-License-Identifier: Apache-2.0
//
// step.h - what goes into one pass of the model, or one update, and what
// is counted on the way; and the error with which a number that is not finite
// ends a run.
#ifndef SOFTMOE_OPTIMIZED_STEP_H_
#define SOFTMOE_OPTIMIZED_STEP_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/errors.h"

namespace softmoe::optimized {

// Token ids of whole sequences; targets[i] follows inputs[i] in the text.
struct Batch {
  int64_t num_sequences;
  std::span<const int32_t> inputs;   // [num_sequences, sequence_length]
  std::span<const int32_t> targets;  // [num_sequences, sequence_length]
  int64_t first_token = 0;  // global index of the first token: keys the noise
  // 0: the model's sequence length. Else a shorter one, so that more sequences
  // fit; on a device a multiple of 8, and not for gradients.
  int64_t sequence_length = 0;
};

// What routing depends on besides parameters and scores, fixed for one step.
struct RoutingState {
  double temperature = 1.0;
  double tau = 0.0;    // soft routers; 0 keeps everything up to the cap
  bool noise = false;  // add the configured noise (training)
  int64_t step = 0;    // keys the noise
};

struct LayerStats {
  std::vector<int64_t> tokens_per_expert;  // [num_experts]
  std::vector<int64_t> active_histogram;   // [num_experts+1]: tokens by count
  // Tokens of which no weight exceeds the cutoff: they have no expert, or with
  // fallback = "top1" the one that it gives them.
  int64_t tokens_below_cutoff = 0;
  double load_balance_loss = 0;  // times its coefficient
  double z_loss = 0;             // times its coefficient
};

// What one layer's router did in the last pass: for metrics that training does
// not need, and for another implementation to replay. Where a near-tie makes
// two implementations choose differently, all that follows can only be compared
// under the same choice (DESIGN.md, "Verification").
struct RoutingView {
  int64_t max_active = 0;
  std::span<const float> scores;        // [num_tokens, num_experts]
  std::span<const float> soft_weights;  // [num_tokens, num_experts] before
                                        // cutoff and cap
  std::span<const int32_t> selected;    // [num_tokens, max_active] ascending
                                        // expert, then -1
  std::span<const int64_t> balance_counts;  // [num_experts] of the load balance
};

struct StepStats {
  int64_t num_tokens = 0;
  double loss_sum = 0;  // nats, sum over tokens: the language-model loss only
  std::vector<LayerStats> layers;

  double MeanActiveExperts() const;  // per token and layer
};

// The balance groups of one global batch, asked for in ascending order; the
// spans' contents must last until the next call.
using GroupBatch = std::function<Batch(int64_t group)>;

// What the first half of an update found.
struct UpdateGradient {
  std::vector<StepStats> groups;  // in their order
  double norm = 0;                // before clipping
};

// A number of the model is not finite. That is a property of configuration,
// text and seed, unlike the other NumericsError, a failure of the device.
struct DivergedError : NumericsError {
  using NumericsError::NumericsError;
};

// Returns what `work` returns. If it throws a NumericsError that is not a
// DivergedError, throws an EnvironmentError with `remedy`.
template <typename Work>
auto WithDeviceErrors(const std::string& remedy, const Work& work) {
  try {
    return work();
  } catch (const DivergedError&) {
    throw;
  } catch (const NumericsError& error) {
    throw EnvironmentError(error.what() + ("; " + remedy) +
                           ". If it fails again, look at the device with "
                           "nvidia-smi");
  }
}

// Throws DivergedError; `what` says what went wrong, and where. The message
// names no remedy: that depends on the updates so far, which the trainer knows.
[[noreturn]] void ThrowDiverged(const std::string& what);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_STEP_H_
