// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/prepare.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
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
#include "trainer/testing/corpus_test_util.h"
#include "trainer/tokens/manifest.h"
#include "trainer/tokens/shard_store.h"
#include "trainer/tokens/token_disk.h"
#include "trainer/tokens/token_file.h"
#include "trainer/tokens/tokenizer.h"
#include "trainer/tokens/tokenizer_sample.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

constexpr int64_t kVocabSize = 400;

class Prepare : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = FreshFolder("prepare");
    documents_ = TestDocuments(600);
    WriteText(TestText(documents_));
    data_.corpus = "path:" + (folder_ / "t.txt").string();
  }
  void WriteText(const std::string& text) {
    WriteFileAtomically(folder_ / "t.txt", text);
  }
  PreparedCorpus Run(int64_t threads = 1, const std::string& cache = "cache") {
    PrepareOptions options;
    options.cache = folder_ / cache;
    options.threads = threads;
    options.quiet = true;
    options.notify = notify_;
    options.read.on_bad = on_bad_;
    return PrepareCorpus(data_, kVocabSize, options);
  }
  // The name of a folder of the cache. The 6 is that of kPreparationVersion.
  std::string Key(const std::string& text) const {
    return Sha256Hex("6\npath\n" + text + "\n400\n" +
                     std::to_string(data_.max_bytes) + "\n")
        .substr(0, 32);
  }
  // Where Run works.
  fs::path WorkFolder() const {
    return folder_ / "cache" / "tokens" / (Key(data_.corpus) + ".work");
  }

  fs::path folder_;
  Strings documents_;
  DataConfig data_;
  OnBad on_bad_ = OnBad::kFail;
  std::function<void(const std::string&)> notify_ = [](const std::string&) {};
};

TEST_F(Prepare, TokensAreTheDocuments) {
  const PreparedCorpus corpus = Run();
  const TokenFile file(corpus.prefix, kVocabSize);
  const Tokenizer tokenizer =
      Tokenizer::FromFile(WithSuffix(corpus.prefix, ".model"));
  EXPECT_EQ(tokenizer.vocab_size(), kVocabSize);
  ASSERT_EQ(file.num_documents(), 600);
  int64_t bytes = 0;
  for (int64_t d = 0; d < 600; ++d) {
    const int64_t begin = file.DocumentBegin(d);
    std::vector<int32_t> ids(
        static_cast<size_t>(file.DocumentBegin(d + 1) - begin));
    file.Read(begin, static_cast<int64_t>(ids.size()), ids.data());
    ASSERT_EQ(ids.back(), tokenizer.end_of_document());
    ids.pop_back();
    ASSERT_EQ(tokenizer.Decode(ids), documents_[static_cast<size_t>(d)]);
    bytes += static_cast<int64_t>(documents_[static_cast<size_t>(d)].size());
  }
  EXPECT_EQ(corpus.num_documents, 600);
  EXPECT_EQ(corpus.num_tokens, file.num_tokens());
  EXPECT_EQ(corpus.text_bytes, bytes);
  std::string text;
  for (const std::string& document : documents_) text += document + '\0';
  EXPECT_EQ(corpus.corpus_sha256, Sha256Hex(text));
  EXPECT_FALSE(corpus.stand_in);
  EXPECT_TRUE(Says(corpus.provenance, "t.txt"));
  EXPECT_EQ(ReadPreparedCorpus(corpus.prefix).corpus, data_.corpus);
}

TEST_F(Prepare, SameBytesForAnyNumberOfThreads) {
  const PreparedCorpus one = Run(1, "one");
  const PreparedCorpus three = Run(3, "three");
  EXPECT_EQ(one.tokens.data_sha256, three.tokens.data_sha256);
  EXPECT_EQ(one.tokens.index_sha256, three.tokens.index_sha256);
  EXPECT_EQ(one.tokens.tokenizer_sha256, three.tokens.tokenizer_sha256);
  EXPECT_EQ(one.corpus_sha256, three.corpus_sha256);
}

// The command in the message makes what the message says is missing.
TEST_F(Prepare, OnlyFindsAndSaysWhatMakesTheRest) {
  const fs::path shard = folder_ / "c4" / "c4-train.0.json";
  fs::create_directory(shard.parent_path());
  WriteFileAtomically(shard, "{\"text\": \"one\"}\n");
  data_.corpus = "c4";
  data_.max_bytes = 9;
  data_.normalise = Normalise::kHfOpenWebText;
  PrepareOptions options;
  options.cache = folder_ / "cache";
  options.places = {{"c4", shard.parent_path()}};
  options.quiet = options.only_find = true;
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>(
                       [&] { PrepareCorpus(data_, kVocabSize, options); }),
                   "`./bazelw run //:prepare_data -- --corpus c4 --place c4=" +
                       shard.parent_path().string() +
                       " --vocab-size 400 --normalise hf_openwebtext "
                       "--max-bytes 9`"));
}

TEST_F(Prepare, TakesTheDiskThatIsExpected) {
  const PreparedCorpus corpus = Run();
  const auto size = [&](const char* suffix) {
    return static_cast<int64_t>(
        fs::file_size(WithSuffix(corpus.prefix, suffix)));
  };
  const TokenDisk disk =
      DiskForTokens(corpus.text_bytes,
                    static_cast<double>(corpus.text_bytes) /
                        static_cast<double>(corpus.num_tokens - 600),
                    600, kVocabSize);
  EXPECT_NEAR(static_cast<double>(disk.tokens),
              static_cast<double>(size(".bin")), 2);
  EXPECT_EQ(disk.index + 34 + 8, size(".idx"));  // header, the first boundary
  // Only the length of this text is known, and a token is a byte or more.
  const auto expected =
      ExpectedDisk(data_, kVocabSize, SizeOfCorpus(data_.corpus, folder_));
  ASSERT_TRUE(expected);
  EXPECT_TRUE(expected->at_most);
  EXPECT_GE(expected->total(), size(".bin") + size(".idx"));
  EXPECT_LT(expected->tokens, 20 * size(".bin"));
}

