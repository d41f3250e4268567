// SPDX-License-Identifier: Apache-2.0
//
// prepare_data_test.cc - //:prepare_data as a user meets it.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/files/atomic_file.h"
#include "core/philox.h"
#include "core/process/process.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/testing/corpus_test_util.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

class PrepareData : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = FreshFolder("prepare_data");
    program_ = fs::absolute("trainer/tokens/prepare_data").string();
    ASSERT_TRUE(fs::exists(program_));
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    ::unsetenv("BUILD_WORKING_DIRECTORY");
    WriteFileAtomically(folder_ / "t.txt", TestText(TestDocuments(600)));
  }
  ProgramResult Run(Strings arguments) {
    arguments.insert(arguments.begin(), program_);
    return RunProgram(arguments, folder_);
  }
  void Expect(const ProgramResult& result, int status, const Strings& parts) {
    EXPECT_TRUE(EndedWith(result, status));
    for (const std::string& part : parts) {
      EXPECT_TRUE(Says(result.output, part));
    }
  }
  fs::path folder_;
  std::string program_;
};

TEST_F(PrepareData, WritesTheFiveFiles) {
  const Strings arguments = {"--corpus",    "path:t.txt", "--vocab-size", "400",
                             "--out",       "sub/tokens", "--threads",    "2",
                             "--max-bytes", "100 KB",     "--verify"};
  const ProgramResult result = Run(arguments);
  EXPECT_EQ(FilesIn(folder_ / "sub"),
            (Strings{"tokens.bin", "tokens.idx", "tokens.json",
                     "tokens.manifest", "tokens.model"}));
  const PreparedCorpus corpus = OpenPreparedCorpus(folder_ / "sub/tokens", 400);
  EXPECT_EQ(corpus.max_bytes, 100000);
  EXPECT_LE(corpus.text_bytes, 100000);
  const std::string files = fmt::format("bytes of files {0}/{0} | ",
                                        fs::file_size(folder_ / "t.txt"));
  Expect(result, 0,
         {"prepare: no published checksum of this text is known\n",
          "prepare: sampling, " + files, "prepare: encoding, " + files,
          "corpus      path:t.txt\n            a text file of the user's, ",
          fmt::format("tokens      {} of a vocabulary of 400 (",
                      corpus.num_tokens),
          "sub/tokens.{bin"});
  // Linked, not copied.
  EXPECT_EQ(fs::hard_link_count(folder_ / "sub/tokens.bin"), 2u);
  Expect(Run(arguments), 0, {"found in the cache"});
}

// "--out mine" beside mine.json, the corpus itself.
TEST_F(PrepareData, ReplacesNobodysFiles) {
  const std::string line =
      nlohmann::json{{"text", TestText(TestDocuments(300))}}.dump() + "\n";
  WriteFileAtomically(folder_ / "text.jsonl", line);
  for (const std::string name :
       {"mine.json", "mine.bin", "mine.idx", "mine.model", "mine.manifest"}) {
    WriteFileAtomically(folder_ / name, line);
    const std::string corpus = name == "mine.json" ? name : "text.jsonl";
    Expect(Run({"--corpus", "jsonl:" + corpus, "--vocab-size", "320", "--out",
                "mine"}),
           2, {name + ": already exists", "another PREFIX"});
    EXPECT_EQ(ReadWholeFile(folder_ / name), line);
    fs::remove(folder_ / name);
  }
}

// Token files may lie in the folder of the corpus.
TEST_F(PrepareData, TakesNoTokenFilesForItsCorpus) {
  fs::create_directories(folder_ / "own");
  for (const uint64_t seed : {1, 2}) {
    std::string lines;
    for (const std::string& text : TestDocuments(300, seed)) {
      lines += nlohmann::json{{"body", text + "\n"}}.dump() + "\n";
    }
    WriteFileAtomically(folder_ / fmt::format("own/{}.jsonl", seed),
                        lines + "{\n");
  }
  const Strings arguments = {"--corpus",    "jsonl:own",     "--vocab-size",
                             "320",         "--out",         "own/tokens",
                             "--text-key",  "body",          "--on-bad=skip",
                             "--normalise", "hf_openwebtext"};
  Expect(Run(arguments), 0,
         {fmt::format("; 2 bad documents were left out: "
                      "{0}/own/1.jsonl:301: no JSON in UTF-8; "
                      "{0}/own/2.jsonl:301: no JSON in UTF-8\n"
                      "documents   600\n",
                      fs::canonical(folder_).string()),
          "own/tokens.{bin"});
  EXPECT_TRUE(ReadPreparedCorpus(folder_ / "own/tokens").normalise ==
              Normalise::kHfOpenWebText);
  Expect(Run(arguments), 0, {"found in the cache"});
}

