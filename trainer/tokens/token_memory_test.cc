// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/token_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/folder_lock.h"
#include "core/files/json_lines.h"
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
using Json = nlohmann::ordered_json;
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

  // Remembers the files, however recently they changed.
  TokenFacts Check() const { return CheckTokens(prefix_, /*tick_ns=*/0); }

  // Makes both files look as if written `seconds` ago.
  void Age(int seconds) {
    for (const char* suffix : {".bin", ".idx"}) {
      fs::last_write_time(
          WithSuffix(prefix_, suffix),
          fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
    }
  }

  static int64_t ChangedNs(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec;
  }

  // Waits until a change of `path` shows in its time.
  void AwaitTick(const fs::path& path) const {
    const fs::path probe = folder_ / "probe";
    do {
      WritePlain(probe, "");
    } while (ChangedNs(probe) <= ChangedNs(path));
  }

  // Replaces the first id, as a program that sets the time of the content back
  // would, or as one that does not.
  void Exchange(bool keep_time) {
    const fs::path path = WithSuffix(prefix_, ".bin");
    AwaitTick(path);
    const auto time = fs::last_write_time(path);
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
        .write("\1\0", 2);
    if (keep_time) fs::last_write_time(path, time);
  }

  // With another name, files would be read again after an update.
  fs::path FactsFile() const {
    const std::string name = fs::absolute(prefix_).lexically_normal().string();
    return CacheFolder() / "checked" / Sha256Hex(name).substr(0, 32) /
           "facts.json";
  }

  std::string Hash(const char* suffix) const {
    return Sha256OfFile(WithSuffix(prefix_, suffix));
  }

  fs::path folder_ = FreshFolder("token_memory");
  fs::path prefix_ = folder_ / "t";
};

TEST_F(TokenMemory, HasHashesAndCounts) {
  const TokenFacts facts = Check();
  EXPECT_EQ(facts.data_sha256, Hash(".bin"));
  EXPECT_EQ(facts.index_sha256, Hash(".idx"));
  EXPECT_EQ(facts.counts, Counts({4, 0, 3}));
  EXPECT_EQ(facts.data.bytes, 14);
  EXPECT_EQ(facts.data.changed, ChangedNs(WithSuffix(prefix_, ".bin")));
  EXPECT_EQ(RecallTokens(prefix_), facts);
}

