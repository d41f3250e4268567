// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/run_folder.h"

#include <gtest/gtest.h>

#include <string>

#include "core/config/config.h"
#include "core/files/sha256.h"
#include "experiments/grids/grid_file.h"
#include "experiments/grids/grid_select.h"
#include "trainer/tokens/prepared_corpus.h"

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

TEST(CorpusName, IsThatOfTheTokens) {
  const Grid grid = LoadGrid(GridPath("smoke"), {});
  const GridRun& run = grid.runs[0];
  const std::string name = CorpusName(run);
  EXPECT_EQ(name,
            "corpus-foldoc-" + Sha256Hex(TokensKey(run.config)).substr(0, 8));
  EXPECT_EQ(CorpusPrefix(run, "runs/smoke"), "runs/smoke/" + name);
  const Grid longer = LoadGrid(GridPath("smoke"), {"training.steps=7"});
  EXPECT_EQ(CorpusName(longer.runs[0]), name);
  const Grid part = LoadGrid(GridPath("smoke"), {"data.max_bytes=1000000"});
  EXPECT_NE(CorpusName(part.runs[0]), name);

  // The corpora have the same text; only the prefix's name tells them apart.
  trainer::PreparedCorpus corpus;
  corpus.corpus = run.config.data.corpus;
  corpus.prefix = CorpusPrefix(run, "runs/elsewhere");
  EXPECT_TRUE(IsCorpusOf(run, corpus));
  EXPECT_TRUE(IsCorpusOf(longer.runs[0], corpus));
  EXPECT_FALSE(IsCorpusOf(part.runs[0], corpus));
}

}  // namespace
}  // namespace softmoe::experiments
