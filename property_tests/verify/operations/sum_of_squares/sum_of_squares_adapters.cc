// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

using Floats = std::vector<float>;

}  // namespace

TensorMap RunSumOfSquares(const Case& c, const TensorMap& inputs,
                          const RowKernels& run) {
  const int64_t size = c.Size("size");
  const Floats x = ToFloats(At(inputs, "x"));
  Guarded<double> sum("sum_of_squares", 1);
  Guarded<double> scratch("scratch", kernels::SumOfSquaresScratch(size));
  run.sum_of_squares({size, x.data(), sum.data(), scratch.data()});
  scratch.Take();
  return {{"sum_of_squares", sum.TakeTensor(Dtype::kF64, {})}};
}

}  // namespace softmoe::verify
