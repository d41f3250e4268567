// SPDX-License-Identifier: Apache-2.0
#include "kernels/expert_mlp.h"
#include "kernels/permute_body.h"
#include "kernels/swiglu_body.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/implementations/elements.h"
#include "property_tests/verify/operations/expert_selection.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

namespace body = kernels::SOFTMOE_ISA;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Lane = body::SerialLane<double>;

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
    for (int64_t j = 0; j < d_; ++j) {
      for (int64_t k = 0; k < 2 * f_; ++k) {
        gate_up_[k] += hidden[j] * up[j * 2 * f_ + k];
      }
    }
    body::SwigluForwardRow(Lane(), f_, gate_up_.data(), gate,
                           activation_.data());
  }
  void AddOut(double* out) const {
    Doubles row(d_);
    for (int64_t k = 0; k < f_; ++k) {
      for (int64_t j = 0; j < d_; ++j) {
        row[j] += activation_[k] * down_[k * d_ + j];
      }
    }
    const int32_t rows[] = {0};
    body::UnpermuteToken(Lane(), d_, 1, row.data(), rows, true, out);
  }
  void AddGradients(const double* d_out, double* d_hidden, double* d_up,
                    double* d_down, double* d_gate) const {
    Doubles d_activation(f_), d_gate_up(2 * f_), activation(f_);
    for (int64_t k = 0; k < f_; ++k) {
      for (int64_t j = 0; j < d_; ++j) {
        d_activation[k] += d_out[j] * down_[k * d_ + j];
      }
    }
    body::SwigluBackwardRow(Lane(), f_, gate_up_.data(), gate_,
                            d_activation.data(), d_gate_up.data(),
                            activation.data(), d_gate);
    for (int64_t k = 0; k < f_; ++k) {
      for (int64_t j = 0; j < d_; ++j) {
        d_down[k * d_ + j] += activation[k] * d_out[j];
      }
    }
    for (int64_t j = 0; j < d_; ++j) {
      for (int64_t k = 0; k < 2 * f_; ++k) {
        d_hidden[j] += d_gate_up[k] * up_[j * 2 * f_ + k];
        d_up[j * 2 * f_ + k] += hidden_[j] * d_gate_up[k];
      }
    }
  }

 private:
  int64_t d_, f_;
  const double *hidden_, *up_, *down_;
  double gate_;
  Doubles gate_up_, activation_;
};

}  // namespace

template <typename Activation>
TensorMap RunExperts(const Case& c, const TensorMap& inputs,
                     const RowKernelsOf<Activation>& run) {
  const int64_t n = c.Size("rows"), e = c.Size("num_experts");
  const int64_t d = c.Size("d_model"), f = c.Size("d_ffn");
  const SelectedExperts selection(c, inputs);
  const int64_t slots = selection.num_slots();
  const kernels::RoutePlan plan = {
      .num_tokens = n,
      .num_experts = e,
      .num_routed = selection.num_routed(),
      .max_active = selection.max_active,
      .expert_offsets = selection.expert_offsets.data(),
      .row_token = selection.row_token.data(),
      .row_gate = selection.row_gate.data(),
      .token_rows = selection.token_rows.data()};
  using Array = Guarded<Activation>;
  const auto hidden = ToElements<Activation>(At(inputs, "hidden"));
  const auto up = ToElements<Activation>(At(inputs, "gate_up_weight"));
  const auto down = ToElements<Activation>(At(inputs, "down_weight"));
  const auto d_out = ToElements<Activation>(At(inputs, "d_out"));
  Array gate_up("gate_up", slots * 2 * f), row_output("row_output", slots * d);
  Array out("out", ToElements<Activation>(At(inputs, "out_before")));
  Array activation("activation", slots * f);
  run.expert_forward({plan, d, f, hidden.data(), up.data(), down.data(),
                      gate_up.data(), row_output.data(), out.data(),
                      activation.data(), selection.expert_offsets.data()});
  Array d_gate_up("d_gate_up", slots * 2 * f);
  Array d_rows("d_row_hidden", slots * d), d_hidden("d_hidden", n * d);
  Guarded<float> d_row_gate("d_row_gate", slots);
  Guarded<float> d_up("d_gate_up_weight", e * d * 2 * f);
  Guarded<float> d_down("d_down_weight", e * f * d);
  run.expert_backward({plan, d, f, hidden.data(), up.data(), down.data(),
                       gate_up.data(), d_out.data(), d_gate_up.data(),
                       d_rows.data(), activation.data(), d_row_gate.data(),
                       d_hidden.data(), d_up.data(), d_down.data(),
                       selection.expert_offsets.data()});
  for (const Array* scratch :
       {&gate_up, &row_output, &d_gate_up, &d_rows, &activation}) {
    scratch->Take();
  }
  const Floats per_row = d_row_gate.Take();
  Floats d_gates(slots);
  for (int64_t i = 0; i < slots; ++i) {
    const int32_t row = selection.token_rows[i];
    if (row >= 0) d_gates[i] = per_row[row];
  }
  return {{"out", TakeElements(out, {n, d})},
          {"d_hidden", TakeElements(d_hidden, {n, d})},
          {"d_gates", selection.ByExpert(d_gates)},
          {"d_gate_up_weight", TakeElements(d_up, {e, d, 2 * f})},
          {"d_down_weight", TakeElements(d_down, {e, f, d})}};
}
template TensorMap RunExperts(const Case&, const TensorMap&, const RowKernels&);
template TensorMap RunExperts(const Case&, const TensorMap&,
                              const Bf16Kernels&);

TensorMap RunExpertsAtDouble(const Case& c, const TensorMap& inputs) {
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

}  // namespace softmoe::verify
