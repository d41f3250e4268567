// SPDX-License-Identifier: Apache-2.0
//
// One pass by one thread: it reads four bytes per token, where the router reads
// hundreds.
#include "kernels/routing_counts.h"

namespace softmoe::kernels::SOFTMOE_ISA {

void RoutingCounts(const RoutingCountsArgs& args, ThreadPool& /*pool*/) {
  for (int64_t i = 0; i <= args.num_experts; ++i) args.active_histogram[i] = 0;
  int64_t below_cutoff = 0;
  for (int64_t t = 0; t < args.num_tokens; ++t) {
    const int32_t active = args.num_active[t];
    ++args.active_histogram[active];
    // A token that fell back has one expert, whose weight does not exceed the
    // cutoff either.
    below_cutoff +=
        active == 0 ||
        (active == 1 && !(args.gates[t * args.max_active] > args.cutoff));
  }
  *args.below_cutoff = args.has_cutoff ? below_cutoff : 0;
  if (args.bad_value == nullptr) return;
  *args.bad_value = *args.bad_score < 0
                        ? 0
                        : static_cast<double>(args.scores[*args.bad_score]);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
