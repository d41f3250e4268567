// SPDX-License-Identifier: Apache-2.0
//
// All are memory-bound, with 16 bytes of the narrower type per thread, if the
// arrays can be accessed so (row_width.h), else one element. Sum of squares:
// per block of 4096 elements, 4 or 16 threads, which share as many accumulators
// as the CPU has. Bytes per element: sum of squares 4, add 12, casts 6.
#include "kernels/cuda/flat_kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_width.h"
#include "kernels/cuda/tree_sum.h"
#include "kernels/simt/float_pack.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kThreads = 256;
constexpr int kAccumulators = 16;

// The sums of blocks of elements, in the order of the CPU: element i goes to
// accumulator i % 16, and the 16 are added by halves. The products are exact.
// A thread has kWidth accumulators.
template <int kWidth>
__global__ void __launch_bounds__(kThreads) SquaresKernel(SumOfSquaresArgs a) {
  constexpr int kLanes = kAccumulators / kWidth;
  const int64_t block = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / kLanes;
  const int lane = threadIdx.x % kLanes;
  const int64_t begin = block * kSumOfSquaresBlock;
  const int64_t end =
      begin + kSumOfSquaresBlock < a.size ? begin + kSumOfSquaresBlock : a.size;
  double sums[kWidth] = {};
  const auto add = [&](int accumulator, float x) {
    sums[accumulator] += static_cast<double>(x) * static_cast<double>(x);
  };
  int64_t i = begin + lane * kWidth;
  for (; i + kWidth <= end; i += kAccumulators) {
    if constexpr (kWidth == 1) {
      add(0, a.x[i]);
    } else {
      const FloatPack<kWidth> x = LoadReal<kWidth>(a.x + i);
      SOFTMOE_UNROLL
      for (int e = 0; e < kWidth; ++e) add(e, x[e]);
    }
  }
  SOFTMOE_UNROLL
  for (int e = 0; e < kWidth; ++e) {
    if (i + e < end) add(e, a.x[i + e]);
  }
  SOFTMOE_UNROLL
  for (int half = kLanes / 2; half > 0; half /= 2) {
    SOFTMOE_UNROLL
    for (double& sum : sums) sum += __shfl_xor_sync(0xffffffffu, sum, half);
  }
  SOFTMOE_UNROLL
  for (int half = kWidth / 2; half > 0; half /= 2) {
    SOFTMOE_UNROLL
    for (int e = 0; e < half; ++e) sums[e] += sums[e + half];
  }
  if (lane == 0 && begin < a.size) a.scratch[block] = sums[0];
}

constexpr int kSumThreads = 1024;

__global__ void __launch_bounds__(kSumThreads)
    SumOfBlocksKernel(SumOfBlocksArgs a) {
  const double sum = SumInTree<kSumThreads, 1, double>(
      threadIdx.x, 0, a.blocks,
      [&](int64_t block) { return a.scratch[block]; });
  if (threadIdx.x == 0) *a.result = sum;
}

template <typename X, typename Y, int kWidth>
__global__ void __launch_bounds__(kThreads) AddKernel(AddArgsOf<X, Y> a) {
  ForElements<kThreads, kWidth>(a.size, [&](int64_t i, auto width) {
    constexpr int kCount = decltype(width)::value;
    StoreReal(LoadReal<kCount>(a.y + i) + LoadReal<kCount>(a.x + i), a.y + i);
  });
}

template <typename From, typename To, int kWidth>
__global__ void __launch_bounds__(kThreads)
    CastKernel(int64_t size, const From* from, To* to) {
  ForElements<kThreads, kWidth>(size, [&](int64_t i, auto width) {
    StoreReal(LoadReal<decltype(width)::value>(from + i), to + i);
  });
}

// Elements of the narrower type in 16 bytes.
template <typename X, typename Y>
constexpr int kWideOf = 16 / (sizeof(X) < sizeof(Y) ? sizeof(X) : sizeof(Y));

template <typename X, typename Y>
void Enqueue(const AddArgsOf<X, Y>& args, cudaStream_t stream) {
  AtWidth<kWideOf<X, Y>>(TakesWide({}, {args.x, args.y}), [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    Launch("Add", AddKernel<X, Y, kWidth>, Blocks(args.size, kThreads * kWidth),
           kThreads, 0, stream, args);
  });
}

template <typename From, typename To>
void Cast(const char* what, int64_t size, const From* from, To* to,
          cudaStream_t stream) {
  AtWidth<kWideOf<From, To>>(TakesWide({}, {from, to}), [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    Launch(what, CastKernel<From, To, kWidth>, Blocks(size, kThreads * kWidth),
           kThreads, 0, stream, size, from, to);
  });
}

}  // namespace

void SumOfSquares(const SumOfSquaresArgs& args, cudaStream_t stream) {
  const int64_t blocks = Blocks(args.size, kSumOfSquaresBlock);
  AtWidth<kWideOf<float, float>>(TakesWide({}, {args.x}), [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    Launch("SumOfSquares", SquaresKernel<kWidth>,
           Blocks(blocks * kAccumulators / kWidth, kThreads), kThreads, 0,
           stream, args);
  });
  SumOfBlocks({blocks, args.scratch, args.result}, stream);
}

void SumOfBlocks(const SumOfBlocksArgs& args, cudaStream_t stream) {
  Launch("SumOfBlocks", SumOfBlocksKernel, 1, kSumThreads, 0, stream, args);
}

void Add(const AddArgs& args, cudaStream_t stream) { Enqueue(args, stream); }
void Add(const AddArgsOf<float, Bf16>& args, cudaStream_t stream) {
  Enqueue(args, stream);
}

void CastToBf16(const CastToBf16Args& args, cudaStream_t stream) {
  Cast("CastToBf16", args.size, args.from, args.to, stream);
}

void CastToFloat(const CastToFloatArgs& args, cudaStream_t stream) {
  Cast("CastToFloat", args.size, args.from, args.to, stream);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
