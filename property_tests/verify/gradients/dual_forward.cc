// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/gradients/dual_forward.h"

#include <cmath>

#include "core/errors.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/operations/noise_parameters.h"
#include "reference/attention.h"
#include "reference/budget.h"
#include "reference/embedding.h"
#include "reference/lapsum.h"
#include "reference/lm_head.h"
#include "reference/load_balance.h"
#include "reference/matrix.h"
#include "reference/moe_layer.h"
#include "reference/noise.h"
#include "reference/rmsnorm.h"
#include "reference/rope.h"
#include "reference/router.h"

namespace softmoe::verify {
namespace {

namespace formula = reference::formula;
using reference::BoolMatrix;
using reference::Dual;
using Duals = reference::VectorOf<Dual>;
using DualMatrix = reference::MatrixOf<Dual>;

const std::vector<Dual>& At(const DualMap& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  SOFTMOE_CHECK(found != tensors.end()) << "no tensor " << name;
  return found->second;
}
Dual Scalar(const DualMap& tensors, const std::string& name) {
  return At(tensors, name).at(0);
}
// The matrix with rows of `columns` elements that starts at element `offset`.
DualMatrix MatrixAt(const std::vector<Dual>& tensor, int64_t offset,
                    int64_t rows, int64_t columns) {
  return Eigen::Map<const DualMatrix>(tensor.data() + offset, rows, columns);
}
DualMatrix MatrixOf(const DualMap& tensors, const std::string& name,
                    int64_t columns) {
  const std::vector<Dual>& tensor = At(tensors, name);
  return MatrixAt(tensor, 0, static_cast<int64_t>(tensor.size()) / columns,
                  columns);
}
Duals VectorOf(const DualMap& tensors, const std::string& name) {
  return MatrixOf(tensors, name, 1);
}
std::vector<int32_t> Ints(const DualMap& tensors, const std::string& name) {
  std::vector<int32_t> ints;
  for (const Dual& x : At(tensors, name)) {
    ints.push_back(static_cast<int32_t>(reference::ValueOf(x)));
  }
  return ints;
}
std::vector<Dual> Flat(const DualMatrix& matrix) {
  return {matrix.data(), matrix.data() + matrix.size()};
}

Duals LapSumRow(const Duals& scores, Dual k, Dual temperature) {
  const reference::LapSumRoot<Dual> root =
      formula::SolveLapSumRoot<Dual>(scores, k, temperature);
  Duals weights = formula::LapSumWeights<Dual>(
      formula::LapSumArguments<Dual>(scores, root, temperature));
  // In a gap where densities are at most e^-700, the derivative of the root
  // with respect to k would be 1/0.
  const Dual gap = (root.upper - root.lower) / temperature;
  if (root.balanced && gap > 1400) {
    for (Dual& weight : weights) weight.slope.error = HUGE_VAL;
  }
  return weights;
}

// Applies LapSumRow to every row of the input "scores".
DualMatrix LapSumRows(const Case& c, const DualMap& inputs) {
  DualMatrix rows = MatrixOf(inputs, "scores", c.Size("num_experts"));
  for (int64_t t = 0; t < rows.rows(); ++t) {
    rows.row(t) = LapSumRow(rows.row(t), Scalar(inputs, "mean_active"),
                            Scalar(inputs, "temperature"));
  }
  return rows;
}
DualMatrix SoftmaxRows(const Case& c, const DualMap& inputs) {
  return formula::SoftmaxRows<Dual>(
      MatrixOf(inputs, "scores", c.Size("num_experts")));
}

DualMap LapSum(const Case& c, const DualMap& inputs, const TensorMap&) {
  return {{"weights", Flat(LapSumRows(c, inputs))}};
}

DualMap Router(const Case& c, const DualMap& inputs, const TensorMap& choice) {
  const DualMatrix soft_weights = c.Choice("kind") == "sparse"
                                      ? SoftmaxRows(c, inputs)
                                      : LapSumRows(c, inputs);
  const BoolMatrix active = ToMatrix(choice.at("active")).array() != 0;
  return {{"gates", Flat(formula::Gates<Dual>(active, soft_weights))}};
}

DualMap BalanceSums(const Case& c, const DualMap& inputs, const TensorMap&) {
  const DualMatrix scores = MatrixOf(inputs, "scores", c.Size("num_experts"));
  DualMatrix basis = SoftmaxRows(c, inputs);
  if (c.Choice("basis") == "soft_weights") {
    basis = LapSumRows(c, inputs);
    for (Dual& p : basis.reshaped()) p /= Scalar(inputs, "mean_active");
  }
  return {{"basis_sums", Flat(formula::ColumnSums<Dual>(basis))},
          {"z_sum", {formula::SumOfSquaredLogSumExps<Dual>(scores)}}};
}

DualMap RmsNorm(const Case& c, const DualMap& inputs, const TensorMap&) {
  return {{"y", Flat(formula::RmsNormForward<Dual>(
                    MatrixOf(inputs, "x", c.Size("d_model")),
                    VectorOf(inputs, "weight"), Scalar(inputs, "epsilon")))},
          {"carried_on", At(inputs, "x")}};
}

DualMap Experts(const Case& c, const DualMap& inputs, const TensorMap&) {
  const int64_t d = c.Size("d_model"), f = c.Size("d_ffn");
  const int64_t experts = c.Size("num_experts");
  const DualMatrix active = MatrixOf(inputs, "active", experts);
  reference::ExpertWeightsOf<Dual> weights;
  for (int64_t e = 0; e < experts; ++e) {
    weights.gate_up_weight.push_back(
        MatrixAt(At(inputs, "gate_up_weight"), e * d * 2 * f, d, 2 * f));
    weights.down_weight.push_back(
        MatrixAt(At(inputs, "down_weight"), e * f * d, f, d));
  }
  return {{"out", Flat(formula::Plus<Dual>(
                      MatrixOf(inputs, "out_before", d),
                      formula::MixExperts<Dual>(
                          active.unaryExpr([](Dual x) { return x != 0; }),
                          MatrixOf(inputs, "gates", experts), weights,
                          MatrixOf(inputs, "hidden", d))))}};
}

DualMap Attention(const Case& c, const DualMap& inputs, const TensorMap&) {
  return {{"out", Flat(formula::MultiHeadAttention<Dual>(
                      MatrixOf(inputs, "qkv",
                               3 * c.Size("heads") * c.Size("head_dim")),
                      c.Size("sequences"), c.Size("heads")))}};
}

DualMap Embedding(const Case& c, const DualMap& inputs, const TensorMap&) {
  return {{"out", Flat(formula::EmbeddingForward<Dual>(
                      Ints(inputs, "ids"),
                      MatrixOf(inputs, "table", c.Size("d_model"))))}};
}

DualMap Rope(const Case& c, const DualMap& inputs, const TensorMap&) {
  return {
      {"rotated",
       Flat(formula::RotateQueriesAndKeys<Dual>(
           MatrixOf(inputs, "qkv", 3 * c.Size("heads") * c.Size("head_dim")),
           c.Size("sequences"), c.Size("heads"),
           reference::ValueOf(Scalar(inputs, "base")), /*direction=*/1))}};
}

DualMap Jitter(const Case& c, const DualMap& inputs, const TensorMap&) {
  const reference::RouterNoise noise =
      NoiseOf(c, NoiseKind::kInputJitter,
              reference::ValueOf(Scalar(inputs, "amplitude")));
  return {{"router_input", Flat(formula::NoisyRouterInput<Dual>(
                               noise, FirstToken(c),
                               MatrixOf(inputs, "hidden", c.Size("d_model"))))},
          {"carried_on", At(inputs, "hidden")}};
}

DualMap LmHead(const Case& c, const DualMap& inputs, const TensorMap&) {
  const int64_t d = c.Size("d_model");
  return {{"loss",
           Flat(formula::TokenLosses<Dual>(
               formula::LmHeadLogits<Dual>(MatrixOf(inputs, "hidden", d),
                                           MatrixOf(inputs, "head_weight", d)),
               Ints(inputs, "targets")))}};
}

DualMap Budget(const Case& c, const DualMap& inputs, const TensorMap&) {
  const Dual budget = Scalar(inputs, "mean_active_experts") *
                      static_cast<double>(c.Size("layers"));
  return {{"mean_active", Flat(formula::AllocateBudget<Dual>(
                                   budget, VectorOf(inputs, "budget_logits"))
                                   .allocation)}};
}

}  // namespace

DualForward FindDualForward(const std::string& op) {
  static const std::map<std::string, DualForward> all = {
      {"lapsum", LapSum},       {"router", Router},
      {"rmsnorm", RmsNorm},     {"balance_sums", BalanceSums},
      {"experts", Experts},     {"attention", Attention},
      {"embedding", Embedding}, {"lm_head", LmHead},
      {"budget", Budget},       {"rope", Rope},
      {"jitter", Jitter},
  };
  const auto found = all.find(op);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace softmoe::verify