TEST_F(PrepareData, EncodesWithAGivenTokenizer) {
  Expect(Run({"--corpus", "path:t.txt", "--vocab-size", "400", "--out", "t"}),
         0, {});
  WriteFileAtomically(folder_ / "u.txt", TestText(TestDocuments(300, 2)));
  const auto other = [&](Strings more) {
    more.insert(more.begin(), {"--corpus", "path:u.txt", "--out", "u"});
    return Run(more);
  };
  Expect(other({"--tokenizer", "t.model"}), 0, {"of a vocabulary of 400"});
  EXPECT_EQ(ReadWholeFile(folder_ / "u.model"),
            ReadWholeFile(folder_ / "t.model"));
  const PreparedCorpus given = OpenPreparedCorpus(folder_ / "u", 400);
  Expect(other({"--tokenizer", "t.model"}), 0, {"found in the cache"});
  // With a tokenizer of its own, the text has other tokens.
  Expect(other({"--vocab-size", "400"}), 0, {"of a vocabulary of 400"});
  EXPECT_NE(OpenPreparedCorpus(folder_ / "u", 400).tokens.tokenizer_sha256,
            given.tokens.tokenizer_sha256);

  Expect(other({"--tokenizer", "t.model", "--vocab-size", "500"}), 2,
         {"t.model: a tokenizer of 400 pieces, not of 500"});
  Expect(other({"--tokenizer", "u.txt"}), 2,
         {"u.txt", "give the PREFIX.model of token files"});
  Expect(other({"--tokenizer", "u.model"}), 2,
         {"--tokenizer u.model", "would replace it"});
  Expect(other({"--tokenizer", "none.model"}), 5, {"none.model"});
}

TEST_F(PrepareData, RefusesAVocabularyBeforeItReadsTheText) {
  Expect(Run({"--corpus", "path:none.txt", "--vocab-size", "100"}), 2,
         {"a tokenizer has 320 to"});
}

// A preparation that is killed at any moment, again and again, in the end gives
// the bytes of one that was not.
TEST_F(PrepareData, GoesOnAfterKills) {
  fs::create_directories(folder_ / "shards");
  for (int i = 0; i < 12; ++i) {
    std::string lines;
    for (const std::string& text : TestDocuments(1500, i)) {
      lines += nlohmann::json{{"text", text}}.dump() + "\n";
    }
    WriteGzip(folder_ / "shards" / fmt::format("{:02}.json.gz", i), lines);
  }
  const auto arguments = [&](const std::string& out) {
    return Strings{program_,
                   "--corpus",
                   "jsonl:shards",
                   "--vocab-size",
                   "400",
                   "--threads",
                   "2",
                   "--out",
                   out,
                   "--quiet"};
  };
  const auto start = std::chrono::steady_clock::now();
  const ProgramResult unbroken = RunProgram(arguments("unbroken"), folder_);
  Expect(unbroken, 0, {});
  EXPECT_TRUE(unbroken.output.starts_with("corpus      jsonl:shards\n"));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  // "time        0.3 s", rounded; its start comes on top.
  const size_t time = unbroken.output.find("\ntime        ");
  ASSERT_NE(time, std::string::npos);
  EXPECT_LE(std::stod(unbroken.output.substr(time + 13)), seconds + 0.05);
  fs::remove_all(folder_ / "cache");
  int kills = 0;
  for (int i = 0; i < 20; ++i) {
    ProcessOptions options;
    options.arguments = arguments("killed");
    options.folder = folder_;
    Process process(options);
    const double moment = UniformFromWord(PhiloxWords(
        {1, RandomStream::kTestData, 0}, static_cast<uint64_t>(i))[0]);
    if (!process.Wait(moment * seconds / 2)) ++kills;
    process.Kill();
  }
  EXPECT_GT(kills, 1);
  Expect(RunProgram(arguments("killed"), folder_), 0, {});
  for (const char* suffix : {".bin", ".idx", ".model", ".manifest", ".json"}) {
    EXPECT_TRUE(ReadWholeFile(folder_ / (std::string("killed") + suffix)) ==
                ReadWholeFile(folder_ / (std::string("unbroken") + suffix)))
        << suffix;
  }
  // Nothing is left of the work.
  EXPECT_EQ(FilesIn(folder_ / "cache/softmoe/tokens").size(), 1u);
}

TEST_F(PrepareData, SaysThatTheDiskIsFull) {
  if (!kBeginsOnFullDisk) GTEST_SKIP() << "this program cannot start there";
  const Strings arguments = {"--corpus", "path:t.txt", "--vocab-size", "400"};
  {
    const FullDisk disk(10000);
    Expect(Run(arguments), 5, {"cache/softmoe/tokens/", std::strerror(EFBIG)});
  }
  Expect(Run(arguments), 0, {"of a vocabulary of 400"});
}

