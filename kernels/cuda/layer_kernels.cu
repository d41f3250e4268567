// SPDX-License-Identifier: Apache-2.0
//
// One warp per row, but one block per token for RoPE, whose rows are all heads of
// q and k, and for the cross-entropy, whose rows have tens of thousands of
// columns. All are memory-bound; bytes per row:
//
//   permute, embedding   8 d_model
//   unpermute            4 d_model (active + 2)
//   RoPE                 16 d_model, and the tables from the cache
//   SwiGLU               12 d_ffn forward, 28 d_ffn backward
//   cross-entropy        4 vocab_size for the largest, 8 for the exponentials,
//                        8 for the gradient, mostly from the L2 cache
#include "kernels/cross_entropy_body.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/layer_kernels.h"
#include "kernels/permute_body.h"
#include "kernels/rope_body.h"
#include "kernels/swiglu_body.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// The row of this warp.
__device__ int64_t WarpRow() {
  return int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
}

// Rows by an index: tokens of the vocabulary, or tokens of routed rows.
__global__ void __launch_bounds__(kThreads)
    GatherKernel(int64_t num_rows, int64_t d_model, const int32_t* index,
                 const float* table, float* rows) {
  const int64_t row = WarpRow();
  if (row >= num_rows) return;  // a whole warp, here and below
  CopyRow(CudaWarp(), d_model, table + index[row] * d_model,
          rows + row * d_model);
}

__global__ void __launch_bounds__(kThreads) UnpermuteKernel(UnpermuteArgs a) {
  const int64_t token = WarpRow();
  if (token >= a.plan.num_tokens) return;
  UnpermuteToken(CudaWarp(), a.d_model, a.plan.max_active, a.rows,
                 a.plan.token_rows + token * a.plan.max_active, a.accumulate,
                 a.out + token * a.d_model);
}

__global__ void __launch_bounds__(kThreads)
    SwigluForwardKernel(SwigluForwardArgs a) {
  const int64_t row = WarpRow();
  if (row >= a.plan.num_routed) return;
  SwigluForwardRow(CudaWarp(), a.d_ffn, a.gate_up + row * 2 * a.d_ffn,
                   a.plan.row_gate[row], a.activation + row * a.d_ffn);
}

__global__ void __launch_bounds__(kThreads)
    SwigluBackwardKernel(SwigluBackwardArgs a) {
  const int64_t row = WarpRow();
  if (row >= a.plan.num_routed) return;
  SwigluBackwardRow(CudaWarp(), a.d_ffn, a.gate_up + row * 2 * a.d_ffn,
                    a.plan.row_gate[row],
                    a.d_activation + row * a.d_activation_stride,
                    a.d_gate_up + row * 2 * a.d_ffn,
                    a.activation + row * a.d_ffn, a.d_row_gate + row);
}

__global__ void __launch_bounds__(kThreads) RopeKernel(RopeArgs a) {
  const int64_t token = blockIdx.x;
  const int head_dim = static_cast<int>(a.head_dim), half = head_dim / 2;
  const int64_t angle = token % a.sequence_length * half;
  const float sign = a.inverse ? -1.0f : 1.0f;
  // The heads of q, then those of k.
  float* heads = a.qkv + token * 3 * a.num_heads * head_dim;
  const int pairs = 2 * static_cast<int>(a.num_heads) * half;
  for (int i = threadIdx.x; i < pairs; i += kThreads) {
    const int j = i % half;
    float* x = heads + i / half * head_dim + j;
    RotatePair(a.cosine[angle + j], a.sine[angle + j] * sign, x[0], x[half]);
  }
}

__global__ void __launch_bounds__(kThreads)
    TokenCrossEntropyKernel(TokenCrossEntropyArgs a) {
  const int64_t token = blockIdx.x;
  CrossEntropyRow(CudaBlock<kThreads>(), a.vocab_size, a.targets[token],
                  a.grad_scale, a.want_gradient,
                  a.logits + token * a.vocab_size, a.token_loss + token);
}

}  // namespace

void Permute(const PermuteArgs& args, cudaStream_t stream) {
  Launch("Permute", GatherKernel, Blocks(args.plan.num_routed, kWarps),
         kThreads, 0, stream, args.plan.num_routed, args.d_model,
         args.plan.row_token, args.hidden, args.rows);
}

void Unpermute(const UnpermuteArgs& args, cudaStream_t stream) {
  Launch("Unpermute", UnpermuteKernel, Blocks(args.plan.num_tokens, kWarps),
         kThreads, 0, stream, args);
}

void SwigluForward(const SwigluForwardArgs& args, cudaStream_t stream) {
  Launch("SwigluForward", SwigluForwardKernel,
         Blocks(args.plan.num_routed, kWarps), kThreads, 0, stream, args);
}

void SwigluBackward(const SwigluBackwardArgs& args, cudaStream_t stream) {
  Launch("SwigluBackward", SwigluBackwardKernel,
         Blocks(args.plan.num_routed, kWarps), kThreads, 0, stream, args);
}

void Rope(const RopeArgs& args, cudaStream_t stream) {
  Launch("Rope", RopeKernel, args.num_sequences * args.sequence_length,
         kThreads, 0, stream, args);
}

void TokenCrossEntropy(const TokenCrossEntropyArgs& args, cudaStream_t stream) {
  Launch("TokenCrossEntropy", TokenCrossEntropyKernel, args.num_tokens,
         kThreads, 0, stream, args);
}

void EmbeddingForward(const EmbeddingForwardArgs& args, cudaStream_t stream) {
  Launch("EmbeddingForward", GatherKernel, Blocks(args.num_tokens, kWarps),
         kThreads, 0, stream, args.num_tokens, args.d_model, args.ids,
         args.table, args.out);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
