// SPDX-License-Identifier: Apache-2.0
//
// moe_layer.h - router and experts of one layer over one balance group
// (reference, double).
//
//   scores = noisy(x) W_router (+ noise)      out_t = sum_e gate_te E_e(x_t)
//   auxiliary = load balance + z loss, of the scores that were routed
//                                                     SPEC.md 2, 3.2; noise.h
//
// No capacity, no dropped token, no renormalisation of the gates. A token
// without an active expert gets 0 (and the residual stream carries it on).
#ifndef SOFTMOE_REFERENCE_MOE_LAYER_H_
#define SOFTMOE_REFERENCE_MOE_LAYER_H_

#include <cstdint>
#include <vector>

#include "core/config/config.h"
#include "reference/load_balance.h"
#include "reference/matrix.h"
#include "reference/noise.h"
#include "reference/router.h"

namespace softmoe::reference {

struct MoeLayerSettings {
  RouterSettings router;
  RouterNoise noise;        // kind kNone outside training
  int64_t first_token = 0;  // global index of row 0: keys the noise
  // Which reading a soft router uses; sparse is always Megatron's.
  LoadBalanceKind load_balance = LoadBalanceKind::kSoft;
  double aux_loss_coeff = 0;
  double z_loss_coeff = 0;
};

template <typename N>
struct ExpertWeightsOf {
  std::vector<MatrixOf<N>> gate_up_weight;  // per expert [d_model, 2*d_ffn]
  std::vector<MatrixOf<N>> down_weight;     // per expert [d_ffn, d_model]
};
using ExpertWeights = ExpertWeightsOf<double>;

struct MoeLayerWeights : ExpertWeights {
  Matrix router_weight;  // [d_model, num_experts]
};

// The selection of another implementation, to compare what comes after it
// where a near-tie made the two choose differently: the discrete choices are
// taken from here, every number is computed from this layer's own scores.
struct RoutingReplay {
  BoolMatrix active;         // [num_tokens, num_experts]
  Vector balance_fractions;  // [num_experts] f_i of the load-balancing loss;
                             // empty: from `active`, or from this layer's own
                             // top experts where those are what is counted
};

struct MoeLayerSaved {
  Matrix router_input;  // [num_tokens, d_model], after jitter
  Matrix scores;        // [num_tokens, num_experts], as routed (noise added)
  RouterSaved routing;
  LoadBalance balance;  // loss includes the coefficient
  double z_loss = 0;    // includes the coefficient
};

struct MoeLayerResult {
  Matrix out;  // [num_tokens, d_model], without the residual
  MoeLayerSaved saved;
};

// hidden [num_tokens, d_model]: the normalised input. `replay` may be null.
// Errors  NumericsError naming token and expert for a score that is not finite.
MoeLayerResult MoeLayerForward(const MoeLayerSettings& settings,
                               const MoeLayerWeights& weights,
                               const Matrix& hidden,
                               const RoutingReplay* replay = nullptr);

struct MoeLayerGradients {
  Matrix d_hidden;            // [num_tokens, d_model]
  MoeLayerWeights d_weights;  // zero for an expert that no token uses
  // d/d k_l through the gates alone: the auxiliary losses hold k_l constant.
  double d_mean_active = 0;
};

// Gradient of <d_out, out> + auxiliary_scale * (load balance + z loss), with
// active set, counts and k_l of the auxiliary losses held fixed.
MoeLayerGradients MoeLayerBackward(const MoeLayerSettings& settings,
                                   const MoeLayerWeights& weights,
                                   const Matrix& hidden,
                                   const MoeLayerSaved& saved,
                                   const Matrix& d_out, double auxiliary_scale);

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_MOE_LAYER_H_
