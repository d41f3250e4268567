// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/operations/expert_selection.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {

TensorMap RunRoutingCounts(const Case& c, const TensorMap& inputs,
                           const RowKernels& run) {
  const SelectedExperts selection(c, inputs);
  const std::vector<float> scores = ToFloats(At(inputs, "scores"));
  const auto bad_score = static_cast<int64_t>(ScalarOf(inputs, "bad_score"));
  Guarded<int64_t> histogram("active_histogram", selection.num_experts + 1);
  Guarded<int64_t> below("below_cutoff", 1);
  Guarded<double> bad_value("bad_value", 1);
  run.routing_counts({.num_tokens = selection.rows,
                      .num_experts = selection.num_experts,
                      .max_active = selection.max_active,
                      .has_cutoff = c.Choice("router") == "soft",
                      .cutoff = static_cast<float>(ScalarOf(inputs, "cutoff")),
                      .num_active = selection.num_active.data(),
                      .gates = selection.gates.data(),
                      .active_histogram = histogram.data(),
                      .below_cutoff = below.data(),
                      .scores = scores.data(),
                      .bad_score = &bad_score,
                      .bad_value = bad_value.data()});
  return {{"active_histogram",
           histogram.TakeTensor(Dtype::kI32, {selection.num_experts + 1})},
          {"below_cutoff", below.TakeTensor(Dtype::kI32, {})},
          {"bad_value", bad_value.TakeTensor(Dtype::kF64, {})}};
}

}  // namespace softmoe::verify
