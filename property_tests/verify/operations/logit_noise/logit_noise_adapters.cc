// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/operations/noise_parameters.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {

TensorMap RunLogitNoise(const Case& c, const TensorMap& inputs,
                        const RowKernels& run) {
  const int64_t n = c.Size("rows"), experts = c.Size("num_experts");
  Guarded<float> scores("scores", ToFloats(At(inputs, "scores_before")));
  run.logit_noise({n, experts, FirstToken(c), NoiseKey(c),
                   ScalarOf(inputs, "sigma"), scores.data()});
  return {{"scores", scores.TakeTensor(Dtype::kF32, {n, experts})}};
}

}  // namespace softmoe::verify
