// SPDX-License-Identifier: Apache-2.0
//
// Blocks of tokens, one after the other, each by all threads in three steps:
//   logits    = hidden W^T           threads own columns (tokens of the
//                                    vocabulary): W is packed once
//   d_logits  = softmax - one_hot    in place, threads own rows
//   d_hidden  = d_logits W           threads own rows
//   d_W      += d_logits^T hidden    threads own rows of W; the chain of each
//                                    element goes on from block to block, so it
//                                    is one sum over ascending tokens
// Nothing is computed twice. A block of logits is at most 8 MiB unless 64 rows
// of them are more.
#include "kernels/cross_entropy.h"

#include "kernels/cross_entropy_body.h"
#include "kernels/gemm_block.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

// Tokens of a block: all blocks have about the same size.
int64_t BlockTokens(const HeadCrossEntropyArgs& args) {
  const int64_t fitting = (int64_t{1} << 21) / args.vocab_size;
  const int64_t wanted = Larger(64, Smaller(fitting, 512));
  return CeilDiv(args.num_tokens, CeilDiv(args.num_tokens, wanted));
}

// One block: its tokens, its logits (rows `stride` apart), its threads.
struct Block {
  const HeadCrossEntropyArgs& args;
  Range tokens;
  float* logits;
  int64_t stride;
  int64_t pieces;

  int64_t num_tokens() const { return tokens.end - tokens.begin; }
  const float* hidden() const {
    return args.hidden + tokens.begin * args.d_model;
  }
};

void ComputeLogits(const Block& block, int64_t piece, float* scratch) {
  const HeadCrossEntropyArgs& args = block.args;
  const CBlock logits{{0, block.num_tokens()},
                      Piece(args.vocab_size, block.pieces, piece, kTileColumns),
                      args.d_model,
                      block.logits,
                      block.stride,
                      false};
  MultiplyBlock<TileA::kRowMajor>(
      logits, scratch, PackRows(StridedRows(block.hidden(), args.d_model)),
      PackBTransposed(StridedRows(args.head_weight, args.d_model)),
      kNoEpilogue);
}

// Losses, and d_logits in place of the logits.
void FinishRows(const Block& block, int64_t piece) {
  const HeadCrossEntropyArgs& args = block.args;
  const Range rows = Piece(block.num_tokens(), block.pieces, piece);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t token = block.tokens.begin + r;
    float* logits = block.logits + r * block.stride;
    CrossEntropyRow(
        SimdLane(), args.vocab_size, args.targets[token], args.grad_scale,
        logits, args.d_hidden != nullptr ? logits : nullptr,
        &args.token_loss[token],
        args.is_greedy != nullptr ? &args.is_greedy[token] : nullptr);
  }
}

void ComputeGradients(const Block& block, int64_t piece, float* scratch) {
  const HeadCrossEntropyArgs& args = block.args;
  const auto d_logits = StridedRows(block.logits, block.stride);
  const CBlock d_hidden{Piece(block.num_tokens(), block.pieces, piece),
                        {0, args.d_model},
                        args.vocab_size,
                        args.d_hidden + block.tokens.begin * args.d_model,
                        args.d_model,
                        false};
  MultiplyBlock<TileA::kRowMajor>(
      d_hidden, scratch, PackRows(d_logits),
      PackB(StridedRows(args.head_weight, args.d_model)), kNoEpilogue);
  const CBlock d_weight{Piece(args.vocab_size, block.pieces, piece),
                        {0, args.d_model},
                        block.num_tokens(),
                        args.d_head_weight,
                        args.d_model,
                        block.tokens.begin > 0};
  MultiplyBlock<TileA::kInterleaved>(
      d_weight, scratch, PackColumns(d_logits),
      PackB(StridedRows(block.hidden(), args.d_model)), kNoEpilogue);
}

}  // namespace

void HeadCrossEntropy(const HeadCrossEntropyArgs& args, ThreadPool& pool) {
  if (args.num_tokens == 0) {
    if (args.loss_sum != nullptr) *args.loss_sum = 0;
    if (args.d_head_weight != nullptr) {
      for (int64_t i = 0; i < args.vocab_size * args.d_model; ++i) {
        args.d_head_weight[i] = 0;
      }
    }
    return;
  }
  const int64_t block_tokens = BlockTokens(args);
  // One cache line off a power of two.
  const int64_t stride = CeilDiv(args.vocab_size, 16) * 16 + 16;
  float* logits = ThreadScratch(ScratchSlot::kCall, block_tokens * stride);
  const int64_t pieces = UsefulThreads(
      block_tokens * args.vocab_size * args.d_model, pool.threads());
  const int64_t scratch_floats =
      BlockScratch(kBlockDepth, Larger(args.vocab_size, args.d_model));
  for (int64_t begin = 0; begin < args.num_tokens; begin += block_tokens) {
    const Block block{args,
                      {begin, Smaller(begin + block_tokens, args.num_tokens)},
                      logits,
                      stride,
                      pieces};
    pool.ParallelFor(pieces, [&](int64_t i) {
      ComputeLogits(block, i,
                    ThreadScratch(ScratchSlot::kTask, scratch_floats));
    });
    pool.ParallelFor(pieces, [&](int64_t i) { FinishRows(block, i); });
    if (args.d_hidden == nullptr) continue;
    pool.ParallelFor(pieces, [&](int64_t i) {
      ComputeGradients(block, i,
                       ThreadScratch(ScratchSlot::kTask, scratch_floats));
    });
  }
  if (args.loss_sum == nullptr) return;
  double sum = 0;
  for (int64_t t = 0; t < args.num_tokens; ++t) sum += args.token_loss[t];
  *args.loss_sum = sum;
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
