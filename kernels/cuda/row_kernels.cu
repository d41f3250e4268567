// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm: one warp per row forward. Backward, a block per fixed block of 64
// rows, whose warps take runs of them and keep their shares of d_weight in
// shared memory; the block adds these in the order of the warps, and a tree the
// blocks' per column. Reads x (and d_y, d_x), writes y (d_x): memory-bound.
// AdamW: four elements per thread, 28 bytes each.
// Both deterministic: fixed order, no atomics.
#include "kernels/adamw_body.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/cuda/row_width.h"
#include "kernels/cuda/tree_sum.h"
#include "kernels/rmsnorm_body.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

template <typename Activation, int kWidth>
__global__ void __launch_bounds__(kThreads)
    RmsNormForwardKernel(RmsNormForwardArgsOf<Activation> a) {
  const int64_t row = WarpRow<kThreads>();
  if (row >= a.num_tokens) return;  // a whole warp
  RmsNormForwardRow(CudaWarpOf<kWidth>(), a.d_model, a.epsilon,
                    a.x + row * a.d_model, a.weight, a.y + row * a.d_model,
                    a.rstd + row);
}

// What the warps' shares of d_weight may take: what every device gives a block
// several times over.
constexpr int64_t kShareBytes = 48 * 1024;

// Warps of a block of the backward pass: as many as have room, by the row's
// length alone, so that all devices add in the same order.
int64_t BackwardWarps(int64_t d_model) {
  const int64_t fitting =
      kShareBytes / (d_model * static_cast<int64_t>(sizeof(float)));
  return fitting < 1 ? 1 : fitting < kWarps ? fitting : kWarps;
}

template <typename Activation, int kWidth>
__global__ void __launch_bounds__(kThreads, kMinBlocks)
    RmsNormBackwardKernel(RmsNormBackwardArgsOf<Activation> a) {
  SOFTMOE_DYNAMIC_SHARED(float, shares);  // [warps, d_model]
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32;
  const int64_t first = int64_t{blockIdx.x} * kRmsNormTokenBlock;
  const int64_t left = a.num_tokens - first;
  const int rows = left < kRmsNormTokenBlock ? static_cast<int>(left)
                                             : int{kRmsNormTokenBlock};
  RmsNormBackwardRows(CudaWarpOf<kWidth>(), first + rows * warp / warps,
                      first + rows * (warp + 1) / warps, a.d_model, a.x,
                      a.weight, a.rstd, a.d_y, a.d_x,
                      shares + warp * a.d_model);
  __syncthreads();
  for (int64_t c = threadIdx.x; c < a.d_model; c += blockDim.x) {
    float sum = shares[c];
    for (int w = 1; w < warps; ++w) sum += shares[w * a.d_model + c];
    a.scratch[blockIdx.x * a.d_model + c] = sum;
  }
}

constexpr int kColumns = 32;
constexpr int kStrips = 32;

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

constexpr int kWideFloats = 4;  // 16 bytes

template <int kWidth>
__global__ void __launch_bounds__(kThreads, kMinBlocks)
    AdamWKernel(AdamWArgs a) {
  ForElements<kThreads, kWidth>(a.size, [&](int64_t i, auto width) {
    constexpr int kCount = decltype(width)::value;
    using Real = RealOf<kCount>;
    const AdamWConstants<Real> constants = {
        Real(a.learning_rate), Real(a.beta1),         Real(a.beta2),
        Real(a.epsilon),       Real(a.weight_decay),  Real(a.bias1),
        Real(a.bias2),         Real(a.gradient_scale)};
    Real parameter = LoadReal<kCount>(a.parameter + i);
    Real first_moment = LoadReal<kCount>(a.first_moment + i);
    Real second_moment = LoadReal<kCount>(a.second_moment + i);
    AdamWUpdate(constants, LoadReal<kCount>(a.gradient + i), parameter,
                first_moment, second_moment);
    StoreReal(parameter, a.parameter + i);
    StoreReal(first_moment, a.first_moment + i);
    StoreReal(second_moment, a.second_moment + i);
  });
}

template <typename Activation>
void Enqueue(const RmsNormForwardArgsOf<Activation>& args,
             cudaStream_t stream) {
  const bool wide = TakesWide({args.d_model}, {args.x, args.weight, args.y});
  AtWidth(wide, [&](auto width) {
    Launch("RmsNormForward",
           RmsNormForwardKernel<Activation, decltype(width)::value>,
           Blocks(args.num_tokens, kWarps), kThreads, 0, stream, args);
  });
}

template <typename Activation>
void Enqueue(const RmsNormBackwardArgsOf<Activation>& args,
             cudaStream_t stream) {
  const int64_t blocks = Blocks(args.num_tokens, kRmsNormTokenBlock);
  const int64_t warps = BackwardWarps(args.d_model);
  const bool wide =
      TakesWide({args.d_model}, {args.x, args.weight, args.d_y, args.d_x});
  AtWidth(wide, [&](auto width) {
    Launch("RmsNormBackward",
           RmsNormBackwardKernel<Activation, decltype(width)::value>, blocks,
           static_cast<int>(warps) * 32,
           static_cast<size_t>(warps * args.d_model) * sizeof(float), stream,
           args);
  });
  Launch("RmsNormBackward", RmsNormWeightKernel<Activation>,
         Blocks(args.d_model, kColumns), kStrips * kColumns, 0, stream, args,
         blocks);
}

}  // namespace

SOFTMOE_DEFINE_CUDA_KERNEL_OF(RmsNormForward);
SOFTMOE_DEFINE_CUDA_KERNEL_OF(RmsNormBackward);

void AdamW(const AdamWArgs& args, cudaStream_t stream) {
  const bool wide = TakesWide({}, {args.gradient, args.parameter,
                                   args.first_moment, args.second_moment});
  AtWidth<kWideFloats>(wide, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    Launch("AdamW", AdamWKernel<kWidth>, Blocks(args.size, kThreads * kWidth),
           kThreads, 0, stream, args);
  });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
