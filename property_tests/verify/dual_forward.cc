// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/dual_forward.h"

#include <cmath>

#include "core/errors.h"
#include "property_tests/verify/dual_functions.h"
#include "reference/laplace.h"

namespace softmoe::verify {
namespace {

using reference::Dual;
using Duals = std::vector<Dual>;
using DualSum = reference::CompensatedSum<Dual>;

const Duals& At(const DualMap& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  SOFTMOE_CHECK(found != tensors.end()) << "no tensor " << name;
  return found->second;
}
Dual Scalar(const DualMap& tensors, const std::string& name) {
  return At(tensors, name).at(0);
}
int64_t Whole(Dual x) { return static_cast<int64_t>(reference::ValueOf(x)); }

Duals Row(const Duals& matrix, int64_t row, int64_t columns) {
  return {matrix.begin() + row * columns, matrix.begin() + (row + 1) * columns};
}

// F((r_i - x~)/T), by the reference's closed form.
Duals LapSumWeights(const Duals& scores, Dual k, Dual temperature) {
  const LapSumOf<Dual> lapsum(scores, k, temperature);
  const reference::LapSumRoot<Dual>& root = lapsum.root;
  // In a gap of e^-700 and less the root moves by 1/0 with k.
  const Dual gap = (root.upper - root.lower) / temperature;
  const bool flat = root.balanced && gap > 1400;
  Duals weights;
  for (const Dual& u : lapsum.arguments) {
    weights.push_back(reference::LaplaceCdfOf(u));
    if (flat) weights.back().slope.error = HUGE_VAL;
  }
  return weights;
}

DualMap LapSum(const Case& c, const DualMap& inputs, const TensorMap&) {
  const int64_t n = c.Size("num_experts");
  Duals weights;
  for (int64_t t = 0; t < c.Size("rows"); ++t) {
    const Duals row = LapSumWeights(Row(At(inputs, "scores"), t, n),
                                    Scalar(inputs, "mean_active"),
                                    Scalar(inputs, "temperature"));
    weights.insert(weights.end(), row.begin(), row.end());
  }
  return {{"weights", weights}};
}

DualMap Router(const Case& c, const DualMap& inputs, const TensorMap& choice) {
  const int64_t n = c.Size("num_experts");
  Duals gates;
  for (int64_t t = 0; t < c.Size("rows"); ++t) {
    const Duals scores = Row(At(inputs, "scores"), t, n);
    const Duals row = c.Choice("kind") == "sparse"
                          ? SoftmaxOf(scores).weights
                          : LapSumWeights(scores, Scalar(inputs, "mean_active"),
                                          Scalar(inputs, "temperature"));
    gates.insert(gates.end(), row.begin(), row.end());
  }
  const Tensor& active = choice.at("active");
  for (size_t i = 0; i < gates.size(); ++i) {
    if (active.values[i] == 0) gates[i] = 0;
  }
  return {{"gates", gates}};
}

DualMap BalanceSums(const Case& c, const DualMap& inputs, const TensorMap&) {
  const int64_t n = c.Size("num_experts");
  std::vector<DualSum> sums(n);
  DualSum z_sum;
  for (int64_t t = 0; t < c.Size("rows"); ++t) {
    const Duals scores = Row(At(inputs, "scores"), t, n);
    const SoftmaxOf softmax(scores);
    z_sum.Add(softmax.log_sum_exp * softmax.log_sum_exp);
    Duals basis = softmax.weights;
    if (c.Choice("basis") == "soft_weights") {
      const Dual k = Scalar(inputs, "mean_active");
      basis = LapSumWeights(scores, k, Scalar(inputs, "temperature"));
      for (Dual& p : basis) p /= k;
    }
    for (int64_t e = 0; e < n; ++e) sums[e].Add(basis[e]);
  }
  Duals basis_sums;
  for (const DualSum& sum : sums) basis_sums.push_back(sum.Get());
  return {{"basis_sums", basis_sums}, {"z_sum", {z_sum.Get()}}};
}

DualMap RmsNorm(const Case& c, const DualMap& inputs, const TensorMap&) {
  const int64_t d = c.Size("d_model");
  const Duals& x = At(inputs, "x");
  const Duals& weight = At(inputs, "weight");
  Duals y;
  for (int64_t t = 0; t < c.Size("rows"); ++t) {
    const Duals row =
        RmsNormOf(&x[t * d], weight.data(), Scalar(inputs, "epsilon"), d);
    y.insert(y.end(), row.begin(), row.end());
  }
  return {{"y", y}, {"carried_on", x}};
}

Dual Silu(Dual z) {
  if (z >= 0) return z * (1 / (1 + exp(-z)));
  const Dual e = exp(z);
  return z * (e / (1 + e));
}

DualMap Experts(const Case& c, const DualMap& inputs, const TensorMap&) {
  const int64_t d = c.Size("d_model"), f = c.Size("d_ffn");
  const int64_t experts = c.Size("num_experts");
  const Duals& hidden = At(inputs, "hidden");
  Duals out = At(inputs, "out_before");
  for (int64_t i = 0; i < c.Size("rows") * experts; ++i) {
    if (reference::ValueOf(At(inputs, "active")[i]) == 0) continue;
    const int64_t t = i / experts, e = i % experts;
    const Dual* up = &At(inputs, "gate_up_weight")[e * d * 2 * f];
    const Dual* down = &At(inputs, "down_weight")[e * f * d];
    Duals activation;
    for (int64_t k = 0; k < f; ++k) {
      activation.push_back(Silu(Dot(&hidden[t * d], 1, up + k, 2 * f, d)) *
                           Dot(&hidden[t * d], 1, up + f + k, 2 * f, d));
    }
    for (int64_t j = 0; j < d; ++j) {
      out[t * d + j] +=
          At(inputs, "gates")[i] * Dot(activation.data(), 1, down + j, d, f);
    }
  }
  return {{"out", out}};
}

DualMap Attention(const Case& c, const DualMap& inputs, const TensorMap&) {
  const int64_t length = c.Size("length"), dim = c.Size("head_dim");
  const int64_t heads = c.Size("heads"), width = heads * dim;
  const Duals& qkv = At(inputs, "qkv");
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  Duals out(c.Size("sequences") * length * width);
  // q, k or v (part 0, 1, 2) of a token of all.
  const auto part = [&](int64_t token, int which, int64_t head) {
    return &qkv[(token * 3 + which) * width + head * dim];
  };
  for (int64_t row = 0; row < c.Size("sequences") * length; ++row) {
    const int64_t first = row / length * length;
    for (int64_t h = 0; h < heads; ++h) {
      Duals scores;
      for (int64_t key = first; key <= row; ++key) {
        scores.push_back(scale *
                         Dot(part(row, 0, h), 1, part(key, 1, h), 1, dim));
      }
      const Duals weights = SoftmaxOf(scores).weights;
      for (int64_t j = 0; j < dim; ++j) {
        out[row * width + h * dim + j] =
            Dot(weights.data(), 1, part(first, 2, h) + j, 3 * width,
                row - first + 1);
      }
    }
  }
  return {{"out", out}};
}

DualMap Embedding(const Case& c, const DualMap& inputs, const TensorMap&) {
  const int64_t d = c.Size("d_model");
  Duals out;
  for (const Dual& id : At(inputs, "ids")) {
    const Duals row = Row(At(inputs, "table"), Whole(id), d);
    out.insert(out.end(), row.begin(), row.end());
  }
  return {{"out", out}};
}

DualMap LmHead(const Case& c, const DualMap& inputs, const TensorMap&) {
  const int64_t d = c.Size("d_model");
  Duals loss;
  for (int64_t t = 0; t < c.Size("rows"); ++t) {
    Duals logits;
    for (int64_t w = 0; w < c.Size("vocab_size"); ++w) {
      logits.push_back(Dot(&At(inputs, "hidden")[t * d], 1,
                           &At(inputs, "head_weight")[w * d], 1, d));
    }
    loss.push_back(SoftmaxOf(logits).log_sum_exp -
                   logits[Whole(At(inputs, "targets")[t])]);
  }
  return {{"loss", loss}};
}

DualMap Budget(const Case& c, const DualMap& inputs, const TensorMap&) {
  const double layers = static_cast<double>(c.Size("layers"));
  const Dual spare = Scalar(inputs, "mean_active_experts") * layers - layers;
  Duals mean_active;
  for (const Dual& share : SoftmaxOf(At(inputs, "budget_logits")).weights) {
    mean_active.push_back(1 + spare * share);
  }
  return {{"mean_active", mean_active}};
}

}  // namespace

DualForward FindDualForward(const std::string& op) {
  static const std::map<std::string, DualForward> all = {
      {"lapsum", LapSum},       {"router", Router},
      {"rmsnorm", RmsNorm},     {"balance_sums", BalanceSums},
      {"experts", Experts},     {"attention", Attention},
      {"embedding", Embedding}, {"lm_head", LmHead},
      {"budget", Budget},
  };
  const auto found = all.find(op);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace softmoe::verify
