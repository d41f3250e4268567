// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/token_disk.h"

#include <gtest/gtest.h>

#include <optional>

#include "core/config/config.h"
#include "trainer/corpora/corpus.h"

namespace softmoe::trainer {
namespace {

// The task's numbers: about 400 GB of tokens, 7.3 GB of index.
TEST(ExpectedDisk, IsOfAllShardsOfC4) {
  DataConfig data;
  data.corpus = "c4";
  const auto disk = ExpectedDisk(data, 32768, SizeOfCorpus("c4", "/nowhere"));
  ASSERT_TRUE(disk);
  EXPECT_FALSE(disk->at_most);
  EXPECT_NEAR(static_cast<double>(disk->tokens), 400e9, 10e9);
  EXPECT_NEAR(static_cast<double>(disk->index), 7.3e9, 0.05e9);
  EXPECT_EQ(Describe(disk), "about 368.6 GiB of tokens and 6.8 GiB of index");
  EXPECT_EQ(Describe(std::nullopt),
            "an amount that only the first shards will show");
  // How much text the pieces of a smaller vocabulary hold is unknown.
  const auto small = ExpectedDisk(data, 1000, SizeOfCorpus("c4", "/nowhere"));
  ASSERT_TRUE(small);
  EXPECT_TRUE(small->at_most);
  EXPECT_GT(small->tokens, 3 * disk->tokens);
  data.max_bytes = 790'000'000;
  EXPECT_NEAR(
      static_cast<double>(
          ExpectedDisk(data, 32768, SizeOfCorpus("c4", "/nowhere"))->index),
      7.3e6, 0.05e6);
  EXPECT_FALSE(ExpectedDisk(data, 32768, {}));
}

TEST(ExpectedDisk, IsThatOfKnownLengths) {
  const TokenDisk disk = DiskForTokens(1000, 4, 100, 400);
  EXPECT_EQ(disk.tokens, 2 * (250 + 100));
  EXPECT_EQ(disk.index, 20 * 100);
  EXPECT_EQ(disk.work, 12 * 100 + 70 + (16 << 20));
  EXPECT_EQ(disk.total(), 700 + 2000 + 1270 + (16 << 20));
  // A user's text; more of it is asked for than there is.
  DataConfig data;
  CorpusSize size;
  size.text_bytes = 1000;
  data.max_bytes = 2000;
  EXPECT_EQ(Describe(ExpectedDisk(data, 65500, size)),
            "at most 3.9 KiB of tokens");
}

}  // namespace
}  // namespace softmoe::trainer
