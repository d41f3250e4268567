// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/shard_store.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/input_file.h"
#include "core/files/json_lines.h"
#include "core/files/sha256.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/tokens/token_file.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kShardVocabSize = 100;

// Shard N has N + 1 documents, the last of which is the same in all.
void Encode(const fs::path& folder, int64_t shard) {
  ShardWriter writer(folder, shard, kShardVocabSize);
  for (int32_t d = 0; d < shard; ++d) {
    const int32_t id = static_cast<int32_t>(shard) * 7 + d;
    writer.AddDocument("text " + std::to_string(id), std::vector{id, 2, 1});
  }
  writer.AddDocument("same", std::vector<int32_t>{5, 1});
  ShardRecord about;
  about.name = "shard " + std::to_string(shard);
  about.digest = "digest " + std::to_string(shard);
  about.bytes = 10 + shard;
  about.empty = shard;
  writer.Commit(about);
}

class Store : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = FreshFolder("store"); }
  // Writes the files of all shards; the first `there` are already appended.
  std::vector<std::string> Finish(int64_t there = 0) {
    ShardStore store(folder_, kShardVocabSize);
    EXPECT_EQ(static_cast<int64_t>(store.appended().size()), there);
    while (store.appended().size() < 5) {
      const auto next = static_cast<int64_t>(store.appended().size());
      if (!store.Has(next, "digest " + std::to_string(next))) {
        Encode(folder_, next);
      }
      store.AppendNext();
    }
    const fs::path prefix = folder_ / "out";
    const auto result = store.Finish(prefix);
    EXPECT_EQ(result.manifest.repeated, 4);
    std::vector<std::string> files;
    for (const char* suffix : {".bin", ".idx", ".manifest"}) {
      files.push_back(ReadWholeFile(WithSuffix(prefix, suffix)));
    }
    EXPECT_EQ(Sha256Hex(files[0]), result.tokens_sha256);
    EXPECT_EQ(Sha256Hex(files[1]), result.index_sha256);
    return files;
  }
  // Calls Finish in a folder of its own.
  std::vector<std::string> Unbroken() {
    const fs::path folder = folder_;
    folder_ = FreshFolder("unbroken");
    const auto files = Finish();
    folder_ = folder;
    return files;
  }
  fs::path folder_;
};

TEST_F(Store, WritesTokenFiles) {
  Finish();
  const TokenFile file(folder_ / "out", kShardVocabSize);
  EXPECT_EQ(file.num_documents(), 15);
  EXPECT_EQ(file.num_tokens(), 5 * 2 + 10 * 3);
  const Manifest manifest = ReadManifest(folder_ / "out.manifest");
  EXPECT_EQ(Total(manifest.shards).documents, 15);
  EXPECT_TRUE(Says(ReadWholeFile(folder_ / "out.manifest"),
                   R"("shards":5,"bytes":60,"documents":15,"empty":10,)"));
}

// Killed after a shard was encoded, after it was appended, or in between.
TEST_F(Store, GoesOnWhereItWasLeft) {
  const auto unbroken = Unbroken();
  {
    ShardStore store(folder_, kShardVocabSize);
    EXPECT_FALSE(store.HasWork());
    Encode(folder_, 1);
    Encode(folder_, 0);
    EXPECT_TRUE(store.HasWork());
    ASSERT_TRUE(store.Has(0, "digest 0"));
    EXPECT_FALSE(store.Has(0, "another"));
    EXPECT_FALSE(store.Has(2, "digest 2"));
    store.AppendNext();
    EXPECT_EQ(FilesIn(folder_ / "shards").size(), 2u);  // of shard 1
  }
  const AtomicFile left(folder_ / "shards" / "2.bin");  // by a killed writer
  EXPECT_TRUE(Finish(1) == unbroken);
  EXPECT_FALSE(fs::exists(left.temporary_path()));
}

TEST_F(Store, KnowsShardsWithoutTheirBadDocuments) {
  const ShardStore store(folder_, kShardVocabSize);
  for (const int64_t bad : {0, 1}) {
    ShardWriter writer(folder_, bad, kShardVocabSize);
    ShardRecord about;
    about.digest = "digest";
    about.bad = bad;
    writer.Commit(about);
  }
  EXPECT_TRUE(store.Has(0, "digest", /*with_bad=*/false));
  EXPECT_TRUE(store.Has(1, "digest", /*with_bad=*/true));
  EXPECT_FALSE(store.Has(1, "digest", /*with_bad=*/false));
}

// A single shard takes its disk space once, even if a kill comes in between.
TEST_F(Store, TakesTheFirstShardAsItIs) {
  const auto unbroken = Unbroken();
  const fs::path kept = FreshFolder("kept"), shards = folder_ / "shards";
  {
    ShardStore store(folder_, kShardVocabSize);
    Encode(folder_, 0);
    for (const char* name : {"0.bin", "0.rest"}) {
      fs::create_hard_link(shards / name, kept / name);
    }
    store.AppendNext();
  }
  EXPECT_TRUE(fs::equivalent(kept / "0.bin", folder_ / "tokens.bin"));
  fs::rename(folder_ / "tokens.bin", shards / "0.bin");
  fs::copy(kept / "0.rest", shards / "0.rest");
  EXPECT_TRUE(ShardStore(folder_, kShardVocabSize).Has(0, "digest 0"));
  EXPECT_TRUE(Finish() == unbroken);
}

