// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {

TensorMap RunBalanceLoss(const Case& c, const TensorMap& inputs,
                         const RowKernels& run) {
  const int64_t experts = c.Size("num_experts");
  const std::vector<int32_t> ids = ToInts(At(inputs, "counts"));
  const std::vector<int64_t> counts(ids.begin(), ids.end());
  const double z_sum = ScalarOf(inputs, "z_sum");
  Guarded<double> balance("load_balance_loss", 1), z("z_loss", 1);
  Guarded<float> d_probability("d_probability", experts);
  run.balance_loss(
      {.num_tokens = c.Size("tokens"),
       .num_experts = experts,
       .aux_loss_coeff = ScalarOf(inputs, "aux_loss_coeff"),
       .z_loss_coeff = ScalarOf(inputs, "z_loss_coeff"),
       .group_scale = ScalarOf(inputs, "group_scale"),
       .balance_counts = counts.data(),
       .probability_sums = At(inputs, "probability_sums").values.data(),
       .z_sum = &z_sum,
       .load_balance_loss = balance.data(),
       .z_loss = z.data(),
       .d_probability = d_probability.data()});
  return {{"load_balance_loss", balance.TakeTensor(Dtype::kF64, {})},
          {"z_loss", z.TakeTensor(Dtype::kF64, {})},
          {"d_probability", d_probability.TakeTensor(Dtype::kF32, {experts})}};
}

}  // namespace softmoe::verify
