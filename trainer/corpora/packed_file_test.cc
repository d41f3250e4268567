// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/packed_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/sha256.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/testing/corpus_test_util.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

// What the file holds, read `block` bytes at a time.
std::string Unpacked(const fs::path& path, int64_t block = 1000) {
  const InputFile file(path);
  PackedFile packed(file);
  std::string text;
  for (std::string part(static_cast<size_t>(block), '\0');;) {
    const int64_t count = packed.Read(part.data(), block);
    text.append(part, 0, static_cast<size_t>(count));
    if (count < block) break;
  }
  EXPECT_EQ(packed.sha256(), Sha256OfFile(path));
  EXPECT_EQ(packed.position(), file.size());
  return text;
}

std::string LongText() {
  std::string text;
  for (int i = 0; i < 60000; ++i) text += std::to_string(i * 7919) + "\n";
  return text;
}

class Packed : public ::testing::TestWithParam<std::string> {
 protected:
  fs::path Write(const std::string& text) {
    const fs::path path = FreshFolder("packed") / "text";
    WritePacked(path, text, GetParam());
    return path;
  }
};

INSTANTIATE_TEST_SUITE_P(Forms, Packed,
                         ::testing::Values("plain", "gzip", "xz", "zstd"));

TEST_P(Packed, GivesWhatWasPacked) {
  const std::string text = LongText();
  EXPECT_TRUE(Unpacked(Write(text)) == text);
  EXPECT_TRUE(Unpacked(Write(text), 1 << 20) == text);
  EXPECT_EQ(Unpacked(Write("")), "");
  EXPECT_EQ(Unpacked(Write("x")), "x");
}

TEST_P(Packed, HashesTheWholeFileHoweverLittleOfItWasRead) {
  const fs::path path = Write(LongText());
  const InputFile file(path);
  PackedFile packed(file);
  char first = '\0';
  EXPECT_EQ(packed.Read(&first, 1), 1);
  EXPECT_EQ(first, '0');
  EXPECT_EQ(packed.position() == 1, GetParam() == "plain");
  EXPECT_EQ(packed.sha256(), Sha256OfFile(path));
}

// `cat a.gz b.gz` makes such files, and so do packers that use several threads.
TEST_P(Packed, ReadsOneMemberAfterAnother) {
  const std::string one = ReadWholeFile(Write("one"));
  const std::string two = ReadWholeFile(Write(LongText()));
  const fs::path path = Write("");
  WriteFileAtomically(path, one + two + one);
  EXPECT_TRUE(Unpacked(path) == "one" + LongText() + "one");
}

TEST_P(Packed, RefusesWhatEndsEarly) {
  if (GetParam() == "plain") return;
  const fs::path path = Write(LongText());
  const std::string bytes = ReadWholeFile(path);
  const char* why = GetParam() == "gzip"
                        ? ", in member 1 (it ends in the middle of a member)"
                        : " (";
  for (const size_t size : {size_t{6}, bytes.size() / 2, bytes.size() - 1}) {
    WriteFileAtomically(path, bytes.substr(0, size));
    EXPECT_TRUE(Says(MessageOf<DataError>([&] { Unpacked(path); }),
                     path.string() + ": damaged or truncated " + GetParam(),
                     fmt::format("byte {} of {}{}", size, size, why),
                     "download this file again"))
        << size;
  }
}

TEST_P(Packed, SaysWhenTheFileBecomesShorter) {
  const fs::path path = Write(LongText());
  const InputFile file(path);
  fs::resize_file(path, 600);
  char first = '\0';
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { PackedFile(file).Read(&first, 1); }),
           "text: became shorter"));
}

