// SPDX-License-Identifier: Apache-2.0
//
// router.h - from router scores to gates, and back (SPEC.md 1, 2).
//
//   sparse  gates = the max_active largest of softmax(scores), not renormalised
//   soft    p = LapSum soft top-k; gates = p where p > cutoff, at most the
//           max_active largest (ties: lower expert first)
//
// LapSum by partial selection of the ceil(2k) largest scores (SPEC.md 1.4 D),
// vectorised across rows. Inactive experts' scores do receive gradient through
// the root; the weights of inactive experts do not.
#ifndef SOFTMOE_KERNELS_ROUTER_H_
#define SOFTMOE_KERNELS_ROUTER_H_

#include <cstdint>

#include "kernels/isa.h"

namespace softmoe::kernels {

enum class RouterMode { kSparse, kSoft };
// What the load-balance loss averages over the tokens (the "basis" below), and
// which experts of a token it counts.
enum class BalanceBasis {
  kSoftWeights,    // p / mean_active; the final active set, fallback included
  kScoresSoftmax,  // softmax(scores); the balance_top largest scores
};

struct RouterShape {
  int64_t num_tokens, num_experts;  // num_experts in [1, 256]
  RouterMode mode;
  BalanceBasis balance;  // sparse rows always use kScoresSoftmax
  float mean_active;     // k_l > 0; from num_experts on, every p is 1 (to
                         // within num_experts * 2^-24); sparse: ignored
  float temperature;     // > 0, 1/temperature finite; sparse: ignored
  float cutoff;          // tau*k_l/num_experts; sparse: ignored
  int64_t max_active;    // cap; sparse: k; in [1, num_experts]
  int64_t balance_top;   // ceil(k_l - 1e-6): experts counted by
                         // kScoresSoftmax; in [1, num_experts]
  bool fallback_top1;    // keep the largest gate where none is active
};

struct RouterForwardArgs {
  RouterShape shape;
  const float* scores;  // [num_tokens, num_experts], finite (see bad_score)
  float* soft_weights;  // [num_tokens, num_experts]  p, or softmax(scores)
  float* root;          // [num_tokens, 2]  soft only: anchor and offset,
                        // p = F((score - anchor)/temperature - offset)
  int32_t* num_active;  // [num_tokens]
  int32_t* selected;    // [num_tokens, max_active] ascending expert, then -1
  float* gates;         // [num_tokens, max_active]  then 0
  double* probability_sums;  // [num_experts]  sum over tokens of the basis
  int64_t* balance_counts;   // [num_experts]  counts that go with the basis
  int64_t* active_counts;    // [num_experts]  tokens routed to each expert
  double* z_sum;             // [1]  sum over tokens of logsumexp(scores)^2;
                             // null: not wanted
  int64_t* bad_score;        // [1]  first flat index of a non-finite score, or
                             // -1; if there is one, the outputs mean nothing
  double* scratch;           // [RouterScratch(num_tokens, num_experts)]
};
SOFTMOE_DECLARE_KERNEL(RouterForward);

struct RouterBackwardArgs {
  RouterShape shape;
  const float* scores;        // the forward pass's, as are the next three
  const float* soft_weights;  // read by sparse only
  const float* root;          // read by soft only
  const int32_t* selected;
  const float* d_gates;        // [num_tokens, max_active]; not read where
                               // `selected` is -1
  const float* d_probability;  // [num_experts]  d loss / d basis of one token;
                               // null: no balance loss
  float z_scale;               // d loss / d(logsumexp^2) of one token; 0: none
  float* d_scores;             // [num_tokens, num_experts], =
  double* d_mean_active;       // [1]  sum over tokens, through the gates only
                               // (the balance loss takes k_l as constant);
                               // sparse: 0
  double* scratch;             // [RouterScratch(num_tokens, num_experts)]
};
SOFTMOE_DECLARE_KERNEL(RouterBackward);

// Doubles of scratch: the sums and counts of one fixed block of tokens, for
// every block, so that nothing depends on threads.
inline constexpr int64_t kRouterTokenBlock = 64;
constexpr int64_t RouterScratch(int64_t num_tokens, int64_t num_experts) {
  return (num_tokens + kRouterTokenBlock - 1) / kRouterTokenBlock *
         (3 * num_experts + 2);
}
template <typename F>
void ForEachArray(RouterForwardArgs& a, const F& f) {
  const int64_t n = a.shape.num_tokens, experts = a.shape.num_experts;
  f("scores", a.scores, n * experts);
  f("soft_weights", a.soft_weights, n * experts);
  f("root", a.root, 2 * n);
  f("num_active", a.num_active, n);
  f("selected", a.selected, n * a.shape.max_active);
  f("gates", a.gates, n * a.shape.max_active);
  f("probability_sums", a.probability_sums, experts);
  f("balance_counts", a.balance_counts, experts);
  f("active_counts", a.active_counts, experts);
  f("z_sum", a.z_sum, 1);
  f("bad_score", a.bad_score, 1);
  f("scratch", a.scratch, RouterScratch(n, experts));
}
template <typename F>
void ForEachArray(RouterBackwardArgs& a, const F& f) {
  const int64_t n = a.shape.num_tokens, experts = a.shape.num_experts;
  f("scores", a.scores, n * experts);
  f("soft_weights", a.soft_weights, n * experts);
  f("root", a.root, 2 * n);
  f("selected", a.selected, n * a.shape.max_active);
  f("d_gates", a.d_gates, n * a.shape.max_active);
  f("d_probability", a.d_probability, experts);
  f("d_scores", a.d_scores, n * experts);
  f("d_mean_active", a.d_mean_active, 1);
  f("scratch", a.scratch, RouterScratch(n, experts));
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_ROUTER_H_
