// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw.h"

#include "kernels/adamw_body.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

// Elements per task: enough to hide the cost of starting it, few enough to
// share out.
constexpr int64_t kBlock = 16384;

// Sum of x^2 over at most kSumOfSquaresBlock elements: element i goes to
// accumulator i % 16, and the 16 are added by halves. The products are exact.
double BlockSumOfSquares(const float* x, int64_t size) {
  double sums[16] = {};
  int64_t i = 0;
  for (; i + 16 <= size; i += 16) {
    for (int j = 0; j < 16; ++j) {
      sums[j] += static_cast<double>(x[i + j]) * static_cast<double>(x[i + j]);
    }
  }
  for (int j = 0; i + j < size; ++j) {
    sums[j] += static_cast<double>(x[i + j]) * static_cast<double>(x[i + j]);
  }
  for (int half = 8; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
  }
  return sums[0];
}

}  // namespace

void AdamW(const AdamWArgs& args, ThreadPool& pool) {
  const AdamWConstants<Floats> constants = {
      args.learning_rate, args.beta1, args.beta2, args.epsilon,
      args.weight_decay,  args.bias1, args.bias2, args.gradient_scale};
  pool.ParallelForBlocks(args.size, kBlock, [&](int64_t begin, int64_t end) {
    SimdLane group;
    group.ForEachColumn(end - begin, [&](Columns at) {
      at.begin += begin;
      Floats parameter = group.Load(args.parameter, at);
      Floats first = group.Load(args.first_moment, at);
      Floats second = group.Load(args.second_moment, at);
      AdamWUpdate(constants, group.Load(args.gradient, at), parameter, first,
                  second);
      group.Store(args.parameter, at, parameter);
      group.Store(args.first_moment, at, first);
      group.Store(args.second_moment, at, second);
    });
  });
}

void SumOfSquares(const SumOfSquaresArgs& args, ThreadPool& pool) {
  pool.ParallelForBlocks(args.size, kSumOfSquaresBlock,
                         [&](int64_t begin, int64_t end) {
                           args.scratch[begin / kSumOfSquaresBlock] =
                               BlockSumOfSquares(args.x + begin, end - begin);
                         });
  SumOfBlocks({SumOfSquaresScratch(args.size), args.scratch, args.result},
              pool);
}

void SumOfBlocks(const SumOfBlocksArgs& args, ThreadPool& /*pool*/) {
  double sum = 0;
  for (int64_t b = 0; b < args.blocks; ++b) sum += args.scratch[b];
  *args.result = sum;
}

void Add(const AddArgs& args, ThreadPool& pool) {
  pool.ParallelForBlocks(args.size, kBlock, [&](int64_t begin, int64_t end) {
    SimdLane group;
    group.ForEachColumn(end - begin, [&](Columns at) {
      at.begin += begin;
      group.Store(args.y, at, group.Load(args.y, at) + group.Load(args.x, at));
    });
  });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