// The refusal comes before the first pass, which takes minutes. Ids of four
// bytes take 800 GB for C4.
TEST_F(Prepare, RefusesACorpusForWhichThereIsNoRoom) {
  if (FreeDiskBytes(folder_) > 798'000'000'000) GTEST_SKIP() << "a large disk";
  data_.corpus = "c4";
  const fs::path folder = folder_ / "cache" / "corpora" / "c4";
  fs::create_directories(folder);
  const fs::path file = folder / "c4-train.00000-of-01024.json.gz";
  WriteGzip(file, "{}");
  fs::resize_file(file, 326'778'635'540);  // sparse
  PrepareOptions options;
  options.cache = folder_ / "cache";
  options.notify = notify_;
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>(
                       [&] { PrepareCorpus(data_, 100'000, options); }),
                   "MB free, but preparing corpus c4 takes about 798756 MB",
                   "XDG_CACHE_HOME"));
}

// Later the first pass tells how much there is: here as if it had read 4 of 10
// bytes, all of them and more, or none. What the work holds already, here 3 GB,
// is not needed once more.
TEST_F(Prepare, RefusesACorpusThatTheFirstPassFindsTooLarge) {
  WriteText("a document");
  const auto expect_refused = [&](int64_t read, const std::string& megabytes) {
    fs::create_directories(WorkFolder());
    WriteFileAtomically(WorkFolder() / "model", "any");
    WriteFileAtomically(
        WorkFolder() / "model.json",
        JsonLine({{"digests", Strings{Sha256OfFile(folder_ / "t.txt")}},
                  {"documents", 10'000'000'000'000'000},
                  {"text_bytes", 400'000'000'000'000'000},
                  {"input_bytes", read},
                  {"bytes_per_token", 4},
                  {"model_sha256", Sha256Hex("any")}}));
    const std::string text = MessageOf<EnvironmentError>([&] { Run(); });
    EXPECT_TRUE(
        Says(text, (folder_ / "cache").string() + ": ",
             " MB free, but preparing corpus " + data_.corpus +
                 " takes about " + megabytes +
                 " MB; free some, set XDG_CACHE_HOME to a folder on a larger "
                 "disk, or use less of the corpus (data.max_bytes)"));
    EXPECT_LT(std::stoll(text.substr(text.find(": ") + 2)), 10'000'000'000);
  };
  const fs::path shards = WorkFolder() / "shards";
  fs::create_directories(shards);
  WriteFileAtomically(shards / "0", "");
  fs::resize_file(shards / "0", 3'000'000'000);  // sparse
  // All is 2 bytes for each of 1.1e17 tokens, a tenth of that, and 32 bytes for
  // each of 1e16 documents; and 16 MiB.
  expect_refused(20, "561999997016");
  expect_refused(4, "1404999997016");
  expect_refused(0, "5619999997016");
  EXPECT_EQ(FilesIn(WorkFolder()), (Strings{"model", "model.json", "shards"}));
  data_.max_bytes = 1000;  // of text: 250 tokens besides ends of documents
  expect_refused(20, "342000000016");
}

// One of two works at a time; the other says so, and can be stopped meanwhile.
TEST_F(Prepare, WaitsForWhoPreparesTheSameCorpus) {
  const fs::path work = WorkFolder();
  fs::create_directories(work / kLockName);  // in the way of the file
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { Run(); }),
                   (work / kLockName).string()));
  fs::remove(work / kLockName);
  std::optional<FolderLock> other(std::in_place, work);
  Strings notes;
  {
    const StopSignal stop;
    notify_ = [&](const std::string& line) {
      notes.push_back(line);
      ::raise(SIGTERM);
    };
    EXPECT_EQ(MessageOf<StoppedError>([&] { Run(); }),
              "SIGTERM: no token files have been written yet; the same command "
              "continues, and keeps the finished shards");
  }
  EXPECT_EQ(notes, (Strings{"waiting for " + Describe(HolderOf(work).value()) +
                            ", which prepares the same corpus"}));
  notify_ = [&](const std::string& line) {
    if (line.starts_with("waiting")) other.reset();
    EXPECT_FALSE(other) << line;
    if (line.starts_with("training")) {
      EXPECT_TRUE(HolderOf(work)) << "it works without the lock";
    }
  };
  EXPECT_FALSE(Run().from_cache);
}

TEST_F(Prepare, FindsItsWorkAgain) {
  std::string notes;
  notify_ = [&](const std::string& line) { notes += line + "\n"; };
  const PreparedCorpus first = Run();
  // Under another key, all would be prepared again after an update.
  EXPECT_EQ(first.prefix.parent_path().filename(),
            Key(Sha256OfFile(folder_ / "t.txt")));
  EXPECT_FALSE(Says(notes, "making it again"));
  notes.clear();
  const PreparedCorpus second = Run();
  EXPECT_EQ(notes, "");
  EXPECT_FALSE(first.from_cache);
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(first.prefix, second.prefix);
  EXPECT_EQ(first.tokens.data_sha256, second.tokens.data_sha256);
}

TEST_F(Prepare, FindsTheWorkOnACopyOfTheText) {
  const PreparedCorpus first = Run();
  fs::copy_file(folder_ / "t.txt", folder_ / "copy.txt");
  data_.corpus = "path:" + (folder_ / "copy.txt").string();
  const PreparedCorpus copy = Run();
  EXPECT_TRUE(copy.from_cache);
  EXPECT_EQ(copy.prefix, first.prefix);
}

// A copy that others may already use is not replaced.
TEST_F(Prepare, TakesWhatIsPreparedMeanwhileUnderAnotherName) {
  const std::string name = data_.corpus;
  fs::copy_file(folder_ / "t.txt", folder_ / "copy.txt");
  PreparedCorpus other;
  const auto nothing = notify_;
  notify_ = [&](const std::string& line) {
    if (!line.starts_with("training a tokenizer")) return;
    notify_ = nothing;
    data_.corpus = "path:" + (folder_ / "copy.txt").string();
    other = Run();
    data_.corpus = name;
  };
  const PreparedCorpus prepared = Run();
  EXPECT_FALSE(other.from_cache);
  EXPECT_TRUE(prepared.from_cache);
  EXPECT_EQ(prepared.prefix, other.prefix);
  EXPECT_EQ(FilesIn(folder_ / "cache" / "tokens").size(), 1u);
}

TEST_F(Prepare, OtherTextOrSizeIsOtherWork) {
  const PreparedCorpus first = Run();
  WriteText(TestText(TestDocuments(600, 2)));
  const PreparedCorpus other_text = Run();
  EXPECT_FALSE(other_text.from_cache);
  EXPECT_NE(other_text.tokens.data_sha256, first.tokens.data_sha256);
  data_.max_bytes = 20000;
  const PreparedCorpus less = Run();
  EXPECT_FALSE(less.from_cache);
  EXPECT_LE(less.text_bytes, 20000);
  EXPECT_GT(less.text_bytes, 20000 - 1000);  // no document is that long
}

TEST_F(Prepare, NeverUsesADamagedCacheEntry) {
  const PreparedCorpus first = Run();
  for (const std::string suffix :
       {".bin", ".idx", ".model", ".manifest", ".json"}) {
    const fs::path path = WithSuffix(first.prefix, suffix);
    const std::string bytes = ReadWholeFile(path);
    WriteFileAtomically(path, bytes.substr(0, bytes.size() / 2));
    const PreparedCorpus again = Run();
    EXPECT_FALSE(again.from_cache) << suffix;
    EXPECT_EQ(again.tokens.data_sha256, first.tokens.data_sha256);
    fs::remove(path);
    EXPECT_FALSE(Run().from_cache) << suffix;
    EXPECT_EQ(ReadWholeFile(path), bytes);
  }
}

TEST_F(Prepare, FullDiskLeavesNoEntry) {
  {
    const FullDisk disk(10000);
    EXPECT_THROW(Run(), EnvironmentError);
  }
  EXPECT_EQ(FilesIn(folder_ / "cache" / "tokens"), Strings{});
  EXPECT_FALSE(Run().from_cache);
}

TEST_F(Prepare, StopsOnASignalAndLeavesNoEntry) {
  {
    const StopSignal stop;
    ::raise(SIGTERM);
    EXPECT_THROW(Run(), StoppedError);
  }
  EXPECT_EQ(FilesIn(folder_ / "cache" / "tokens"), Strings{});
  EXPECT_FALSE(Run().from_cache);
}

// A terminal signals dpkg-deb, too, which then fails; the package is whole.
TEST_F(Prepare, StopsOnASignalThatEndsWhatUnpacks) {
  const FakeAptGet apt(folder_ / "bin", "exit 100");
  WriteFileAtomically(folder_ / "bin" / "dpkg-deb",
                      "#!/bin/sh\nkill -INT $PPID; exit 2\n");
  fs::permissions(folder_ / "bin" / "dpkg-deb", fs::perms::owner_all);
  const fs::path packages = folder_ / "cache" / "corpora" / "packages";
  fs::create_directories(packages);
  WriteFileAtomically(packages / "dict-foldoc_1_all.deb", "a package");
  data_.corpus = "foldoc";
  const StopSignal stop;
  EXPECT_TRUE(Says(MessageOf<StoppedError>([&] { Run(); }),
                   "SIGINT: no token files have been written yet"));
}

// Training one takes minutes if the text is large.
TEST_F(Prepare, KeepsATokenizerOnASignal) {
  int trained = 0;
  {
    const StopSignal stop;
    notify_ = [&](const std::string& line) {
      if (!line.starts_with("training a tokenizer")) return;
      ++trained;
      ::raise(SIGTERM);
    };
    EXPECT_THROW(Run(), StoppedError);
  }
  notify_ = [&](const std::string& line) {
    trained += line.starts_with("training a tokenizer");
  };
  {
    const FullDisk disk(10000);
    EXPECT_THROW(Run(), EnvironmentError);
  }
  EXPECT_FALSE(Run().from_cache);
  EXPECT_EQ(trained, 1);
}

// A process that waits for another makes the work folder anew, and then finds
// that everything is done.
TEST_F(Prepare, LeavesNoWorkWhereItWasPreparedMeanwhile) {
  const PreparedCorpus first = Run();
  fs::remove(WithSuffix(first.prefix, ".idx"));
  PreparedCorpus other;
  const auto nothing = notify_;
  notify_ = [&](const std::string& line) {
    if (!line.starts_with("making it again")) return;
    notify_ = nothing;
    other = Run();
  };
  EXPECT_TRUE(Run().from_cache);
  EXPECT_FALSE(other.from_cache);
  EXPECT_EQ(FilesIn(folder_ / "cache" / "tokens").size(), 1u);
}

TEST_F(Prepare, KeepsATokenizerWhileAnotherTextIsPrepared) {
  Strings trained;
  const auto count = [&](const std::string& line) {
    const bool trains = line.starts_with("training a tokenizer");
    if (trains) trained.push_back(data_.corpus);
    return trains;
  };
  const std::string name = data_.corpus;
  {
    const StopSignal stop;
    notify_ = [&](const std::string& line) {
      if (count(line)) ::raise(SIGTERM);
    };
    EXPECT_THROW(Run(), StoppedError);
  }
  notify_ = count;
  const std::string other = "path:" + (folder_ / "other.txt").string();
  WriteFileAtomically(folder_ / "other.txt", TestText(TestDocuments(600, 2)));
  for (const std::string& corpus : {other, name}) {
    data_.corpus = corpus;
    EXPECT_FALSE(Run().from_cache);
  }
  EXPECT_EQ(trained, (Strings{name, other}));
}

TEST_F(Prepare, RefusesEmptyAndBinaryText) {
  WriteText("\n\n");
  EXPECT_THROW(Run(), DataError);
  WriteText("text \xFF\xFE");
  EXPECT_THROW(Run(), DataError);
  WriteText("too little text for 400 pieces");
  EXPECT_THROW(Run(), DataError);
  WriteText(TestText(documents_));
  data_.max_bytes = 3;
  EXPECT_THROW(Run(), DataError);
  EXPECT_EQ(FilesIn(folder_ / "cache" / "tokens"), Strings{});
}

TEST_F(Prepare, TextThatChangesMeanwhileIsNotKept) {
  // A longer text, a shorter one, and another one of the same length, each put
  // in place between the two passes.
  const std::string old = TestText(documents_);
  std::string other = old;
  std::swap(other[0], other[1]);
  for (const std::string& changed :
       {TestText(TestDocuments(601)), TestText(TestDocuments(300)), other}) {
    WriteText(old);
    notify_ = [&](const std::string& line) {
      if (line.starts_with("training a tokenizer")) WriteText(changed);
    };
    EXPECT_TRUE(Says(MessageOf<DataError>([&] { Run(); }), "t.txt",
                     "changed while it was read"))
        << changed.size();
    EXPECT_EQ(FilesIn(folder_ / "cache" / "tokens"), Strings{});
  }
  notify_ = [](const std::string&) {};
  WriteText(old);
  EXPECT_FALSE(Run().from_cache);
}

TEST_F(Prepare, WhatKilledProcessesLeftIsRemoved) {
  const PreparedCorpus first = Run();
  const Strings tokens = FilesIn(folder_ / "cache" / "tokens");
  fs::create_directory(folder_ / "cache" / "tokens" / ".KEY.partial-abcdef");
  EXPECT_TRUE(Run().from_cache);
  EXPECT_EQ(FilesIn(folder_ / "cache" / "tokens"), tokens);
}

TEST_F(Prepare, SaysWhatIsWrongWithTextWithoutDocuments) {
  WriteText("<|endoftext|>\n\n<|endoftext|>\n");
  const auto says = [&] { return MessageOf<DataError>([&] { Run(); }); };
  EXPECT_EQ(says(), "corpus " + data_.corpus +
                        ": it holds no document, at most document separators; "
                        "give a text with documents");
  // All are left out: the reason tells that the text has another name.
  const std::string lines = (folder_ / "t.jsonl").string();
  WriteFileAtomically(lines, R"({"text":""})"
                             "\n"
                             R"({"body":"b"})");
  data_.corpus = "jsonl:" + lines;
  on_bad_ = OnBad::kSkip;
  const std::string besides =
      " besides 1 bad and 1 empty ones (" + lines +
      ":2: no JSON object with a string named \"text\", but with \"body\": "
      "`//:prepare_data --text-key` says which is the document)";
  EXPECT_EQ(says(), "corpus " + data_.corpus + ": it holds no document" +
                        besides + "; give a text with documents");
  data_.max_bytes = 5;
  EXPECT_EQ(says(), "corpus " + data_.corpus + ": no document" + besides +
                        " fits into data.max_bytes = 5; raise it");
}

// A corpus of several shards, some larger than others.
class PrepareShards : public Prepare {
 protected:
  static constexpr int kShards = 7;

  void SetUp() override {
    Prepare::SetUp();
    data_.corpus = "jsonl:" + (folder_ / "shards").string();
    fs::create_directories(folder_ / "shards");
    for (int i = 0; i < kShards; ++i) WriteShard(i, Lines(i));
    notify_ = [this](const std::string& line) { notes_ += line + "\n"; };
  }
  static std::string Line(const std::string& text) {
    return nlohmann::json{{"text", text}}.dump() + "\n";
  }
  static std::string Lines(int i) {
    std::string lines;
    for (const auto& text : TestDocuments(60 + 40 * i, i)) lines += Line(text);
    return lines;
  }
  void WriteShard(int i, const std::string& lines) {
    WriteGzip(folder_ / "shards" / (std::to_string(i) + ".json.gz"), lines);
  }
  // Prepares up to a bad shard, which is then replaced; returns the work
  // folder.
  fs::path LeaveFourShards() {
    const auto notify = notify_;
    notify_ = [this](const std::string& line) {
      // The first pass has read it by then.
      if (line.starts_with("training")) WriteShard(4, "{\n");
    };
    EXPECT_THROW(Run(2), DataError);
    notify_ = notify;
    WriteShard(4, Lines(4));
    const fs::path tokens = folder_ / "cache" / "tokens";
    return tokens / FilesIn(tokens).at(0);
  }
  static void ExpectEqual(const PreparedCorpus& a, const PreparedCorpus& b) {
    for (const char* suffix : {".bin", ".idx", ".model", ".manifest"}) {
      EXPECT_TRUE(ReadWholeFile(WithSuffix(a.prefix, suffix)) ==
                  ReadWholeFile(WithSuffix(b.prefix, suffix)))
          << suffix;
    }
    EXPECT_EQ(a.corpus_sha256, b.corpus_sha256);
  }
  std::string notes_;
};

TEST_F(PrepareShards, SameBytesForAnyNumberOfThreads) {
  // More text than the tokenizer is trained on.
  std::string lines;
  for (const auto& text : TestDocuments(20000, kShards)) lines += Line(text);
  ASSERT_GT(std::ssize(lines), TokenizerSampleBytes(kVocabSize));
  WriteShard(2, lines);
  const PreparedCorpus one = Run(1, "one");
  ExpectEqual(one, Run(3, "three"));
  ExpectEqual(one, Run(20, "twenty"));
}

// All documents are in order, and the manifest has what each shard gave.
TEST_F(PrepareShards, TokensAreTheDocumentsInTheOrderOfTheShards) {
  WriteShard(2, Line("twice") + Line("") + Line("twice") + Lines(2));
  const PreparedCorpus corpus = Run(2);
  const TokenFile file(corpus.prefix, kVocabSize);
  const Tokenizer tokenizer =
      Tokenizer::FromFile(WithSuffix(corpus.prefix, ".model"));
  const Manifest manifest =
      ReadManifest(WithSuffix(corpus.prefix, ".manifest"));
  ASSERT_EQ(manifest.shards.size(), size_t{kShards});
  int64_t d = 0, begin = 0;
  for (int i = 0; i < kShards; ++i) {
    const ShardRecord& shard = manifest.shards[static_cast<size_t>(i)];
    Strings documents = TestDocuments(60 + 40 * i, i);
    if (i == 2) documents.insert(documents.begin(), {"twice", "twice"});
    EXPECT_EQ(shard.name, std::to_string(i) + ".json.gz");
    EXPECT_EQ(shard.sha256, Sha256OfFile(folder_ / "shards" / shard.name));
    EXPECT_EQ(shard.bytes, static_cast<int64_t>(std::filesystem::file_size(
                               folder_ / "shards" / shard.name)));
    EXPECT_EQ(shard.documents, static_cast<int64_t>(documents.size()));
    EXPECT_EQ(shard.empty, i == 2 ? 1 : 0);
    for (const std::string& document : documents) {
      ASSERT_EQ(file.DocumentBegin(d), begin);
      std::vector<int32_t> ids = tokenizer.Encode(document);
      ids.push_back(tokenizer.end_of_document());
      std::vector<int32_t> read(ids.size());
      file.Read(begin, static_cast<int64_t>(read.size()), read.data());
      ASSERT_EQ(read, ids) << d;
      begin += static_cast<int64_t>(ids.size());
      ++d;
    }
  }
  EXPECT_EQ(corpus.num_documents, d);
  EXPECT_EQ(corpus.num_tokens, begin);
  // The grammar repeats documents, too.
  std::set<std::string> distinct = {"twice"};
  for (int i = 0; i < kShards; ++i) {
    for (auto& text : TestDocuments(60 + 40 * i, i)) distinct.insert(text);
  }
  EXPECT_EQ(manifest.repeated, d - static_cast<int64_t>(distinct.size()));
}

// The sum of the documents' hashes depends only on the text, not on its form.
TEST_F(PrepareShards, TheSameTextInAnotherFormHasTheSameSum) {
  const auto sum = [](const PreparedCorpus& corpus) {
    return Total(ReadManifest(WithSuffix(corpus.prefix, ".manifest")).shards)
        .documents_sum;
  };
  const std::string shards = sum(Run(2, "shards"));
  std::string all;
  for (int i = kShards; i > 0; --i) all += Lines(i - 1);
  WritePacked(folder_ / "all.jsonl.zst", all, "zstd");
  data_.corpus = "jsonl:" + (folder_ / "all.jsonl.zst").string();
  EXPECT_EQ(sum(Run(2, "one")), shards);
  WritePacked(folder_ / "all.jsonl.zst", all + Line("more"), "zstd");
  EXPECT_NE(sum(Run(2, "more")), shards);
}

// In the forms of its publishers and of mirrors: one tar, with documents packed
// together or plain.
TEST_F(PrepareShards, OpenWebTextGivesTheTokensOfItsDocuments) {
  ArchiveMembers plain;
  std::string lines;
  for (const std::string& text : documents_) {
    plain.emplace_back(std::to_string(plain.size()) + ".txt", text);
    lines += Line(text);
  }
  plain.emplace_back("empty.txt", "");
  const auto packed = [&](int64_t begin, int64_t end) {
    return Tar({plain.begin() + begin, plain.begin() + end}, true);
  };
  WriteFileAtomically(folder_ / "documents.jsonl", lines);
  WriteFileAtomically(folder_ / "plain.tar", Tar(plain, false));
  WriteFileAtomically(folder_ / "packed.tar",
                      Tar({{"0_data.xz", packed(0, 200)},
                           {"1_data.xz", packed(200, 450)},
                           {"2_data.xz", packed(450, 601)}},
                          false));
  data_.corpus = "jsonl:" + (folder_ / "documents.jsonl").string();
  const PreparedCorpus documents = Run(2, "documents");
  for (const std::string name : {"plain", "packed"}) {
    data_.corpus = "owt:" + (folder_ / (name + ".tar")).string();
    const PreparedCorpus archive = Run(2, name);
    EXPECT_EQ(archive.text_of, "a part of owt: 601 of 8013769 documents");
    for (const char* suffix : {".bin", ".idx", ".model"}) {
      EXPECT_TRUE(ReadWholeFile(WithSuffix(archive.prefix, suffix)) ==
                  ReadWholeFile(WithSuffix(documents.prefix, suffix)))
          << name << suffix;
    }
  }
}

// Shards finished before a bad one are not lost: once the bad one is replaced,
// only it and those after it are read again.
TEST_F(PrepareShards, GoesOnBehindWhatIsFinished) {
  const PreparedCorpus unbroken = Run(1, "unbroken");
  notify_ = [this](const std::string& line) {
    notes_ += line + "\n";
    // The first pass has read it by then.
    if (line.starts_with("training")) WriteShard(4, Lines(4) + "{\n");
  };
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { Run(2); }),
                   "4.json.gz:221: ", "--on-bad=skip"));
  EXPECT_FALSE(Says(notes_, "continuing after"));
  WriteShard(4, Lines(4));
  ExpectEqual(Run(2), unbroken);
  EXPECT_TRUE(Says(notes_, "continuing after 4 finished shards"));
}

// Refused before a shard is encoded, as by a full disk.
TEST_F(PrepareShards, KeepsWhatIsFinishedWhenItIsRefused) {
  const PreparedCorpus unbroken = Run(1, "unbroken");
  const fs::path work = LeaveFourShards();
  // A folder in place of a file to which the work appends.
  fs::rename(work / "lengths", work / "moved");
  fs::create_directory(work / "lengths");
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { Run(2); }),
                   (work / "lengths").string()));
  fs::remove(work / "lengths");
  fs::rename(work / "moved", work / "lengths");
  notes_.clear();
  ExpectEqual(Run(2), unbroken);
  EXPECT_TRUE(Says(notes_, "continuing after 4 finished shards"));
  EXPECT_FALSE(Says(notes_, "training a tokenizer"));
}

