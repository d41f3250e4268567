// SPDX-License-Identifier: Apache-2.0
//
// The backward pass of the router; see router.cc for how rows are shared out.
#include "kernels/router_backward_body.h"
#include "kernels/router_block.h"
#include "kernels/simt/transpose.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kRows = SimdRows::kRows;

class BlockRouterGradient {
 public:
  BlockRouterGradient(const RouterBackwardArgs& args,
                      const RouterGradientConstants<float>& c)
      : args_(args), c_(c) {}

  void Run(int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += kRows) {
      RunRows(first,
              end - first < kRows ? static_cast<int>(end - first) : kRows);
    }
    *RouterBlockSums::At(args_.scratch, begin / kRouterTokenBlock,
                         c_.num_experts)
         .z = d_mean_active_;
  }

 private:
  void RunRows(int64_t first, int num_rows) {
    const int64_t n = c_.num_experts;
    LoadRows(args_.scores + first * n, n, num_rows, n, scores_);
    LoadGateGradients(first, num_rows);
    if (args_.shape.mode == RouterMode::kSparse) {
      LoadRows(args_.soft_weights + first * n, n, num_rows, n, softmax_);
      SparseBackwardRow(c_, scores_, softmax_, d_gates_, d_scores_);
    } else {
      float anchor[kRows], offset[kRows], d_mean_active[kRows];
      for (int i = 0; i < kRows; ++i) {
        const int64_t row = first + (i < num_rows ? i : num_rows - 1);
        anchor[i] = args_.root[2 * row];
        offset[i] = args_.root[2 * row + 1];
      }
      LapSumBackwardRow(c_, scores_, Floats::Load(anchor), Floats::Load(offset),
                        d_gates_, d_scores_)
          .Store(d_mean_active);
      for (int i = 0; i < num_rows; ++i) d_mean_active_ += d_mean_active[i];
      if (c_.d_softmax != nullptr || c_.z_scale != 0) {
        AddSoftmaxLossGradients(c_, scores_, softmax_, d_scores_);
      }
    }
    StoreRows(d_scores_, n, num_rows, args_.d_scores + first * n, n);
  }

  // d_gates_[e], lane i = gradient of the gate of expert e at row i, or 0.
  void LoadGateGradients(int64_t first, int num_rows) {
    for (int e = 0; e < c_.num_experts; ++e) {
      d_gates_[e] = Floats(0.0f);
    }
    float* lanes = reinterpret_cast<float*>(d_gates_);
    const int64_t width = args_.shape.max_active;
    for (int i = 0; i < num_rows; ++i) {
      const int64_t at = (first + i) * width;
      for (int64_t a = 0; a < width && args_.selected[at + a] >= 0; ++a) {
        lanes[args_.selected[at + a] * kRows + i] = args_.d_gates[at + a];
      }
    }
  }

  const RouterBackwardArgs& args_;
  const RouterGradientConstants<float>& c_;
  Floats scores_[kMaxExperts], softmax_[kMaxExperts];
  Floats d_gates_[kMaxExperts], d_scores_[kMaxExperts];
  double d_mean_active_ = 0;
};

}  // namespace

void RouterBackward(const RouterBackwardArgs& args, ThreadPool& pool) {
  const RouterShape& shape = args.shape;
  RouterGradientConstants<float> c = {};
  c.num_experts = static_cast<int>(shape.num_experts);
  c.z_scale = args.z_scale;
  if (shape.mode == RouterMode::kSoft) {
    c.inverse_temperature = 1.0f / shape.temperature;
  }
  float d_soft_weight[kMaxExperts];
  if (args.d_probability != nullptr) {
    if (UsesScoresSoftmax(shape)) {
      c.d_softmax = args.d_probability;
    } else {  // the basis is p / mean_active
      for (int e = 0; e < c.num_experts; ++e) {
        d_soft_weight[e] = args.d_probability[e] / shape.mean_active;
      }
      c.d_soft_weight = d_soft_weight;
    }
  }
  pool.ParallelForBlocks(shape.num_tokens, kRouterTokenBlock,
                         [&](int64_t begin, int64_t end) {
                           BlockRouterGradient(args, c).Run(begin, end);
                         });
  const int64_t blocks =
      (shape.num_tokens + kRouterTokenBlock - 1) / kRouterTokenBlock;
  double sum = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    sum += *RouterBlockSums::At(args.scratch, b, shape.num_experts).z;
  }
  *args.d_mean_active = sum;
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