// The descriptor becomes that of a folder, which cannot be read, once the
// first of several blocks has been.
TEST_P(Packed, ADiskThatFailsIsNoDamage) {
  std::string noise;
  for (uint32_t i = 0, state = 1; i < 400'000; ++i) {
    state = state * 1664525 + 1013904223;
    noise += static_cast<char>(state >> 24);
  }
  const fs::path path = Write(noise);
  const InputFile file(path);
  PackedFile packed(file);
  EXPECT_EQ(packed.Read(noise.data(), 1000), 1000);
  const int folder = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::dup3(folder, file.descriptor(), O_CLOEXEC), file.descriptor());
  ::close(folder);
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>(
                       [&] { packed.Read(noise.data(), std::ssize(noise)); }),
                   "cannot read '" + path.string() + "': "));
}

// Gzip and xz have checksums that find any changed byte.
TEST_P(Packed, RefusesAChangedByte) {
  if (GetParam() != "gzip" && GetParam() != "xz") return;
  const fs::path path = Write(LongText());
  const std::string bytes = ReadWholeFile(path);
  for (const size_t at : {bytes.size() / 3, bytes.size() / 2}) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    WriteFileAtomically(path, changed);
    EXPECT_NE(MessageOf<DataError>([&] { Unpacked(path); }), kNoError) << at;
  }
}

TEST(PackedFile, NamesTheMemberOfGzipThatIsDamaged) {
  const fs::path path = FreshFolder("packed_member") / "x.gz";
  WriteGzip(path, "one");
  std::string one = ReadWholeFile(path);
  std::string damaged = one;
  damaged[damaged.size() - 8] ^= 1;  // the checksum
  WriteFileAtomically(path, one + one + damaged);
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { Unpacked(path); }),
                   "in member 3 (incorrect data check)"));
  WriteFileAtomically(path, one + "garbage");
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { Unpacked(path); }), "in member 2"));
}

// The last block of a tape ends in such zeros; gzip reads over them, too.
TEST(PackedFile, ReadsOverZerosThatEndGzip) {
  const fs::path path = FreshFolder("packed_zeros") / "x.gz";
  WriteGzip(path, "one");
  const std::string one = ReadWholeFile(path);
  for (const size_t count : {1, 512, 1 << 18}) {
    const std::string zeros(count, '\0');
    WriteFileAtomically(path, one + one + zeros);
    EXPECT_EQ(Unpacked(path), "oneone") << count;
    for (const std::string& more : {one, std::string("x")}) {
      WriteFileAtomically(path, one + zeros + more);
      EXPECT_TRUE(Says(MessageOf<DataError>([&] { Unpacked(path); }),
                       path.string() + ": damaged", "in member 1",
                       "other bytes after zeros"))
          << count;
    }
  }
}

// A zstd frame (RFC 8878) of one raw block, whose decoder must keep the last
// 2^window_log bytes.
std::string ZstdFrame(int window_log, const std::string& text) {
  std::string frame("\x28\xB5\x2F\xFD\0", 5);
  frame += static_cast<char>((window_log - 10) << 3);
  const size_t block = text.size() << 3 | 1;  // the last one
  for (int i = 0; i < 3; ++i) frame += static_cast<char>(block >> (8 * i));
  return frame + text;
}

// As `zstd --long=31` makes it.
TEST(PackedFile, SaysThatAWindowIsTooLong) {
  const fs::path path = FreshFolder("packed_window") / "x.zst";
  WriteFileAtomically(path, ZstdFrame(27, "text"));
  EXPECT_EQ(Unpacked(path), "text");
  for (const std::string& before : {std::string(), ZstdFrame(20, "first ")}) {
    WriteFileAtomically(path, before + ZstdFrame(31, "text"));
    const std::string error = MessageOf<DataError>([&] { Unpacked(path); });
    EXPECT_TRUE(Says(error, path.string() + ": zstd with a window of over",
                     "`zstd -d --long=31 '" + path.string() + "'`"));
    EXPECT_EQ(error.find("damaged"), error.npos) << error;
  }
}

