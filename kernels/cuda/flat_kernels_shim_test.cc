// SPDX-License-Identifier: Apache-2.0
//
// Sums of squares, += and casts through the simulator: no element, one, blocks
// that are partly empty, more blocks than the last sum has threads; arrays that
// begin at a multiple of 16 bytes, and not. Their results are tested by verify,
// op=sum_of_squares, op=add and op=cast.
#include "kernels/cuda/flat_kernels.h"
#include "kernels/simt/device/shim_test_support.h"

namespace softmoe::kernels {
namespace {

void CheckSumOfSquares(int64_t size) {
  CheckSchedulesAndShifted("sum of squares", true, [&](DeviceRun& run) {
    run.Call(isa_shim::SumOfSquares, SumOfSquaresArgs{.size = size});
  });
}

// Blocks that were summed in two arrays, then brought together, have the sum of
// one array.
void CheckSumOfBlocks(int64_t first, int64_t second) {
  CheckSchedules("sum of blocks", [&](DeviceRun& run) {
    const auto whole = run.Call(isa_shim::SumOfSquares,
                                SumOfSquaresArgs{.size = first + second});
    const int64_t blocks = SumOfSquaresScratch(whole.size);
    double* of_blocks = run.Out<double>(blocks);
    double* sum = run.Out<double>(1);
    run.Call(
        isa_shim::SumOfSquares,
        SumOfSquaresArgs{.size = first, .x = whole.x, .scratch = of_blocks});
    run.Call(
        isa_shim::SumOfSquares,
        SumOfSquaresArgs{.size = second,
                         .x = whole.x + first,
                         .scratch = of_blocks + SumOfSquaresScratch(first)});
    isa_shim::SumOfBlocks({blocks, of_blocks, sum}, run.stream());
    const double got = run.Read(sum, 1)[0];
    const double expected = run.Read(whole.result, 1)[0];
    if (got != expected) {
      Fail("blocks of two arrays: %a, of one: %a", got, expected);
    }
  });
}

void CheckElements(int64_t size) {
  CheckSchedulesAndShifted("elements", true, [&](DeviceRun& run) {
    run.Call(isa_shim::Add, AddArgs{.size = size}, {.added_to = {"y"}});
    run.Call(isa_shim::Add, AddArgsOf<float, Bf16>{.size = size},
             {.added_to = {"y"}});
    const auto to_bf16 =
        run.Call(isa_shim::CastToBf16, CastToBf16Args{.size = size});
    run.Call(isa_shim::CastToFloat,
             CastToFloatArgs{.size = size, .from = to_bf16.to});
  });
}

void CheckAll() {
  for (const int64_t size : {0, 1, 15, 256, 1000}) CheckElements(size);
  for (const int64_t size : {0, 1, 17, 4096, 4097, 70000}) {
    CheckSumOfSquares(size);
  }
  CheckSumOfSquares(1025 * kSumOfSquaresBlock - 5);
  CheckSumOfBlocks(3 * kSumOfSquaresBlock, 2 * kSumOfSquaresBlock + 9);
  CheckSumOfBlocks(kSumOfSquaresBlock, 0);
}

}  // namespace
}  // namespace softmoe::kernels

int main() {
  softmoe::kernels::CheckAll();
  return softmoe::kernels::Summary();
}
