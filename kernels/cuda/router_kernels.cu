// SPDX-License-Identifier: Apache-2.0
//
// The router: one thread per token, one warp per 32 tokens, whose rows it loads
// into shared memory (padded by one, so that the 32 threads hit 32 banks) and
// stores from there, coalesced. A warp does both halves of a fixed block of 64
// tokens, so the block's sums are those of the CPU, in the same order; trees
// add up the blocks. Per token it reads num_experts floats and writes as many
// plus the compact gates; about 60 instructions an expert. At 61440 tokens that
// is 960 warps, seven for each multiprocessor of an H100: bound by latency, not
// by memory.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/cuda/tree_sum.h"
#include "kernels/router_backward_body.h"
#include "kernels/router_block.h"
#include "kernels/router_body.h"
#include "kernels/simt/shared_memory.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kRows = 32;  // threads of a block, tokens of half a block

// The halves of a block need no barrier between them: what the next half writes
// before its first barrier, nobody reads after the last barrier of this half.

// Calls copy(at, padded_at) for this thread's elements of `rows` rows of n:
// where each lies, and where it does if rows are padded. Neighbouring threads
// have neighbouring elements whatever n is, and no element costs a division.
template <typename Copy>
__device__ __forceinline__ void ForEachElement(int rows, int n,
                                               const Copy& copy) {
  const int me = threadIdx.x;
  const int next_rows = kRows / n, next_columns = kRows % n;
  int row = me / n, column = me % n;
  for (int i = me; i < rows * n; i += kRows) {
    copy(i, i + row);  // row * (n + 1) + column
    row += next_rows;
    column += next_columns;
    if (column >= n) {
      column -= n;
      ++row;
    }
  }
}

// Copies `rows` rows of n floats between global memory and padded rows.
__device__ void LoadShared(const float* global, int rows, int n,
                           float* padded) {
  ForEachElement(
      rows, n, [&](int at, int padded_at) { padded[padded_at] = global[at]; });
}
__device__ void StoreShared(const float* padded, int rows, int n,
                            float* global) {
  ForEachElement(
      rows, n, [&](int at, int padded_at) { global[at] = padded[padded_at]; });
}

// Calls member(expert) for each bit of `set`.
template <typename Member>
__device__ void ForEachMember(const int32_t* set, int num_experts,
                              const Member& member) {
  for (int word = 0; word * 32 < num_experts; ++word) {
    for (uint32_t bits = set[word]; bits != 0; bits &= bits - 1) {
      member(word * 32 + __ffs(static_cast<int>(bits)) - 1);
    }
  }
}

template <int kTop>
__global__ void __launch_bounds__(kRows)
    RouterForwardKernel(RouterForwardArgs args, RouterConstants<float> c) {
  SOFTMOE_DYNAMIC_SHARED(float, shared);
  SOFTMOE_SHARED(int32_t, active, [kRows][kMaxWords]);
  SOFTMOE_SHARED(int32_t, balance, [kRows][kMaxWords]);
  SOFTMOE_SHARED(float, log_sum_exp, [kRows]);
  SOFTMOE_SHARED(int64_t, bad_score, [kRows]);
  const int n = c.num_experts;
  const bool sparse = args.shape.mode == RouterMode::kSparse;
  const bool mixed = !sparse && UsesScoresSoftmax(args.shape);
  float* scores = shared;
  float* weights = scores + kRows * (n + 1);
  float* softmax = mixed ? weights + kRows * (n + 1) : nullptr;
  const int me = threadIdx.x;
  // Padded like the rows.
  float* selection =
      kTop > 0 ? nullptr : shared + 3 * kRows * (n + 1) + me * (2 * c.top + 1);
  const RouterBlockSums sums = RouterBlockSums::At(args.scratch, blockIdx.x, n);
  for (int e = me; e < n; e += kRows) {
    sums.probability[e] = sums.balance_counts[e] = sums.active_counts[e] = 0;
  }
  double z = 0;
  int64_t first_bad = -1;
  for (int half = 0; half < kRouterTokenBlock; half += kRows) {
    const int64_t first = int64_t{blockIdx.x} * kRouterTokenBlock + half;
    const int64_t left = args.shape.num_tokens - first;
    if (left <= 0) break;
    const int rows = left < kRows ? static_cast<int>(left) : kRows;
    LoadShared(args.scores + first * n, rows, n, scores);
    __syncthreads();
    if (me < rows) {
      float* mine = scores + me * (n + 1);
      bad_score[me] = -1;
      for (int e = n - 1; e >= 0; --e) {
        if (Abs(mine[e]) < __int_as_float(0x7f800000)) continue;
        bad_score[me] = (first + me) * n + e;
        mine[e] = 0;
      }
      RouterRow<CudaThread> row = {};
      row.scores = mine;
      row.weights = weights + me * (n + 1);
      row.softmax = mixed ? softmax + me * (n + 1) : nullptr;
      row.top = selection;
      row.active = active[me];
      row.balance = balance[me];
      if (sparse) {
        SparseRouterForwardRow<kTop>(c, row);
      } else {
        SoftRouterForwardRow<kTop>(c, row);
        args.root[2 * (first + me)] = row.anchor;
        args.root[2 * (first + me) + 1] = row.offset;
      }
      log_sum_exp[me] = row.log_sum_exp;

      const int64_t at = (first + me) * args.shape.max_active;
      int32_t count = 0;
      ForEachMember(active[me], n, [&](int e) {
        args.selected[at + count] = e;
        args.gates[at + count] = row.weights[e];
        ++count;
      });
      args.num_active[first + me] = count;
      for (; count < args.shape.max_active; ++count) {
        args.selected[at + count] = -1;
        args.gates[at + count] = 0;
      }
    }
    __syncthreads();
    StoreShared(weights, rows, n, args.soft_weights + first * n);
    const float* basis = mixed ? softmax : weights;
    for (int e = me; e < n; e += kRows) {  // a thread per expert, rows in order
      double sum = sums.probability[e];
      int active_count = 0, balance_count = 0;
      for (int i = 0; i < rows; ++i) {
        sum += basis[i * (n + 1) + e];
        active_count += active[i][e / 32] >> (e % 32) & 1;
        balance_count += balance[i][e / 32] >> (e % 32) & 1;
      }
      sums.probability[e] = sum;
      sums.active_counts[e] += active_count;
      sums.balance_counts[e] +=
          c.balance_top > 0 ? balance_count : active_count;
    }
    if (me == 0) {
      for (int i = 0; i < rows; ++i) {
        if (args.z_sum != nullptr) {
          z += static_cast<double>(log_sum_exp[i]) * log_sum_exp[i];
        }
        if (first_bad < 0) first_bad = bad_score[i];
      }
    }
  }
  if (me == 0) {
    *sums.z = z;
    *sums.bad_score = static_cast<double>(first_bad);
  }
}

