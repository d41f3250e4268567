// SPDX-License-Identifier: Apache-2.0
//
// pass_report.h - what a pass counts and adds up on the way, where its
// operations write it: read once, when the pass is done.
#ifndef SOFTMOE_OPTIMIZED_PASS_REPORT_H_
#define SOFTMOE_OPTIMIZED_PASS_REPORT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "optimized/buffer.h"
#include "optimized/step.h"

namespace softmoe::optimized {

// Where the operations of one layer write. E = num_experts.
struct LayerReport {
  int64_t* tokens_per_expert;    // [E]
  int64_t* balance_counts;       // [E] of the load balance
  int64_t* active_histogram;     // [E + 1]
  int64_t* tokens_below_cutoff;  // [1]
  int64_t* bad_score;  // [1] flat index of the first score that is not finite,
                       // or -1
  double* load_balance_loss;  // [1]
  double* z_loss;             // [1]
  double* d_mean_active;      // [1], of a backward pass
};

class PassReport {
 public:
  PassReport(int64_t num_layers, int64_t num_experts);

  LayerReport Layer(int64_t layer) const;
  double* loss_sum() const { return sums_.data() + num_layers_ * kLayerSums; }

  // The statistics of a pass over `num_tokens` tokens.
  StepStats Read(int64_t num_tokens) const;
  // That of each layer; after a backward pass.
  std::vector<double> ReadMeanActiveGradients() const;
  std::span<const int64_t> balance_counts(int64_t layer) const;

  int64_t bytes() const { return counts_.bytes() + sums_.bytes(); }

 private:
  static constexpr int64_t kLayerSums = 3;

  int64_t num_layers_, num_experts_;
  Buffer<int64_t> counts_;  // of each layer, in the order of LayerReport
  Buffer<double> sums_;     // the same, then the sum of the losses
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_PASS_REPORT_H_