// Finished shards are hashed first, which takes minutes if they are large.
TEST_F(PrepareShards, StopsWhileItChecksWhatIsFinished) {
  LeaveFourShards();
  notes_.clear();
  const auto notify = notify_;
  {
    const StopSignal stop;
    notify_ = [&](const std::string& line) {
      notify(line);
      if (line.starts_with(data_.corpus)) ::raise(SIGTERM);
    };
    EXPECT_THROW(Run(2), StoppedError);
  }
  EXPECT_FALSE(Says(notes_, "continuing after"));
  notify_ = notify;
  Run(2);
  EXPECT_TRUE(Says(notes_, "continuing after 4 finished shards"));
}

// A process may end after the last shard, too.
TEST_F(PrepareShards, KeepsAllShardsIfTheyCannotBePlaced) {
  const PreparedCorpus unbroken = Run(1, "unbroken");
  const fs::path tokens = folder_ / "cache" / "tokens";
  const std::string key = unbroken.prefix.parent_path().filename();
  fs::create_directories(tokens);
  WriteFileAtomically(tokens / (key + ".lock"), "no folder");
  EXPECT_TRUE(
      Says(MessageOf<EnvironmentError>([&] { Run(2); }), key + ".lock"));
  fs::remove(tokens / (key + ".lock"));
  notes_.clear();
  ExpectEqual(Run(2), unbroken);
  EXPECT_TRUE(Says(notes_, "continuing after 7 finished shards"));
}

