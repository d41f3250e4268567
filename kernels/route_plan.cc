// SPDX-License-Identifier: Apache-2.0
//
// A counting sort over fixed blocks of tokens: count per block and expert,
// prefix sums over experts then blocks, place. The result is the one order
// (expert, then token), so it cannot depend on threads.
#include "kernels/route_plan.h"

namespace softmoe::kernels::SOFTMOE_ISA {

void BuildRoutePlan(const BuildRoutePlanArgs& args, ThreadPool& pool) {
  const int64_t num_experts = args.num_experts;
  const int64_t width = args.max_active;
  // scratch[block, expert]: counts, then where the block's rows begin.
  pool.ParallelForBlocks(
      args.num_tokens, kRoutePlanTokenBlock, [&](int64_t begin, int64_t end) {
        int32_t* counts =
            args.scratch + begin / kRoutePlanTokenBlock * num_experts;
        for (int64_t e = 0; e < num_experts; ++e) counts[e] = 0;
        for (int64_t token = begin; token < end; ++token) {
          const int32_t* selected = args.selected + token * width;
          for (int32_t i = 0; i < args.num_active[token]; ++i) {
            ++counts[selected[i]];
          }
        }
      });
  const int64_t blocks =
      (args.num_tokens + kRoutePlanTokenBlock - 1) / kRoutePlanTokenBlock;
  int32_t offset = 0;
  for (int64_t e = 0; e < num_experts; ++e) {
    args.expert_offsets[e] = offset;
    for (int64_t b = 0; b < blocks; ++b) {
      int32_t& cell = args.scratch[b * num_experts + e];
      const int32_t count = cell;
      cell = offset;
      offset += count;
    }
  }
  args.expert_offsets[num_experts] = offset;

  pool.ParallelForBlocks(
      args.num_tokens, kRoutePlanTokenBlock, [&](int64_t begin, int64_t end) {
        int32_t* next =
            args.scratch + begin / kRoutePlanTokenBlock * num_experts;
        for (int64_t token = begin; token < end; ++token) {
          const int64_t at = token * width;
          const int64_t count = args.num_active[token];
          for (int64_t i = 0; i < count; ++i) {
            const int32_t row = next[args.selected[at + i]]++;
            args.row_token[row] = static_cast<int32_t>(token);
            args.row_gate[row] = args.gates[at + i];
            args.token_rows[at + i] = row;
          }
          for (int64_t i = count; i < width; ++i) args.token_rows[at + i] = -1;
        }
      });
}

void GatherGateGradients(const GatherGateGradientsArgs& args,
                         ThreadPool& pool) {
  const int64_t width = args.max_active;
  pool.ParallelForBlocks(
      args.num_tokens, kRoutePlanTokenBlock, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin * width; i < end * width; ++i) {
          const int32_t row = args.token_rows[i];
          args.d_gates[i] = row < 0 ? 0.0f : args.d_row_gate[row];
        }
      });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
