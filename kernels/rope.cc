// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.h"
#include "kernels/gemm_pack.h"
#include "kernels/rope_body.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int64_t kBlockTokens = 32;

// Rotates all pairs of one head.
SOFTMOE_INLINE void RotateHead(float* x, float* y, const float* cosine,
                               const float* sine, int64_t half, Floats sign) {
  for (int64_t j = 0; j < half; j += Floats::kWidth) {
    const int64_t left = half - j;
    const Floats c = LoadUpTo(cosine + j, left);
    const Floats s = LoadUpTo(sine + j, left) * sign;
    Floats a = LoadUpTo(x + j, left), b = LoadUpTo(y + j, left);
    RotatePair(c, s, a, b);
    StoreUpTo(x + j, left, a);
    StoreUpTo(y + j, left, b);
  }
}

}  // namespace

void Rope(const RopeArgs& args, ThreadPool& pool) {
  const int64_t half = args.head_dim / 2;
  const int64_t width = args.num_heads * args.head_dim;
  const Floats sign(args.inverse ? -1.0f : 1.0f);
  pool.ParallelForBlocks(
      args.num_sequences * args.sequence_length, kBlockTokens,
      [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t angle = t % args.sequence_length * half;
          // The heads of q, then those of k.
          float* head = args.qkv + t * 3 * width;
          for (int64_t h = 0; h < 2 * args.num_heads; ++h) {
            RotateHead(head, head + half, args.cosine + angle,
                       args.sine + angle, half, sign);
            head += args.head_dim;
          }
        }
      });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
