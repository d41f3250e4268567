// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/double_implementation.h"

#include <map>

#include "kernels/cross_entropy_body.h"
#include "kernels/permute_body.h"
#include "kernels/rmsnorm_body.h"
#include "kernels/swiglu_body.h"
#include "property_tests/verify/expected.h"

namespace softmoe::verify {
namespace {

namespace body = kernels::SOFTMOE_ISA;
using Doubles = std::vector<double>;
using Lane = body::SerialLane<double>;

TensorMap RunRmsNorm(const Case& c, const TensorMap& inputs) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const Tensor& x = At(inputs, "x");
  const Tensor& weight = At(inputs, "weight");
  Tensor y(Dtype::kF64, {n, d}), rstd(Dtype::kF64, {n});
  Tensor d_x = At(inputs, "d_x_before"), d_weight(Dtype::kF64, {d});
  for (int64_t t = 0; t < n; ++t) {
    body::RmsNormForwardRow(Lane(), d, ScalarOf(inputs, "epsilon"),
                            &x.values[t * d], weight.values.data(),
                            &y.values[t * d], &rstd.values[t]);
  }
  body::RmsNormBackwardRows(Lane(), 0, n, d, x.values.data(),
                            weight.values.data(), rstd.values.data(),
                            At(inputs, "d_y").values.data(), d_x.values.data(),
                            d_weight.values.data());
  return {{"y", y}, {"rstd", rstd}, {"d_x", d_x}, {"d_weight", d_weight}};
}

TensorMap RunEmbedding(const Case& c, const TensorMap& inputs) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const int64_t vocab = c.Size("vocab_size");
  const Tensor& table = At(inputs, "table");
  const Tensor& d_out = At(inputs, "d_out");
  const std::vector<int32_t> ids = ToInts(At(inputs, "ids"));
  Tensor out(Dtype::kF64, {n, d}), d_table(Dtype::kF64, {vocab, d});
  for (int64_t t = 0; t < n; ++t) {
    body::CopyRow(Lane(), d, &table.values[ids[t] * d], &out.values[t * d]);
    const int32_t rows[] = {static_cast<int32_t>(t)};
    body::UnpermuteToken(Lane(), d, 1, d_out.values.data(), rows,
                         /*accumulate=*/true, &d_table.values[ids[t] * d]);
  }
  return {{"out", out}, {"d_table", d_table}};
}

TensorMap RunLmHead(const Case& c, const TensorMap& inputs) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const int64_t vocab = c.Size("vocab_size");
  const Doubles& hidden = At(inputs, "hidden").values;
  const Doubles& weight = At(inputs, "head_weight").values;
  const std::vector<int32_t> targets = ToInts(At(inputs, "targets"));
  Tensor loss(Dtype::kF64, {n}), d_hidden(Dtype::kF64, {n, d});
  Tensor d_weight(Dtype::kF64, {vocab, d});
  for (int64_t t = 0; t < n; ++t) {
    Doubles row(vocab);
    for (int64_t i = 0; i < vocab * d; ++i) {
      row[i / d] += hidden[t * d + i % d] * weight[i];
    }
    body::CrossEntropyRow(Lane(), vocab, targets[t],
                          ScalarOf(inputs, "grad_scale"),
                          /*want_gradient=*/true, row.data(), &loss.values[t]);
    for (int64_t i = 0; i < vocab * d; ++i) {
      d_hidden.values[t * d + i % d] += row[i / d] * weight[i];
      d_weight.values[i] += row[i / d] * hidden[t * d + i % d];
    }
  }
  return {{"loss", loss}, {"d_hidden", d_hidden}, {"d_head_weight", d_weight}};
}

