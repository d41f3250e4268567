// SPDX-License-Identifier: Apache-2.0
//
// The forward pass: blocks of tokens are shared out over threads; within a
// block, Floats::kWidth rows at a time go through the body, transposed.
#include "kernels/router.h"

#include "kernels/router_block.h"
#include "kernels/router_body.h"
#include "kernels/simt/transpose.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kRows = SimdRows::kRows;
constexpr float kInfinity = __builtin_inff();

using RowBody = void (*)(const RouterConstants<float>&, RouterRow<SimdRows>&);

template <int kTop>
RowBody BodyFor(RouterMode mode) {
  if (mode == RouterMode::kSparse) {
    return [](const RouterConstants<float>& c, RouterRow<SimdRows>& row) {
      SparseRouterForwardRow<kTop>(c, row);
    };
  }
  return [](const RouterConstants<float>& c, RouterRow<SimdRows>& row) {
    SoftRouterForwardRow<kTop>(c, row);
  };
}

// The body with the selection in registers where it is small enough.
RowBody ChooseBody(RouterMode mode, int top) {
  switch (top) {
    case 1:
      return BodyFor<1>(mode);
    case 2:
      return BodyFor<2>(mode);
    case 3:
      return BodyFor<3>(mode);
    case 4:
      return BodyFor<4>(mode);
    case 5:
      return BodyFor<5>(mode);
    case 6:
      return BodyFor<6>(mode);
    case 8:
      return BodyFor<8>(mode);
    default:
      return BodyFor<0>(mode);
  }
}

// One block of tokens: its rows' results, and its share of every sum.
class BlockRouter {
 public:
  BlockRouter(const RouterForwardArgs& args, const RouterConstants<float>& c,
              RowBody body)
      : args_(args), c_(c), body_(body) {
    row_.scores = scores_;
    row_.weights = weights_;
    // Only the mixed reading has soft weights and softmax(scores) at once.
    const bool mixed = args.shape.mode == RouterMode::kSoft &&
                       args.shape.balance == BalanceBasis::kScoresSoftmax;
    row_.softmax = mixed ? softmax_ : nullptr;
    row_.top = top_;
    row_.active = active_;
    row_.balance = balance_;
  }

  void Run(int64_t begin, int64_t end) {
    for (int e = 0; e < c_.num_experts; ++e) {
      probability_[e] = 0;
      active_counts_[e] = balance_counts_[e] = 0;
    }
    for (int64_t first = begin; first < end; first += kRows) {
      RunRows(first,
              end - first < kRows ? static_cast<int>(end - first) : kRows);
    }
    const RouterBlockSums sums = RouterBlockSums::At(
        args_.scratch, begin / kRouterTokenBlock, c_.num_experts);
    for (int e = 0; e < c_.num_experts; ++e) {
      sums.probability[e] = probability_[e];
      sums.active_counts[e] = active_counts_[e];
      sums.balance_counts[e] =
          c_.balance_top > 0 ? balance_counts_[e] : active_counts_[e];
    }
    *sums.z = z_;
    *sums.bad_score = static_cast<double>(bad_score_);
  }

 private:
  void RunRows(int64_t first, int num_rows) {
    const int64_t n = c_.num_experts;
    const float* scores = args_.scores + first * n;
    if (!LoadRows(scores, n, num_rows, n, scores_)) {
      NoteBadScore(first, num_rows);
      for (int64_t e = 0; e < n; ++e) scores_[e] = Floats(0.0f);
    }
    body_(c_, row_);
    float* weights = args_.soft_weights + first * n;
    StoreRows(weights_, n, num_rows, weights, n);

    if (args_.shape.mode == RouterMode::kSoft) {
      float anchor[kRows], offset[kRows];
      row_.anchor.Store(anchor);
      row_.offset.Store(offset);
      for (int i = 0; i < num_rows; ++i) {
        args_.root[2 * (first + i)] = anchor[i];
        args_.root[2 * (first + i) + 1] = offset[i];
      }
    }
    if (args_.z_sum != nullptr) {
      float log_sum_exp[kRows];
      row_.log_sum_exp.Store(log_sum_exp);
      for (int i = 0; i < num_rows; ++i) {
        z_ += static_cast<double>(log_sum_exp[i]) * log_sum_exp[i];
      }
    }
    const float* basis = weights;
    float softmax[kRows * kMaxExperts];
    if (row_.softmax != nullptr) {
      StoreRows(softmax_, n, num_rows, softmax, n);
      basis = softmax;
    }
    AddRows(basis, num_rows);
    WriteActive(first, num_rows, weights);
    if (c_.balance_top > 0) CountBalance(num_rows);
  }

