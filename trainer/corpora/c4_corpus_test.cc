// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/c4_corpus.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/testing/corpus_test_util.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Documents = std::vector<std::string>;

std::string Line(const std::string& text) {
  return nlohmann::json{{"text", text},
                        {"timestamp", "2019-04-25T12:57:54Z"},
                        {"url", "https://example.org/"}}
             .dump() +
         "\n";
}

Documents Read(const fs::path& path) {
  return DocumentsOf(OpenC4(FindC4Files(path)));
}

std::string ErrorOf(const fs::path& path) {
  return MessageOf<DataError>([&] { Read(path); });
}

TEST(C4, ReadsTheFilesInOrder) {
  const auto folder = FreshFolder("c4");
  const Documents documents = TestDocuments(30);
  std::string second;
  for (size_t i = 2; i < documents.size(); ++i) second += Line(documents[i]);
  WriteGzip(folder / "c4-train.00001-of-00002.json.gz", second);
  WriteGzip(folder / "c4-train.00000-of-00002.json.gz",
            Line(documents[0]) + "\n" + Line("") + Line(documents[1]));
  WriteGzip(folder / "c4-validation.00000-of-00001.json.gz", Line("held out"));
  WriteFileAtomically(folder / "README", "not a corpus file");
  EXPECT_EQ(Read(folder), documents);
  EXPECT_EQ(Read(folder / "c4-validation.00000-of-00001.json.gz"),
            (Documents{"held out"}));
}

TEST(C4, ReadsLongLinesSeveralMembersAndNoFinalLineEnd) {
  const auto folder = FreshFolder("c4_long");
  const std::string text(100000, 'x');
  std::string last = Line("last \u00E9 \u2028 \"quoted\"\n");
  last.pop_back();
  WriteGzip(folder / "a", Line(text));
  WriteGzip(folder / "b", last);
  WriteFileAtomically(folder / "ab.json.gz", ReadWholeFile(folder / "a") +
                                                 ReadWholeFile(folder / "b"));
  EXPECT_EQ(Read(folder), (Documents{text, "last \u00E9 \u2028 \"quoted\"\n"}));
}

TEST(C4, RefusesTruncatedGzip) {
  const auto folder = FreshFolder("c4_truncated");
  std::string content;
  for (const auto& document : TestDocuments(500)) content += Line(document);
  WriteGzip(folder / "x.json.gz", content);
  std::string bytes = ReadWholeFile(folder / "x.json.gz");
  bytes.resize(bytes.size() / 2);
  WriteFileAtomically(folder / "x.json.gz", bytes);
  const std::string error = ErrorOf(folder);
  EXPECT_TRUE(Says(error, "damaged or truncated gzip", "x.json.gz:"));
  bytes[bytes.size() / 2] ^= 0x55;
  WriteFileAtomically(folder / "x.json.gz", bytes);
  EXPECT_NE(ErrorOf(folder), kNoError);
}

TEST(C4, RefusesWhatIsNoSuchJson) {
  const auto folder = FreshFolder("c4_json");
  const auto path = folder / "x.json.gz";
  for (const std::string bad :
       {"{\"text\": \"cut", "[1, 2]", "{\"url\": \"u\"}", "{\"text\": 3}",
        "{\"text\": \"\xFF\"}", "{\"text\": \"\\u0000\"}", "plain text"}) {
    WriteGzip(path, Line("good") + bad + "\n" + Line("good"));
    const std::string error = ErrorOf(path);
    EXPECT_TRUE(Says(error, "x.json.gz:2: ")) << bad;
  }
}

// Writes `count` copies of `block` as members of one gzip file: much text in
// little time.
void WriteBlocks(const fs::path& path, const std::string& begin, int64_t count,
                 const std::string& block, const std::string& end) {
  WriteGzip(path, begin);
  std::string bytes = ReadWholeFile(path);
  WriteGzip(path, block);
  const std::string member = ReadWholeFile(path);
  for (int64_t i = 0; i < count; ++i) bytes += member;
  WriteGzip(path, end);
  WriteFileAtomically(path, bytes + ReadWholeFile(path));
}

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(C4, RefusesDocumentsThatAreTooLong) {
  const auto path = FreshFolder("c4_document") / "x.json.gz";
  const std::string block(kMiB, 'x');
  static_assert(kMaxDocumentBytes % kMiB == 0);
  WriteBlocks(path, "{\"text\": \"", kMaxDocumentBytes / kMiB, block, "\"}\n");
  const Documents longest = Read(path);
  ASSERT_EQ(longest.size(), 1u);
  EXPECT_EQ(static_cast<int64_t>(longest[0].size()), kMaxDocumentBytes);
  WriteBlocks(path, "{\"text\": \"x", kMaxDocumentBytes / kMiB, block, "\"}\n");
  EXPECT_EQ(ErrorOf(path), path.string() +
                               ":1: a document of 67108865 bytes; download "
                               "this file again and compare its checksum");
}

// Each byte of a document can take six, its longest escape.
TEST(C4, RefusesLinesThatAreTooLong) {
  const auto path = FreshFolder("c4_line") / "x.json.gz";
  const std::string block(kMiB, 'x');
  WriteBlocks(path, "", 6 * kMaxDocumentBytes / kMiB, block, "");
  EXPECT_EQ(ErrorOf(path), path.string() +
                               ":1: no JSON in UTF-8; download this file again "
                               "and compare its checksum");
  WriteBlocks(path, "x", 6 * kMaxDocumentBytes / kMiB, block, "");
  EXPECT_EQ(ErrorOf(path), path.string() +
                               ":1: a line of over 402653184 bytes; download "
                               "this file again and compare its checksum");
}

TEST(C4, SaysWhichFileCannotBeRead) {
  const fs::path path = FreshFolder("c4_absent") / "none.json.gz";
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] {
                     std::string document;
                     OpenC4({path})->Next(&document);
                   }),
                   path.string()));
}

// Lines are counted per file, including blank ones.
TEST(C4, CountsLinesOfEachFile) {
  const auto folder = FreshFolder("c4_lines");
  WriteGzip(folder / "a.json.gz", Line("one") + Line("two"));
  WriteGzip(folder / "b.json.gz", Line("three") + " \t\r\n\n" + "[]\n");
  const std::string error = ErrorOf(folder);
  EXPECT_TRUE(Says(error,
                   "b.json.gz:4: no JSON object with a string named "
                   "\"text\""));
}

TEST(C4, TakesOnlyTrainingFilesWhereThereAreSome) {
  const auto folder = FreshFolder("c4_names");
  WriteFileAtomically(folder / "b.json", Line("b"));
  WriteFileAtomically(folder / "a.json.gz", Line("a"));
  WriteFileAtomically(folder / "c.jsonl", Line("c"));
  EXPECT_EQ(Read(folder), (Documents{"a", "b"}));
  WriteFileAtomically(folder / "c4-train.1.json", Line("d"));
  EXPECT_EQ(Read(folder), (Documents{"d"}));
}

TEST(C4, SaysWhereToGetIt) {
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>(
                       [&] { FindC4Files(FreshFolder("c4_empty")); }),
                   "--corpus c4:FOLDER"));
}

}  // namespace
}  // namespace softmoe::trainer