// One token in one expert.
class ExpertRow {
 public:
  ExpertRow(const Case& c, const double* hidden, const double* up,
            const double* down, double gate)
      : d_(c.Size("d_model")),
        f_(c.Size("d_ffn")),
        hidden_(hidden),
        up_(up),
        down_(down),
        gate_(gate),
        gate_up_(2 * f_),
        activation_(f_) {
    for (int64_t i = 0; i < d_ * 2 * f_; ++i) {
      gate_up_[i % (2 * f_)] += hidden[i / (2 * f_)] * up[i];
    }
    body::SwigluForwardRow(Lane(), f_, gate_up_.data(), gate,
                           activation_.data());
  }
  void AddOut(double* out) const {
    Doubles row(d_);
    for (int64_t i = 0; i < f_ * d_; ++i) {
      row[i % d_] += activation_[i / d_] * down_[i];
    }
    const int32_t rows[] = {0};
    body::UnpermuteToken(Lane(), d_, 1, row.data(), rows, true, out);
  }
  void AddGradients(const double* d_out, double* d_hidden, double* d_up,
                    double* d_down, double* d_gate) const {
    Doubles d_activation(f_), d_gate_up(2 * f_), activation(f_);
    for (int64_t i = 0; i < f_ * d_; ++i) {
      d_activation[i / d_] += d_out[i % d_] * down_[i];
    }
    body::SwigluBackwardRow(Lane(), f_, gate_up_.data(), gate_,
                            d_activation.data(), d_gate_up.data(),
                            activation.data(), d_gate);
    for (int64_t i = 0; i < f_ * d_; ++i) {
      d_down[i] += activation[i / d_] * d_out[i % d_];
    }
    for (int64_t i = 0; i < d_ * 2 * f_; ++i) {
      d_hidden[i / (2 * f_)] += d_gate_up[i % (2 * f_)] * up_[i];
      d_up[i] += hidden_[i / (2 * f_)] * d_gate_up[i % (2 * f_)];
    }
  }

 private:
  int64_t d_, f_;
  const double *hidden_, *up_, *down_;
  double gate_;
  Doubles gate_up_, activation_;
};

TensorMap RunExperts(const Case& c, const TensorMap& inputs) {
  const int64_t n = c.Size("rows"), experts = c.Size("num_experts");
  const int64_t d = c.Size("d_model"), f = c.Size("d_ffn");
  const auto data = [&](const char* name) {
    return At(inputs, name).values.data();
  };
  Tensor out = At(inputs, "out_before"), d_hidden(Dtype::kF64, {n, d});
  Tensor d_gates(Dtype::kF64, {n, experts});
  Tensor d_up(Dtype::kF64, {experts, d, 2 * f});
  Tensor d_down(Dtype::kF64, {experts, f, d});
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t e = 0; e < experts; ++e) {
      if (data("active")[t * experts + e] == 0) continue;
      const ExpertRow row(
          c, data("hidden") + t * d, data("gate_up_weight") + e * d * 2 * f,
          data("down_weight") + e * f * d, data("gates")[t * experts + e]);
      row.AddOut(&out.values[t * d]);
      row.AddGradients(data("d_out") + t * d, &d_hidden.values[t * d],
                       &d_up.values[e * d * 2 * f], &d_down.values[e * f * d],
                       &d_gates.values[t * experts + e]);
    }
  }
  return {{"out", out},
          {"d_hidden", d_hidden},
          {"d_gates", d_gates},
          {"d_gate_up_weight", d_up},
          {"d_down_weight", d_down}};
}

using Runner = TensorMap (*)(const Case& c, const TensorMap& inputs);
const std::map<std::string, Runner>& Runners() {
  static const std::map<std::string, Runner> runners = {
      {"lapsum", RunLapSumAtDouble},
      {"router", RunRouterAtDouble},
      {"balance_sums", RunBalanceSumsAtDouble},
      {"rmsnorm", RunRmsNorm},
      {"embedding", RunEmbedding},
      {"lm_head", RunLmHead},
      {"experts", RunExperts},
  };
  return runners;
}

class DoubleImplementation : public Implementation {
 public:
  std::string name() const override { return "cpu:double"; }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    if (!Runners().contains(op.name())) return "no kernel body for it";
    return dtype == Dtype::kF64 ? "" : "the bodies run at f64 here";
  }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    (void)schedule;
    return Runners().at(op.name())(c, inputs);
  }
};

}  // namespace

std::unique_ptr<Implementation> MakeDoubleImplementation() {
  return std::make_unique<DoubleImplementation>();
}

}  // namespace softmoe::verify
