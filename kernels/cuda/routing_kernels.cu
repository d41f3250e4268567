// SPDX-License-Identifier: Apache-2.0
//
// The plan is a counting sort (counting_sort.h): pairs (token, place) are the
// items, experts the bins, and a block is kRoutePlanTokenBlock tokens, as on
// the CPU. At 61440 tokens that is 240 blocks. Most of the time at most one
// thread of a warp has the pair that all look at, so placing does no more than
// number the rows; what belongs in them is written by a thread per pair.
//
// Counts of tokens are made by one block: few numbers of experts occur, so a
// warp finds those of its 32 tokens in a few votes.
#include "kernels/balance_loss_body.h"
#include "kernels/budget_gradient_body.h"
#include "kernels/cuda/counting_sort.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/routing_kernels.h"
#include "kernels/router_block.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kThreads = kSortThreads;
static_assert(kMaxExperts <= kSortThreads, "a thread per expert");

// Calls body(pair) for each pair of this block of tokens whose expert is this
// thread's, in ascending order.
template <typename Body>
__device__ void ForEachPairOfExpert(const BuildRoutePlanArgs& a,
                                    const Body& body) {
  const int64_t begin =
      int64_t{blockIdx.x} * kRoutePlanTokenBlock * a.max_active;
  const int64_t end = begin + kRoutePlanTokenBlock * a.max_active;
  const int64_t pairs = a.num_tokens * a.max_active;
  ForEachItemOfBin(
      begin, end < pairs ? end : pairs, a.num_experts,
      [&](int64_t pair) { return a.selected[pair]; }, body);
}

__global__ void __launch_bounds__(kThreads)
    CountRowsKernel(BuildRoutePlanArgs a) {
  int32_t rows = 0;
  ForEachPairOfExpert(a, [&](int64_t) { ++rows; });
  if (threadIdx.x < a.num_experts) {
    a.scratch[blockIdx.x * a.num_experts + threadIdx.x] = rows;
  }
}

__global__ void __launch_bounds__(kThreads)
    PlaceRowsKernel(BuildRoutePlanArgs a) {
  const int64_t expert = threadIdx.x;
  int32_t row = 0;
  if (expert < a.num_experts) {
    row = a.expert_offsets[expert] +
          a.scratch[blockIdx.x * a.num_experts + expert];
  }
  ForEachPairOfExpert(a, [&](int64_t pair) { a.token_rows[pair] = row++; });
}

// After PlaceRowsKernel, which leaves pairs without an expert as they were.
__global__ void __launch_bounds__(kThreads)
    FillRowsKernel(BuildRoutePlanArgs a) {
  const int64_t pair = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (pair >= a.num_tokens * a.max_active) return;
  if (a.selected[pair] < 0) {
    a.token_rows[pair] = -1;
    return;
  }
  const int32_t row = a.token_rows[pair];
  a.row_token[row] = static_cast<int32_t>(pair / a.max_active);
  a.row_gate[row] = a.gates[pair];
}

__global__ void __launch_bounds__(kThreads)
    GatherGateGradientsKernel(GatherGateGradientsArgs a) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= a.num_tokens * a.max_active) return;
  const int32_t row = a.token_rows[i];
  a.d_gates[i] = row < 0 ? 0.0f : a.d_row_gate[row];
}

// Called by one thread.
__device__ void NoteBadScore(const RoutingCountsArgs& a) {
  if (a.bad_value == nullptr) return;
  *a.bad_value =
      *a.bad_score < 0 ? 0 : static_cast<double>(a.scores[*a.bad_score]);
}

constexpr int kCountThreads = 1024;
constexpr int kCountBatch = 4;  // tokens that a thread asks for at a time