// A kill may leave a part of a folder that was being removed.
TEST_F(PrepareShards, BeginsAgainWithoutTheTokenizer) {
  const PreparedCorpus unbroken = Run(1, "unbroken");
  fs::remove(LeaveFourShards() / "model");
  ExpectEqual(Run(2), unbroken);
}

// What the first pass finds decides how much disk must be free.
TEST_F(PrepareShards, KeepsWhatTheFirstPassFound) {
  const fs::path work = LeaveFourShards();
  const Tokenizer tokenizer = Tokenizer::FromFile(work / "model");
  Strings digests;
  SampledText all;
  double tokens = 0;
  for (int i = 0; i < kShards; ++i) {
    const auto shard = folder_ / "shards" / (std::to_string(i) + ".json.gz");
    digests.push_back(Sha256OfFile(shard));
    all.input_bytes += static_cast<int64_t>(fs::file_size(shard));
    for (const std::string& text : TestDocuments(60 + 40 * i, i)) {
      ++all.documents;
      all.text_bytes += std::ssize(text);
      tokens += static_cast<double>(tokenizer.Encode(text).size());
    }
  }
  const auto find = [&] {
    return FindTokenizer(work, [&, i = size_t{0}](Shard* shard) mutable {
      if (i < digests.size()) shard->digest = digests[i];
      return i++ < digests.size();
    });
  };
  const SampledTokenizer found = find().value();
  EXPECT_EQ(found.sampled.documents, all.documents);
  EXPECT_EQ(found.sampled.text_bytes, all.text_bytes);
  EXPECT_EQ(found.sampled.input_bytes, all.input_bytes);
  EXPECT_EQ(found.bytes_per_token,
            static_cast<double>(all.text_bytes) / tokens);
  digests.emplace_back("another");
  EXPECT_FALSE(find());
}

