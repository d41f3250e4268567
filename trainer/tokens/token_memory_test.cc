// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/token_memory.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/folder_lock.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/process/stop_signal.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/testing/token_test_util.h"
#include "trainer/tokens/dataset.h"
#include "trainer/tokens/token_file.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;
using Counts = std::vector<int64_t>;

class TokenMemory : public testing::Test {
 protected:
  TokenMemory() {
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    Write({0, 2, 2}, {2, 0, 0, 0});
  }
  ~TokenMemory() override { ::unsetenv("XDG_CACHE_HOME"); }

  void Write(const Ids& first, const Ids& second) {
    WriteTokenFiles(prefix_, 3, {first, second});
    Age(60);
  }

  // Makes both files look as if written `seconds` ago.
  void Age(int seconds) {
    for (const char* suffix : {".bin", ".idx"}) {
      fs::last_write_time(
          WithSuffix(prefix_, suffix),
          fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
    }
  }

  // Other ids in place, with the time of change that the file had.
  void Exchange(bool keep_time) {
    const fs::path path = WithSuffix(prefix_, ".bin");
    const auto time = fs::last_write_time(path);
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
        .write("\1\0", 2);
    if (keep_time) fs::last_write_time(path, time);
  }

  std::string Hash(const char* suffix) const {
    return Sha256OfFile(WithSuffix(prefix_, suffix));
  }

  fs::path folder_ = FreshFolder("token_memory");
  fs::path prefix_ = folder_ / "t";
};

TEST_F(TokenMemory, HasHashesAndCounts) {
  const TokenFacts facts = CheckTokens(prefix_);
  EXPECT_EQ(facts.data_sha256, Hash(".bin"));
  EXPECT_EQ(facts.index_sha256, Hash(".idx"));
  EXPECT_EQ(facts.counts, Counts({4, 0, 3}));
  EXPECT_EQ(RecallTokens(prefix_), facts);
}

TEST_F(TokenMemory, CountsIdsOfFourBytes) {
  WriteTokenFiles(prefix_, 70000, {{69999, 1}});
  const TokenFacts facts = CheckTokens(prefix_);
  ASSERT_EQ(facts.counts.size(), 70000u);
  EXPECT_EQ(facts.counts[69999], 1);
  EXPECT_EQ(facts.counts[1], 1);
}

// What is remembered is believed: nothing was read, or it would be seen.
TEST_F(TokenMemory, ReadsFilesOnce) {
  const TokenFacts facts = CheckTokens(prefix_);
  Exchange(/*keep_time=*/true);
  EXPECT_EQ(CheckTokens(prefix_), facts);
  ForgetTokens();
  EXPECT_EQ(CheckTokens(prefix_).data_sha256, Hash(".bin"));
  EXPECT_EQ(CheckTokens(prefix_).counts, Counts({3, 1, 3}));
}

TEST_F(TokenMemory, ReadsAgainWhatHasChanged) {
  CheckTokens(prefix_);
  Exchange(/*keep_time=*/false);
  EXPECT_EQ(CheckTokens(prefix_).data_sha256, Hash(".bin"));
  // Another file of the same size and time under the name.
  Write({0, 2, 2}, {2, 0, 0, 0});
  const auto time = fs::last_write_time(WithSuffix(prefix_, ".bin"));
  CheckTokens(prefix_);
  ASSERT_TRUE(RecallTokens(prefix_));
  const fs::path other = folder_ / "other";
  WriteFileAtomically(other, std::string(14, '\0'));
  fs::last_write_time(other, time);
  fs::rename(other, WithSuffix(prefix_, ".bin"));
  EXPECT_FALSE(RecallTokens(prefix_));
  EXPECT_EQ(CheckTokens(prefix_).data_sha256, Hash(".bin"));
  // The index counts, too.
  fs::last_write_time(WithSuffix(prefix_, ".idx"),
                      time - std::chrono::seconds(1));
  EXPECT_FALSE(RecallTokens(prefix_));
  EXPECT_FALSE(RecallTokens(folder_ / "absent"));
}

// One of them reads, the others wait for it.
TEST_F(TokenMemory, SeveralAskAtOnce) {
  std::vector<std::future<TokenFacts>> asked;
  for (int i = 0; i < 4; ++i) {
    asked.push_back(std::async(std::launch::async,
                               [this] { return CheckTokens(prefix_); }));
  }
  for (std::future<TokenFacts>& facts : asked) {
    EXPECT_EQ(facts.get().counts, Counts({4, 0, 3}));
  }
  EXPECT_TRUE(RecallTokens(prefix_));
}

// Ends the waiting when it is said.
class Unlock : public std::stringbuf {
 public:
  explicit Unlock(const fs::path& folder)
      : lock_(std::make_unique<FolderLock>(folder)) {}

 private:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    lock_.reset();
    return std::stringbuf::xsputn(text, size);
  }
  std::unique_ptr<FolderLock> lock_;
};

TEST_F(TokenMemory, SaysForWhomItWaits) {
  CheckTokens(prefix_);
  Exchange(/*keep_time=*/false);
  Unlock said(*fs::directory_iterator(CacheFolder() / "checked"));
  std::streambuf* const old = std::cerr.rdbuf(&said);
  EXPECT_EQ(CheckTokens(prefix_).counts, Counts({3, 1, 3}));
  std::cerr.rdbuf(old);
  EXPECT_TRUE(Says(said.str(), "waiting for process ", prefix_.string()));
}

