// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/json_corpus.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/corpora/corpus_files.h"
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
  Documents documents;
  for (const fs::path& file : FindCorpusFiles(FilesOf::kC4, path)) {
    for (std::string& text : DocumentsOf(OpenJsonLines(file))) {
      documents.push_back(std::move(text));
    }
  }
  return documents;
}

const std::string kRemedy =
    "; correct it, or download this file again and compare its checksum, or "
    "leave such documents out with `//:prepare_data --on-bad=skip`";

std::string ErrorOf(const fs::path& path) {
  return MessageOf<DataError>([&] { Read(path); });
}

TEST(JsonLines, ReadsTheFilesInOrder) {
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

TEST(JsonLines, ReadsLongLinesSeveralMembersAndNoFinalLineEnd) {
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

TEST(JsonLines, RefusesTruncatedGzip) {
  const auto folder = FreshFolder("c4_truncated");
  std::string content;
  for (const auto& document : TestDocuments(500)) content += Line(document);
  WriteGzip(folder / "x.json.gz", content);
  std::string bytes = ReadWholeFile(folder / "x.json.gz");
  bytes.resize(bytes.size() / 2);
  WriteFileAtomically(folder / "x.json.gz", bytes);
  const std::string error = ErrorOf(folder);
  EXPECT_TRUE(Says(error, "x.json.gz: damaged or truncated gzip data at byte ",
                   "in member 1", "download this file again"));
  bytes[bytes.size() / 2] ^= 0x55;
  WriteFileAtomically(folder / "x.json.gz", bytes);
  EXPECT_NE(ErrorOf(folder), kNoError);
}

TEST(JsonLines, RefusesWhatIsNoSuchJson) {
  const auto folder = FreshFolder("c4_json");
  const auto path = folder / "x.json.gz";
  for (const std::string bad :
       {"{\"text\": \"cut", "[1, 2]", "{\"url\": \"u\"}", "{\"text\": 3}",
        "{\"text\": \"\xFF\"}", "{\"text\": \"\\u0000\"}", "plain text",
        "{\"text\": \"a\", \"text\": 3}", "[{\"text\": \"a\"}]",
        "{\"a\": {\"text\": \"b\"}}", "{\"text\": [\"a\"]}",
        "{\"text\": \"a\", \"text\": {}}", "{\"text\": \"a\", \"text\": []}"}) {
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

TEST(JsonLines, RefusesDocumentsThatAreTooLong) {
  const auto path = FreshFolder("c4_document") / "x.json.gz";
  const std::string block(kMiB, 'x');
  static_assert(kMaxDocumentBytes % kMiB == 0);
  WriteBlocks(path, "{\"text\": \"", kMaxDocumentBytes / kMiB, block, "\"}\n");
  const Documents longest = Read(path);
  ASSERT_EQ(longest.size(), 1u);
  EXPECT_EQ(static_cast<int64_t>(longest[0].size()), kMaxDocumentBytes);
  WriteBlocks(path, "{\"text\": \"x", kMaxDocumentBytes / kMiB, block, "\"}\n");
  EXPECT_EQ(ErrorOf(path), path.string() +
                               ":1: a document of 67108865 bytes, at most "
                               "67108864 are read" +
                               kRemedy);
}

// Each byte of a document can take six, its longest escape.
TEST(JsonLines, RefusesLinesThatAreTooLong) {
  const auto path = FreshFolder("c4_line") / "x.json.gz";
  const std::string block(kMiB, 'x');
  WriteBlocks(path, "", 6 * kMaxDocumentBytes / kMiB, block, "");
  EXPECT_EQ(ErrorOf(path), path.string() + ":1: no JSON in UTF-8" + kRemedy);
  WriteBlocks(path, "x", 6 * kMaxDocumentBytes / kMiB, block, "");
  EXPECT_EQ(ErrorOf(path),
            path.string() + ":1: a line of over 402653184 bytes" + kRemedy);
}

TEST(JsonLines, SaysWhichFileCannotBeRead) {
  const fs::path path = FreshFolder("c4_absent") / "none.json.gz";
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { OpenJsonLines(path); }),
                   path.string()));
  WriteFileAtomically(path, "PAR1");
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { OpenJsonLines(path); }), "Parquet"));
}

// Lines are counted per file, including blank ones.
TEST(JsonLines, CountsLinesOfEachFile) {
  const auto folder = FreshFolder("c4_lines");
  WriteGzip(folder / "a.json.gz", Line("one") + Line("two"));
  WriteGzip(folder / "b.json.gz", Line("three") + " \t\r\n\n" + "[]\n");
  const std::string error = ErrorOf(folder);
  EXPECT_TRUE(Says(error,
                   "b.json.gz:4: no JSON object with a string named "
                   "\"text\"; "));
}