// All threads write when the disk is full, including the one that appends.
TEST_F(PrepareShards, GoesOnAfterAFullDisk) {
  const PreparedCorpus unbroken = Run(1, "unbroken");
  const Manifest manifest =
      ReadManifest(WithSuffix(unbroken.prefix, ".manifest"));
  for (const size_t fits : {1, 3, 5}) {
    const std::string cache = "cache" + std::to_string(fits);
    {
      const FullDisk disk(2 * manifest.shards[fits].tokens);
      EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { Run(3, cache); }),
                       cache, std::strerror(EFBIG)));
    }
    // The work folder holds whole shards, and the key has no entry.
    for (const auto& entry :
         fs::recursive_directory_iterator(folder_ / cache / "tokens")) {
      const std::string name = entry.path().filename();
      EXPECT_EQ(TemporaryFileOwner(name), 0) << name;
      EXPECT_FALSE(name.ends_with(".json") && name.starts_with("tokens"));
    }
    notes_.clear();
    ExpectEqual(Run(3, cache), unbroken);
    EXPECT_TRUE(Says(notes_, "continuing after"));
    EXPECT_FALSE(Says(notes_, "training a tokenizer"));
  }
}

// Shards after one that has changed are not trusted.
TEST_F(PrepareShards, AChangedShardIsReadAgain) {
  LeaveFourShards();
  WriteShard(1, Lines(1) + Line("another text"));
  ExpectEqual(Run(2), Run(1, "fresh"));
}

