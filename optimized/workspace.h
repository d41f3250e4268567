// SPDX-License-Identifier: Apache-2.0
//
// workspace.h - all memory of a forward and backward pass, sized once for the
// largest balance group and the worst routing.
//
// Shapes use N = tokens of the group at hand (at most the N the workspace was
// made for), d = d_model, f = d_ffn, E = num_experts, H = num_heads, A = the
// layer's max_active, R = rows routed in the layer (at most N*A).
#ifndef SOFTMOE_OPTIMIZED_WORKSPACE_H_
#define SOFTMOE_OPTIMIZED_WORKSPACE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/config/config.h"
#include "kernels/expert_mlp.h"
#include "optimized/allocation.h"
#include "optimized/backend.h"
#include "optimized/buffer.h"
#include "optimized/pass_report.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

// What one layer keeps from its forward to its backward pass.
struct LayerActivations {
  LayerActivations(const Config& config, int64_t num_tokens);

  Buffer<float> residual;          // [N, d]   entering the layer
  Buffer<float> attention_normed;  // [N, d]
  Buffer<float> attention_rstd;    // [N]
  Buffer<float> qkv;               // [N, 3*d] after RoPE
  Buffer<float> attention_out;     // [N, d]   before the output projection
  Buffer<float> log_sum_exp;       // [N/sequence_length, H, sequence_length]
  Buffer<float> moe_residual;      // [N, d]   entering the MoE half
  Buffer<float> moe_normed;        // [N, d]
  Buffer<float> moe_rstd;          // [N]
  Buffer<float> jittered;          // [N, d]   only with input_jitter
  Buffer<float> scores;            // [N, E]
  Buffer<float> soft_weights;      // [N, E]
  Buffer<float> root;              // [N, 2]
  Buffer<int32_t> num_active;      // [N]
  Buffer<int32_t> expert_offsets;  // [E + 1]
  Buffer<float> d_probability;     // [E] see kernels/balance_loss.h
};

// One layer's share of the buffers over (token, expert) pairs. The shares move
// with the allocation: layers trade caps, but their sum is bounded.
struct RoutedShare {
  int64_t max_active;   // A
  int32_t* selected;    // [N, A]
  float* gates;         // [N, A]
  int32_t* token_rows;  // [N, A]
  int32_t* row_token;   // [N*A], R used
  float* row_gate;      // [N*A], R used
  float* gate_up;       // [N*A, 2*f], R used
};

class Workspace {
 public:
  Workspace(const Config& config, int64_t max_tokens, Queue& queue);

  int64_t max_tokens() const { return max_tokens_; }

  // Gives every layer its share for a pass over `num_tokens` tokens.
  void PlaceShares(std::span<const LayerAllocation> allocations,
                   int64_t num_tokens);

  // The routing of `layer` as the expert kernels take it: once BuildRoutePlan
  // is enqueued, waits for how many rows each expert has; and as it was last
  // fetched.
  kernels::RoutePlan FetchPlan(Queue& queue, int64_t layer, int64_t num_tokens);
  kernels::RoutePlan Plan(int64_t layer, int64_t num_tokens) const;
  const int32_t* HostOffsets(int64_t layer) const {
    return host_offsets_[layer].view().data();
  }

  // Bytes reserved; pages that no routing ever reached hold no memory.
  int64_t bytes() const;

  std::vector<LayerActivations> layers;
  std::vector<RoutedShare> shares;
  Buffer<float> cosine, sine;          // [sequence_length, head_dim/2]
  Buffer<float> final_residual;        // [N, d]
  Buffer<float> final_normed;          // [N, d]
  Buffer<float> final_rstd;            // [N]
  Buffer<float> token_loss;            // [N]
  SentArray<int32_t> inputs, targets;  // [N]
  PassReport report;

  // Scratch, used and forgotten inside one block.
  Buffer<float> row_output;           // [R, d]; backward: d_row_hidden
  Buffer<int32_t> route_scratch;      // see kernels/route_plan.h
  Buffer<double> router_scratch;      // see kernels/router.h
  Buffer<double> probability_sums;    // [E]
  Buffer<double> z_sum;               // [1]
  Buffer<float> d_residual;           // [N, d] gradient of the residual stream
  Buffer<float> d_normed;             // [N, d]
  Buffer<float> d_attention_out;      // [N, d]
  Buffer<float> d_qkv;                // [N, 3*d]
  Buffer<float> d_jittered;           // [N, d]; only with input_jitter
  Buffer<float> d_scores;             // [N, E]
  Buffer<float> d_gates;              // [N, A]
  Buffer<float> d_row_gate;           // [R]
  Buffer<float> d_gate_up;            // [R, 2*f]
  Buffer<float> activation;           // [R, f]
  Buffer<float> norm_scratch;         // see kernels/rmsnorm.h
  Buffer<int32_t> embedding_scratch;  // see kernels/embedding.h
  int64_t query_block, head_chunk;    // of a device
  Buffer<float> attention_scratch;    // see kernels/attention.h
  Buffer<float> logits;               // [head_chunk, vocab_size]

 private:
  int64_t max_tokens_;
  int64_t d_ffn_, num_experts_;
  // expert_offsets of each layer, on the host.
  std::vector<FetchedArray<int32_t>> host_offsets_;
  // One after the other, the shares of all layers.
  Buffer<int32_t> selected_, token_rows_, row_token_;
  Buffer<float> gates_, row_gate_, gate_up_;
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_WORKSPACE_H_