// A CUDA block adds 32 columns of the token blocks' sums (RouterBlockSums: sums
// by expert, then z), one tree per column; of the last column, bad scores, it
// keeps the first.
constexpr int kColumns = 32;
constexpr int kStrips = 8;

__global__ void __launch_bounds__(kStrips* kColumns)
    RouterTotalsKernel(RouterForwardArgs args, int64_t blocks) {
  const int64_t n = args.shape.num_experts;
  const int strip = threadIdx.x / kColumns, mine = threadIdx.x % kColumns;
  const int64_t column = int64_t{blockIdx.x} * kColumns + mine;
  const int64_t z = 3 * n, bad_score = z + 1, columns = z + 2;
  const double total = CombineInTree<kStrips, kColumns>(
      strip, mine, column < columns ? blocks : 0,
      column == bad_score ? -1.0 : 0.0,
      [&](int64_t block) { return args.scratch[block * columns + column]; },
      [&](double a, double b) {
        if (column != bad_score) return a + b;
        return a < 0 || (0 <= b && b < a) ? b : a;
      });
  if (strip > 0) return;
  const int64_t e = column % n;
  if (column < n) {
    args.probability_sums[e] =
        UsesScoresSoftmax(args.shape)
            ? total
            : total / static_cast<double>(args.shape.mean_active);
  } else if (column < 2 * n) {
    args.balance_counts[e] = static_cast<int64_t>(total);
  } else if (column < z) {
    args.active_counts[e] = static_cast<int64_t>(total);
  } else if (column == z) {
    if (args.z_sum != nullptr) *args.z_sum = total;
  } else if (column == bad_score) {
    *args.bad_score = static_cast<int64_t>(total);
  }
}

