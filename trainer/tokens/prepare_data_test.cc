// SPDX-License-Identifier: Apache-2.0
//
// prepare_data_test.cc - //:prepare_data as a user meets it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/files/atomic_file.h"
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

TEST_F(PrepareData, WritesTheFourFiles) {
  const Strings arguments = {
      "--corpus",   "path:t.txt",  "--vocab-size", "400",       "--out",
      "sub/tokens", "--max-bytes", "100 KB",       "--threads", "2"};
  Expect(Run(arguments), 0, {"of a vocabulary of 400", "sub/tokens.{bin"});
  EXPECT_EQ(FilesIn(folder_ / "sub"), (Strings{"tokens.bin", "tokens.idx",
                                               "tokens.json", "tokens.model"}));
  const PreparedCorpus corpus = OpenPreparedCorpus(folder_ / "sub/tokens", 400);
  EXPECT_LE(corpus.text_bytes, 100000);
  Expect(Run(arguments), 0, {"found in the cache"});
}

TEST_F(PrepareData, Teaches) {
  Expect(Run({"--help"}), 0,
         {"Examples:", "--corpus debian-mix", "<|endoftext|>", "TOKEN_FILES.md",
          "Exit status"});
  Expect(Run({"--list"}), 0,
         {"gcide", "debian-mix", "stand-in", "owt:PATH", "path:FILE",
          "not downloaded yet"});
}

TEST_F(PrepareData, RefusesWrongUsage) {
  Expect(Run({}), 2, {"--corpus is missing"});
  Expect(Run({"--corpsu", "gcide"}), 2, {"--corpsu"});
  Expect(Run({"--corpus", "gcdie"}), 2, {"no such corpus", "gcide"});
  Expect(Run({"--corpus", "path:t.txt", "--vocab-size", "12"}), 2,
         {"vocab_size = 12"});
  Expect(Run({"--corpus", "path:t.txt", "--vocab-size", "30000"}), 2,
         {"smaller model.vocab_size"});
  Expect(Run({"--corpus", "path:t.txt", "--max-bytes", "-5"}), 2, {});
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
         {"Could not resolve", "--corpus path:FILE"});
  EXPECT_EQ(FilesIn(folder_ / "cache/softmoe/corpora"), Strings{});
}

}  // namespace
}  // namespace softmoe::trainer