// pzstd begins with one.
TEST(PackedFile, ReadsOverSkippableFrames) {
  const fs::path path = FreshFolder("packed_skip") / "x.zst";
  const std::string skipped("\x50\x2A\x4D\x18\4\0\0\0skip", 12);
  WriteFileAtomically(
      path, skipped + ZstdFrame(20, "one ") + skipped + ZstdFrame(20, "two"));
  EXPECT_EQ(Unpacked(path), "one two");
  WriteFileAtomically(path, skipped);
  EXPECT_EQ(Unpacked(path), "");
}

TEST(FormOf, LooksAtTheFirstBytes) {
  EXPECT_EQ(FormOf(""), FileForm::kPlain);
  EXPECT_EQ(FormOf("{\"text\": 1}"), FileForm::kPlain);
  EXPECT_EQ(FormOf("\x1F\x8B\x08"), FileForm::kGzip);
  EXPECT_EQ(FormOf(std::string("\xFD\x37zXZ\0\0", 6)), FileForm::kXz);
  EXPECT_EQ(FormOf("\x28\xB5\x2F\xFD"), FileForm::kZstd);
  EXPECT_EQ(FormOf("\x50\x2A\x4D\x18"), FileForm::kZstd);
  EXPECT_EQ(FormOf("\x5F\x2A\x4D\x18"), FileForm::kZstd);
  EXPECT_EQ(FormOf("\x60\x2A\x4D\x18"), FileForm::kPlain);
  EXPECT_EQ(FormOf(std::string(257, 'x') + "ustar"), FileForm::kTar);
  EXPECT_EQ(FormOf("\n <!DOCTYPE HTML>"), FileForm::kHtml);
  EXPECT_EQ(FormOf("<html lang=en>"), FileForm::kHtml);
  EXPECT_EQ(FormOf("<httpd>"), FileForm::kPlain);
  EXPECT_EQ(FormOf("BZh91AY&SY"), FileForm::kBzip2);
  EXPECT_EQ(FormOf("BZh"), FileForm::kPlain);
  EXPECT_EQ(FormOf("PK\3\4"), FileForm::kZip);
}

TEST(IsNearly, SeesCapitalLettersPackersAndParts) {
  const auto nearly = [](const std::string& name) {
    return IsNearly(
        [](const std::string& near) {
          return near.ends_with(".txt") || near.ends_with(".tar");
        },
        name);
  };
  for (const std::string name :
       {"b.txt", "b.TXT", "b.txt.gz", "b.Txt.GZ.xz", "b.txt.Z", "b.txt.gzip",
        "b.txt.sz", "b.txt.snappy", "b.txt.zst.br", "b.txt.0", "b.tar.gz.001",
        "b.tgz", "b.TXZ", "b.tbz2", "b.tbz.1"}) {
    EXPECT_TRUE(nearly(name)) << name;
  }
  for (const std::string name :
       {"", "b", ".", "b.gz", "txt", "b.txt.part", "b.txt~", "b.txt.", "b.1.2",
        "b.txt.md5", "b.txt.gz.asc", "b.xz", "tgz"}) {
    EXPECT_FALSE(nearly(name)) << name;
  }
}

TEST(RefuseForeign, SaysWhatToDo) {
  const fs::path path = FreshFolder("foreign") / "c4-train.json.gz";
  const auto error = [&](const std::string& content) {
    WriteFileAtomically(path, content);
    return MessageOf<DataError>([&] { RefuseForeign(InputFile(path)); });
  };
  EXPECT_TRUE(Says(error("version https://git-lfs.github.com/spec/v1\noid "),
                   path.string(), "git lfs pull"));
  EXPECT_TRUE(Says(error("<!doctype html><title>404</title>"), "HTML page",
                   "download it again"));
  EXPECT_TRUE(Says(error("PAR1\x15"), "Parquet", "parquet_to_jsonl.py"));
  EXPECT_TRUE(Says(error("BZh91AY&SY\1"), "bzip2", "unpack it"));
  EXPECT_TRUE(Says(error("PK\3\4\24"), "zip", "unpack it"));
  EXPECT_EQ(error("{}"), kNoError);
}

}  // namespace
}  // namespace softmoe::trainer
