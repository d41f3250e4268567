// SPDX-License-Identifier: Apache-2.0
//
// plan_warnings.h - warns where a grid will not do what its author intends.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_PLAN_WARNINGS_H_
#define SOFTMOE_EXPERIMENTS_PLAN_PLAN_WARNINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"
#include "experiments/plan/grid_estimate.h"

namespace softmoe::experiments {

// Warnings "CORPUS/ROW, ...: what is wrong and what to do"; rows with the same
// problem share one:
//   - fewer than 0.5 active experts on average at the start (DESIGN.md,
//     ruling 7)
//   - balance groups or micro-batches that do not divide over the GPUs
//   - more memory than a GPU has
//   - more disk than `free_disk_bytes`
std::vector<std::string> PlanWarnings(const Grid& grid,
                                      const std::vector<RowEstimate>& rows,
                                      int64_t free_disk_bytes);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_PLAN_WARNINGS_H_
