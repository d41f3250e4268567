// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm: one warp per row forward, one warp per fixed block of 64 rows
// backward (it owns that block's share of d_weight, which a tree adds up per
// column); reads x (and d_y), writes y (d_x): memory-bound. AdamW: one element
// per thread, 28 bytes each.
// Both deterministic: fixed order, no atomics.
#include "kernels/adamw_body.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/cuda/tree_sum.h"
#include "kernels/rmsnorm_body.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

template <typename Activation>
__global__ void __launch_bounds__(kThreads)
    RmsNormForwardKernel(RmsNormForwardArgsOf<Activation> a) {
  const int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (row >= a.num_tokens) return;  // a whole warp
  RmsNormForwardRow(CudaWarp(), a.d_model, a.epsilon, a.x + row * a.d_model,
                    a.weight, a.y + row * a.d_model, a.rstd + row);
}

template <typename Activation>
__global__ void __launch_bounds__(kThreads)
    RmsNormBackwardKernel(RmsNormBackwardArgsOf<Activation> a) {
  const int64_t block = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  const int64_t begin = block * kRmsNormTokenBlock;
  if (begin >= a.num_tokens) return;
  const int64_t end = begin + kRmsNormTokenBlock < a.num_tokens
                          ? begin + kRmsNormTokenBlock
                          : a.num_tokens;
  RmsNormBackwardRows(CudaWarp(), begin, end, a.d_model, a.x, a.weight, a.rstd,
                      a.d_y, a.d_x, a.scratch + block * a.d_model);
}

constexpr int kColumns = 32;
constexpr int kStrips = 8;

// Adds the blocks' shares: a block per 32 columns, a tree per column.
template <typename Activation>
__global__ void __launch_bounds__(kStrips* kColumns)
    RmsNormWeightKernel(RmsNormBackwardArgsOf<Activation> a, int64_t blocks) {
  const int strip = threadIdx.x / kColumns, mine = threadIdx.x % kColumns;
  const int64_t column = int64_t{blockIdx.x} * kColumns + mine;
  const bool there = column < a.d_model;
  const float sum = SumInTree<kStrips, kColumns, float>(
      strip, mine, there ? blocks : 0,
      [&](int64_t block) { return a.scratch[block * a.d_model + column]; });
  if (strip == 0 && there) a.d_weight[column] = sum;
}

__global__ void __launch_bounds__(kThreads) AdamWKernel(AdamWArgs a) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= a.size) return;
  const AdamWConstants<float> constants = {
      a.learning_rate, a.beta1, a.beta2, a.epsilon,
      a.weight_decay,  a.bias1, a.bias2, a.gradient_scale};
  AdamWUpdate(constants, a.gradient[i], a.parameter[i], a.first_moment[i],
              a.second_moment[i]);
}

template <typename Activation>
void Enqueue(const RmsNormForwardArgsOf<Activation>& args,
             cudaStream_t stream) {
  Launch("RmsNormForward", RmsNormForwardKernel<Activation>,
         Blocks(args.num_tokens, kWarps), kThreads, 0, stream, args);
}

template <typename Activation>
void Enqueue(const RmsNormBackwardArgsOf<Activation>& args,
             cudaStream_t stream) {
  const int64_t blocks = Blocks(args.num_tokens, kRmsNormTokenBlock);
  Launch("RmsNormBackward", RmsNormBackwardKernel<Activation>,
         Blocks(blocks, kWarps), kThreads, 0, stream, args);
  Launch("RmsNormBackward", RmsNormWeightKernel<Activation>,
         Blocks(args.d_model, kColumns), kStrips * kColumns, 0, stream, args,
         blocks);
}

}  // namespace

SOFTMOE_DEFINE_CUDA_KERNEL_OF(RmsNormForward);
SOFTMOE_DEFINE_CUDA_KERNEL_OF(RmsNormBackward);

void AdamW(const AdamWArgs& args, cudaStream_t stream) {
  Launch("AdamW", AdamWKernel, Blocks(args.size, kThreads), kThreads, 0, stream,
         args);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
