// SPDX-License-Identifier: Apache-2.0
//
// Grouped products without padding: the routed rows are dealt evenly to the
// threads, whichever expert they belong to. A thread computes its rows of one
// expert from the gathered hidden states to the expert's output before it goes
// to the next expert, so that what it has just written is still in its cache
// and no barrier is needed in between. Weight gradients are dealt by their
// cost, as rows of the weight matrices. Neither cut changes a bit.
#include "kernels/expert_mlp.h"

#include "kernels/gemm_block.h"
#include "kernels/permute_body.h"
#include "kernels/swiglu.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

// Floats that any product of an expert needs.
int64_t ProductScratch(int64_t d_model, int64_t d_ffn) {
  return BlockScratch(kBlockDepth, Larger(2 * d_ffn, d_model));
}

// Calls body(expert, rows) for every expert with rows in `rows`.
template <class Body>
void ForEachExpert(const RoutePlan& plan, Range rows, Body body) {
  for (int64_t e = 0; e < plan.num_experts; ++e) {
    const Range own{Larger(rows.begin, plan.expert_offsets[e]),
                    Smaller(rows.end, plan.expert_offsets[e + 1])};
    if (own.begin < own.end) body(e, own);
  }
}

// sum[t] (+)= the rows of token t, in order of ascending expert.
void CombineRows(const RoutePlan& plan, int64_t d_model, const float* rows,
                 Range tokens, bool accumulate, float* sum) {
  for (int64_t t = tokens.begin; t < tokens.end; ++t) {
    UnpermuteToken(SimdLane(), d_model, plan.max_active, rows,
                   plan.token_rows + t * plan.max_active, accumulate,
                   sum + t * d_model);
  }
}

// pack_a of the down projection: rows of row_gate * SiLU(gate) * up.
auto PackActivation(const ExpertForwardArgs& args) {
  return [&args](int64_t first, int64_t rows, int64_t k, int64_t depth,
                 float* dst) {
    for (int64_t r = first; r < first + rows; ++r) {
      const float* gate = args.gate_up + r * 2 * args.d_ffn + k;
      const float* up = gate + args.d_ffn;
      const Floats row_gate(args.plan.row_gate[r]);
      for (int64_t j = 0; j < depth; j += Floats::kWidth) {
        const int64_t left = depth - j;
        StoreUpTo(dst + j, left,
                  SwigluForward(LoadUpTo(gate + j, left),
                                LoadUpTo(up + j, left), row_gate));
      }
      dst += TileRowStride(depth);
    }
  };
}

// Finishes the backward pass through the activation once columns
// [column, column + columns) of d_hidden are in the first half of d_gate_up.
void FinishActivation(const ExpertBackwardArgs& args, int64_t first,
                      int64_t rows, int64_t column, int64_t columns) {
  constexpr int kParts = 16 / Floats::kWidth;
  for (int64_t r = first; r < first + rows; ++r) {
    const float* gate = args.gate_up + r * 2 * args.d_ffn + column;
    const float* up = gate + args.d_ffn;
    float* d_gate = args.d_gate_up + r * 2 * args.d_ffn + column;
    float* d_up = d_gate + args.d_ffn;
    float* activation = args.activation + r * args.d_ffn + column;
    const Floats row_gate(args.plan.row_gate[r]);
    // Lane i sums the columns j with j % 16 == i, at every ISA level.
    Floats dot[kParts];
    for (Floats& part : dot) part = Floats(0.0f);
    for (int64_t j = 0; j < columns; j += 16) {
      for (int p = 0; p < kParts; ++p) {
        const int64_t i = j + p * Floats::kWidth, left = columns - i;
        if (left <= 0) break;
        const Floats d_hidden = LoadUpTo(d_gate + i, left);
        const auto g =
            SwigluBackward(LoadUpTo(gate + i, left), LoadUpTo(up + i, left),
                           row_gate, d_hidden);
        dot[p] = Fma(g.unscaled, d_hidden, dot[p]);
        StoreUpTo(d_gate + i, left, g.d_gate);
        StoreUpTo(d_up + i, left, g.d_up);
        StoreUpTo(activation + i, left, g.activation);
      }
    }
    const float sum = ReduceSum16(dot);
    args.d_row_gate[r] = column == 0 ? sum : args.d_row_gate[r] + sum;
  }
}

// d_gate_up, activation, d_row_gate and d_row_hidden of rows of one expert.
void BackwardRows(const ExpertBackwardArgs& args, int64_t expert, Range rows,
                  float* scratch) {
  const int64_t d_model = args.d_model, d_ffn = args.d_ffn;
  const float* down = args.down_weight + expert * d_ffn * d_model;
  const float* gate_up = args.gate_up_weight + expert * d_model * 2 * d_ffn;
  const CBlock d_hidden{rows,           {0, d_ffn}, d_model,
                        args.d_gate_up, 2 * d_ffn,  false};
  MultiplyBlock<TileA::kRowMajor>(
      d_hidden, scratch,
      PackRows(GatheredRows(args.d_out, d_model, args.plan.row_token)),
      PackBTransposed(StridedRows(down, d_model)),
      [&](int64_t row, int64_t count, int64_t column, int64_t columns) {
        FinishActivation(args, row, count, column, columns);
      });
  const CBlock d_row_hidden{rows,    {0, d_model}, 2 * d_ffn, args.d_row_hidden,
                            d_model, false};
  MultiplyBlock<TileA::kRowMajor>(
      d_row_hidden, scratch, PackRows(StridedRows(args.d_gate_up, 2 * d_ffn)),
      PackBTransposed(StridedRows(gate_up, 2 * d_ffn)), kNoEpilogue);
}

