// SPDX-License-Identifier: Apache-2.0
//
// Sums of squares, += and casts through the simulator: no element, one, blocks
// that are partly empty, more blocks than the last sum has threads. Their
// results are tested by verify, op=sum_of_squares, op=add and op=cast.
#include "kernels/cuda/flat_kernels.h"
#include "kernels/simt/device/shim_test_support.h"

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

// Blocks that were summed in two arrays, then brought together.
void CheckSumOfBlocks(int64_t first, int64_t second) {
  const auto x = RandomFloats(first + second, 4);
  CheckSchedules("sum of blocks", [&](Outputs& outputs) {
    const float* in = outputs.In(x);
    const int64_t blocks = SumOfSquaresScratch(first + second);
    const int64_t of_first = SumOfSquaresScratch(first);
    double* scratch = outputs.Add<double>(blocks);
    double* sums = outputs.Add<double>(4);
    isa_shim::SumOfSquares({first, in, sums, scratch}, outputs.stream());
    isa_shim::SumOfSquares({second, in + first, sums + 1, scratch + of_first},
                           outputs.stream());
    isa_shim::SumOfBlocks({blocks, scratch, sums + 2}, outputs.stream());
    isa_shim::SumOfSquares(
        {first + second, in, sums + 3, outputs.Add<double>(blocks)},
        outputs.stream());
    const auto all = outputs.Read(sums, 4);
    if (all[2] == all[3]) return;
    fprintf(stderr, "blocks of two arrays: %a, of one: %a\n", all[2], all[3]);
    exit(1);
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
  CheckSumOfBlocks(3 * kSumOfSquaresBlock, 2 * kSumOfSquaresBlock + 9);
  CheckSumOfBlocks(kSumOfSquaresBlock, 0);
}

}  // namespace
}  // namespace softmoe::kernels

int main() {
  softmoe::kernels::CheckAll();
  return softmoe::kernels::Summary();
}