TEST(JsonLines, TakesOnlyTrainingFilesWhereThereAreSome) {
  const auto folder = FreshFolder("c4_names");
  WriteFileAtomically(folder / "b.json", Line("b"));
  WriteFileAtomically(folder / "a.json.gz", Line("a"));
  WriteFileAtomically(folder / "c.jsonl", Line("c"));
  EXPECT_EQ(Read(folder), (Documents{"a", "b", "c"}));
  WriteFileAtomically(folder / "c4-train.1.json", Line("d"));
  EXPECT_EQ(Read(folder), (Documents{"d"}));
}

TEST(JsonLines, ReadsTheMemberAskedFor) {
  const auto path = FreshFolder("json_key") / "x.jsonl";
  WriteFileAtomically(path,
                      "{\"text\": \"no\", \"a\": {\"content\": \"1\"}, "
                      "\"content\": \"yes\"}\n");
  EXPECT_EQ(DocumentsOf(OpenJsonLines(path, {.text_key = "content"})),
            (Documents{"yes"}));
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     DocumentsOf(OpenJsonLines(path, {.text_key = "body"}));
                   }),
                   "x.jsonl:1: no JSON object with a string named \"body\", "
                   "but with \"text\", \"content\": `//:prepare_data "
                   "--text-key`"));
  // A few of many.
  WriteFileAtomically(
      path, R"({"a":"","b":"","c":"","d":"","é\n":"","f":"","g":""})");
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     DocumentsOf(OpenJsonLines(path, {.text_key = "body"}));
                   }),
                   R"("a", "b", "c", "d", "\u00e9\n", ...: `)"));
  // Values of all kinds beside it.
  WriteFileAtomically(
      path, R"({"a": [null, true, "b", -1, 1, 1.5, []], "text": "yes"})");
  EXPECT_EQ(Read(path), (Documents{"yes"}));
}

// Under kSkip bad lines are counted and named with their places, and the good
// ones around them are read; empty documents are counted in any case.
TEST(JsonLines, CountsWhatItLeavesOut) {
  const auto path = FreshFolder("json_skip") / "x.json.gz";
  std::string content = Line("one") + "{\"text\": \"cut\n" + Line("") + "[]\n" +
                        Line(std::string("a\0b", 3)) + Line("two");
  for (int i = 0; i < 30; ++i) content += "{}\n";
  WriteGzip(path, content);
  const auto source = OpenJsonLines(path, {.on_bad = OnBad::kSkip});
  EXPECT_EQ(DocumentsOf(source), (Documents{"one", "two"}));
  EXPECT_EQ(source->skipped().empty, 1);
  EXPECT_EQ(source->skipped().bad, 33);
  ASSERT_EQ(source->skipped().first.size(), Skipped::kNamed);
  EXPECT_EQ(source->skipped().first[0], path.string() + ":2: no JSON in UTF-8");
  EXPECT_TRUE(Says(source->skipped().first[2], ":5: ", "NUL"));
}

TEST(JsonLines, LeavesOutALineThatIsTooLongAndGoesOn) {
  const auto path = FreshFolder("json_skip_long") / "x.json.gz";
  const std::string block(kMiB, 'x');
  WriteBlocks(path, Line("one") + "x", 6 * kMaxDocumentBytes / kMiB + 3, block,
              "\n" + Line("two") + "[]\n");
  const auto source = OpenJsonLines(path, {.on_bad = OnBad::kSkip});
  EXPECT_EQ(DocumentsOf(source), (Documents{"one", "two"}));
  EXPECT_EQ(source->skipped().bad, 2);
  EXPECT_TRUE(Says(source->skipped().first[1], ":4: "));
}

// A damaged file may have lost any number of documents: never skipped.
TEST(JsonLines, DoesNotSkipDamage) {
  const auto path = FreshFolder("json_skip_damage") / "x.json.gz";
  std::string content;
  for (const auto& document : TestDocuments(500)) content += Line(document);
  WriteGzip(path, content);
  const std::string bytes = ReadWholeFile(path);
  WriteFileAtomically(path, bytes.substr(0, bytes.size() - 3));
  EXPECT_THROW(DocumentsOf(OpenJsonLines(path, {.on_bad = OnBad::kSkip})),
               DataError);
}

}  // namespace
}  // namespace softmoe::trainer