// The rows of one matrix that fall into `share`. The matrix has `num_rows` rows
// of cost `cost` each, and begins at `start` on the same scale.
Range RowsInShare(Range share, int64_t start, int64_t num_rows, int64_t cost) {
  const auto row = [&](int64_t at) {
    return at <= start ? 0 : Smaller((at - start) / cost, num_rows);
  };
  return {row(share.begin), row(share.end)};
}

// Weight gradients: piece `i` of `pieces` of all experts' two matrices.
void BackwardWeights(const ExpertBackwardArgs& args, int64_t pieces, int64_t i,
                     float* scratch) {
  const int64_t d_model = args.d_model, d_ffn = args.d_ffn;
  const RoutePlan& plan = args.plan;
  // Writing an element of the gradient costs as much as this many rows.
  constexpr int64_t kWriting = 8;
  const int64_t total =
      (plan.num_routed + plan.num_experts * kWriting) * 3 * d_model * d_ffn;
  const Range share = Piece(total, pieces, i);
  int64_t start = 0;
  for (int64_t e = 0; e < plan.num_experts; ++e) {
    const int64_t first = plan.expert_offsets[e];
    const int64_t rows = plan.expert_offsets[e + 1] - first;
    const auto hidden =
        GatheredRows(args.hidden, d_model, plan.row_token + first);
    const auto d_out =
        GatheredRows(args.d_out, d_model, plan.row_token + first);
    const auto d_gate_up =
        StridedRows(args.d_gate_up + first * 2 * d_ffn, 2 * d_ffn);
    const auto activation = StridedRows(args.activation + first * d_ffn, d_ffn);

    const int64_t gate_up_cost = (rows + kWriting) * 2 * d_ffn;
    const CBlock gate_up{RowsInShare(share, start, d_model, gate_up_cost),
                         {0, 2 * d_ffn},
                         rows,
                         args.d_gate_up_weight + e * d_model * 2 * d_ffn,
                         2 * d_ffn,
                         false};
    MultiplyBlock<TileA::kInterleaved>(gate_up, scratch, PackColumns(hidden),
                                       PackB(d_gate_up), kNoEpilogue);
    start += d_model * gate_up_cost;

    const int64_t down_cost = (rows + kWriting) * d_model;
    const CBlock down{
        RowsInShare(share, start, d_ffn, down_cost), {0, d_model}, rows,
        args.d_down_weight + e * d_ffn * d_model,    d_model,      false};
    MultiplyBlock<TileA::kInterleaved>(down, scratch, PackColumns(activation),
                                       PackB(d_out), kNoEpilogue);
    start += d_ffn * down_cost;
  }
}

}  // namespace

void ExpertForward(const ExpertForwardArgs& args, ThreadPool& pool) {
  const int64_t d_model = args.d_model, d_ffn = args.d_ffn;
  const RoutePlan& plan = args.plan;
  const int64_t pieces =
      UsefulThreads(plan.num_routed * 3 * d_model * d_ffn, pool.threads());
  const int64_t scratch_floats = ProductScratch(d_model, d_ffn);
  pool.ParallelFor(pieces, [&](int64_t i) {
    float* scratch = ThreadScratch(ScratchSlot::kTask, scratch_floats);
    ForEachExpert(
        plan, Piece(plan.num_routed, pieces, i), [&](int64_t e, Range rows) {
          const CBlock gate_up{rows,         {0, 2 * d_ffn}, d_model,
                               args.gate_up, 2 * d_ffn,      false};
          MultiplyBlock<TileA::kRowMajor>(
              gate_up, scratch,
              PackRows(GatheredRows(args.hidden, d_model, plan.row_token)),
              PackB(StridedRows(args.gate_up_weight + e * d_model * 2 * d_ffn,
                                2 * d_ffn)),
              kNoEpilogue);
          if (args.out == nullptr) return;
          const CBlock out{rows,    {0, d_model}, d_ffn, args.row_output,
                           d_model, false};
          MultiplyBlock<TileA::kRowMajor>(
              out, scratch, PackActivation(args),
              PackB(
                  StridedRows(args.down_weight + e * d_ffn * d_model, d_model)),
              kNoEpilogue);
        });
  });
  if (args.out == nullptr) return;
  pool.ParallelFor(pieces, [&](int64_t i) {
    CombineRows(plan, d_model, args.row_output,
                Piece(plan.num_tokens, pieces, i), true, args.out);
  });
}

void ExpertBackward(const ExpertBackwardArgs& args, ThreadPool& pool) {
  const int64_t d_model = args.d_model, d_ffn = args.d_ffn;
  const RoutePlan& plan = args.plan;
  const int64_t pieces =
      UsefulThreads((plan.num_routed + plan.num_experts) * 6 * d_model * d_ffn,
                    pool.threads());
  const int64_t scratch_floats = ProductScratch(d_model, d_ffn);
  pool.ParallelFor(pieces, [&](int64_t i) {
    float* scratch = ThreadScratch(ScratchSlot::kTask, scratch_floats);
    ForEachExpert(
        plan, Piece(plan.num_routed, pieces, i),
        [&](int64_t e, Range rows) { BackwardRows(args, e, rows, scratch); });
  });
  pool.ParallelFor(pieces, [&](int64_t i) {
    float* scratch = ThreadScratch(ScratchSlot::kTask, scratch_floats);
    BackwardWeights(args, pieces, i, scratch);
    CombineRows(plan, d_model, args.d_row_hidden,
                Piece(plan.num_tokens, pieces, i), false, args.d_hidden);
  });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
