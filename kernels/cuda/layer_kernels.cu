// SPDX-License-Identifier: Apache-2.0
//
// One warp per row, which for RoPE are all heads of q and k of a token; for the
// cross-entropy, whose rows have tens of thousands of columns, one block.
// Rows that can be are taken eight columns at a time (row_width.h). All are
// memory-bound; bytes per row:
//
// (with activations of fp32; half of it in bf16, except for the logits)
//
//   permute, embedding   8 d_model
//   unpermute            4 d_model (active + 2)
//   RoPE                 16 d_model, and the tables from the cache
//   SwiGLU               12 d_ffn forward, 24 d_ffn backward
//   cross-entropy        4 vocab_size for the sum, 8 for the gradient (6 if it
//                        is bf16)
#include "kernels/cross_entropy_body.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/layer_kernels.h"
#include "kernels/cuda/row_width.h"
#include "kernels/permute_body.h"
#include "kernels/rope_body.h"
#include "kernels/simt/scalar.h"
#include "kernels/swiglu_body.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// Gathers rows by index: tokens of the vocabulary, or those of routed rows.
template <typename From, typename To, int kWidth>
__global__ void __launch_bounds__(kThreads)
    GatherKernel(int64_t num_rows, int64_t d_model, const int32_t* index,
                 const From* table, To* rows) {
  const int64_t row = WarpRow<kThreads>();
  if (row >= num_rows) return;  // a whole warp, here and below
  CopyRow(CudaWarpOf<kWidth>(), d_model, table + index[row] * d_model,
          rows + row * d_model);
}

template <typename Activation, int kWidth>
__global__ void __launch_bounds__(kThreads)
    UnpermuteKernel(UnpermuteArgsOf<Activation> a) {
  const int64_t token = WarpRow<kThreads>();
  if (token >= a.plan.num_tokens) return;
  UnpermuteToken(CudaWarpOf<kWidth>(), a.d_model, a.plan.max_active, a.rows,
                 a.plan.token_rows + token * a.plan.max_active, a.accumulate,
                 a.out + token * a.d_model);
}

template <typename Activation, int kWidth>
__global__ void __launch_bounds__(kThreads)
    SwigluForwardKernel(SwigluForwardArgsOf<Activation> a) {
  const int64_t row = WarpRow<kThreads>();
  if (row >= a.plan.num_routed) return;
  SwigluForwardRow(CudaWarpOf<kWidth>(), a.d_ffn, a.gate_up + row * 2 * a.d_ffn,
                   a.plan.row_gate[row], a.activation + row * a.d_ffn);
}

template <typename Activation, int kWidth>
__global__ void __launch_bounds__(kThreads, 3)
    SwigluBackwardKernel(SwigluBackwardArgsOf<Activation> a) {
  const int64_t row = WarpRow<kThreads>();
  if (row >= a.plan.num_routed) return;
  SwigluBackwardRow(CudaWarpOf<kWidth>(), a.d_ffn,
                    a.gate_up + row * 2 * a.d_ffn, a.plan.row_gate[row],
                    a.d_activation + row * a.d_activation_stride,
                    a.d_gate_up + row * 2 * a.d_ffn,
                    a.activation + row * a.d_ffn, a.d_row_gate + row);
}

template <typename Activation, int kWidth>
__global__ void __launch_bounds__(kThreads)
    RopeKernel(RopeArgsOf<Activation> a) {
  const int64_t token = WarpRow<kThreads>();
  if (token >= a.num_sequences * a.sequence_length) return;
  const int head_dim = static_cast<int>(a.head_dim), half = head_dim / 2;
  const int64_t angle = token % a.sequence_length * half;
  using Real = RealOf<kWidth>;
  const Real sign(a.inverse ? -1.0f : 1.0f);
  // The heads of q, then those of k.
  Activation* heads = a.qkv + token * 3 * a.num_heads * head_dim;
  const int pairs = 2 * static_cast<int>(a.num_heads) * half;
  CudaWarpOf<kWidth>().ForEachColumn(pairs, [&](Columns at) {
    const int i = static_cast<int>(at.begin), j = i % half;
    Activation* first = heads + i / half * head_dim + j;
    Activation* second = first + half;
    Real x = LoadReal<kWidth>(first), y = LoadReal<kWidth>(second);
    RotatePair(LoadReal<kWidth>(a.cosine + angle + j),
               LoadReal<kWidth>(a.sine + angle + j) * sign, x, y);
    StoreReal(x, first);
    StoreReal(y, second);
  });
}

