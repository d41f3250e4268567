// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/text_corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/testing/corpus_test_util.h"

namespace softmoe::trainer {
namespace {

using Documents = std::vector<std::string>;

Documents ReadPlain(const std::string& content) {
  const auto path = FreshFolder("text") / "text.txt";
  WriteFileAtomically(path, content);
  return DocumentsOf(OpenTextFile(path));
}

std::string TextError(const std::string& content) {
  return MessageOf<DataError>([&] { ReadPlain(content); });
}

TEST(TextFile, BlankLinesSeparate) {
  EXPECT_EQ(ReadPlain("one\ntwo\n\nthree\n"), (Documents{"one\ntwo", "three"}));
  EXPECT_EQ(ReadPlain("\n\n a \n \t\n\n\nb\r\n\r\nc"),
            (Documents{"a", "b", "c"}));
}

TEST(TextFile, MarksSeparateAndKeepParagraphs) {
  EXPECT_EQ(ReadPlain("one\n\ntwo\n<|endoftext|>\n\n<|endoftext|>\nthree"),
            (Documents{"one\n\ntwo", "three"}));
  // White space beside it on its line does not count.
  EXPECT_EQ(ReadPlain(" <|endoftext|>\none\n\ntwo"), (Documents{"one\n\ntwo"}));
  EXPECT_EQ(ReadPlain("one\n<|endoftext|> \ntwo\n \t<|endoftext|>\r\nthree"),
            (Documents{"one", "two", "three"}));
  // Inside a line, the separator is text...
  EXPECT_EQ(
      ReadPlain("a <|endoftext|> b\n\n<|endoftext|> c\n\nd <|endoftext|>"),
      (Documents{"a <|endoftext|> b", "<|endoftext|> c", "d <|endoftext|>"}));
  EXPECT_EQ(ReadPlain("of <|endoftext|>\n<|endoftext|>\ntwo"),
            (Documents{"of <|endoftext|>", "two"}));
  // ...but right beside text at the end or beginning of a line, it is meant as
  // a separator, unless some line is the separator alone.
  for (const std::string line : {"two.<|endoftext|>", "<|endoftext|>two"}) {
    EXPECT_TRUE(Says(TextError("one\n" + line + " \n\n" + line),
                     "text.txt:2: <|endoftext|> separates", "jsonl:PATH"));
  }
  EXPECT_TRUE(Says(TextError("one<|endoftext|>"), "text.txt:1: "));
}

TEST(TextFile, OtherwiseEveryLineIsADocument) {
  EXPECT_EQ(ReadPlain("one\ntwo\nthree"), (Documents{"one", "two", "three"}));
  EXPECT_EQ(ReadPlain("one\n"), (Documents{"one"}));
  EXPECT_EQ(ReadPlain("\n\none\ntwo"), (Documents{"one", "two"}));
}

TEST(TextFile, DropsAByteOrderMark) {
  EXPECT_EQ(ReadPlain("\xEF\xBB\xBFone\ntwo"), (Documents{"one", "two"}));
}

TEST(TextFile, ReadsBackWhatTheTestsWrite) {
  const Documents documents = TestDocuments(100);
  EXPECT_EQ(ReadPlain(TestText(documents)), documents);
}

// For the display of progress.
TEST(TextFile, CountsTheBytesThatItHasRead) {
  const auto path = FreshFolder("text") / "text.txt";
  WriteFileAtomically(path, TestText(TestDocuments(100)));
  const auto source = OpenTextFile(path);
  DocumentsOf(source);
  EXPECT_EQ(source->input_bytes(),
            static_cast<int64_t>(std::filesystem::file_size(path)));
}

TEST(TextFile, RefusesEmptyFiles) {
  for (const std::string content : {"", "\n", " \n\t\n"}) {
    const std::string error = TextError(content);
    EXPECT_TRUE(Says(error, "text.txt: no text in it"));
  }
}

TEST(TextFile, RefusesBinaryFilesNamingTheByte) {
  EXPECT_TRUE(Says(TextError("text\n\xFF\xFE"), "byte 5 (0xFF) is not UTF-8"));
  EXPECT_TRUE(Says(TextError(std::string("ELF\0\0", 5)), "byte 3 (0x00)"));
  EXPECT_TRUE(Says(TextError("\xEF\xBB\xBF"
                             "caf\xE9 au lait"),
                   "byte 6 (0xE9)"));
  EXPECT_TRUE(Says(TextError("caf\xE9"), "iconv"));
  // In a line that is read in two parts.
  EXPECT_TRUE(Says(TextError("one\n" + std::string(1 << 20, 'x') + "\xFF"),
                   "byte 1048580 (0xFF)"));
  EXPECT_TRUE(Says(TextError("PK\3\4"), "bzip2 or zip"));
  EXPECT_EQ(ReadPlain("<html>"), (Documents{"<html>"}));
}

TEST(TextFile, RefusesHugeDocuments) {
  const std::string longest(kMaxDocumentBytes, 'x');
  const std::string error =
      TextError("one\n\n" + longest + "\n\n" + longest + "x\n\ntwo");
  EXPECT_TRUE(
      Says(error, "byte 67108871: a document of more than 67108864 bytes"));
}

// Between marks, blank lines are held until it is known what follows them.
TEST(TextFile, HoldsNoHugeWhiteSpaceInADocument) {
  const auto path = FreshFolder("blank") / "text.txt";
  const auto blank = [](size_t bytes) {
    std::string lines;
    while (lines.size() <= bytes) lines += std::string(1 << 20, ' ') + "\n";
    return lines;
  };
  const std::string one = "<|endoftext|>\none\n";
  WritePacked(path,
              one + blank(kMaxDocumentBytes * 9 / 4) + "<|endoftext|>\ntwo\n",
              "zstd");
  const auto source = OpenTextFile(path);
  std::string document;
  ASSERT_TRUE(source->Next(&document));
  EXPECT_EQ(document, "one");
  EXPECT_LT(document.capacity(), kMaxDocumentBytes * 17 / 8);  // it doubles
  ASSERT_TRUE(source->Next(&document));
  EXPECT_EQ(document, "two");
  EXPECT_FALSE(source->Next(&document));
  WritePacked(path, one + blank(kMaxDocumentBytes) + "two\n", "zstd");
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { DocumentsOf(OpenTextFile(path)); }),
           "byte 14: a document of more than 67108864 bytes"));
}