TEST_F(TokenMemory, CountsIdsOfFourBytes) {
  // More than are read at a time.
  WriteTokenFiles(prefix_, 70000, {{69999, 1}, Ids(600'000, 2)});
  const TokenFacts facts = CheckTokens(prefix_);
  EXPECT_EQ(facts.data_sha256, Hash(".bin"));
  ASSERT_EQ(facts.counts.size(), 70000u);
  EXPECT_EQ(facts.counts[69999], 1);
  EXPECT_EQ(facts.counts[1], 1);
  EXPECT_EQ(facts.counts[2], 600'000);
  for (const int32_t id : {-1, 1 << 20}) {
    WriteTokenFiles(prefix_, 70000, {{id, 1}});
    EXPECT_EQ(CheckTokens(prefix_).counts, Counts()) << id;
    ForgetTokens();
  }
}

// Remembered facts are believed, which shows that nothing is read.
TEST_F(TokenMemory, ReadsFilesOnce) {
  const TokenFacts facts = Check();
  TokenFacts remembered = facts;
  remembered.data_sha256 = "other";
  remembered.counts = {3, 1, 3};
  WriteFileAtomically(FactsFile(), TokenFactsText(remembered));
  EXPECT_EQ(CheckTokens(prefix_), remembered);
  ForgetTokens();
  EXPECT_EQ(CheckTokens(prefix_), facts);
}

TEST_F(TokenMemory, ReadsAgainWhatHasChanged) {
  Check();
  ASSERT_TRUE(RecallTokens(prefix_));
  Exchange(/*keep_time=*/false);
  EXPECT_FALSE(RecallTokens(prefix_));
  EXPECT_EQ(Check().data_sha256, Hash(".bin"));
  // As `cp -p` of another file over this one does.
  ASSERT_TRUE(RecallTokens(prefix_));
  Write({0, 2, 2}, {2, 0, 0, 0});
  Check();
  Exchange(/*keep_time=*/true);
  EXPECT_FALSE(RecallTokens(prefix_));
  EXPECT_EQ(Check().data_sha256, Hash(".bin"));
  EXPECT_EQ(Check().counts, Counts({3, 1, 3}));
  // Another file of the same size and time, under the same name.
  Write({0, 2, 2}, {2, 0, 0, 0});
  const auto time = fs::last_write_time(WithSuffix(prefix_, ".bin"));
  Check();
  ASSERT_TRUE(RecallTokens(prefix_));
  const fs::path other = folder_ / "other";
  WriteFileAtomically(other, std::string(14, '\0'));
  fs::last_write_time(other, time);
  fs::rename(other, WithSuffix(prefix_, ".bin"));
  EXPECT_FALSE(RecallTokens(prefix_));
  EXPECT_EQ(Check().data_sha256, Hash(".bin"));
  // The index counts, too.
  ASSERT_TRUE(RecallTokens(prefix_));
  fs::last_write_time(WithSuffix(prefix_, ".idx"),
                      time - std::chrono::seconds(1));
  EXPECT_FALSE(RecallTokens(prefix_));
  EXPECT_FALSE(RecallTokens(folder_ / "absent"));
}

TEST_F(TokenMemory, ComparesAllThatAFileShowsOfItself) {
  const TokenFacts facts = Check();
  ASSERT_TRUE(RecallTokens(prefix_));
  for (const auto file : {&TokenFacts::data, &TokenFacts::index}) {
    for (const auto number : {&FileStamp::bytes, &FileStamp::inode,
                              &FileStamp::modified, &FileStamp::changed}) {
      TokenFacts other = facts;
      ++(other.*file.*number);
      WriteFileAtomically(FactsFile(), TokenFactsText(other));
      EXPECT_FALSE(RecallTokens(prefix_)) << TokenFactsText(other);
    }
  }
  WriteFileAtomically(FactsFile(), TokenFactsText(facts));
  EXPECT_EQ(RecallTokens(prefix_), facts);
}

// One of them reads; the others wait for it.
TEST_F(TokenMemory, SeveralAskAtOnce) {
  std::vector<std::future<TokenFacts>> asked;
  for (int i = 0; i < 4; ++i) {
    asked.push_back(std::async(std::launch::async, [this] { return Check(); }));
  }
  for (std::future<TokenFacts>& facts : asked) {
    EXPECT_EQ(facts.get().counts, Counts({4, 0, 3}));
  }
  EXPECT_TRUE(RecallTokens(prefix_));
}

// Ends the wait as soon as it is announced.
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
  Check();
  Exchange(/*keep_time=*/false);
  Unlock said(*fs::directory_iterator(CacheFolder() / "checked"));
  std::streambuf* const old = std::cerr.rdbuf(&said);
  EXPECT_EQ(CheckTokens(prefix_).counts, Counts({3, 1, 3}));
  std::cerr.rdbuf(old);
  EXPECT_TRUE(Says(said.str(), "waiting for process ", prefix_.string()));
}

TEST_F(TokenMemory, ASignalEndsTheWaiting) {
  Check();
  Exchange(/*keep_time=*/false);
  Unlock said(*fs::directory_iterator(CacheFolder() / "checked"));
  std::streambuf* const old = std::cerr.rdbuf(&said);
  const StopSignal stop;
  std::raise(SIGTERM);
  EXPECT_TRUE(Says(MessageOf<StoppedError>([&] { CheckTokens(prefix_); }),
                   "SIGTERM: before " + prefix_.string()));
  std::cerr.rdbuf(old);
  EXPECT_EQ(said.str(), "");
}

// A file could change again without showing it.
TEST_F(TokenMemory, DoesNotRememberWhatHasJustChanged) {
  for (const int seconds_ago : {0, 60}) {  // the time that it was set back to
    Age(seconds_ago);
    CheckTokens(prefix_);
    EXPECT_FALSE(RecallTokens(prefix_)) << seconds_ago;
  }
  Age(-60);  // by another clock
  Check();
  EXPECT_FALSE(RecallTokens(prefix_));
}

TEST_F(TokenMemory, TakesTimesOfOtherCenturies) {
  struct Time {
    time_t second;
    int64_t modified;
  };
  // 2400 and 1500.
  for (const Time& time : {Time{13'569'465'600, 9'223'372'035'000'000'000},
                           Time{-14'831'769'600, -9'223'372'035'000'000'000}}) {
    const fs::path path = WithSuffix(prefix_, ".bin");
    const timespec times[] = {{time.second, 0}, {time.second, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    const TokenFacts facts = CheckTokens(prefix_);
    EXPECT_EQ(facts.counts, Counts({4, 0, 3}));
    // Not every file system holds such times.
    if (status.st_mtim.tv_sec == time.second) {
      EXPECT_EQ(facts.data.modified, time.modified);
    }
  }
}

TEST_F(TokenMemory, IsReadAgainIfItIsDamaged) {
  Check();
  ASSERT_TRUE(RecallTokens(prefix_));
  std::string text = ReadWholeFile(FactsFile());
  text.replace(text.find("[4,0,3]"), 7, "[3,1,3]");
  WriteFileAtomically(FactsFile(), text);
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
  // Text of a program that does not look at the second time.
  Json older = ParseJsonObject(TokenFactsText(facts));
  for (const char* file : {"data", "index"}) older[file].erase(3);
  EXPECT_FALSE(ParseTokenFacts(JsonLine(Sealed(older))));
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

// The tokens of each split are counted once; after that, only those at its ends
// are read.
TEST_F(TokenMemory, KeepsTheCountsOfEverySplit) {
  std::vector<Ids> documents;
  for (int d = 0; d < 40; ++d) documents.push_back({d % 3, 1, 2, d % 2});
  WriteTokenFiles(prefix_, 3, documents);
  Age(60);
  const Dataset tenth(ConfigOf(0.1), prefix_), half(ConfigOf(0.5), prefix_);
  const SplitCounts tenth_read = tenth.CountSplits();
  const SplitCounts half_read = half.CountSplits();
  EXPECT_NE(tenth_read.training, half_read.training);
  Check();
  ExpectSameCounts(tenth.CountSplits(), tenth_read);
  ExpectSameCounts(half.CountSplits(), half_read);
  ASSERT_TRUE(RecallTokens(prefix_));
  EXPECT_EQ(RecallTokens(prefix_)->counts_from.size(), 2u);
  for (const int64_t sequences : {1, 2, 3, 7}) {
    ExpectSameCounts(tenth.CountSplits(sequences), [&] {
      ForgetTokens();
      const SplitCounts read = tenth.CountSplits(sequences);
      Check();
      return read;
    }());
  }
  tenth.CountSplits();
  half.CountSplits();
  // The remembered counts of the training tokens are believed.
  TokenFacts facts = RecallTokens(prefix_).value();
  --facts.counts[0];
  ++facts.counts[1];
  WriteFileAtomically(FactsFile(), TokenFactsText(facts));
  const auto expect_believed = [](const Dataset& data, SplitCounts read) {
    --read.training[0];
    ++read.training[1];
    ExpectSameCounts(data.CountSplits(), read);
  };
  expect_believed(tenth, tenth_read);
  expect_believed(half, half_read);
}

TEST_F(TokenMemory, CountsOfALargerVocabularyAreNotUsed) {
  Write({0, 2, 2}, {1, 0, 0, 0});
  Check();
  Config config = ConfigOf(0.5);
  config.model.vocab_size = 2;
  EXPECT_THROW(Dataset(config, prefix_).CountSplits(), DataError);
}

}  // namespace
}  // namespace softmoe::trainer
