// SPDX-License-Identifier: Apache-2.0
//
// The operations that only the CPU has kernels for, so far.
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/expert_mlp.h"
#include "kernels/route_plan.h"
#include "property_tests/verify/cpu_implementation.h"
#include "property_tests/verify/expected.h"
#include "property_tests/verify/guarded.h"

namespace softmoe::verify {
namespace {

using Floats = std::vector<float>;

Floats FloatsOf(const TensorMap& inputs, const std::string& name) {
  return ToFloats(At(inputs, name));
}

}  // namespace

TensorMap RunEmbeddingOnCpu(const Case& c, const TensorMap& inputs,
                            ThreadPool& pool) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const int64_t vocab = c.Size("vocab_size");
  const Floats table = FloatsOf(inputs, "table");
  const Floats d_out = FloatsOf(inputs, "d_out");
  const std::vector<int32_t> ids = ToInts(At(inputs, "ids"));
  Guarded<float> out("out", n * d), d_table("d_table", vocab * d);
  Guarded<int32_t> scratch("scratch", n + vocab + 1);
  kernels::EmbeddingForward({n, d, ids.data(), table.data(), out.data()}, pool);
  kernels::EmbeddingBackward(
      {n, d, vocab, ids.data(), d_out.data(), d_table.data(), scratch.data()},
      pool);
  scratch.Take();
  return {{"out", out.TakeTensor(Dtype::kF32, {n, d})},
          {"d_table", d_table.TakeTensor(Dtype::kF32, {vocab, d})}};
}

TensorMap RunLmHeadOnCpu(const Case& c, const TensorMap& inputs,
                         ThreadPool& pool) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const int64_t vocab = c.Size("vocab_size");
  const Floats hidden = FloatsOf(inputs, "hidden");
  const Floats weight = FloatsOf(inputs, "head_weight");
  const std::vector<int32_t> targets = ToInts(At(inputs, "targets"));
  Guarded<float> loss("loss", n), only("loss", n), d_hidden("d_hidden", n * d);
  Guarded<float> d_weight("d_head_weight", vocab * d);
  kernels::HeadCrossEntropy(
      {n, d, vocab, hidden.data(), weight.data(), targets.data(), loss.data(),
       static_cast<float>(ScalarOf(inputs, "grad_scale")), d_hidden.data(),
       d_weight.data()},
      pool);
  // Evaluation asks for the loss alone.
  kernels::HeadCrossEntropy(
      {n, d, vocab, hidden.data(), weight.data(), targets.data(), only.data()},
      pool);
  if (!SameBits(loss.TakeTensor(Dtype::kF32, {n}),
                only.TakeTensor(Dtype::kF32, {n}))) {
    throw NumericsError("the loss without gradients has other bits");
  }
  return {{"loss", loss.TakeTensor(Dtype::kF32, {n})},
          {"d_hidden", d_hidden.TakeTensor(Dtype::kF32, {n, d})},
          {"d_head_weight", d_weight.TakeTensor(Dtype::kF32, {vocab, d})}};
}

TensorMap RunAttentionOnCpu(const Case& c, const TensorMap& inputs,
                            ThreadPool& pool) {
  const int64_t sequences = c.Size("sequences"), length = c.Size("length");
  const int64_t heads = c.Size("heads"), dim = c.Size("head_dim");
  const int64_t rows = sequences * length, width = heads * dim;
  const Floats qkv = FloatsOf(inputs, "qkv");
  const Floats d_out = FloatsOf(inputs, "d_out");
  Guarded<float> out("out", rows * width), lse("log_sum_exp", rows * heads);
  Guarded<float> d_qkv("d_qkv", 3 * rows * width);
  kernels::AttentionForward(
      {sequences, length, heads, dim, qkv.data(), out.data(), lse.data()},
      pool);
  kernels::AttentionBackward(
      {sequences, length, heads, dim, qkv.data(), out.data(), lse.data(),
       d_out.data(), d_qkv.data()},
      pool);
  lse.Take();
  return {{"out", out.TakeTensor(Dtype::kF32, {rows, width})},
          {"d_qkv", d_qkv.TakeTensor(Dtype::kF32, {rows, 3 * width})}};
}

