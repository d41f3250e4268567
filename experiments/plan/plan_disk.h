// SPDX-License-Identifier: Apache-2.0
//
// plan_disk.h - the disk space that a grid takes, by kind: corpora, tokens,
// checkpoints, results.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_PLAN_DISK_H_
#define SOFTMOE_EXPERIMENTS_PLAN_PLAN_DISK_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/plan/grid_estimate.h"

namespace softmoe::experiments {

// The plan's section on disk space. `rows` belong to one grid with results in
// `folder`; `cache` holds corpora and tokens, which need not exist yet.
std::string DescribeDisk(const std::vector<RowEstimate>& rows,
                         const std::filesystem::path& folder,
                         const std::filesystem::path& cache);

// An upper bound on the token files of `row`, if its corpus has `text_bytes` of
// text: a token is at least one byte of it.
int64_t TokenBytesAtMost(const RowEstimate& row, int64_t text_bytes);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_PLAN_DISK_H_
