// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/implementations/elements.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {

TensorMap RunSumOfSquares(const Case& c, const TensorMap& inputs,
                          const RowKernels& run) {
  const int64_t size = c.Size("size");
  const std::vector<float> x = ToFloats(At(inputs, "x"));
  Guarded<double> sum("sum_of_squares", 1);
  Guarded<double> scratch("scratch", kernels::SumOfSquaresScratch(size));
  run.sum_of_squares({size, x.data(), sum.data(), scratch.data()});
  scratch.Take();
  return {{"sum_of_squares", sum.TakeTensor(Dtype::kF64, {})}};
}

template <typename Activation>
TensorMap RunAdd(const Case& c, const TensorMap& inputs,
                 const RowKernelsOf<Activation>& run) {
  const int64_t size = c.Size("size");
  const std::vector<float> x = ToFloats(At(inputs, "x"));
  Guarded<Activation> y("y", ToElements<Activation>(At(inputs, "y_before")));
  run.add({size, x.data(), y.data()});
  return {{"y", TakeElements(y, {size})}};
}
template TensorMap RunAdd(const Case&, const TensorMap&, const RowKernels&);
template TensorMap RunAdd(const Case&, const TensorMap&, const Bf16Kernels&);

TensorMap RunCast(const Case& c, const TensorMap& inputs,
                  const Bf16Kernels& run) {
  const int64_t size = c.Size("size");
  const std::vector<float> x = ToFloats(At(inputs, "x"));
  const auto stored = ToElements<kernels::Bf16>(At(inputs, "stored"));
  Guarded<kernels::Bf16> rounded("rounded", size);
  Guarded<float> widened("widened", size);
  run.cast_to_bf16({size, x.data(), rounded.data()});
  run.cast_to_float({size, stored.data(), widened.data()});
  return {{"rounded", TakeElements(rounded, {size})},
          {"widened", TakeElements(widened, {size})}};
}

}  // namespace softmoe::verify
