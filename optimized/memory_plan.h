// SPDX-License-Identifier: Apache-2.0
//
// memory_plan.h - what a model and its updates keep in memory: which arrays, of
// what size. The plan is a value: it can be shown before anything is allocated,
// and a pass gets its memory according to it (workspace.h).
//
// Shapes use N = tokens of the group at hand (at most the N that was planned
// for), d = d_model, f = d_ffn, E = num_experts, H = num_heads, A = the layer's
// max_active, R = rows routed in the layer (at most N*A).
#ifndef SOFTMOE_OPTIMIZED_MEMORY_PLAN_H_
#define SOFTMOE_OPTIMIZED_MEMORY_PLAN_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "kernels/simt/bf16.h"
#include "optimized/allocation.h"

namespace softmoe::optimized {

// Where a backend's arrays live. The host's pages take memory only when written
// to, so its arrays are sized for the worst routing of all steps; a device's
// are sized for the caps of the step at hand.
enum class MemoryKind { kHost, kDevice };

struct PlannedArray {
  std::string part;  // "activations"
  std::string name;  // "qkv"
  int64_t bytes;     // rounded up so that the next array is aligned
};

class MemoryPlan {
 public:
  // Every array begins at a multiple of this, as a device's allocations do.
  static constexpr int64_t kAlignment = 512;

  // Errors   InternalError if `bytes` is negative.
  void Add(const std::string& part, const std::string& name, int64_t bytes);
  void Add(const MemoryPlan& other);

  const std::vector<PlannedArray>& arrays() const { return arrays_; }
  int64_t bytes() const;
  // Bytes of one part.
  int64_t bytes(const std::string& part) const;

  // A line for each part with its arrays of the largest sizes, and the sum:
  // "  moments      12.2 GiB  first 6.1 GiB, second 6.1 GiB".
  std::string Text() const;

 private:
  std::vector<PlannedArray> arrays_;
};

// What passes over groups must have room for.
struct PassSizes {
  int64_t num_tokens;  // N
  int64_t pairs;       // the sum of SharePairs of all layers
  int64_t rows;        // N*A of the layer with the largest A

  bool Holds(const PassSizes& other) const {
    return num_tokens >= other.num_tokens && pairs >= other.pairs &&
           rows >= other.rows;
  }
};

// N*A, rounded up so that the next layer's arrays are aligned like any other:
// the bits of a product may depend on alignment.
int64_t SharePairs(int64_t num_tokens, int64_t max_active);

// Sizes of passes with these caps, and with any caps that the budget may give.
PassSizes SizesOf(std::span<const LayerAllocation> allocations,
                  int64_t num_tokens);
PassSizes LargestSizes(const Config& config, int64_t num_tokens);

// Where arrays come from: memory, or a plan that only notes them.
class ArraySource {
 public:
  virtual ~ArraySource() = default;

  template <typename T>
  std::span<T> Take(const char* part, const char* name, int64_t size) {
    void* memory =
        TakeBytes(part, name, size * static_cast<int64_t>(sizeof(T)));
    if (memory == nullptr) return {};
    return {static_cast<T*>(memory), static_cast<size_t>(size)};
  }

 private:
  virtual void* TakeBytes(const char* part, const char* name,
                          int64_t bytes) = 0;
};

// Arrays that one layer keeps from its forward to its backward pass; those that
// are recomputed are shared by all layers. Activation is float, or Bf16 where
// training.precision is bf16 (DESIGN.md, "Types on a device").
template <typename Activation>
struct LayerActivationsOf {
  std::span<Activation> residual;          // [N, d]   entering the layer
  std::span<Activation> attention_normed;  // [N, d]
  std::span<float> attention_rstd;         // [N]
  std::span<Activation> qkv;               // [N, 3*d] after RoPE
  std::span<Activation> attention_out;     // [N, d]   before the output
                                           // projection
  std::span<float> log_sum_exp;  // [N/sequence_length, H, sequence_length]
  std::span<Activation> moe_residual;  // [N, d]   entering the MoE half
  std::span<Activation> moe_normed;    // [N, d]
  std::span<float> moe_rstd;           // [N]
  std::span<float> router_input;       // [N, d]   where it is not moe_normed:
                                       // with input_jitter, or of bf16
  std::span<float> scores;             // [N, E]
  std::span<float> soft_weights;       // [N, E]
  std::span<float> root;               // [N, 2]
  std::span<int32_t> num_active;       // [N]
  std::span<int32_t> expert_offsets;   // [E + 1]
  std::span<float> d_probability;      // [E] see kernels/balance_loss.h
};

// Everything that a pass reads and writes, besides parameters and gradients.
template <typename Activation>
struct PassArraysOf {
  std::vector<LayerActivationsOf<Activation>> layers;
  std::span<Activation> final_residual;  // [N, d]
  std::span<Activation> final_normed;    // [N, d]
  std::span<float> final_rstd;           // [N]
  std::span<float> token_loss;           // [N]
  std::span<int32_t> is_greedy;          // [N]
  std::span<int32_t> inputs, targets;    // [N], GPU only
  std::span<double> budget_shares;       // [num_layers], GPU only

