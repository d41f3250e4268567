// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/recorded_results.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "golden/testing/document_test_util.h"
#include "golden/testing/miniature_test_util.h"
#include "golden/verdict/miniature_report.h"

namespace softmoe::golden {
namespace {

namespace fs = std::filesystem;

RecordedResults Example() {
  RecordedResults results;
  results.margins_sha256 = FrozenClaims().Hash();
  results.miniature = MadeUpResults(FrozenClaims());
  results.miniature.runs[0].hellaswag = 0.3;
  results.miniature.runs[1].mean_cap = 2.5;
  results.miniature.throughput = {{1, {1e5, 1.1e5, 1.2e5}, "soft"},
                                  {1.5, {9e4}, "sparse"}};
  results.documents = {{"results-calibrated.h5", ExampleDocument()},
                       {"results.h5", ExampleDocument()}};
  return results;
}

// All digits of all verdicts.
std::string JsonOf(const MiniatureResults& results) {
  return MiniatureJson(JudgeMiniature(FrozenClaims(), results)).dump();
}

std::string Refusal(const fs::path& path) {
  return MessageOf<DataError>([&] { ReadRecordedResults(path); });
}

TEST(RecordedResults, ReadBackEveryNumber) {
  const fs::path folder = FreshFolder("recorded_results");
  const RecordedResults written = Example();
  WriteRecord(written, folder / "a.h5");
  EXPECT_TRUE(IsRunRecord(folder / "a.h5"));
  const RecordedResults read = ReadRecordedResults(folder / "a.h5");
  EXPECT_EQ(read.margins_sha256, written.margins_sha256);
  ASSERT_EQ(read.documents.size(), 2u);
  EXPECT_EQ(read.documents[0].first, "results-calibrated.h5");
  EXPECT_EQ(read.documents[1].second, ExampleDocument());
  ASSERT_EQ(read.miniature.runs.size(), 76u);
  EXPECT_EQ(read.miniature.runs[0].hellaswag, 0.3);
  EXPECT_FALSE(read.miniature.runs[1].hellaswag.has_value());
  EXPECT_EQ(read.miniature.runs[1].mean_cap, 2.5);
  ASSERT_EQ(read.miniature.throughput.size(), 2u);
  EXPECT_EQ(read.miniature.throughput[0].tokens_per_second,
            (std::vector<double>{1e5, 1.1e5, 1.2e5}));
  EXPECT_EQ(read.miniature.throughput[1].router, "sparse");
  // Every number of every run affects a verdict or appears among the rows.
  EXPECT_EQ(JsonOf(read.miniature), JsonOf(written.miniature));
  EXPECT_EQ(DescribeMiniatureRows(FrozenClaims(), read.miniature),
            DescribeMiniatureRows(FrozenClaims(), written.miniature));
  // Equal results give equal bytes.
  WriteRecord(read, folder / "b.h5");
  EXPECT_EQ(ReadWholeFile(folder / "b.h5"), ReadWholeFile(folder / "a.h5"));
}

TEST(RecordedResults, SayThatARunDiverged) {
  const fs::path path = FreshFolder("recorded_diverged") / "a.h5";
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  RecordedResults written = Example();
  MiniatureRun* learned = nullptr;
  for (MiniatureRun& run : written.miniature.runs) {
    if (!run.allocation.empty() && !run.at_tau.empty()) learned = &run;
    if (run.row == "softmoe-2-calibrated") run.loss = NAN;
  }
  ASSERT_NE(learned, nullptr);
  learned->loss = NAN;
  learned->infer_ae = -kInfinity;
  learned->hellaswag = kInfinity;
  learned->allocation.back().allocation[0] = NAN;
  learned->at_tau[0].loss = NAN;
  WriteRecord(written, path);
  const RecordedResults read = ReadRecordedResults(path);
  const MiniatureRun& run =
      read.miniature
          .runs[static_cast<size_t>(learned - written.miniature.runs.data())];
  EXPECT_TRUE(std::isnan(run.loss));
  EXPECT_EQ(run.infer_ae, -kInfinity);
  EXPECT_EQ(run.hellaswag, kInfinity);
  EXPECT_TRUE(std::isnan(run.allocation.back().allocation[0]));
  EXPECT_TRUE(std::isnan(run.at_tau[0].loss));
  const std::string verdicts = JsonOf(read.miniature);
  EXPECT_EQ(verdicts, JsonOf(written.miniature));
  EXPECT_TRUE(Says(verdicts, "gave no number"));
}

// 76 runs of the mini grid, 16 with k_l of ten layers at 151 steps, no digits
// repeated: less than a tenth of a record's allowed size.
TEST(RecordedResults, AreSmall) {
  const fs::path path = FreshFolder("recorded_small") / "a.h5";
  RecordedResults results = Example();
  double root = 0;
  for (MiniatureRun& run : results.miniature.runs) {
    if (run.allocation.empty()) continue;
    run.allocation.clear();
    for (int64_t step = 0; step <= 150; ++step) {
      run.allocation.push_back({step, {}, std::sqrt(root + 0.5)});
      for (int layer = 0; layer < 10; ++layer) {
        run.allocation.back().allocation.push_back(std::sqrt(++root));
      }
    }
  }
  WriteRecord(results, path);
  EXPECT_LE(fs::file_size(path), size_t{512} << 10);
}

TEST(RecordedResults, RefuseWhatIsDamagedOrNotThere) {
  const fs::path folder = FreshFolder("recorded_refused");
  WriteRecord(Example(), folder / "a.h5");
  std::string bytes = ReadWholeFile(folder / "a.h5");
  bytes[bytes.size() / 2] ^= 1;
  WriteFileAtomically(folder / "damaged.h5", bytes);
  EXPECT_TRUE(IsRunRecord(folder / "damaged.h5"));
  EXPECT_TRUE(Says(Refusal(folder / "damaged.h5"), "is damaged"));
  EXPECT_THROW(ReadRecordedResults(folder / "none.h5"), EnvironmentError);
  EXPECT_FALSE(IsRunRecord(folder / "none.h5"));
  WriteDocument(ExampleDocument(), folder / "document.h5");
  EXPECT_FALSE(IsRunRecord(folder / "document.h5"));
  WriteFileAtomically(folder / "short.h5", "short");
  EXPECT_FALSE(IsRunRecord(folder / "short.h5"));

  // A record of nothing but runs.
  Hdf5Writer runs(folder / "runs.h5", RunRecordKind());
  runs.WriteAttribute("/", "margins_sha256", "");
  runs.Commit();
  EXPECT_TRUE(Says(Refusal(folder / "runs.h5"), "lacks what is judged",
                   "--renew --to"));

  const std::string nothing = R"({"runs": [], "throughput": []})";
  const auto with = [&](const std::string& json,
                        const std::string& document = "") {
    Hdf5Writer file(folder / "json.h5", RunRecordKind());
    file.WriteAttribute("/", "margins_sha256", "");
    file.WriteDataset("/miniature/json",
                      std::vector<uint8_t>(json.begin(), json.end()));
    file.CreateGroup("/results");
    if (!document.empty()) file.Bytes("/results/results.h5", document);
    file.Commit();
    return Refusal(folder / "json.h5");
  };
  EXPECT_EQ(with(nothing), kNoError);
  // Messages name the record that a document lies in.
  Hdf5Writer(folder / "newer.h5", {"golden", 2}).Commit();
  for (const std::string& document :
       {std::string("no document"), ReadWholeFile(folder / "newer.h5")}) {
    const std::string refusal = with(nothing, document);
    EXPECT_TRUE(
        Says(refusal, (folder / "json.h5").string() + ": /results/results.h5"));
    EXPECT_FALSE(Says(refusal, "softmoe-record"));
  }
  for (const char* json :
       {"", "[", "[]", R"({"runs": 1, "throughput": []})",
        R"({"runs": [{"row": "sparse-1"}], "throughput": []})",
        R"({"runs": [], "throughput": [[1, "fast", "soft"]]})",
        R"({"runs": [], "throughput": [[1, [1e5]]]})"}) {
    EXPECT_TRUE(Says(with(json), "/miniature/json"));
  }
}

TEST(RecordedResults, PassThroughTmpWhereTmpdirIsGone) {
  const fs::path path = FreshFolder("recorded_gone") / "a.h5";
  ASSERT_EQ(::setenv("TMPDIR", "/nonexistent/tmp", 1), 0);
  WriteRecord(Example(), path);
  EXPECT_EQ(ReadRecordedResults(path).documents.size(), 2u);
  ::unsetenv("TMPDIR");
}

// If the disk is full the record stays as it was: Commit is the last step.
TEST(RecordedResults, AreNotWrittenInPart) {
  const fs::path path = FreshFolder("recorded_full") / "a.h5";
  WriteRecord(Example(), path);
  const std::string bytes = ReadWholeFile(path);
  {
    const FullDisk full(8 << 10);
    EXPECT_THROW(WriteRecord(Example(), path), EnvironmentError);
  }
  EXPECT_EQ(ReadWholeFile(path), bytes);
}

}  // namespace
}  // namespace softmoe::golden
