// SPDX-License-Identifier: Apache-2.0
//
// pass_report.h - what a pass counts and adds up on the way, where its
// operations write it: read once, when the pass is done.
#ifndef SOFTMOE_OPTIMIZED_PASS_REPORT_H_
#define SOFTMOE_OPTIMIZED_PASS_REPORT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "optimized/backend.h"
#include "optimized/buffer.h"
#include "optimized/step.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

// What the operations of one layer write. E = num_experts.
template <typename Count, typename Sum>
struct LayerReportOf {
  Count* tokens_per_expert;    // [E]
  Count* balance_counts;       // [E] of the load balance
  Count* active_histogram;     // [E + 1]
  Count* tokens_below_cutoff;  // [1]
  Count* bad_score;            // [1] flat index of the first score that is not
                               // finite, or -1
  Sum* load_balance_loss;      // [1]
  Sum* z_loss;                 // [1]
  Sum* d_mean_active;          // [1], of a backward pass
};
using LayerReport = LayerReportOf<int64_t, double>;
using HostLayerReport = LayerReportOf<const int64_t, const double>;

class PassReport {
 public:
  PassReport(int64_t num_layers, int64_t num_experts);

  // Where operations write.
  LayerReport Layer(int64_t layer) const;
  double* loss_sum() const { return sums_.data() + sums_.size() - 1; }

  // Waits for the pass. What follows is of the pass that was last fetched.
  void Fetch(Queue& queue);

  HostLayerReport FetchedLayer(int64_t layer) const;
  // The statistics of a pass over `num_tokens` tokens.
  StepStats Read(int64_t num_tokens) const;
  // That of each layer; after a backward pass.
  std::vector<double> ReadMeanActiveGradients() const;
  std::span<const int64_t> balance_counts(int64_t layer) const;

  int64_t bytes() const { return counts_.bytes() + sums_.bytes(); }

 private:
  int64_t num_layers_, num_experts_;
  Buffer<int64_t> counts_;  // of each layer, in the order of LayerReport
  Buffer<double> sums_;     // the same, then the sum of the losses
  std::span<const int64_t> host_counts_;
  std::span<const double> host_sums_;
  std::vector<int64_t> copied_counts_;
  std::vector<double> copied_sums_;
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_PASS_REPORT_H_