  // Arrays over (token, expert) pairs: the shares of all layers, one after the
  // other.
  std::span<int32_t> selected, token_rows, row_token;  // [pairs]
  std::span<float> gates, row_gate;                    // [pairs]
  std::span<Activation> gate_up;  // [pairs, 2*f]; recomputed: [rows, 2*f]

  // Scratch, used and forgotten inside one block.
  std::span<Activation> row_output;       // [R, d]; backward: d_row_hidden
  std::span<int32_t> route_scratch;       // see kernels/route_plan.h
  std::span<double> router_scratch;       // see kernels/router.h
  std::span<double> probability_sums;     // [E]
  std::span<double> z_sum;                // [1]
  std::span<Activation> d_residual;       // [N, d] gradient of the residual
                                          // stream
  std::span<Activation> d_normed;         // [N, d]
  std::span<Activation> d_attention_out;  // [N, d]
  std::span<Activation> d_qkv;            // [N, 3*d]
  std::span<float> d_router_input;        // [N, d]; only with router_input
  std::span<float> d_scores;              // [N, E]
  std::span<float> d_gates;               // [N, A]
  std::span<float> d_row_gate;            // [R]
  std::span<Activation> d_gate_up;        // [R, 2*f]
  std::span<Activation> activation;       // [R, f]
  std::span<float> norm_scratch;          // see kernels/rmsnorm.h
  std::span<int32_t> embedding_scratch;   // see kernels/embedding.h
  std::span<float> attention_scratch;     // see kernels/attention.h
  std::span<float> logits;                // [head_chunk, vocab_size]
  std::span<Activation> d_logits;         // like logits; bf16 only
};

// Takes all arrays, always in the same order. Instantiated for float and Bf16.
template <typename Activation>
PassArraysOf<Activation> TakePassArrays(const Config& config,
                                        const PassSizes& sizes,
                                        Recompute recompute, MemoryKind kind,
                                        ArraySource& source);

// The plan that TakePassArrays follows, in the configuration's precision.
MemoryPlan PlanPasses(const Config& config, const PassSizes& sizes,
                      Recompute recompute, MemoryKind kind);

// Plans what a model, and its updates, take besides, whatever the caps, on each
// of `ranks` ranks, which must divide the balance groups. Shards are those of
// the rank that has most. What NCCL keeps for itself is not counted.
MemoryPlan PlanModel(const Config& config, int ranks = 1);
MemoryPlan PlanUpdates(const Config& config, int ranks = 1);

// The most elements of a shard that ranks exchange at a time
// (gradient_exchange.h): 64 MiB from each rank, and no more than its shard of
// one bucket. At 50 GB/s, the slowest link that plans assume, 64 MiB take
// 1.3 ms. With the paper's model on 20 ranks, a rank receives 0.56 GiB at a
// time; whole shards would be 6 GiB.
inline constexpr int64_t kExchangePiece = (int64_t{64} << 20) / sizeof(float);

// How many of `total` parameters are sent to a device at a time to be cast,
// where ranks share the masters (backend_parameters.h).
int64_t StagedParameters(int64_t total);

// The passes that a model reports at a time (pass_report.h): as many as an
// update has balance groups, but at least one.
int64_t NumPasses(const TrainingConfig& training);

// How many counts and sums a pass reports.
int64_t ReportCounts(const ModelConfig& model);
int64_t ReportSums(const ModelConfig& model);

// All that a device holds in a step with these caps, over groups of
// `group_sequences` sequences: the parameters, the updates' arrays, a pass, and
// `product_workspaces` bytes for the products (kernels/cuda/queue.h). For one
// of `ranks` ranks.
MemoryPlan PlanStep(const Config& config,
                    std::span<const LayerAllocation> allocations,
                    int64_t group_sequences, Recompute recompute,
                    int64_t product_workspaces, int ranks = 1);

// Bytes that products take on a device: the workspaces of a queue;
// gpu_device.cc asserts that they are equal.
inline constexpr int64_t kProductWorkspaces = int64_t{160} << 20;

// How many queries' attention weights, and how many tokens' logits, a device
// holds at a time; 0 on the host.
int64_t QueryBlock(const Config& config, MemoryKind kind);
int64_t HeadChunk(const Config& config, int64_t num_tokens, MemoryKind kind);

// Buffers that the sum over groups needs beside the sum (gradient_tree.h):
// ceil(log2(num_groups)).
int64_t TreeBuffers(int64_t num_groups);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_MEMORY_PLAN_H_