// The speed itself is not tested.
TEST_F(PrepareData, IsTimedBesideSpmEncode) {
  const ProgramResult result = RunProgram(
      {fs::absolute("trainer/tokens/bench").string(),
       "--benchmark_filter=^corpus/.*/MB:1/", "--benchmark_min_time=0"},
      folder_);
  for (const char* form : {"plain", "gzip", "xz", "zstd"}) {
    Expect(result, 0, {fmt::format("corpus/read/{}/MB:1/", form)});
  }
  Expect(result, 0, {"corpus/gzip_to_tokens", "MB_per_s="});
  EXPECT_NE(Says(result.output, "ratio="),
            Says(result.output,
                 "not measured: spm_encode missing, apt-get "
                 "install sentencepiece"));
}

TEST_F(PrepareData, SaysHowToGetTheCorpora) {
  Expect(Run({"--how", "owt"}), 0, {"12880027468 bytes", "--place owt="});
  Expect(Run({"--how", "c4"}), 0, {"326778635540 bytes", "git lfs"});
  Expect(Run({"--corpus", "owt", "--place", "owl=/x"}), 2, {"--place owl=/x"});
  for (const std::string place : {"owt", "owt="}) {
    Expect(Run({"--corpus", "owt", "--place", place}), 2,
           {"--place " + place + ": write"});
  }
  Expect(Run({"--corpus", "c4", "--place", "c4=/nowhere"}), 5,
         {"no C4 in /nowhere"});
  Expect(Run({"--corpus", "owt", "--place", "owt=/nowhere"}), 5,
         {"no OpenWebText in /nowhere", "--how owt"});
  Expect(Run({"--corpus", "path:t.txt", "--on-bad", "drop"}), 2, {"--on-bad"});
}

TEST_F(PrepareData, Teaches) {
  Expect(Run({"--help"}), 0,
         {"Examples:", "--corpus debian-mix", "<|endoftext|>", "TOKEN_FILES.md",
          "Exit codes", "75"});
  Expect(
      Run({"--list"}), 0,
      {"gcide", "  foldoc       Free On-line", "stand-in", "not downloaded yet",
       "plain owt: " + folder_.string() + "/cache/softmoe/corpora/owt\n",
       "path:FILE"});
}

TEST_F(PrepareData, RefusesWrongUsage) {
  Expect(Run({}), 2, {"--corpus is missing"});
  Expect(Run({"--corpsu", "gcide"}), 2, {"--corpsu"});
  Expect(Run({"--corpus", "gcdie"}), 2, {"no such corpus", "gcide"});
  Expect(Run({"--corpus", "path:t.txt", "--vocab-size", "12"}), 2,
         {"vocab_size = 12"});
  Expect(Run({"--corpus", "path:t.txt"}), 2,
         {"a tokenizer of 32768 pieces", "smaller model.vocab_size"});
  for (const std::string threads : {"-1", "1025"}) {
    Expect(Run({"--corpus", "path:t.txt", "--threads", threads}), 2,
           {"--threads: Value " + threads + " not in range 0 to 1024\n"});
  }
  Expect(Run({"--corpus", "path:t.txt", "--max-bytes", "-5"}), 2,
         {"--max-bytes: Value -5 not in range 0 to 1152921504606846976\n"});
  for (const Strings& octal :
       {Strings{"--vocab-size", "0512"}, Strings{"--max-bytes", "04MB"},
        Strings{"--threads", "02"}}) {
    Expect(Run({"--corpus", "path:t.txt", octal[0], octal[1]}), 2,
           {octal[0] + ": " + octal[1] + " begins with 0"});
  }
  for (const char* option : {"--out", "--tokenizer", "--vocab-size"}) {
    Expect(Run({"--corpus", "path:t.txt", option, ""}), 2,
           {std::string(option) + ": its value is empty"});
  }
  for (const std::string out : {"made/", "made/..", "."}) {
    Expect(Run({"--corpus", "path:t.txt", "--out", out}), 2,
           {"--out " + out + ": ", "write --out "});
  }
}

TEST_F(PrepareData, RefusesBadText) {
  WriteFileAtomically(folder_ / "t.txt", "");
  Expect(Run({"--corpus", "path:t.txt"}), 2, {"t.txt: no text in it"});
  WriteFileAtomically(folder_ / "t.txt",
                      "\x7F"
                      "ELF\xFF");
  Expect(Run({"--corpus", "path:t.txt"}), 2, {"t.txt: byte 4 (0xFF)"});
  Expect(Run({"--corpus", "path:missing.txt"}), 5, {"missing.txt"});
}

TEST_F(PrepareData, SaysWhatToDoOffline) {
  const FakeAptGet apt(folder_ / "bin",
                       "echo 'E: Could not resolve deb.debian.org'; exit 100");
  Expect(Run({"--corpus", "foldoc"}), 5,
         {"prepare: downloading Debian package dict-foldoc\n",
          "Could not resolve", "--corpus path:FILE"});
  EXPECT_EQ(FilesIn(folder_ / "cache/softmoe/corpora"), Strings{});
}

}  // namespace
}  // namespace softmoe::trainer
