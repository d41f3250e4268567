// SPDX-License-Identifier: Apache-2.0
//
// plan_disk.h - what a grid takes of the disk, by kind: corpora, tokens,
// checkpoints, results.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_PLAN_DISK_H_
#define SOFTMOE_EXPERIMENTS_PLAN_PLAN_DISK_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/plan/grid_estimate.h"

namespace softmoe::experiments {

// The section of a plan. `rows` are those of one grid, whose results go into
// `folder`; `cache` has corpora and tokens, which need not be there yet.
std::string DescribeDisk(const std::vector<RowEstimate>& rows,
                         const std::filesystem::path& folder,
                         const std::filesystem::path& cache);

// What the token files of `row` take at most, if its corpus has `text_bytes` of
// text: a token is at least one byte of it.
int64_t TokenBytesAtMost(const RowEstimate& row, int64_t text_bytes);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_PLAN_DISK_H_
