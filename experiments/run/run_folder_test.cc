// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/run_folder.h"

#include <gtest/gtest.h>

#include "core/config/config.h"
#include "experiments/grids/grid_file.h"
#include "experiments/grids/grid_select.h"

namespace softmoe::experiments {
namespace {

TEST(RunFolderName, NamesRowCorpusSeedAndConfiguration) {
  const Grid grid = LoadGrid(GridPath("smoke"), {});
  EXPECT_EQ(RunFolderName(grid.runs[0]),
            "foldoc-sparse-1-seed1234-" + ConfigHash(grid.runs[0].config));
  const Grid other = LoadGrid(GridPath("smoke"), {"training.steps=7"});
  EXPECT_NE(RunFolderName(grid.runs[0]), RunFolderName(other.runs[0]));
  const Grid threads = LoadGrid(GridPath("smoke"), {"runtime.threads=2"});
  EXPECT_EQ(RunFolderName(grid.runs[0]), RunFolderName(threads.runs[0]));
}

}  // namespace
}  // namespace softmoe::experiments
