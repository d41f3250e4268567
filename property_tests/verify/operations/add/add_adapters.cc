// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/implementations/elements.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {

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

}  // namespace softmoe::verify