__global__ void __launch_bounds__(kRows)
    RouterBackwardKernel(RouterBackwardArgs args,
                         RouterGradientConstants<float> c) {
  SOFTMOE_DYNAMIC_SHARED(float, shared);
  SOFTMOE_SHARED(float, d_mean_active, [kRows]);
  SOFTMOE_SHARED(float, d_basis, [kMaxExperts]);
  const int n = c.num_experts;
  const bool sparse = args.shape.mode == RouterMode::kSparse;
  float* scores = shared;
  float* d_gates = scores + kRows * (n + 1);
  float* d_scores = d_gates + kRows * (n + 1);
  const int me = threadIdx.x;
  if (c.d_soft_weight != nullptr) {  // the basis is p / mean_active
    for (int e = me; e < n; e += kRows) {
      d_basis[e] = args.d_probability[e] / args.shape.mean_active;
    }
    c.d_soft_weight = d_basis;
  }
  double sum = 0;
  for (int half = 0; half < kRouterTokenBlock; half += kRows) {
    const int64_t first = int64_t{blockIdx.x} * kRouterTokenBlock + half;
    const int64_t left = args.shape.num_tokens - first;
    if (left <= 0) break;
    const int rows = left < kRows ? static_cast<int>(left) : kRows;
    LoadShared(args.scores + first * n, rows, n, scores);
    for (int i = me; i < rows * (n + 1); i += kRows) d_gates[i] = 0;
    __syncthreads();
    if (me < rows) {
      const int64_t row = first + me;
      float* v = d_gates + me * (n + 1);
      const int64_t at = row * args.shape.max_active;
      for (int a = 0; a < args.shape.max_active; ++a) {
        if (args.selected[at + a] < 0) break;
        v[args.selected[at + a]] = args.d_gates[at + a];
      }
      const float* r = scores + me * (n + 1);
      float* d_r = d_scores + me * (n + 1);
      if (sparse) {
        SparseBackwardRow(c, r, args.soft_weights + row * n, v, d_r);
        d_mean_active[me] = 0;
      } else {
        d_mean_active[me] = LapSumBackwardRow(c, r, args.root[2 * row],
                                              args.root[2 * row + 1], v, d_r);
        if (c.d_softmax != nullptr || c.z_scale != 0) {
          AddSoftmaxLossGradients(c, r, v, d_r);  // v is free: reuse it
        }
      }
    }
    __syncthreads();
    StoreShared(d_scores, rows, n, args.d_scores + first * n);
    if (me == 0) {
      for (int i = 0; i < rows; ++i) sum += d_mean_active[i];
    }
  }
  if (me == 0) *RouterBlockSums::At(args.scratch, blockIdx.x, n).z = sum;
}

constexpr int kTotalThreads = 256;

__global__ void __launch_bounds__(kTotalThreads)
    RouterBackwardTotalKernel(RouterBackwardArgs args, int64_t blocks) {
  const double sum = SumInTree<kTotalThreads, 1, double>(
      threadIdx.x, 0, blocks, [&](int64_t block) {
        return *RouterBlockSums::At(args.scratch, block, args.shape.num_experts)
                    .z;
      });
  if (threadIdx.x == 0) *args.d_mean_active = sum;
}

using ForwardKernel = void (*)(RouterForwardArgs, RouterConstants<float>);

// Enough for k <= 2.
constexpr int kMaxTopInRegisters = 4;

ForwardKernel ChooseForward(int top) {
  switch (top) {
    case 1:
      return RouterForwardKernel<1>;
    case 2:
      return RouterForwardKernel<2>;
    case 3:
      return RouterForwardKernel<3>;
    case 4:
      return RouterForwardKernel<4>;
    default:
      return RouterForwardKernel<0>;
  }
}

int64_t NumBlocks(const RouterShape& shape) {
  return Blocks(shape.num_tokens, kRouterTokenBlock);
}

// Three padded halves of a block: 98 KiB at 256 experts.
size_t SharedBytes(const RouterShape& shape) {
  return 3 * kRows * (shape.num_experts + 1) * sizeof(float);
}

// The selections of all threads where they are not in registers. Together with
// SharedBytes at most 163 KiB less 128 bytes, static variables included: sm_80
// has 163 KiB. Without them 99 KiB less 256 bytes: sm_86, which runs code of
// sm_80, has 99 KiB.
size_t SelectionBytes(int top) {
  return top <= kMaxTopInRegisters ? 0 : kRows * (2 * top + 1) * sizeof(float);
}

}  // namespace

void RouterForward(const RouterForwardArgs& args, cudaStream_t stream) {
  const RouterConstants<float> c =
      MakeRouterConstants<float>(args.shape, args.z_sum != nullptr);
  Launch("RouterForward", ChooseForward(c.top), NumBlocks(args.shape), kRows,
         SharedBytes(args.shape) + SelectionBytes(c.top), stream, args, c);
  Launch("RouterForward", RouterTotalsKernel,
         Blocks(3 * args.shape.num_experts + 2, kColumns), kStrips * kColumns,
         0, stream, args, NumBlocks(args.shape));
}

void RouterBackward(const RouterBackwardArgs& args, cudaStream_t stream) {
  RouterGradientConstants<float> c = {};
  c.num_experts = static_cast<int>(args.shape.num_experts);
  c.z_scale = args.z_scale;
  if (args.shape.mode == RouterMode::kSoft) {
    c.inverse_temperature = 1.0f / args.shape.temperature;
  }
  (UsesScoresSoftmax(args.shape) ? c.d_softmax : c.d_soft_weight) =
      args.d_probability;
  Launch("RouterBackward", RouterBackwardKernel, NumBlocks(args.shape), kRows,
         SharedBytes(args.shape), stream, args, c);
  Launch("RouterBackward", RouterBackwardTotalKernel, 1, kTotalThreads, 0,
         stream, args, NumBlocks(args.shape));
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
