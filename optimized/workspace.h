// SPDX-License-Identifier: Apache-2.0
//
// workspace.h - the memory of forward and backward passes, as memory_plan.h
// says.
//
// The host takes each array by itself, once, for the worst routing. A device
// takes one piece of memory and divides it, for the caps of the step, so it may
// have to grow from one step to the next.
#ifndef SOFTMOE_OPTIMIZED_WORKSPACE_H_
#define SOFTMOE_OPTIMIZED_WORKSPACE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/config/config.h"
#include "kernels/expert_mlp.h"
#include "optimized/allocation.h"
#include "optimized/backend.h"
#include "optimized/buffer.h"
#include "optimized/memory_plan.h"
#include "optimized/pass_report.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

// One layer's share of the arrays over (token, expert) pairs. The shares move
// with the allocation: layers trade caps, but their sum is bounded.
struct RoutedShare {
  int64_t max_active;   // A
  int32_t* selected;    // [N, A]
  float* gates;         // [N, A]
  int32_t* token_rows;  // [N, A]
  int32_t* row_token;   // [N*A], R used
  float* row_gate;      // [N*A], R used
  Activation* gate_up;  // [N*A, 2*f], R used; one for all if recomputed
};

class Workspace : public PassArrays {
 public:
  // Errors   EnvironmentError if the device has less memory than planned.
  Workspace(const Config& config, int64_t max_tokens, Recompute recompute,
            Queue& queue);

  int64_t max_tokens() const { return max_tokens_; }
  Recompute recompute() const { return recompute_; }

  // Makes room for passes with these caps. If there is too little room, waits,
  // and loses the content.
  // Errors   EnvironmentError if the device has less memory than planned.
  void Reserve(std::span<const LayerAllocation> allocations, Queue& queue);

  // Gives every layer its share for a pass over `num_tokens` tokens.
  void PlaceShares(std::span<const LayerAllocation> allocations,
                   int64_t num_tokens);

  // The routing of `layer` as the expert kernels take it. FetchPlan, to be
  // called once BuildRoutePlan is enqueued, waits for the number of rows of
  // each expert; Plan returns what was fetched last.
  kernels::RoutePlan FetchPlan(Queue& queue, int64_t layer, int64_t num_tokens);
  kernels::RoutePlan Plan(int64_t layer, int64_t num_tokens) const;
  const int32_t* HostOffsets(int64_t layer) const {
    return host_offsets_[layer].view().data();
  }

  // Bytes reserved; pages of the host that no routing ever reached take no
  // memory.
  int64_t bytes() const;

  std::vector<RoutedShare> shares;
  Buffer<float> cosine, sine;  // [sequence_length, head_dim/2]
  SentArray<int32_t> sent_inputs, sent_targets;
  PassReport report;
  int64_t query_block, head_chunk;  // GPU only

 private:
  void Take(const PassSizes& sizes);

  Config config_;
  int64_t max_tokens_;
  Recompute recompute_;
  PassSizes sizes_;
  std::vector<Buffer<std::byte>> memory_;
  // expert_offsets of each layer, on the host.
  std::vector<FetchedArray<int32_t>> host_offsets_;
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_WORKSPACE_H_
