// SPDX-License-Identifier: Apache-2.0
//
// router.h - the three routers for one batch of tokens (reference, double).
//
// SPEC.md 2.1-2.2. Sparse: top-k of softmax(scores), not renormalised. SoftMoE*
// and SoftMoE: LapSum soft top-k, hard cutoff (strictly greater), cap, optional
// fallback. The gradient with respect to k_l is returned; budget.h takes it to
// the budget logits.
#ifndef SOFTMOE_REFERENCE_ROUTER_H_
#define SOFTMOE_REFERENCE_ROUTER_H_

#include <cstdint>

#include "core/config/config.h"
#include "reference/matrix.h"

namespace softmoe::reference {

// What one layer's router needs besides the scores.
struct RouterSettings {
  RouterKind kind = RouterKind::kSparse;
  double mean_active = 1;  // k_l > 0; sparse: integer k      (experts/token)
  double temperature = 1;  // soft only, > 0                    (score units)
  double cutoff = 0;       // tau*k_l/num_experts; soft only     (gate units)
  int64_t max_active = 1;  // cap, in [1, num_experts]; sparse: k
  Fallback fallback = Fallback::kNone;
};

// What the layer and the backward pass need from the router.
struct RouterSaved {
  Matrix soft_weights;  // [tokens, experts]: p, or softmax(scores) if sparse
  Matrix gates;         // [tokens, experts]: after cutoff and cap
  BoolMatrix active;    // [tokens, experts]
};

// Returns soft weights, active experts and gates of every token.
//
//   scores  [tokens, experts], finite                         (score units)
// Errors  NumericsError naming token and expert for a score that is NaN or
//         infinite (DESIGN.md, ruling 3); ConfigError for settings outside
//         their range.
RouterSaved RouterForward(const RouterSettings& settings, const Matrix& scores);

struct RouterGradients {
  Matrix d_scores;       // [tokens, experts]
  double d_mean_active;  // sum over tokens; 0 if sparse
};

// Returns the gradient with the active set held fixed; d_gates is read only
// where active. Scores of inactive experts receive gradient too, through the
// root (soft) or the normalisation (sparse). Source: SPEC.md 2.2.
RouterGradients RouterBackward(const RouterSettings& settings,
                               const Matrix& scores, const RouterSaved& saved,
                               const Matrix& d_gates);

// Returns d_scores of a soft router for a gradient with respect to the soft
// weights of *every* expert, active or not: the path of the load-balancing
// loss, which holds the allocation and the temperature constant (SPEC.md 2.5).
Matrix SoftWeightsBackward(const RouterSettings& settings, const Matrix& scores,
                           const Matrix& d_soft_weights);

// Returns the cutoff tau * k_l / num_experts, in experts: a soft weight must
// exceed it for its expert to be active.
double Cutoff(double tau, double mean_active, int64_t num_experts);

// Returns the cap ceil(expansion_factor * k_l - 1e-6), in [1, num_experts]. The
// 1e-6 keeps rounding in k_l from adding an expert (DESIGN.md, ruling 5).
int64_t MaxActive(double expansion_factor, double mean_active,
                  int64_t num_experts);

// Cutoff and gates over any scalar (scalar.h); the soft weights are those of
// lapsum.h and softmax.h.
namespace formula {

// tau k_l / E
template <typename N>
N Cutoff(const N& tau, const N& mean_active, int64_t num_experts) {
  return tau * mean_active / static_cast<double>(num_experts);
}

// T[p]: the weights of the active experts, 0 elsewhere. As the set is held
// fixed, the gradient is masked in the same way.
template <typename N>
MatrixOf<N> Gates(const BoolMatrix& active, const MatrixOf<N>& soft_weights) {
  MatrixOf<N> gates(active.rows(), active.cols());
  for (int64_t t = 0; t < active.rows(); ++t) {
    for (int64_t e = 0; e < active.cols(); ++e) {
      gates(t, e) = active(t, e) ? soft_weights(t, e) : N(0);
    }
  }
  return gates;
}

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_ROUTER_H_