TEST_F(PrepareShards, LeavesOutBadDocumentsIfAsked) {
  WriteShard(1, Lines(1) + "{\n[]\n");
  on_bad_ = OnBad::kSkip;
  const PreparedCorpus corpus = Run();
  on_bad_ = OnBad::kFail;
  EXPECT_TRUE(Says(corpus.provenance, "2 bad documents were left out",
                   "1.json.gz:101: no JSON", "1.json.gz:102: "));
  std::string said;
  notify_ = [&](const std::string& line) { said += line + "\n"; };
  EXPECT_TRUE(Run().from_cache);  // with its provenance
  EXPECT_TRUE(
      Says(said, "found tokens prepared with --on-bad=skip: 2 bad documents"));
  // Without the manifest it is not known what was left out.
  fs::remove(WithSuffix(corpus.prefix, ".manifest"));
  EXPECT_THROW(Run(), DataError);
  EXPECT_TRUE(Says(said, "making it again"));
}

// What --on-bad=skip has finished lacks documents that must be refused.
TEST_F(PrepareShards, RefusesWhatAnotherCommandHasLeftOut) {
  WriteShard(1, Lines(1) + "{\n");
  on_bad_ = OnBad::kSkip;
  const auto notify = notify_;
  const fs::path shard = folder_ / "shards" / "4.json.gz";
  const std::string whole = ReadWholeFile(shard);
  notify_ = [&](const std::string& line) {
    // The first pass has read it by then.
    if (!line.starts_with("training")) return;
    WriteFileAtomically(shard, whole.substr(0, whole.size() / 2));
  };
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { Run(2); }), "4.json.gz: damaged"));
  WriteFileAtomically(shard, whole);
  notify_ = notify;
  on_bad_ = OnBad::kFail;
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { Run(2); }),
                   "1.json.gz:101: no JSON", "--on-bad=skip"));
  EXPECT_TRUE(Says(notes_, "continuing after 1 finished shards"));
}

// The same holds for a shard that waits for those before it.
TEST_F(PrepareShards, EncodesAShardThatLacksABadDocumentAgain) {
  const PreparedCorpus unbroken = Run(1, "unbroken");
  const fs::path work = LeaveFourShards();
  ShardWriter writer(work, 4, kVocabSize);
  writer.AddDocument("left", std::vector<int32_t>{5, 1});
  ShardRecord about;
  about.name = "4.json.gz";
  about.digest = Sha256OfFile(folder_ / "shards" / about.name);
  about.bad = 1;
  writer.Commit(about);
  ExpectEqual(Run(2), unbroken);
}

