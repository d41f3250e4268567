// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/operations/expert_selection.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {

TensorMap RunRoutePlan(const Case& c, const TensorMap& inputs,
                       const RowKernels& run) {
  const SelectedExperts selection(c, inputs);
  const int64_t n = selection.rows, experts = selection.num_experts;
  const int64_t a = selection.max_active, slots = selection.num_slots();
  Guarded<int32_t> offsets("expert_offsets", experts + 1);
  Guarded<int32_t> row_token("row_token", slots);
  Guarded<float> row_gate("row_gate", slots);
  Guarded<int32_t> token_rows("token_rows", slots);
  Guarded<int32_t> scratch("scratch", kernels::RoutePlanScratch(n, experts));
  run.build_route_plan({n, experts, a, selection.num_active.data(),
                        selection.selected.data(), selection.gates.data(),
                        offsets.data(), row_token.data(), row_gate.data(),
                        token_rows.data(), scratch.data()});
  scratch.Take();
  // Nothing may be written after the last row.
  std::vector<int32_t> tokens = row_token.Take();
  std::vector<float> gates = row_gate.Take();
  for (int64_t i = selection.num_routed(); i < slots; ++i) {
    if (tokens[i] == std::numeric_limits<int32_t>::min()) tokens[i] = -1;
    if (std::isnan(gates[i])) gates[i] = 0;
  }

  std::vector<float> d_row_gate;
  for (int64_t e = 0; e < experts; ++e) {
    for (int64_t i = selection.expert_offsets[e];
         i < selection.expert_offsets[e + 1]; ++i) {
      d_row_gate.push_back(static_cast<float>(
          At(inputs, "d_row_gate")
              .values[selection.row_token[i] * experts + e]));
    }
  }
  Guarded<float> d_gates("d_gates", slots);
  run.gather_gate_gradients(
      {n, a, selection.token_rows.data(), d_row_gate.data(), d_gates.data()});
  return {
      {"expert_offsets", offsets.TakeTensor(Dtype::kI32, {experts + 1})},
      {"row_token", FromVector(Dtype::kI32, {slots}, tokens)},
      {"row_gate", FromVector(Dtype::kF32, {slots}, gates)},
      {"token_rows", token_rows.TakeTensor(Dtype::kI32, {n, a})},
      {"d_gates", selection.ByExpert(d_gates.Take())},
  };
}

}  // namespace softmoe::verify
