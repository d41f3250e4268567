// SPDX-License-Identifier: Apache-2.0
//
// moe_layer_formula.h - the mixture of moe_layer.h over any scalar (scalar.h).
#ifndef SOFTMOE_REFERENCE_MOE_LAYER_FORMULA_H_
#define SOFTMOE_REFERENCE_MOE_LAYER_FORMULA_H_

#include <vector>

#include "reference/expert_formula.h"
#include "reference/matrix.h"
#include "reference/moe_layer.h"
#include "reference/scalar.h"

namespace softmoe::reference::formula {

// The tokens that use `expert`, in ascending order.
inline std::vector<int64_t> TokensOf(const BoolMatrix& active, int64_t expert) {
  std::vector<int64_t> tokens;
  for (int64_t t = 0; t < active.rows(); ++t) {
    if (active(t, expert)) tokens.push_back(t);
  }
  return tokens;
}

template <typename N>
MatrixOf<N> Gather(const MatrixOf<N>& rows,
                   const std::vector<int64_t>& tokens) {
  return rows(tokens, Eigen::all);
}

// Rows to which every expert adds.
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

}  // namespace softmoe::reference::formula

#endif  // SOFTMOE_REFERENCE_MOE_LAYER_FORMULA_H_
