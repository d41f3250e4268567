// SPDX-License-Identifier: Apache-2.0
//
// All are memory-bound, with one element per thread, except for the sum of
// squares: 16 threads per block of 4096 elements, as many as the CPU has
// accumulators. Bytes per element: sum of squares 4, add 12, casts 6.
#include "kernels/cuda/flat_kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/tree_sum.h"
#include "kernels/simt/scalar.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kThreads = 256;

// The element of this thread.
__device__ int64_t Element() {
  return int64_t{blockIdx.x} * kThreads + threadIdx.x;
}

constexpr int kAccumulators = 16;

// The sums of blocks of elements, in the order of the CPU: element i goes to
// accumulator i % 16, and the 16 are added by halves. The products are exact.
__global__ void __launch_bounds__(kThreads) SquaresKernel(SumOfSquaresArgs a) {
  const int64_t block = Element() / kAccumulators;
  const int accumulator = threadIdx.x % kAccumulators;
  const int64_t begin = block * kSumOfSquaresBlock;
  const int64_t end =
      begin + kSumOfSquaresBlock < a.size ? begin + kSumOfSquaresBlock : a.size;
  double sum = 0;
  for (int64_t i = begin + accumulator; i < end; i += kAccumulators) {
    sum += static_cast<double>(a.x[i]) * static_cast<double>(a.x[i]);
  }
  for (int half = kAccumulators / 2; half > 0; half /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, half);
  }
  if (accumulator == 0 && begin < a.size) a.scratch[block] = sum;
}

__global__ void __launch_bounds__(kThreads)
    SumOfBlocksKernel(SumOfBlocksArgs a) {
  const double sum = SumInTree<kThreads, 1, double>(
      threadIdx.x, 0, a.blocks,
      [&](int64_t block) { return a.scratch[block]; });
  if (threadIdx.x == 0) *a.result = sum;
}

template <typename X, typename Y>
__global__ void __launch_bounds__(kThreads) AddKernel(AddArgsOf<X, Y> a) {
  const int64_t i = Element();
  if (i < a.size) StoreFloat(FloatOf(a.y[i]) + FloatOf(a.x[i]), a.y + i);
}

__global__ void __launch_bounds__(kThreads) CastToBf16Kernel(CastToBf16Args a) {
  const int64_t i = Element();
  if (i < a.size) a.to[i] = RoundToBf16(a.from[i]);
}

__global__ void __launch_bounds__(kThreads)
    CastToFloatKernel(CastToFloatArgs a) {
  const int64_t i = Element();
  if (i < a.size) a.to[i] = FloatOf(a.from[i]);
}

template <typename X, typename Y>
void Enqueue(const AddArgsOf<X, Y>& args, cudaStream_t stream) {
  Launch("Add", AddKernel<X, Y>, Blocks(args.size, kThreads), kThreads, 0,
         stream, args);
}

}  // namespace

void SumOfSquares(const SumOfSquaresArgs& args, cudaStream_t stream) {
  const int64_t blocks = Blocks(args.size, kSumOfSquaresBlock);
  Launch("SumOfSquares", SquaresKernel,
         Blocks(blocks * kAccumulators, kThreads), kThreads, 0, stream, args);
  SumOfBlocks({blocks, args.scratch, args.result}, stream);
}

void SumOfBlocks(const SumOfBlocksArgs& args, cudaStream_t stream) {
  Launch("SumOfBlocks", SumOfBlocksKernel, 1, kThreads, 0, stream, args);
}

void Add(const AddArgs& args, cudaStream_t stream) { Enqueue(args, stream); }
void Add(const AddArgsOf<float, Bf16>& args, cudaStream_t stream) {
  Enqueue(args, stream);
}

void CastToBf16(const CastToBf16Args& args, cudaStream_t stream) {
  Launch("CastToBf16", CastToBf16Kernel, Blocks(args.size, kThreads), kThreads,
         0, stream, args);
}

void CastToFloat(const CastToFloatArgs& args, cudaStream_t stream) {
  Launch("CastToFloat", CastToFloatKernel, Blocks(args.size, kThreads),
         kThreads, 0, stream, args);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
