// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/expected.h"
#include "property_tests/verify/guarded.h"
#include "property_tests/verify/row_kernels.h"

namespace softmoe::verify {

TensorMap RunRmsNorm(const Case& c, const TensorMap& inputs,
                     const RowKernels& run) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const std::vector<float> x = ToFloats(At(inputs, "x")),
                           weight = ToFloats(At(inputs, "weight"));
  const std::vector<float> d_y = ToFloats(At(inputs, "d_y"));
  Guarded<float> y("y", n * d), rstd("rstd", n), d_weight("d_weight", d);
  Guarded<float> d_x("d_x", ToFloats(At(inputs, "d_x_before")));
  Guarded<float> scratch("scratch", kernels::RmsNormScratch(n, d));
  run.rmsnorm_forward({n, d, static_cast<float>(ScalarOf(inputs, "epsilon")),
                       x.data(), weight.data(), y.data(), rstd.data()});
  run.rmsnorm_backward({n, d, x.data(), weight.data(), rstd.data(), d_y.data(),
                        d_x.data(), d_weight.data(), scratch.data()});
  scratch.Take();
  return {{"y", y.TakeTensor(Dtype::kF32, {n, d})},
          {"rstd", rstd.TakeTensor(Dtype::kF32, {n})},
          {"d_x", d_x.TakeTensor(Dtype::kF32, {n, d})},
          {"d_weight", d_weight.TakeTensor(Dtype::kF32, {d})}};
}

}  // namespace softmoe::verify
