// SPDX-License-Identifier: Apache-2.0
//
// moe_layer.h - router and experts of one layer over one balance group
// (reference, double).
//
//   scores = noisy(x) W_router (+ noise)      out_t = sum_e gate_te E_e(x_t)
//   auxiliary = load balance + z loss, of the scores that were routed
//                                                     SPEC.md 2, 3.2; noise.h
//
// No limit on an expert's tokens, no dropped token, no renormalised gates. A
// token without an active expert gets 0 (the residual stream carries it on).
#ifndef SOFTMOE_REFERENCE_MOE_LAYER_H_
#define SOFTMOE_REFERENCE_MOE_LAYER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "reference/expert.h"
#include "reference/load_balance.h"
#include "reference/matrix.h"
#include "reference/noise.h"
#include "reference/router.h"
#include "reference/scalar.h"

namespace softmoe::reference {

struct MoeLayerSettings {
  RouterSettings router;
  RouterNoise noise;        // kind kNone outside training
  int64_t first_token = 0;  // global index of row 0: keys the noise
  // The reading of a soft router; a sparse one always uses Megatron's.
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

// The selection of another implementation, so that what comes after it can be
// compared where a near-tie made the two choose differently: discrete choices
// are taken from here, every number is computed from this layer's own scores.
struct RoutingReplay {
  BoolMatrix active;         // [num_tokens, num_experts]
  Vector balance_fractions;  // [num_experts] f_i of the load-balancing loss;
                             // empty: from `active`, or from this layer's own
                             // top experts where those are counted
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

// Returns the layer's output for `hidden` [num_tokens, d_model], the normalised
// input. `replay` may be null.
// Errors  NumericsError naming token and expert for a score that is not finite;
//         ConfigError for settings outside their range, or for no tokens.
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

// Returns the gradient of <d_out, out> + auxiliary_scale * (load balance + z
// loss), with active set, counts and k_l of the auxiliary losses held fixed.
MoeLayerGradients MoeLayerBackward(const MoeLayerSettings& settings,
                                   const MoeLayerWeights& weights,
                                   const Matrix& hidden,
                                   const MoeLayerSaved& saved,
                                   const Matrix& d_out, double auxiliary_scale);

// The mixture over any scalar (scalar.h).
namespace formula {

// The tokens that use `expert`, in ascending order.
inline std::vector<int64_t> TokensOf(const BoolMatrix& active, int64_t expert) {
  std::vector<int64_t> tokens;
  for (int64_t t = 0; t < active.rows(); ++t) {
    if (active(t, expert)) tokens.push_back(t);
  }
  return tokens;
}

// The rows of `tokens`, one below the other.
template <typename N>
MatrixOf<N> Gather(const MatrixOf<N>& rows,
                   const std::vector<int64_t>& tokens) {
  return rows(tokens, Eigen::all);
}

// Sums of rows to which every expert adds.
template <typename N>
class RowSums {
 public:
  RowSums(int64_t rows, int64_t columns)
      : columns_(columns), rows_(rows), sums_(rows * columns) {}
  void Add(int64_t row, int64_t column, const N& term) {
    sums_[row * columns_ + column].Add(term);
  }
  void AddProduct(int64_t row, int64_t column, const N& a, const N& b) {
    sums_[row * columns_ + column].AddProduct(a, b);
  }
  MatrixOf<N> Get() const {
    MatrixOf<N> total(rows_, columns_);
    for (int64_t i = 0; i < total.size(); ++i) total.data()[i] = sums_[i].Get();
    return total;
  }

 private:
  int64_t columns_, rows_;
  std::vector<Sum<N>> sums_;
};

// out_t = sum_e gate_te E_e(x_t) over the active experts; 0 without any.
template <typename N>
MatrixOf<N> MixExperts(const BoolMatrix& active, const MatrixOf<N>& gates,
                       const ExpertWeightsOf<N>& weights,
                       const MatrixOf<N>& hidden) {
  RowSums<N> out(hidden.rows(), hidden.cols());
  for (int64_t e = 0; e < active.cols(); ++e) {
    const std::vector<int64_t> tokens = TokensOf(active, e);
    const MatrixOf<N> expert_out =
        ExpertForward<N>(Gather<N>(hidden, tokens), weights.gate_up_weight[e],
                         weights.down_weight[e]);
    for (int64_t i = 0; i < expert_out.rows(); ++i) {
      for (int64_t j = 0; j < expert_out.cols(); ++j) {
        out.AddProduct(tokens[i], j, gates(tokens[i], e), expert_out(i, j));
      }
    }
  }
  return out.Get();
}

template <typename N>
struct MixExpertsGradients {
  MatrixOf<N> d_hidden;          // [num_tokens, d_model]
  MatrixOf<N> d_gates;           // [num_tokens, experts]; 0 where not active
  ExpertWeightsOf<N> d_weights;  // 0 for an expert that no token uses
};

// d_gate_te = <d_out_t, E_e(x_t)>, and E_e's gradient for gate_te d_out_t.
template <typename N>
MixExpertsGradients<N> MixExpertsBackward(const BoolMatrix& active,
                                          const MatrixOf<N>& gates,
                                          const ExpertWeightsOf<N>& weights,
                                          const MatrixOf<N>& hidden,
                                          const MatrixOf<N>& d_out) {
  MixExpertsGradients<N> gradients;
  gradients.d_gates = MatrixOf<N>::Constant(active.rows(), active.cols(), N(0));
  RowSums<N> d_hidden(hidden.rows(), hidden.cols());
  for (int64_t e = 0; e < active.cols(); ++e) {
    const std::vector<int64_t> tokens = TokensOf(active, e);
    const MatrixOf<N> expert_hidden = Gather<N>(hidden, tokens);
    const MatrixOf<N> expert_out = ExpertForward<N>(
        expert_hidden, weights.gate_up_weight[e], weights.down_weight[e]);
    MatrixOf<N> d_expert_out = Gather<N>(d_out, tokens);
    for (int64_t i = 0; i < expert_out.rows(); ++i) {
      const int64_t t = tokens[i];
      gradients.d_gates(t, e) = Dot<N>(d_out.row(t), expert_out.row(i));
      for (int64_t j = 0; j < d_out.cols(); ++j) {
        d_expert_out(i, j) = d_expert_out(i, j) * gates(t, e);
      }
    }
    ExpertGradientsOf<N> expert =
        ExpertBackward<N>(expert_hidden, weights.gate_up_weight[e],
                          weights.down_weight[e], d_expert_out);
    for (int64_t i = 0; i < expert_out.rows(); ++i) {
      for (int64_t j = 0; j < hidden.cols(); ++j) {
        d_hidden.Add(tokens[i], j, expert.d_hidden(i, j));
      }
    }
    gradients.d_weights.gate_up_weight.push_back(
        std::move(expert.d_gate_up_weight));
    gradients.d_weights.down_weight.push_back(std::move(expert.d_down_weight));
  }
  gradients.d_hidden = d_hidden.Get();
  return gradients;
}

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_MOE_LAYER_H_
