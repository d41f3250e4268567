// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/text_corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "trainer/testing/corpus_test_util.h"

namespace softmoe::trainer {
namespace {

using Documents = std::vector<std::string>;

Documents Read(const std::string& content) {
  const auto path = FreshFolder("text") / "text.txt";
  WriteFileAtomically(path, content);
  return DocumentsOf(OpenTextFile(path));
}

std::string ErrorOf(const std::string& content) {
  try {
    Read(content);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(TextFile, BlankLinesSeparate) {
  EXPECT_EQ(Read("one\ntwo\n\nthree\n"), (Documents{"one\ntwo", "three"}));
  EXPECT_EQ(Read("\n\n a \n \t\n\n\nb\r\n\r\nc"), (Documents{"a", "b", "c"}));
}

TEST(TextFile, MarksSeparateAndKeepParagraphs) {
  EXPECT_EQ(Read("one\n\ntwo\n<|endoftext|>\n\n<|endoftext|>\nthree"),
            (Documents{"one\n\ntwo", "three"}));
  // Inside a line, the separator is text.
  EXPECT_EQ(Read("a <|endoftext|> b\n\nc"),
            (Documents{"a <|endoftext|> b", "c"}));
}

TEST(TextFile, OtherwiseEveryLineIsADocument) {
  EXPECT_EQ(Read("one\ntwo\nthree"), (Documents{"one", "two", "three"}));
  EXPECT_EQ(Read("one\n"), (Documents{"one"}));
}

TEST(TextFile, DropsAByteOrderMark) {
  EXPECT_EQ(Read("\xEF\xBB\xBFone\ntwo"), (Documents{"one", "two"}));
}

TEST(TextFile, ReadsBackWhatTheTestsWrite) {
  const Documents documents = TestDocuments(100);
  EXPECT_EQ(Read(TestText(documents)), documents);
}

TEST(TextFile, RefusesEmptyFiles) {
  for (const std::string content : {"", "\n", " \n\t\n"}) {
    const std::string error = ErrorOf(content);
    EXPECT_NE(error.find("text.txt: no text in it"), std::string::npos)
        << error;
  }
}

TEST(TextFile, RefusesBinaryFilesNamingTheByte) {
  EXPECT_NE(ErrorOf("text\n\xFF\xFE").find("byte 5 (0xFF) is not UTF-8"),
            std::string::npos);
  EXPECT_NE(ErrorOf(std::string("ELF\0\0", 5)).find("byte 3 (0x00)"),
            std::string::npos);
  EXPECT_NE(ErrorOf("\xEF\xBB\xBF"
                    "caf\xE9 au lait")
                .find("byte 6 (0xE9)"),
            std::string::npos);
  EXPECT_NE(ErrorOf("caf\xE9").find("iconv"), std::string::npos);
}

TEST(TextFile, RefusesHugeDocuments) {
  const std::string content =
      "one\n\n" + std::string(kMaxDocumentBytes + 1, 'x') + "\n\ntwo";
  const std::string error = ErrorOf(content);
  EXPECT_NE(error.find("byte 5: a document of more than 67108864 bytes"),
            std::string::npos)
      << error;
}

TEST(TextFile, RefusesHugeLines) {
  const auto path = FreshFolder("huge") / "text.txt";
  WriteFileAtomically(path, "one\n\n");
  // A file without a line end, which takes no disk space.
  std::filesystem::resize_file(path, 3 * kMaxDocumentBytes);
  try {
    OpenTextFile(path);
    FAIL() << "a line of 192 MiB was read";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("byte 5: a line of more than 134217728 bytes"),
              std::string::npos)
        << error.what();
  }
}

// A file is read a mebibyte at a time.
TEST(TextFile, LinesAndDocumentsMayBeLong) {
  Documents documents;
  for (size_t kilobytes : {1, 1023, 1024, 1025, 3000, 2}) {
    documents.push_back(std::string(kilobytes << 10, 'x') + "\n" +
                        std::string(kilobytes << 8, 'y'));
    documents.push_back("short");
  }
  std::string text;
  for (const std::string& document : documents) text += document + "\n\n";
  EXPECT_EQ(Read(text), documents);
  std::string lines = text;
  lines.erase(std::unique(lines.begin(), lines.end(),
                          [](char a, char b) { return a == '\n' && b == a; }),
              lines.end());
  Documents halves;
  for (const std::string& document : documents) {
    const size_t end = document.find('\n');
    halves.push_back(document.substr(0, end));
    if (end != document.npos) halves.push_back(document.substr(end + 1));
  }
  EXPECT_EQ(Read(lines), halves);
}

TEST(TextFile, SaysWhenTheFileBecameShorter) {
  const auto path = FreshFolder("shrinks") / "text.txt";
  WriteFileAtomically(path, "one\n\n" + std::string(5 << 20, 'x'));
  const auto source = OpenTextFile(path);
  std::filesystem::resize_file(path, 5);
  std::string document;
  EXPECT_TRUE(source->Next(&document));  // was read before
  try {
    source->Next(&document);
    FAIL() << "read what is no longer there";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("text.txt: became shorter"),
              std::string::npos)
        << error.what();
  }
}

TEST(TextFile, NamesAMissingFile) {
  try {
    OpenTextFile("/nowhere/at/all.txt");
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("/nowhere/at/all.txt"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace softmoe::trainer