TEST_F(TokenMemory, ASignalEndsTheWaiting) {
  CheckTokens(prefix_);
  Exchange(/*keep_time=*/false);
  Unlock said(*fs::directory_iterator(CacheFolder() / "checked"));
  std::streambuf* const old = std::cerr.rdbuf(&said);
  const StopSignal stop;
  std::raise(SIGTERM);
  EXPECT_TRUE(Says(MessageOf<StoppedError>([&] { CheckTokens(prefix_); }),
                   "SIGTERM: before " + prefix_.string()));
  std::cerr.rdbuf(old);
}

// It could change again without showing it.
TEST_F(TokenMemory, DoesNotRememberWhatHasJustChanged) {
  Age(0);
  CheckTokens(prefix_);
  EXPECT_FALSE(RecallTokens(prefix_));
}

TEST_F(TokenMemory, IsReadAgainIfItIsDamaged) {
  CheckTokens(prefix_);
  for (const auto& entry :
       fs::recursive_directory_iterator(CacheFolder() / "checked")) {
    if (entry.path().filename() != "facts.json") continue;
    std::string text = ReadWholeFile(entry.path());
    text.replace(text.find("[4,0,3]"), 7, "[3,1,3]");
    WriteFileAtomically(entry.path(), text);
  }
  EXPECT_FALSE(RecallTokens(prefix_));
  EXPECT_EQ(CheckTokens(prefix_).counts, Counts({4, 0, 3}));
}

TEST_F(TokenMemory, WorksWithoutACache) {
  WriteFileAtomically(folder_ / "cache", "a file where the folder should be");
  EXPECT_EQ(CheckTokens(prefix_).counts, Counts({4, 0, 3}));
  EXPECT_FALSE(RecallTokens(prefix_));
  ForgetTokens();
  ::setenv("XDG_CACHE_HOME", "not/absolute", 1);
  const char* home = std::getenv("HOME");
  const std::string old_home = home == nullptr ? "" : home;
  ::unsetenv("HOME");
  ForgetTokens();
  EXPECT_EQ(CheckTokens(prefix_).counts, Counts({4, 0, 3}));
  if (!old_home.empty()) ::setenv("HOME", old_home.c_str(), 1);
}

TEST_F(TokenMemory, SaysWhichFileIsMissing) {
  fs::remove(WithSuffix(prefix_, ".bin"));
  EXPECT_THROW(CheckTokens(prefix_), EnvironmentError);
}

TEST_F(TokenMemory, FactsReadBack) {
  TokenFacts facts = CheckTokens(prefix_);
  facts.counts_from[3] = {3, 0, 1};
  facts.counts_from[5] = {2};
  EXPECT_EQ(ParseTokenFacts(TokenFactsText(facts)), facts);
  EXPECT_FALSE(ParseTokenFacts("{}"));
  EXPECT_FALSE(ParseTokenFacts(""));
}

Config ConfigOf(double fraction) {
  Config config;
  config.model.vocab_size = 3;
  config.model.sequence_length = 2;
  config.training.global_batch_sequences = 1;
  config.data.validation_fraction = fraction;
  return config;
}

void ExpectSameCounts(const SplitCounts& a, const SplitCounts& b) {
  EXPECT_EQ(a.training, b.training);
  EXPECT_EQ(a.targets, b.targets);
}

// The tokens of a split are counted once, for each split; then no token but
// those at its ends is read.
TEST_F(TokenMemory, KeepsTheCountsOfEverySplit) {
  std::vector<Ids> documents;
  for (int d = 0; d < 40; ++d) documents.push_back({d % 3, 1, 2, d % 2});
  WriteTokenFiles(prefix_, 3, documents);
  Age(60);
  const Dataset tenth(ConfigOf(0.1), prefix_), half(ConfigOf(0.5), prefix_);
  const SplitCounts tenth_read = tenth.CountSplits();
  const SplitCounts half_read = half.CountSplits();
  EXPECT_NE(tenth_read.training, half_read.training);
  CheckTokens(prefix_);
  ExpectSameCounts(tenth.CountSplits(), tenth_read);
  ExpectSameCounts(half.CountSplits(), half_read);
  ASSERT_TRUE(RecallTokens(prefix_));
  EXPECT_EQ(RecallTokens(prefix_)->counts_from.size(), 2u);
  for (const int64_t sequences : {1, 2, 3, 7}) {
    ExpectSameCounts(tenth.CountSplits(sequences), [&] {
      ForgetTokens();
      const SplitCounts read = tenth.CountSplits(sequences);
      CheckTokens(prefix_);
      return read;
    }());
  }
  tenth.CountSplits();
  half.CountSplits();
  Exchange(/*keep_time=*/true);  // the first training token
  ExpectSameCounts(tenth.CountSplits(), tenth_read);
  ExpectSameCounts(half.CountSplits(), half_read);
}

TEST_F(TokenMemory, CountsOfALargerVocabularyAreNotUsed) {
  CheckTokens(prefix_);
  Config config = ConfigOf(0.5);
  config.model.vocab_size = 2;
  EXPECT_THROW(Dataset(config, prefix_).CountSplits(), DataError);
}

}  // namespace
}  // namespace softmoe::trainer