// Whatever a kill left in the files, the bytes after the last whole shard are
// cut, and damaged shards are made again.
TEST_F(Store, BelievesOnlyWhatIsWhole) {
  const auto unbroken = Unbroken();
  const auto append = [&](int64_t count) {
    ShardStore store(folder_, kShardVocabSize);
    for (int64_t i = 0; i < count; ++i) {
      Encode(folder_, i);
      store.AppendNext();
    }
  };
  const auto change = [&](const char* name, const auto& change) {
    std::string bytes = ReadWholeFile(folder_ / name);
    change(&bytes);
    WriteFileAtomically(folder_ / name, bytes);
  };
  const auto cut = [](std::string* bytes) { bytes->pop_back(); };
  const auto add = [](std::string* bytes) { *bytes += "torn"; };
  const auto restart = [&] {
    folder_ = FreshFolder("store");
    append(3);
  };
  for (const char* name :
       {"tokens.bin", "lengths", "documents", "appended.jsonl"}) {
    restart();
    change(name, cut);
    EXPECT_TRUE(Finish(2) == unbroken) << name;
    restart();
    change(name, add);
    EXPECT_TRUE(Finish(3) == unbroken) << name;
  }
  restart();
  change("tokens.bin", [](std::string* bytes) { (*bytes)[4] ^= 1; });
  EXPECT_TRUE(Finish(1) == unbroken);
  // Lengths that did not reach the disk: those of the third shard, and all.
  for (const auto& [lost, kept] : {std::pair(3, 2), std::pair(6, 0)}) {
    restart();
    const size_t count = 4 * static_cast<size_t>(lost);
    change("lengths", [count](std::string* bytes) {
      bytes->replace(bytes->size() - count, count, count, '\0');
    });
    EXPECT_TRUE(Finish(kept) == unbroken) << lost;
  }
  restart();
  change("appended.jsonl", [](std::string* bytes) {
    bytes->replace(bytes->find("\"bad\""), 5, "\"bat\"");
  });
  EXPECT_TRUE(Finish(0) == unbroken);
}

TEST_F(Store, DoesNotTakeADamagedShard) {
  const auto unbroken = Unbroken();
  for (const std::string name : {"0.bin", "0.rest"}) {
    folder_ = FreshFolder("store");
    ShardStore store(folder_, kShardVocabSize);
    Encode(folder_, 0);
    const fs::path path = folder_ / "shards" / name;
    std::string bytes = ReadWholeFile(path);
    if (name == "0.bin") bytes[bytes.size() / 2] ^= 1;
    if (name == "0.rest") bytes.pop_back();
    WriteFileAtomically(path, bytes);
    EXPECT_FALSE(store.Has(0, "digest 0")) << name;
    EXPECT_TRUE(Finish(0) == unbroken) << name;
  }
}

TEST_F(Store, ForgetsShardsThatChanged) {
  const auto unbroken = Unbroken();
  {
    ShardStore store(folder_, kShardVocabSize);
    for (int64_t i = 0; i < 3; ++i) {
      Encode(folder_, i);
      store.AppendNext();
    }
  }
  std::vector<std::string> asked;
  {
    const ShardStore store(folder_, kShardVocabSize,
                           [&](const ShardRecord& record) {
                             asked.push_back(record.digest);
                             return asked.size() < 2;
                           });
    EXPECT_EQ(store.appended().size(), 1u);
  }
  EXPECT_EQ(asked, (std::vector<std::string>{"digest 0", "digest 1"}));
  EXPECT_TRUE(Finish(1) == unbroken);
}

// The hash of all tokens covers the kept shards and those made again.
TEST_F(Store, AShardWhoseTokensChangedIsMadeAgain) {
  const auto unbroken = Unbroken();
  {
    ShardStore store(folder_, kShardVocabSize);
    for (int64_t i = 0; i < 3; ++i) {
      Encode(folder_, i);
      store.AppendNext();
    }
  }
  std::string tokens = ReadWholeFile(folder_ / "tokens.bin");
  tokens[tokens.size() - 1] ^= 1;  // of the third shard
  WriteFileAtomically(folder_ / "tokens.bin", tokens);
  EXPECT_TRUE(Finish(2) == unbroken);
}

TEST_F(Store, DoesNotFinishWithDamagedLengths) {
  const auto unbroken = Unbroken();
  {
    ShardStore store(folder_, kShardVocabSize);
    for (int64_t i = 0; i < 5; ++i) {
      Encode(folder_, i);
      store.AppendNext();
    }
    std::string lengths = ReadWholeFile(folder_ / "lengths");
    ++lengths[4];  // of the second shard
    WriteFileAtomically(folder_ / "lengths", lengths);
    EXPECT_TRUE(
        Says(MessageOf<DataError>([&] { store.Finish(folder_ / "out"); }),
             (folder_ / "lengths").string(), "add up to 41 tokens, but 40"));
  }
  EXPECT_TRUE(Finish(1) == unbroken);
}

