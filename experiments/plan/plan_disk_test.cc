// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/plan_disk.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/text/format_bytes.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

RowEstimate Row(const std::string& corpus) {
  RowEstimate row;
  row.run.config.data.corpus = corpus;
  row.run.config.model.vocab_size = 1024;
  row.run.evaluations.keep_checkpoint = false;
  row.seeds = 3;
  row.checkpoint_bytes = 1000;
  row.disk_bytes = 2300;
  return row;
}

// Ignores line breaks.
void ExpectSays(const std::string& text, const std::string& part) {
  std::istringstream stream(text);
  std::string one_line;
  for (std::string word; stream >> word;) one_line += word + " ";
  EXPECT_TRUE(Says(one_line, part)) << text;
}

TEST(PlanDisk, NamesEveryKindOnce) {
  const fs::path folder = FreshFolder("plan_disk");
  WriteFileAtomically(folder / "novels.txt", std::string(5000, 'x'));
  const std::string path = "path:" + (folder / "novels.txt").string();
  const std::string text = DescribeDisk({Row(path), Row(path), Row("foldoc")},
                                        folder / "runs", folder / "cache");
  ExpectSays(text, "corpus " + path + ": " + FormatBytes(5000) + ", there:");
  const std::string size = FormatBytes(5000) + ",";
  EXPECT_EQ(text.find(size), text.rfind(size)) << text;
  ExpectSays(text, "corpus foldoc: about 4.7 MiB, not there yet:");
  ExpectSays(text, "vocabulary 1024: at most " + FormatBytes(10000));
  ExpectSays(text, "tokens of foldoc, vocabulary 1024: at most 9.5 MiB");
  ExpectSays(text, "checkpoints: up to " + FormatBytes(1000) +
                       " each, two for every run at work; those of finished "
                       "runs are");
  // Three rows with three seeds, 300 bytes each.
  ExpectSays(text, "results: " + FormatBytes(2700));
  ExpectSays(text, "free there: ");
  EXPECT_FALSE(fs::exists(folder / "cache"));
}

TEST(PlanDisk, CheckpointsThatAreKeptCount) {
  std::vector<RowEstimate> rows = {Row("foldoc"), Row("foldoc")};
  rows[1].run.evaluations.keep_checkpoint = true;
  const fs::path folder = FreshFolder("plan_disk_kept");
  ExpectSays(DescribeDisk(rows, folder, folder),
             FormatBytes(3000) + " once all runs are finished");
}

TEST(PlanDisk, APublishedCorpusIsAsLargeAsItsTokensSay) {
  RowEstimate row = Row("owt");
  row.run.corpus.paper_dataset = "owt";
  row.run.config.data.validation_fraction = 0.5;
  row.cost.tokens = 1 << 20;
  const fs::path folder = FreshFolder("plan_disk_owt");
  const std::string text = DescribeDisk({row}, folder, folder);
  ExpectSays(text, "corpus owt: as large as its publishers' files, not there");
  ExpectSays(text, "tokens of owt, vocabulary 1024: about 4.0 MiB");
}

TEST(PlanDisk, TokensAreNoMoreThanTheBytesThatAreRead) {
  RowEstimate row = Row("foldoc");
  EXPECT_EQ(TokenBytesAtMost(row, 5000), 10000);
  row.run.config.data.max_bytes = 2000;
  EXPECT_EQ(TokenBytesAtMost(row, 5000), 4000);
  EXPECT_EQ(TokenBytesAtMost(row, 1000), 2000);
  row.run.config.model.vocab_size = 100'000;
  EXPECT_EQ(TokenBytesAtMost(row, 1000), 4000);
}

}  // namespace
}  // namespace softmoe::experiments
