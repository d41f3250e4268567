// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/implementations/elements.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {

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