TensorMap RunExpertsOnCpu(const Case& c, const TensorMap& inputs,
                          ThreadPool& pool) {
  const int64_t n = c.Size("rows"), e = c.Size("num_experts");
  const int64_t a = c.Size("max_active"), d = c.Size("d_model");
  const int64_t f = c.Size("d_ffn"), slots = n * a;
  const Tensor& active = At(inputs, "active");
  const Tensor& gates = At(inputs, "gates");
  std::vector<int32_t> num_active(n), selected(slots, -1);
  Floats slot_gates(slots);
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t i = 0; i < e; ++i) {
      if (active.values[t * e + i] == 0) continue;
      const int64_t slot = t * a + num_active[t]++;
      selected[slot] = static_cast<int32_t>(i);
      slot_gates[slot] = static_cast<float>(gates.values[t * e + i]);
    }
  }
  Guarded<int32_t> offsets("expert_offsets", e + 1);
  Guarded<int32_t> row_token("row_token", slots);
  Guarded<int32_t> token_rows("token_rows", slots);
  Guarded<int32_t> plan_scratch("scratch", kernels::RoutePlanScratch(n, e));
  Guarded<float> row_gate("row_gate", slots);
  kernels::BuildRoutePlan(
      {n, e, a, num_active.data(), selected.data(), slot_gates.data(),
       offsets.data(), row_token.data(), row_gate.data(), token_rows.data(),
       plan_scratch.data()},
      pool);
  const kernels::RoutePlan plan = {n,
                                   e,
                                   offsets.Take()[e],
                                   a,
                                   offsets.data(),
                                   row_token.data(),
                                   row_gate.data(),
                                   token_rows.data()};
  const Floats hidden = FloatsOf(inputs, "hidden");
  const Floats up = FloatsOf(inputs, "gate_up_weight");
  const Floats down = FloatsOf(inputs, "down_weight");
  const Floats d_out = FloatsOf(inputs, "d_out");
  Guarded<float> gate_up("gate_up", slots * 2 * f);
  Guarded<float> row_output("row_output", slots * d);
  Guarded<float> out("out", FloatsOf(inputs, "out_before"));
  kernels::ExpertForward({plan, d, f, hidden.data(), up.data(), down.data(),
                          gate_up.data(), row_output.data(), out.data()},
                         pool);
  Guarded<float> d_gate_up("d_gate_up", slots * 2 * f);
  Guarded<float> d_rows("d_row_hidden", slots * d);
  Guarded<float> activation("activation", slots * f);
  Guarded<float> d_row_gate("d_row_gate", slots), d_hidden("d_hidden", n * d);
  Guarded<float> d_up("d_gate_up_weight", e * d * 2 * f);
  Guarded<float> d_down("d_down_weight", e * f * d);
  kernels::ExpertBackward(
      {plan, d, f, hidden.data(), up.data(), down.data(), gate_up.data(),
       d_out.data(), d_gate_up.data(), d_rows.data(), activation.data(),
       d_row_gate.data(), d_hidden.data(), d_up.data(), d_down.data()},
      pool);
  for (const Guarded<float>* scratch :
       {&gate_up, &row_output, &d_gate_up, &d_rows, &activation, &row_gate}) {
    scratch->Take();
  }
  Tensor d_gates(Dtype::kF32, {n, e});
  const Floats per_row = d_row_gate.Take();
  const std::vector<int32_t> rows = token_rows.Take();
  for (int64_t i = 0; i < slots; ++i) {
    if (rows[i] >= 0) {
      d_gates.values[i / a * e + selected[i]] = per_row[rows[i]];
    }
  }
  return {{"out", out.TakeTensor(Dtype::kF32, {n, d})},
          {"d_hidden", d_hidden.TakeTensor(Dtype::kF32, {n, d})},
          {"d_gates", d_gates},
          {"d_gate_up_weight", d_up.TakeTensor(Dtype::kF32, {e, d, 2 * f})},
          {"d_down_weight", d_down.TakeTensor(Dtype::kF32, {e, f, d})}};
}

}  // namespace softmoe::verify