__global__ void __launch_bounds__(kCountThreads)
    RoutingCountsKernel(RoutingCountsArgs a) {
  SOFTMOE_SHARED(int32_t, histogram, [kMaxExperts + 1]);
  SOFTMOE_SHARED(int32_t, below, [1]);
  const int me = threadIdx.x;
  for (int i = me; i <= a.num_experts; i += kCountThreads) histogram[i] = 0;
  if (me == 0) below[0] = 0;
  __syncthreads();
  int32_t mine_below = 0;
  for (int64_t first = 0; first < a.num_tokens;
       first += kCountBatch * kCountThreads) {
    // One block does not hide how long memory takes: all loads come first.
    int32_t batch[kCountBatch];  // -1: there is no such token
    SOFTMOE_UNROLL
    for (int i = 0; i < kCountBatch; ++i) {
      const int64_t token = first + i * kCountThreads + me;
      batch[i] = token < a.num_tokens ? a.num_active[token] : -1;
    }
    SOFTMOE_UNROLL
    for (int i = 0; i < kCountBatch; ++i) {
      const int64_t token = first + i * kCountThreads + me;
      const int32_t active = batch[i];
      if (a.has_cutoff) {
        mine_below +=
            active == 0 ||
            (active == 1 && !(a.gates[token * a.max_active] > a.cutoff));
      }
    }
    SOFTMOE_UNROLL
    for (int i = 0; i < kCountBatch; ++i) {
      const int32_t active = batch[i];
      // Finds the tokens of a warp with as many experts as the first one left.
      uint32_t left = __ballot_sync(0xffffffffu, active >= 0);
      while (left != 0) {
        const int leader = __ffs(static_cast<int>(left)) - 1;
        const int32_t count = __shfl_sync(0xffffffffu, active, leader);
        const uint32_t same = __ballot_sync(0xffffffffu, active == count);
        if (me % 32 == leader) atomicAdd(&histogram[count], __popc(same));
        left &= ~same;
      }
    }
  }
  if (mine_below != 0) atomicAdd(&below[0], mine_below);
  __syncthreads();
  for (int i = me; i <= a.num_experts; i += kCountThreads) {
    a.active_histogram[i] = histogram[i];
  }
  if (me == 0) {
    *a.below_cutoff = below[0];
    NoteBadScore(a);
  }
}

__global__ void BalanceLossKernel(BalanceLossArgs a) { BalanceLossOfGroup(a); }

__global__ void BudgetGradientKernel(BudgetGradientArgs a) {
  BudgetGradientOfLayers(a);
}

}  // namespace

void BuildRoutePlan(const BuildRoutePlanArgs& args, cudaStream_t stream) {
  const int64_t blocks = Blocks(args.num_tokens, kRoutePlanTokenBlock);
  Launch("BuildRoutePlan", CountRowsKernel, blocks, kThreads, 0, stream, args);
  ScanCounts("BuildRoutePlan",
             {.blocks = blocks,
              .bins = args.num_experts,
              .counts = args.scratch,
              .offsets = args.expert_offsets},
             stream);
  Launch("BuildRoutePlan", PlaceRowsKernel, blocks, kThreads, 0, stream, args);
  Launch("BuildRoutePlan", FillRowsKernel,
         Blocks(args.num_tokens * args.max_active, kThreads), kThreads, 0,
         stream, args);
}

void GatherGateGradients(const GatherGateGradientsArgs& args,
                         cudaStream_t stream) {
  Launch("GatherGateGradients", GatherGateGradientsKernel,
         Blocks(args.num_tokens * args.max_active, kThreads), kThreads, 0,
         stream, args);
}

void RoutingCounts(const RoutingCountsArgs& args, cudaStream_t stream) {
  Launch("RoutingCounts", RoutingCountsKernel, 1, kCountThreads, 0, stream,
         args);
}

void BalanceLoss(const BalanceLossArgs& args, cudaStream_t stream) {
  Launch("BalanceLoss", BalanceLossKernel, 1, 1, 0, stream, args);
}

void BudgetGradient(const BudgetGradientArgs& args, cudaStream_t stream) {
  Launch("BudgetGradient", BudgetGradientKernel, 1, 1, 0, stream, args);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