  // Adds the basis of each expert, row by row, in double.
  void AddRows(const float* basis, int num_rows) {
    constexpr int kChunk = 8;  // experts whose sums stay in registers
    const int n = c_.num_experts;
    int e = 0;
    for (; e + kChunk <= n; e += kChunk) {
      double sums[kChunk];
      for (int j = 0; j < kChunk; ++j) sums[j] = probability_[e + j];
      for (int i = 0; i < num_rows; ++i) {
        for (int j = 0; j < kChunk; ++j) {
          sums[j] += basis[i * n + e + j];
        }
      }
      for (int j = 0; j < kChunk; ++j) probability_[e + j] = sums[j];
    }
    for (; e < n; ++e) {
      // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): StoreRows did
      for (int i = 0; i < num_rows; ++i) probability_[e] += basis[i * n + e];
    }
  }

  // Calls member(expert) for each bit of `row`'s part of `set`.
  template <typename Member>
  void ForEachMember(const Ints* set, int row, const Member& member) {
    for (int word = 0; word * 32 < c_.num_experts; ++word) {
      uint32_t bits = reinterpret_cast<const uint32_t*>(set + word)[row];
      for (; bits != 0; bits &= bits - 1) {
        member(word * 32 + __builtin_ctz(bits));
      }
    }
  }

  void WriteActive(int64_t first, int num_rows, const float* weights) {
    const int64_t width = args_.shape.max_active;
    for (int i = 0; i < num_rows; ++i) {
      int32_t* selected = args_.selected + (first + i) * width;
      float* gates = args_.gates + (first + i) * width;
      int32_t count = 0;
      ForEachMember(active_, i, [&](int e) {
        selected[count] = e;
        gates[count] = weights[i * c_.num_experts + e];
        ++count;
        ++active_counts_[e];
      });
      args_.num_active[first + i] = count;
      for (; count < width; ++count) {
        selected[count] = -1;
        gates[count] = 0;
      }
    }
  }

  void CountBalance(int num_rows) {
    for (int i = 0; i < num_rows; ++i) {
      ForEachMember(balance_, i, [&](int e) { ++balance_counts_[e]; });
    }
  }

  void NoteBadScore(int64_t first, int num_rows) {
    const int64_t begin = first * c_.num_experts;
    const int64_t end = begin + num_rows * int64_t{c_.num_experts};
    for (int64_t i = begin; i < end && bad_score_ < 0; ++i) {
      if (!(Abs(args_.scores[i]) < kInfinity)) bad_score_ = i;
    }
  }

  const RouterForwardArgs& args_;
  const RouterConstants<float>& c_;
  RowBody body_;
  RouterRow<SimdRows> row_;
  Floats scores_[kMaxExperts], weights_[kMaxExperts], softmax_[kMaxExperts];
  Floats top_[2 * kMaxExperts];
  Ints active_[kMaxWords], balance_[kMaxWords];
  double probability_[kMaxExperts] = {};
  int32_t active_counts_[kMaxExperts], balance_counts_[kMaxExperts];
  double z_ = 0;
  int64_t bad_score_ = -1;
};

}  // namespace

void RouterForward(const RouterForwardArgs& args, ThreadPool& pool) {
  const RouterShape& shape = args.shape;
  const RouterConstants<float> c =
      MakeRouterConstants<float>(shape, args.z_sum != nullptr);
  const RowBody body = ChooseBody(shape.mode, c.top);
  pool.ParallelForBlocks(shape.num_tokens, kRouterTokenBlock,
                         [&](int64_t begin, int64_t end) {
                           BlockRouter(args, c, body).Run(begin, end);
                         });

  const int64_t n = shape.num_experts;
  const int64_t blocks =
      (shape.num_tokens + kRouterTokenBlock - 1) / kRouterTokenBlock;
  for (int64_t e = 0; e < n; ++e) {
    args.probability_sums[e] = 0;
    args.balance_counts[e] = args.active_counts[e] = 0;
  }
  double z = 0;
  *args.bad_score = -1;
  for (int64_t b = 0; b < blocks; ++b) {
    const RouterBlockSums sums = RouterBlockSums::At(args.scratch, b, n);
    for (int64_t e = 0; e < n; ++e) {
      args.probability_sums[e] += sums.probability[e];
      args.balance_counts[e] += static_cast<int64_t>(sums.balance_counts[e]);
      args.active_counts[e] += static_cast<int64_t>(sums.active_counts[e]);
    }
    z += *sums.z;
    if (*args.bad_score < 0) {
      *args.bad_score = static_cast<int64_t>(*sums.bad_score);
    }
  }
  if (args.z_sum != nullptr) *args.z_sum = z;
  if (!UsesScoresSoftmax(shape)) {  // the basis is p / mean_active
    for (int64_t e = 0; e < n; ++e) {
      args.probability_sums[e] /= static_cast<double>(shape.mean_active);
    }
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
