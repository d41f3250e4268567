// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm_body.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/implementations/elements.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

namespace body = kernels::SOFTMOE_ISA;
using Lane = body::SerialLane<double>;

}  // namespace

template <typename Activation>
TensorMap RunRmsNorm(const Case& c, const TensorMap& inputs,
                     const RowKernelsOf<Activation>& run) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const auto x = ToElements<Activation>(At(inputs, "x"));
  const auto d_y = ToElements<Activation>(At(inputs, "d_y"));
  const std::vector<float> weight = ToFloats(At(inputs, "weight"));
  Guarded<Activation> y("y", n * d);
  Guarded<Activation> d_x("d_x",
                          ToElements<Activation>(At(inputs, "d_x_before")));
  Guarded<float> rstd("rstd", n), d_weight("d_weight", d);
  Guarded<float> scratch("scratch", kernels::RmsNormScratch(n, d));
  run.rmsnorm_forward({n, d, static_cast<float>(ScalarOf(inputs, "epsilon")),
                       x.data(), weight.data(), y.data(), rstd.data()});
  run.rmsnorm_backward({n, d, x.data(), weight.data(), rstd.data(), d_y.data(),
                        d_x.data(), d_weight.data(), scratch.data()});
  scratch.Take();
  return {{"y", TakeElements(y, {n, d})},
          {"rstd", TakeElements(rstd, {n})},
          {"d_x", TakeElements(d_x, {n, d})},
          {"d_weight", TakeElements(d_weight, {d})}};
}
template TensorMap RunRmsNorm(const Case&, const TensorMap&, const RowKernels&);
template TensorMap RunRmsNorm(const Case&, const TensorMap&,
                              const Bf16Kernels&);

TensorMap RunRmsNormAtDouble(const Case& c, const TensorMap& inputs) {
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

}  // namespace softmoe::verify
