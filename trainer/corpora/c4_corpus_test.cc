// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/c4_corpus.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
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

void WriteGzip(const fs::path& path, const std::string& content) {
  gzFile file = ::gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(
      ::gzwrite(file, content.data(), static_cast<unsigned>(content.size())),
      static_cast<int>(content.size()));
  ASSERT_EQ(::gzclose(file), Z_OK);
}

Documents Read(const fs::path& path) {
  const auto source = OpenC4(FindC4Files(path));
  Documents documents;
  for (std::string document; source->Next(&document);) {
    documents.push_back(document);
  }
  return documents;
}

std::string ErrorOf(const fs::path& path) {
  try {
    Read(path);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
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
  EXPECT_NE(error.find("damaged or truncated gzip"), std::string::npos)
      << error;
  EXPECT_NE(error.find("x.json.gz:"), std::string::npos) << error;
  bytes[bytes.size() / 2] ^= 0x55;
  WriteFileAtomically(folder / "x.json.gz", bytes);
  EXPECT_NE(ErrorOf(folder), "");
}

TEST(C4, RefusesWhatIsNoSuchJson) {
  const auto folder = FreshFolder("c4_json");
  const auto path = folder / "x.json.gz";
  for (const std::string bad :
       {"{\"text\": \"cut", "[1, 2]", "{\"url\": \"u\"}", "{\"text\": 3}",
        "{\"text\": \"\xFF\"}", "{\"text\": \"\\u0000\"}", "plain text"}) {
    WriteGzip(path, Line("good") + bad + "\n" + Line("good"));
    const std::string error = ErrorOf(path);
    EXPECT_NE(error.find("x.json.gz:2: "), std::string::npos)
        << bad << " -> " << error;
  }
}

TEST(C4, SaysWhereToGetIt) {
  try {
    FindC4Files(FreshFolder("c4_empty"));
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("--corpus c4:FOLDER"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace softmoe::trainer
