// SPDX-License-Identifier: Apache-2.0
//
// router_backward_body.h - the gradient of one row of the router, written once
// for every group across rows (SPEC.md 1.3, 2.2).
//
// With u_e = (r_e - x)/T, q = softmax(-|u|), f_e = e^{-|u_e|}/2 (not min(p,
// 1-p), which is useless near p = 1), and v_e = d loss / d p_e:
//     d_scores_e = (f_e/T) (v_e - sum_i q_i v_i)
//     d_mean_active = sum_i q_i v_i
// and for softmax s of the scores: d_scores_e = s_e (v_e - sum_i s_i v_i).
#ifndef SOFTMOE_KERNELS_ROUTER_BACKWARD_BODY_H_
#define SOFTMOE_KERNELS_ROUTER_BACKWARD_BODY_H_

#include "kernels/softmax_body.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// Constants that all rows of the backward pass share.
template <typename Scalar>
struct RouterGradientConstants {
  int num_experts;
  Scalar inverse_temperature;
  // [num_experts] each, or null: d loss / d p_e and d loss / d softmax_e of
  // every token, from the balance loss.
  const Scalar* d_soft_weight;
  const Scalar* d_softmax;
  Scalar z_scale;  // d loss / d(logsumexp^2)
};

// Takes d_gates (zero where inactive) back through LapSum. d_scores may not be
// d_gates. Returns d_mean_active, through the gates only.
template <typename Real, typename Scalar>
SOFTMOE_INLINE Real LapSumBackwardRow(const RouterGradientConstants<Scalar>& c,
                                      const Real* scores, Real anchor,
                                      Real offset, const Real* d_gates,
                                      Real* d_scores) {
  const int n = c.num_experts;
  const Real inverse_temperature(c.inverse_temperature);
  // Relative to the smallest |u|, so that q exists where every f underflows.
  Real smallest(__builtin_inff());
  for (int e = 0; e < n; ++e) {
    const Real u = Abs(Fma(scores[e] - anchor, inverse_temperature, -offset));
    d_scores[e] = u;
    smallest = Min(u, smallest);
  }
  Real weighted_gates(0), weighted_balance(0);
  const Real sum = SumOverExperts<Real>(n, [&](int e) {
    const Real weight = Exp(smallest - d_scores[e]);
    d_scores[e] = weight;
    weighted_gates = Fma(weight, d_gates[e], weighted_gates);
    if (c.d_soft_weight != nullptr) {
      weighted_balance =
          Fma(weight, Real(c.d_soft_weight[e]), weighted_balance);
    }
    return weight;
  });
  const Real inverse = Real(1) / sum;
  const Real d_mean_active = weighted_gates * inverse;
  const Real mean = (weighted_gates + weighted_balance) * inverse;
  const Real scale = Real(Scalar(0.5)) * Exp(-smallest) * inverse_temperature;
  for (int e = 0; e < n; ++e) {
    Real v = d_gates[e];
    if (c.d_soft_weight != nullptr) v = v + Real(c.d_soft_weight[e]);
    d_scores[e] = scale * d_scores[e] * (v - mean);
  }
  return d_mean_active;
}

// Adds what reaches the scores through softmax(scores) and logsumexp(scores):
// the kScoresSoftmax balance loss and the z-loss. `softmax` is room for a row.
template <typename Real, typename Scalar>
SOFTMOE_INLINE void AddSoftmaxLossGradients(
    const RouterGradientConstants<Scalar>& c, const Real* scores, Real* softmax,
    Real* d_scores) {
  const int n = c.num_experts;
  Real largest = scores[0];
  for (int e = 1; e < n; ++e) largest = Max(scores[e], largest);
  const Real log_sum_exp = Softmax(scores, n, largest, softmax);
  Real mean(0);
  if (c.d_softmax != nullptr) {
    for (int e = 0; e < n; ++e) {
      mean = Fma(softmax[e], Real(c.d_softmax[e]), mean);
    }
  }
  const Real z = Real(Scalar(2) * c.z_scale) * log_sum_exp;
  for (int e = 0; e < n; ++e) {
    Real v = z - mean;
    if (c.d_softmax != nullptr) v = v + Real(c.d_softmax[e]);
    d_scores[e] = Fma(softmax[e], v, d_scores[e]);
  }
}

// Takes d_gates (zero where inactive) back through softmax(scores), whose
// values are `softmax`; adds the balance and z losses.
template <typename Real, typename Scalar>
SOFTMOE_INLINE void SparseBackwardRow(const RouterGradientConstants<Scalar>& c,
                                      const Real* scores, const Real* softmax,
                                      const Real* d_gates, Real* d_scores) {
  const int n = c.num_experts;
  Real mean(0);
  for (int e = 0; e < n; ++e) {
    Real v = d_gates[e];
    if (c.d_softmax != nullptr) v = v + Real(c.d_softmax[e]);
    d_scores[e] = v;
    mean = Fma(softmax[e], v, mean);
  }
  if (c.z_scale != Scalar(0)) {
    Real largest = scores[0];
    for (int e = 1; e < n; ++e) largest = Max(scores[e], largest);
    mean = mean - Real(Scalar(2) * c.z_scale) * LogSumExp(scores, n, largest);
  }
  for (int e = 0; e < n; ++e) {
    d_scores[e] = softmax[e] * (d_scores[e] - mean);
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_ROUTER_BACKWARD_BODY_H_
