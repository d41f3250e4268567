// SPDX-License-Identifier: Apache-2.0
//
// pass_report.h - the counts and sums of passes: operations write them on the
// way, and they are read once, when all passes are done.
#ifndef SOFTMOE_OPTIMIZED_PASS_REPORT_H_
#define SOFTMOE_OPTIMIZED_PASS_REPORT_H_

#include <cstdint>
#include <span>

#include "core/config/config.h"
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
  Sum* bad_value;              // [1] that score
  Sum* load_balance_loss;      // [1]
  Sum* z_loss;                 // [1]
  Sum* d_mean_active;          // [1], of a backward pass
};
using LayerReport = LayerReportOf<int64_t, double>;
using HostLayerReport = LayerReportOf<const int64_t, const double>;

class PassReport {
 public:
  // Has room for `num_passes` passes at a time.
  PassReport(const ModelConfig& model, int64_t num_passes);

  int64_t num_passes() const { return num_passes_; }

  // Where the operations of a pass write.
  LayerReport Layer(int64_t pass, int64_t layer) const;
  double* loss_sum(int64_t pass) const;
  // For all layers, [num_layers].
  double* d_mean_active(int64_t pass) const;

  // Enqueues fetching the first `num_passes` reports to the host. The functions
  // below read them, once the host has waited.
  void StartFetch(Queue& queue, int64_t num_passes);

  HostLayerReport FetchedLayer(int64_t pass, int64_t layer) const;
  // The statistics of a pass over `num_tokens` tokens.
  StepStats Read(int64_t pass, int64_t num_tokens) const;
  std::span<const int64_t> balance_counts(int64_t pass, int64_t layer) const;

  int64_t bytes() const { return counts_.bytes() + sums_.bytes(); }

 private:
  int64_t num_layers_, num_experts_;
  int64_t pass_counts_, pass_sums_;
  int64_t num_passes_;
  // By pass: each layer, in the order of LayerReport; then what the layers
  // share.
  Buffer<int64_t> counts_;
  Buffer<double> sums_;
  FetchedArray<int64_t> host_counts_;
  FetchedArray<double> host_sums_;
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_PASS_REPORT_H_
