// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm.h"

#include "kernels/rmsnorm_body.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

// Columns of the d_weight reduction that one task adds up.
constexpr int64_t kColumnBlock = 64;

}  // namespace

void RmsNormForward(const RmsNormForwardArgs& args, ThreadPool& pool) {
  pool.ParallelForBlocks(
      args.num_tokens, kRmsNormTokenBlock, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t at = row * args.d_model;
          RmsNormForwardRow(SimdLane(), args.d_model, args.epsilon, args.x + at,
                            args.weight, args.y + at, args.rstd + row);
        }
      });
}

void RmsNormBackward(const RmsNormBackwardArgs& args, ThreadPool& pool) {
  const int64_t d_model = args.d_model;
  pool.ParallelForBlocks(
      args.num_tokens, kRmsNormTokenBlock, [&](int64_t begin, int64_t end) {
        const int64_t block = begin / kRmsNormTokenBlock;
        RmsNormBackwardRows(SimdLane(), begin, end, d_model, args.x,
                            args.weight, args.rstd, args.d_y, args.d_x,
                            args.scratch + block * d_model);
      });
  // The shares are added in the order of the tokens.
  const int64_t blocks =
      (args.num_tokens + kRmsNormTokenBlock - 1) / kRmsNormTokenBlock;
  pool.ParallelForBlocks(
      d_model, kColumnBlock, [&](int64_t begin, int64_t end) {
        SimdLane group;
        group.ForEachColumn(end - begin, [&](Columns at) {
          Floats sum(0.0f);
          for (int64_t b = 0; b < blocks; ++b) {
            sum += group.Load(args.scratch + b * d_model + begin, at);
          }
          group.Store(args.d_weight + begin, at, sum);
        });
      });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
