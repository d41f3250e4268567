// SPDX-License-Identifier: Apache-2.0
//
// One chunk of tokens after the other: logits, their losses and gradients, and
// both products with these.
#include "core/errors.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/layer_kernels.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/tree_sum.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    LossSumKernel(int64_t num_tokens, const float* token_loss, double* sum) {
  const double total = SumInTree<kThreads, 1, double>(
      threadIdx.x, 0, num_tokens,
      [&](int64_t t) { return static_cast<double>(token_loss[t]); });
  if (threadIdx.x == 0) *sum = total;
}

// Where the logits' gradient goes: in their place, if they are Activations.
float* GradientOfLogits(const HeadCrossEntropyArgs& args) {
  return args.d_logits != nullptr ? args.d_logits : args.logits;
}
Bf16* GradientOfLogits(const HeadCrossEntropyArgsOf<Bf16>& args) {
  if (args.d_logits == nullptr) {
    throw InternalError("no place for the gradient of the logits");
  }
  return args.d_logits;
}

template <typename Activation>
void Enqueue(const HeadCrossEntropyArgsOf<Activation>& args, Queue& queue) {
  const int64_t d = args.d_model, v = args.vocab_size, n = args.num_tokens;
  Activation* const d_logits =
      args.d_head_weight == nullptr ? nullptr : GradientOfLogits(args);
  const int64_t chunk = args.chunk_tokens;
  if (chunk <= 0) throw InternalError("logits of no token at a time");
  int64_t first = 0;
  do {  // at least once: without tokens, d_head_weight is cleared
    const int64_t count = first + chunk < n ? chunk : n - first;
    const Activation* hidden = args.hidden + first * d;
    Gemm(GemmArgsOf<Activation, float>{.a = hidden,
                                       .b = args.head_weight,
                                       .c = args.logits,
                                       .m = count,
                                       .n = v,
                                       .k = d,
                                       .lda = d,
                                       .ldb = d,
                                       .ldc = v,
                                       .transpose_b = true},
         queue);
    TokenCrossEntropy(
        TokenCrossEntropyArgsOf<Activation>{
            count, v, args.targets + first, args.grad_scale, args.logits,
            d_logits, args.token_loss + first,
            args.is_greedy == nullptr ? nullptr : args.is_greedy + first},
        queue.stream());
    if (d_logits != nullptr) {
      Gemm(GemmArgsOf<Activation, Activation>{.a = d_logits,
                                              .b = args.head_weight,
                                              .c = args.d_hidden + first * d,
                                              .m = count,
                                              .n = d,
                                              .k = v,
                                              .lda = v,
                                              .ldb = d,
                                              .ldc = d},
           queue);
      Gemm(GemmArgsOf<Activation, float>{.a = d_logits,
                                         .b = hidden,
                                         .c = args.d_head_weight,
                                         .m = v,
                                         .n = d,
                                         .k = count,
                                         .lda = v,
                                         .ldb = d,
                                         .ldc = d,
                                         .transpose_a = true,
                                         .accumulate = first > 0},
           queue);
    }
    first += chunk;
  } while (first < n);
  if (args.loss_sum == nullptr) return;
  Launch("HeadCrossEntropy", LossSumKernel, 1, kThreads, 0, queue.stream(), n,
         args.token_loss, args.loss_sum);
}

}  // namespace

SOFTMOE_DEFINE_CUDA_OPERATION_OF(HeadCrossEntropy);

}  // namespace softmoe::kernels::SOFTMOE_ISA