// The bad line at the beginning is counted; the one after data.max_bytes is
// not.
TEST_F(PrepareShards, ReadsNothingBehindTheFirstBytes) {
  std::string lines = "{\n";
  for (const std::string& text : documents_) {
    lines += Line(text);
    data_.max_bytes += std::ssize(text);
  }
  WriteShard(0, lines + "[]\n");
  on_bad_ = OnBad::kSkip;
  const PreparedCorpus corpus = Run();
  EXPECT_EQ(corpus.num_documents, 600);
  EXPECT_TRUE(Says(corpus.provenance, "; 1 bad documents were left out: ",
                   "0.json.gz:1: no JSON"));
}

TEST_F(PrepareShards, ShardsMayBeEmpty) {
  for (const char* name : {"8.json", "9.json"}) {
    WriteFileAtomically(folder_ / "shards" / name, "");
  }
  const Manifest manifest =
      ReadManifest(WithSuffix(Run(2).prefix, ".manifest"));
  ASSERT_EQ(manifest.shards.size(), size_t{kShards + 2});
  EXPECT_EQ(manifest.shards.back().documents, 0);
}

TEST_F(PrepareShards, ACopiedFolderIsTheSameText) {
  const PreparedCorpus first = Run();
  fs::copy(folder_ / "shards", folder_ / "copy");
  data_.corpus = "jsonl:" + (folder_ / "copy").string();
  const PreparedCorpus again = Run();
  EXPECT_TRUE(again.from_cache);
  EXPECT_EQ(again.prefix, first.prefix);
  EXPECT_EQ(again.corpus, data_.corpus);
}

TEST_F(PrepareShards, NormalisedTextIsOtherText) {
  const PreparedCorpus first = Run();
  WriteShard(0, Line(" one ") + Lines(0));
  data_.normalise = Normalise::kHfOpenWebText;
  const PreparedCorpus normalised = Run();
  data_.normalise = Normalise::kNone;
  const PreparedCorpus raw = Run();
  EXPECT_FALSE(raw.from_cache);
  EXPECT_EQ(raw.text_bytes, normalised.text_bytes + 2);
}

// Files are copied a mebibyte at a time.
TEST(CopyPreparedCorpus, CopiesLargeFiles) {
  const fs::path folder = FreshFolder("copies");
  PreparedCorpus corpus;
  corpus.prefix = folder / "t";
  std::string bytes((size_t{5} << 19) + 1, 0);  // 2.5 MiB and a byte
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i * 2654435761u >> 16);
  }
  const Strings contents = {bytes, bytes.substr(0, size_t{1} << 20), "", "{}"};
  const Strings suffixes = {".bin", ".idx", ".model", ".manifest"};
  for (size_t i = 0; i < suffixes.size(); ++i) {
    WriteFileAtomically(WithSuffix(corpus.prefix, suffixes[i]), contents[i]);
    // In the way of a link.
    fs::create_directories(folder / ("copy" + suffixes[i] + ".link") / "x");
  }
  const PreparedCorpus copy = CopyPreparedCorpus(corpus, folder / "copy");
  for (size_t i = 0; i < suffixes.size(); ++i) {
    EXPECT_TRUE(ReadWholeFile(WithSuffix(copy.prefix, suffixes[i])) ==
                contents[i])
        << suffixes[i];
  }
}

TEST(CopyPreparedCorpus, ASignalLeavesNoHalfOfAFile) {
  const fs::path folder = FreshFolder("stopped_copy");
  PreparedCorpus corpus;
  corpus.prefix = folder / "t";
  for (const char* suffix : {".bin", ".idx", ".model", ".manifest"}) {
    WriteFileAtomically(WithSuffix(corpus.prefix, suffix), "bytes");
    fs::create_directories(folder / ("copy" + std::string(suffix) + ".link") /
                           "x");  // in the way of a link
  }
  const Strings before = FilesIn(folder);
  {
    const StopSignal stop;
    ::raise(SIGTERM);
    EXPECT_EQ(MessageOf<StoppedError>(
                  [&] { CopyPreparedCorpus(corpus, folder / "copy"); }),
              "SIGTERM: before " + (folder / "t.manifest").string() +
                  " was copied; the same command finds the tokens in the "
                  "cache, and copies them again");
  }
  EXPECT_EQ(FilesIn(folder), before);
  CopyPreparedCorpus(corpus, folder / "copy");
  EXPECT_EQ(ReadWholeFile(folder / "copy.bin"), "bytes");
}

// The records in golden/runs say neither how much of the text was taken nor in
// which form. Then only its length can tell that it is another part.
TEST(RequireTokensOf, AsksNothingThatARecordDoesNotSay) {
  PreparedCorpus corpus;
  corpus.corpus = "foldoc";
  corpus.description = "a dictionary";
  corpus.text_bytes = 500;
  corpus = ParsePreparedCorpus(PreparedCorpusText(corpus), "t.json");
  EXPECT_FALSE(corpus.max_bytes);
  EXPECT_FALSE(corpus.normalise);
  corpus.prefix = "t";
  DataConfig data;
  data.corpus = "foldoc";
  data.normalise = Normalise::kHfOpenWebText;
  const auto error = [&] {
    return MessageOf<DataError>([&] { RequireTokensOf(data, corpus); });
  };
  const auto refusal = [](const std::string& why) {
    return "t.json: tokens of " + why +
           ", or give the PREFIX of other tokens, or let `train --corpus` or a "
           "grid without --tokens find them";
  };
  EXPECT_EQ(error(), kNoError);
  data.max_bytes = 500;
  EXPECT_EQ(error(), kNoError);
  data.max_bytes = 499;
  EXPECT_EQ(error(),
            refusal("500 bytes of text, but data.max_bytes is 499; set it"));
  corpus.max_bytes = 600;
  EXPECT_EQ(error(), refusal("corpus 'foldoc' with --max-bytes 600, but "
                             "data.max_bytes is 499; set it"));
  data.max_bytes = 600;
  EXPECT_EQ(error(), kNoError);
  corpus.normalise = Normalise::kNone;
  EXPECT_EQ(error(), refusal("corpus 'foldoc' with --normalise none, but "
                             "data.normalise is hf_openwebtext; set it"));
  data.corpus = "gcide";
  EXPECT_EQ(error(), refusal("corpus 'foldoc' (a dictionary), but data.corpus "
                             "is 'gcide'; set it, even if both names mean the "
                             "same text"));
}