// All numbers are sorted at a time, or half of them, or a third.
TEST_F(Store, CountsWhatIsRepeated) {
  const fs::path path = folder_ / "numbers";
  const auto count = [&](const std::vector<uint64_t>& numbers, int64_t sorted) {
    WriteFileAtomically(path, {reinterpret_cast<const char*>(numbers.data()),
                               numbers.size() * sizeof(uint64_t)});
    return CountRepeated(InputFile(path), sorted);
  };
  std::vector<uint64_t> numbers;
  for (uint64_t i = 0; i < 1000; ++i) numbers.push_back(~(i * i % 97));
  const auto distinct =
      std::ssize(std::set<uint64_t>(numbers.begin(), numbers.end()));
  for (const int64_t sorted : {1, 3, 600, 1000, 2000}) {
    EXPECT_EQ(count(numbers, sorted), 1000 - distinct) << sorted;
    EXPECT_EQ(count({5, 5, 6, 5, 7, 6}, sorted), 3) << sorted;
    EXPECT_EQ(count({1, 2, 3, 4, 5}, sorted), 0) << sorted;
    EXPECT_EQ(count({}, sorted), 0) << sorted;
  }
}

TEST_F(Store, NamesAFileThatItCannotOpen) {
  fs::create_directory(folder_ / "lengths");
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>(
                       [&] { ShardStore(folder_, kShardVocabSize); }),
                   (folder_ / "lengths").string(), "Is a directory"));
}

TEST(DigestSum, DoesNotDependOnTheOrderAndCountsTwice) {
  Sha256Digest one = {}, most;
  one[31] = 1;
  most.fill(0xFF);
  DigestSum sum, other;
  sum.Add(one);
  sum.Add(one);
  EXPECT_EQ(sum.Hex(), std::string(63, '0') + "2");
  other.Add(most);
  EXPECT_EQ(other.Hex(), std::string(64, 'f'));
  other.Add(one);  // carries through all words, and is lost
  EXPECT_EQ(other.Hex(), std::string(64, '0'));
  other.Add(most);
  other.Add(sum);
  EXPECT_EQ(other.Hex(), std::string(63, '0') + "1");
  EXPECT_EQ(ParseDigestSum(sum.Hex()).Hex(), sum.Hex());
  for (const std::string bad : {"", "0", std::string(64, 'g').c_str()}) {
    EXPECT_THROW(ParseDigestSum(bad), DataError);
  }
}

TEST_F(Store, ManifestsAreRefusedIfChanged) {
  Finish();
  const fs::path path = folder_ / "out.manifest";
  const std::string whole = ReadWholeFile(path);
  const auto error = [&](const std::string& text) {
    WriteFileAtomically(path, text);
    return MessageOf<DataError>([&] { ReadManifest(path); });
  };
  EXPECT_EQ(error(whole), kNoError);
  EXPECT_TRUE(Says(error(""), "out.manifest: its last line", "prepare_data"));
  const size_t second = whole.find('\n') + 1;
  EXPECT_TRUE(Says(error(whole.substr(second)), "damaged, or changed"));
  std::string text = whole;
  text.replace(text.rfind("\"version\":1"), 11, "\"version\":2");
  EXPECT_TRUE(Says(error(text), "of another version"));
  text = whole;
  text.replace(text.find("\"documents\":"), 12, "\"documentz\":");
  EXPECT_TRUE(Says(error(text), "out.manifest:1: \"documents\" is missing"));
  text = whole;
  text.insert(text.find("\"documents_sum\":\"") + 17, "x");
  EXPECT_TRUE(Says(error(text), "out.manifest:1: \"x"));
  // No count is above 2^40.
  text = Replaced(whole, "\"bytes\":10,", "\"bytes\":1099511627777,");
  EXPECT_TRUE(Says(error(text), "out.manifest:1: a count of 1099511627777"));
  text = Replaced(whole, "\"bytes\":10,", "\"bytes\":1099511627776,");
  EXPECT_TRUE(Says(error(text), "damaged, or changed"));
  text = whole;
  text.replace(text.find("\"tokens\":2"), 10, "\"tokens\":3");
  EXPECT_TRUE(Says(error(text), "damaged, or changed"));
  // 2^64 - 1 has the bits of -1.
  const size_t end = whole.rfind('{');
  nlohmann::ordered_json sums = ParseJsonObject(whole.substr(end));
  sums["repeated"] = -1;
  sums = Sealed(sums);
  sums["repeated"] = std::numeric_limits<uint64_t>::max();
  text = whole.substr(0, end) + JsonLine(sums) + "\n";
  EXPECT_TRUE(Says(error(text), "damaged, or changed"));
}

}  // namespace
}  // namespace softmoe::trainer