template <typename Activation, int kWidth>
__global__ void __launch_bounds__(kThreads)
    TokenCrossEntropyKernel(TokenCrossEntropyArgsOf<Activation> a) {
  const int64_t token = blockIdx.x, at = token * a.vocab_size;
  Activation* d_logits = a.d_logits == nullptr ? nullptr : a.d_logits + at;
  CrossEntropyRow(CudaBlock<kThreads, kWidth>(), a.vocab_size, a.targets[token],
                  a.grad_scale, a.logits + at, d_logits, a.token_loss + token,
                  a.is_greedy == nullptr ? nullptr : a.is_greedy + token);
}

template <typename From, typename To>
void Gather(const char* what, int64_t num_rows, int64_t d_model,
            const int32_t* index, const From* table, To* rows,
            cudaStream_t stream) {
  AtWidth(TakesWide({d_model}, {table, rows}), [&](auto width) {
    Launch(what, GatherKernel<From, To, decltype(width)::value>,
           Blocks(num_rows, kWarps), kThreads, 0, stream, num_rows, d_model,
           index, table, rows);
  });
}

template <typename Activation>
void Enqueue(const PermuteArgsOf<Activation>& args, cudaStream_t stream) {
  Gather("Permute", args.plan.num_routed, args.d_model, args.plan.row_token,
         args.hidden, args.rows, stream);
}

template <typename Activation>
void Enqueue(const UnpermuteArgsOf<Activation>& args, cudaStream_t stream) {
  AtWidth(TakesWide({args.d_model}, {args.rows, args.out}), [&](auto width) {
    Launch("Unpermute", UnpermuteKernel<Activation, decltype(width)::value>,
           Blocks(args.plan.num_tokens, kWarps), kThreads, 0, stream, args);
  });
}

template <typename Activation>
void Enqueue(const SwigluForwardArgsOf<Activation>& args, cudaStream_t stream) {
  const bool wide = TakesWide({args.d_ffn}, {args.gate_up, args.activation});
  AtWidth(wide, [&](auto width) {
    Launch("SwigluForward",
           SwigluForwardKernel<Activation, decltype(width)::value>,
           Blocks(args.plan.num_routed, kWarps), kThreads, 0, stream, args);
  });
}

template <typename Activation>
void Enqueue(const SwigluBackwardArgsOf<Activation>& args,
             cudaStream_t stream) {
  const bool wide = TakesWide(
      {args.d_ffn, args.d_activation_stride},
      {args.gate_up, args.d_activation, args.d_gate_up, args.activation});
  AtWidth(wide, [&](auto width) {
    Launch("SwigluBackward",
           SwigluBackwardKernel<Activation, decltype(width)::value>,
           Blocks(args.plan.num_routed, kWarps), kThreads, 0, stream, args);
  });
}

template <typename Activation>
void Enqueue(const RopeArgsOf<Activation>& args, cudaStream_t stream) {
  const bool wide =
      TakesWide({args.head_dim / 2}, {args.qkv, args.cosine, args.sine});
  AtWidth(wide, [&](auto width) {
    Launch("Rope", RopeKernel<Activation, decltype(width)::value>,
           Blocks(args.num_sequences * args.sequence_length, kWarps), kThreads,
           0, stream, args);
  });
}

template <typename Activation>
void Enqueue(const TokenCrossEntropyArgsOf<Activation>& args,
             cudaStream_t stream) {
  const bool wide = TakesWide({args.vocab_size}, {args.logits, args.d_logits});
  AtWidth(wide, [&](auto width) {
    Launch("TokenCrossEntropy",
           TokenCrossEntropyKernel<Activation, decltype(width)::value>,
           args.num_tokens, kThreads, 0, stream, args);
  });
}

template <typename Activation>
void Enqueue(const EmbeddingForwardArgsOf<Activation>& args,
             cudaStream_t stream) {
  Gather("EmbeddingForward", args.num_tokens, args.d_model, args.ids,
         args.table, args.out, stream);
}

}  // namespace

SOFTMOE_DEFINE_CUDA_KERNEL_OF(Permute);
SOFTMOE_DEFINE_CUDA_KERNEL_OF(Unpermute);
SOFTMOE_DEFINE_CUDA_KERNEL_OF(SwigluForward);
SOFTMOE_DEFINE_CUDA_KERNEL_OF(SwigluBackward);
SOFTMOE_DEFINE_CUDA_KERNEL_OF(Rope);
SOFTMOE_DEFINE_CUDA_KERNEL_OF(TokenCrossEntropy);
SOFTMOE_DEFINE_CUDA_KERNEL_OF(EmbeddingForward);

}  // namespace softmoe::kernels::SOFTMOE_ISA