class Prepared : public Prepare {
 protected:
  void SetUp() override {
    Prepare::SetUp();
    corpus_ = CopyPreparedCorpus(Run(), folder_ / "sub" / "out.v1");
  }
  void ExpectRefused(const std::string& part, int64_t vocab_size = 0) {
    EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                       OpenPreparedCorpus(corpus_.prefix, vocab_size);
                     }),
                     part, "//:prepare_data"))
        << part;
  }
  PreparedCorpus corpus_;
};

TEST_F(Prepared, OpensWhereItWasCopied) {
  // As if a copy had only begun; its files are links to themselves then.
  fs::remove(WithSuffix(corpus_.prefix, ".json"));
  CopyPreparedCorpus(Run(), corpus_.prefix);
  EXPECT_EQ(FilesIn(folder_ / "sub"),
            (Strings{"out.v1.bin", "out.v1.idx", "out.v1.json",
                     "out.v1.manifest", "out.v1.model"}));
  const PreparedCorpus opened = OpenPreparedCorpus(corpus_.prefix, kVocabSize);
  EXPECT_EQ(opened.prefix, folder_ / "sub" / "out.v1");
  EXPECT_EQ(opened.corpus, data_.corpus);
  EXPECT_EQ(opened.description, corpus_.description);
  EXPECT_EQ(opened.provenance, corpus_.provenance);
  EXPECT_EQ(opened.text_bytes, corpus_.text_bytes);
  EXPECT_EQ(opened.num_documents, 600);
  EXPECT_EQ(opened.num_tokens, corpus_.num_tokens);
}

// The description names the user's file, and a path may have any bytes.
TEST_F(Prepared, BytesThatAreNotUtf8AreReplacedWhereTheyOnlyTell) {
  corpus_.description = "a text file of the user's, caf\xE9.txt";
  WritePreparedCorpus(corpus_);
  EXPECT_EQ(OpenPreparedCorpus(corpus_.prefix, kVocabSize).description,
            "a text file of the user's, caf\uFFFD.txt");
}

TEST_F(Prepared, RefusesAnotherVocabulary) {
  ExpectRefused("a vocabulary of 400, but model.vocab_size is 512", 512);
}

TEST_F(Prepared, RefusesExchangedFiles) {
  for (const std::string suffix : {".bin", ".idx", ".model"}) {
    const fs::path path = WithSuffix(corpus_.prefix, suffix);
    const std::string bytes = ReadWholeFile(path);
    std::string other = bytes;
    other[other.size() / 2] ^= 1;
    WriteFileAtomically(path, other);
    ExpectRefused("out.v1" + suffix +
                  ": damaged or exchanged: its SHA-256 is " + Sha256Hex(other) +
                  ", the .json file beside it says " + Sha256Hex(bytes));
    WriteFileAtomically(path, bytes);
  }
  fs::remove(WithSuffix(corpus_.prefix, ".bin"));
  EXPECT_THROW(OpenPreparedCorpus(corpus_.prefix), EnvironmentError);
}

TEST_F(Prepared, RefusesADamagedDescription) {
  const fs::path path = WithSuffix(corpus_.prefix, ".json");
  const std::string whole = ReadWholeFile(path);
  const auto replace = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    WriteFileAtomically(path, text);
  };
  for (const std::string text : {"", "{}", "[]", "\xFF", "null"}) {
    WriteFileAtomically(path, text);
    ExpectRefused("out.v1.json: not the description");
  }
  replace("\"version\": 2", "\"version\": 3");
  ExpectRefused("version 3, only 2 is known");
  // So deep that printing it would exhaust the stack.
  replace("\"version\": 2", "\"version\": " + std::string(1'000'000, '[') +
                                std::string(1'000'000, ']'));
  ExpectRefused("not the description");
  replace("\"version\": 2", "\"version\": [2]");
  ExpectRefused("no version, only 2 is known");
  replace("\"num_documents\": 600", "\"num_documents\": 601");
  ExpectRefused("out.v1.json: damaged, or changed by hand");
  WriteFileAtomically(path, whole);
  OpenPreparedCorpus(corpus_.prefix);
}

TEST_F(Prepared, NoBitOfTheDescriptionChangesUnnoticed) {
  const fs::path path = WithSuffix(corpus_.prefix, ".json");
  const std::string whole = ReadWholeFile(path);
  EXPECT_TRUE(whole.starts_with("{\n  \"format\": \"softmoe token files\",\n"));
  for (size_t bit = 0; bit < 8 * whole.size(); bit += 43) {
    std::string text = whole;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
    WriteFileAtomically(path, text);
    EXPECT_THROW(ReadPreparedCorpus(corpus_.prefix), DataError) << text;
  }
}

TEST_F(Prepared, RefusesKeysThatAreMissingOrOfAWrongType) {
  const fs::path path = WithSuffix(corpus_.prefix, ".json");
  const std::string whole = ReadWholeFile(path);
  const auto replace = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    WriteFileAtomically(path, Sealed(ParseJsonObject(text)).dump());
  };
  replace("\"vocab_size\": 400", "\"vocab_size\": \"400\"");
  ExpectRefused("\"vocab_size\" is missing or of the wrong type");
  replace("\"vocab_size\": 400", "\"vocab_size\": -4");
  ExpectRefused("\"vocab_size\" is missing or of the wrong type");
  replace("\"tokens_sha256\"", "\"tokens_sha\"");
  ExpectRefused("\"tokens_sha256\" is missing");
  replace("\"max_bytes\": 0", "\"max_bytes\": -1");
  ExpectRefused("\"max_bytes\" or \"normalise\" has an unknown value");
  replace("\"normalise\": \"none\"", "\"normalise\": \"some\"");
  ExpectRefused("\"max_bytes\" or \"normalise\" has an unknown value");
}

}  // namespace
}  // namespace softmoe::trainer
