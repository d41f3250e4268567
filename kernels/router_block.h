// SPDX-License-Identifier: Apache-2.0
//
// router_block.h - what RouterForward and RouterBackward share: the constants
// of a shape, and where the sums of one block of tokens lie in the scratch.
#ifndef SOFTMOE_KERNELS_ROUTER_BLOCK_H_
#define SOFTMOE_KERNELS_ROUTER_BLOCK_H_

#include "kernels/router.h"
#include "kernels/router_row.h"

namespace softmoe::kernels::SOFTMOE_ISA {

inline constexpr int kMaxExperts = 256;
inline constexpr int kMaxWords = kMaxExperts / 32;

// The partial results of one block of tokens, in RouterScratch. Counts are
// doubles too: exact, and one kind of memory.
struct RouterBlockSums {
  double* probability;     // [num_experts]
  double* balance_counts;  // [num_experts]
  double* active_counts;   // [num_experts]
  double* z;               // [1]  backward: d_mean_active
  double* bad_score;       // [1]  flat index, or -1

  static SOFTMOE_HOST_INLINE RouterBlockSums At(double* scratch, int64_t block,
                                                int64_t num_experts) {
    double* p = scratch + block * (3 * num_experts + 2);
    return {p, p + num_experts, p + 2 * num_experts, p + 3 * num_experts,
            p + 3 * num_experts + 1};
  }
};

// True if the load-balance basis is softmax(scores).
SOFTMOE_HOST_INLINE bool UsesScoresSoftmax(const RouterShape& shape) {
  return shape.mode == RouterMode::kSparse ||
         shape.balance == BalanceBasis::kScoresSoftmax;
}

template <typename Scalar>
SOFTMOE_HOST_INLINE RouterConstants<Scalar> MakeRouterConstants(
    const RouterShape& shape, bool want_log_sum_exp) {
  RouterConstants<Scalar> c = {};
  c.num_experts = static_cast<int>(shape.num_experts);
  c.max_active = static_cast<int>(shape.max_active);
  c.top = c.max_active;
  c.want_log_sum_exp = want_log_sum_exp;
  if (shape.mode == RouterMode::kSparse) return c;

  // At num_experts every p is 1 and the root is infinite. One float below, p
  // is 1 to within num_experts * 2^-24, and its derivatives have their limits.
  const float most = static_cast<float>(shape.num_experts) * (1.0f - 0x1p-24f);
  const float mean_active = shape.mean_active < most ? shape.mean_active : most;
  c.mean_active = mean_active;
  c.inverse_temperature = Scalar(1) / shape.temperature;
  c.cutoff = shape.cutoff;
  c.fallback_top1 = shape.fallback_top1;
  if (UsesScoresSoftmax(shape)) {
    c.balance_top = static_cast<int>(shape.balance_top);
  }
  const float twice = 2 * mean_active;  // exact
  int needed = static_cast<int>(twice);
  if (static_cast<float>(needed) < twice) ++needed;  // ceil(2k)
  if (needed < 1) needed = 1;
  if (c.top < needed) c.top = needed;
  if (c.top < c.balance_top) c.top = c.balance_top;
  if (c.top > c.num_experts) c.top = c.num_experts;
  return c;
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_ROUTER_BLOCK_H_