TEST(TextFile, RefusesHugeLines) {
  const auto path = FreshFolder("huge") / "text.txt";
  WriteFileAtomically(path, "one\n\n");
  // A file without a line end, which takes no disk space.
  std::filesystem::resize_file(path, 3 * kMaxDocumentBytes);
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { OpenTextFile(path); }),
                   "byte 5: a line of more than 134217728 bytes"));
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
  EXPECT_EQ(ReadPlain(text), documents);
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
  EXPECT_EQ(ReadPlain(lines), halves);
}

TEST(TextFile, SaysWhenTheFileBecameShorter) {
  const auto path = FreshFolder("shrinks") / "text.txt";
  WriteFileAtomically(path, "one\n\n" + std::string(5 << 20, 'x'));
  const auto source = OpenTextFile(path);
  std::filesystem::resize_file(path, 5);
  std::string document;
  EXPECT_TRUE(source->Next(&document));  // was read before
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { source->Next(&document); }),
                   "text.txt: became shorter"));
}

TEST(TextFile, NamesAMissingFile) {
  EXPECT_TRUE(Says(
      MessageOf<EnvironmentError>([&] { OpenTextFile("/nowhere/at/all.txt"); }),
      "/nowhere/at/all.txt"));
}

}  // namespace
}  // namespace softmoe::trainer
