// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/implementations/elements.h"
#include "property_tests/verify/operations/noise_parameters.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {

template <typename Activation>
TensorMap RunJitter(const Case& c, const TensorMap& inputs,
                    const RowKernelsOf<Activation>& run) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const double amplitude = ScalarOf(inputs, "amplitude");
  const auto hidden = ToElements<Activation>(At(inputs, "hidden"));
  const std::vector<float> d_input = ToFloats(At(inputs, "d_router_input"));
  Guarded<float> router_input("router_input", n * d);
  Guarded<Activation> d_hidden(
      "d_hidden", ToElements<Activation>(At(inputs, "d_hidden_before")));
  run.input_jitter({n, d, FirstToken(c), NoiseKey(c), amplitude, hidden.data(),
                    router_input.data()});
  run.input_jitter_backward({n, d, FirstToken(c), NoiseKey(c), amplitude,
                             d_input.data(), d_hidden.data(),
                             /*accumulate=*/true});
  return {{"router_input", TakeElements(router_input, {n, d})},
          {"d_hidden", TakeElements(d_hidden, {n, d})}};
}
template TensorMap RunJitter(const Case&, const TensorMap&, const RowKernels&);
template TensorMap RunJitter(const Case&, const TensorMap&, const Bf16Kernels&);

TensorMap RunLogitNoise(const Case& c, const TensorMap& inputs,
                        const RowKernels& run) {
  const int64_t n = c.Size("rows"), experts = c.Size("num_experts");
  Guarded<float> scores("scores", ToFloats(At(inputs, "scores_before")));
  run.logit_noise({n, experts, FirstToken(c), NoiseKey(c),
                   ScalarOf(inputs, "sigma"), scores.data()});
  return {{"scores", scores.TakeTensor(Dtype::kF32, {n, experts})}};
}

}  // namespace softmoe::verify
