// SPDX-License-Identifier: Apache-2.0
//
// Sums of squares, += and casts through the simulator: no element, one, blocks
// that are partly empty, more blocks than the last sum has threads. That they
// are right: property_tests/flat_kernels_property_test.cc.
#include "kernels/cuda/flat_kernels.h"
#include "kernels/simt/shim/shim_test_support.h"

namespace softmoe::kernels {
namespace {

void CheckSumOfSquares(int64_t size) {
  const auto x = RandomFloats(size, 1);
  CheckSchedules("sum of squares", [&](Outputs& outputs) {
    isa_shim::SumOfSquares({size, outputs.In(x), outputs.Add<double>(1),
                            outputs.Add<double>(SumOfSquaresScratch(size))},
                           outputs.stream());
  });
}

void CheckElements(int64_t size) {
  const auto x = RandomFloats(size, 2), y = RandomFloats(size, 3);
  CheckSchedules("elements", [&](Outputs& outputs) {
    Bf16* halves = outputs.Add<Bf16>(size);
    isa_shim::Add({size, outputs.In(x), outputs.AddCopy(y)}, outputs.stream());
    const auto before = RandomBf16(size, 4);
    Bf16* sum = outputs.AddCopy(before);
    isa_shim::Add({size, outputs.In(x), sum}, outputs.stream());
    float* computed = outputs.AddCopy(ToFloats(before));
    isa_shim::Add({size, outputs.In(x), computed}, outputs.stream());
    RequireRounded("sum", outputs.Read(computed, size),
                   outputs.Read(sum, size));
    isa_shim::CastToBf16({size, outputs.In(x), halves}, outputs.stream());
    isa_shim::CastToFloat({size, halves, outputs.Add<float>(size)},
                          outputs.stream());
  });
}

void CheckAll() {
  for (const int64_t size : {0, 1, 15, 256, 1000}) CheckElements(size);
  for (const int64_t size : {0, 1, 17, 4096, 4097, 70000}) {
    CheckSumOfSquares(size);
  }
  CheckSumOfSquares(257 * kSumOfSquaresBlock - 5);
}

}  // namespace
}  // namespace softmoe::kernels

int main() {
  softmoe::kernels::CheckAll();
  return softmoe::kernels::Summary();
}
