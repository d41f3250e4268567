// SPDX-License-Identifier: Apache-2.0
//
// Everything that can be wrong with one of our files: missing, foreign, damaged
// anywhere, of another kind or version, lacking what the reader needs; and a
// disk that fills up while the file is written.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <system_error>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/hdf5/hdf5_envelope.h"
#include "core/hdf5/hdf5_file.h"
#include "core/philox.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

const Hdf5Kind kKind = {"checkpoint", 2};

// A small file with every kind of object, so that a flip can hit each.
void WriteSmall(const fs::path& path) {
  Hdf5Writer writer(path, kKind);
  writer.WriteAttribute("/", "config", "steps = 3");
  writer.WriteDataset<float>("/state/weights",
                             std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  writer.WriteDataset("/names", Strings({"one", "two"}));
  writer.Commit();
}

// Returns the message of the DataError that `body` must throw, with `path`.
std::string DataErrorOf(const fs::path& path,
                        const std::function<void()>& body) {
  const std::string text = MessageOf<DataError>(body);
  EXPECT_TRUE(Says(text, path.string()));
  return text;
}

std::string OpenError(const fs::path& path, const Hdf5Kind& kind = kKind) {
  return DataErrorOf(path, [&] { Hdf5Reader reader(path, kind); });
}

TEST(Hdf5Damage, MissingFileIsAnEnvironmentError) {
  const fs::path path = FreshFolder("missing") / "a.h5";
  const std::string message =
      MessageOf<EnvironmentError>([&] { Hdf5Reader reader(path, kKind); });
  EXPECT_TRUE(Says(message, path.string()));
}

TEST(Hdf5Damage, NobodyWaitsForAPipe) {
  const fs::path path = FreshFolder("pipe") / "a.h5";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::string message =
      MessageOf<EnvironmentError>([&] { Hdf5Reader reader(path, kKind); });
  EXPECT_TRUE(Says(message, path.string(), "a device or a pipe"));
  EXPECT_FALSE(SaysKind(path, kKind.name));
}

TEST(Hdf5Damage, ForeignFilesAreRefused) {
  const fs::path path = FreshFolder("foreign") / "a.h5";
  WritePlain(path, "");
  EXPECT_TRUE(Says(OpenError(path), "is empty"));
  const std::string hdf5_signature = "\x89HDF\r\n\x1a\n";
  for (const std::string& content :
       {std::string("x"), std::string(5000, 'x'), std::string(5000, '\0'),
        hdf5_signature + std::string(5000, '\0')}) {
    WritePlain(path, content);
    EXPECT_TRUE(Says(OpenError(path), "not a file of this project"));
  }
}

TEST(Hdf5Damage, OtherKindAndOtherVersionAreNamed) {
  const fs::path path = FreshFolder("kinds") / "a.h5";
  WriteSmall(path);
  const std::string kind = OpenError(path, {"golden", 2});
  EXPECT_TRUE(Says(kind, "is a 'checkpoint' file, but a 'golden' file"));
  for (const uint32_t other : {1u, 3u}) {
    EXPECT_TRUE(
        Says(OpenError(path, {"checkpoint", other}),
             "version 2, this program reads version " + std::to_string(other)));
  }
}

TEST(Hdf5Damage, TruncationAtEveryLengthIsFound) {
  const fs::path folder = FreshFolder("truncated");
  WriteSmall(folder / "whole.h5");
  const std::string whole = ReadWholeFile(folder / "whole.h5");
  const fs::path path = folder / "part.h5";
  for (size_t size = 1; size < whole.size(); ++size) {
    WritePlain(path, std::string_view(whole).substr(0, size));
    const std::string text = OpenError(path);
    // Up to 8 bytes, the file is only the beginning of our magic.
    ASSERT_TRUE(Says(text, "truncated")) << size;
  }
  WritePlain(path, whole + "x");
  EXPECT_TRUE(Says(OpenError(path), "is damaged"));
}

TEST(Hdf5Damage, OneFlippedByteAnywhereIsFound) {
  const fs::path folder = FreshFolder("flipped");
  WriteSmall(folder / "whole.h5");
  const std::string whole = ReadWholeFile(folder / "whole.h5");
  ASSERT_LT(whole.size(), 20'000u);
  const fs::path path = folder / "flipped.h5";
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    // Any bits of the byte may be flipped, not only a fixed one.
    flipped[at] = static_cast<char>(
        flipped[at] ^ (1 + PhiloxWords({.seed = 77}, at)[0] % 255));
    WritePlain(path, flipped);
    ASSERT_NE(OpenError(path), kNoError) << "byte " << at;
  }
}

// Sealed by hand, since nothing else makes these: a valid envelope around bytes
// that are not HDF5, and an envelope of a future version.
TEST(Hdf5Damage, SealedGarbageIsADataError) {
  const fs::path path = FreshFolder("sealed") / "a.h5";
  const std::string garbage(3000, 'g');
  Hdf5Envelope envelope{kKind, kEnvelopeBytes + 3000, {}};
  Sha256 hash;
  hash.Update(garbage);
  envelope.content = hash.Finish();
  EnvelopeBytes bytes = EncodeEnvelope(envelope);
  auto text = [&] { return std::string(bytes.begin(), bytes.end()); };
  WritePlain(path, text() + garbage);
  EXPECT_TRUE(Says(OpenError(path), "cannot be opened by HDF5"));

  const auto change = [&](size_t at, uint8_t to) {  // under a valid checksum
    bytes[at] = to;
    hash.Update(bytes.data(), 480);
    const Sha256Digest checksum = hash.Finish();
    std::copy(checksum.begin(), checksum.end(), bytes.begin() + 480);
    WritePlain(path, text() + garbage);
  };
  for (const size_t reserved : {40, 100, 479}) {
    change(reserved, 1);
    EXPECT_TRUE(Says(OpenError(path), "more in it")) << reserved;
    bytes[reserved] = 0;
  }
  change(8, 2);  // the envelope's own version
  EXPECT_TRUE(Says(OpenError(path), "envelope version 2"));
}

// A disk may fail to deliver bytes that it delivered when they were checked.
TEST(Hdf5Damage, WhatCannotBeReadAnyMoreIsNotDamaged) {
  const fs::path folder = FreshFolder("unreadable");
  const fs::path path = folder / "a.h5";
  const auto write = [&] {
    Hdf5Writer writer(path, kKind);
    writer.WriteDataset<float>("/small", std::vector<float>{1, 2}, {2});
    // So long that libhdf5 has read nothing of it while it opened the file.
    writer.WriteDataset("/large", std::vector<float>(100'000, 1.5f));
    writer.WriteDataset("/text", Strings({std::string(100'000, 'x'), "y"}));
    writer.Commit();
  };
  const auto expect_errors = [&](const Hdf5Reader& reader,
                                 const std::string& reason) {
    std::vector<float> values(100'000);
    const std::function<void()> reads[] = {
        [&] { reader.ReadDataset<float>("/large"); },
        [&] { reader.ReadDatasetInto("/large", values, {100'000}); },
        [&] { reader.ReadDataset<std::string>("/text"); }};
    for (const std::function<void()>& read : reads) {
      EXPECT_TRUE(
          Says(MessageOf<EnvironmentError>(read), path.string(), reason));
    }
  };
  write();
  {
    const Hdf5Reader reader(path, kKind);
    fs::resize_file(path, 4096);
    expect_errors(reader, "shorter since it was opened");
  }
  write();
  const Hdf5Reader reader(path, kKind);
  const int instead = open(folder.c_str(), O_RDONLY | O_CLOEXEC);
  for (int file = 3; file < 256; ++file) {
    std::error_code ignored;
    if (fs::read_symlink("/proc/self/fd/" + std::to_string(file), ignored) ==
        fs::canonical(path)) {
      ASSERT_EQ(dup2(instead, file), file);
    }
  }
  close(instead);
  expect_errors(reader, "Is a directory");
}

TEST(Hdf5Damage, AbsentAndMistypedContentIsNamed) {
  const fs::path path = FreshFolder("content") / "a.h5";
  WriteSmall(path);
  const Hdf5Reader reader(path, kKind);
  auto error = [&](const std::function<void()>& body) {
    return DataErrorOf(path, body);
  };
  EXPECT_TRUE(Says(error([&] { reader.ReadDataset<float>("/state/m"); }),
                   "'/state/m' is absent"));
  EXPECT_TRUE(Says(error([&] { reader.ReadDataset<float>("/state"); }),
                   "'/state' is a group"));
  EXPECT_TRUE(Says(error([&] { reader.ReadDataset<double>("/state/weights"); }),
                   "'/state/weights' has type float32, but float64 is needed"));
  EXPECT_TRUE(
      Says(error([&] { reader.ReadDataset<std::string>("/state/weights"); }),
           "has type float32, but string is needed"));
  EXPECT_TRUE(Says(error([&] { reader.ReadDataset<int64_t>("/names"); }),
                   "has type string, but int64 is needed"));
  std::vector<float> values(6);
  EXPECT_TRUE(Says(error([&] {
                     reader.ReadDatasetInto("/state/weights", values, {3, 2});
                   }),
                   "has shape [2, 3], but [3, 2] is needed"));
  EXPECT_TRUE(Says(error([&] { reader.ReadString("/", "name"); }),
                   "'/@name' is absent"));
  EXPECT_TRUE(Says(error([&] { reader.ReadInt("/", "config"); }),
                   "has type string, but int64 is needed"));
  EXPECT_TRUE(Says(error([&] { reader.Children("/absent"); }), "absent"));
  EXPECT_TRUE(Says(error([&] { reader.Children("/names"); }),
                   "'/names' is not a group"));
}

std::vector<float> Incompressible(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t word = PhiloxWords({.seed = 3}, i)[0];
    std::memcpy(&values[i], &word, sizeof(word));
  }
  return values;
}

// Tries every size limit below what the file needs, from the first byte on: the
// failure may come in the constructor, in any write, or in Commit.
TEST(Hdf5Damage, FullDiskLeavesTheOldFileAndNothingElse) {
  const fs::path folder = FreshFolder("full_disk");
  const fs::path path = folder / "a.h5";
  const std::vector<float> values = Incompressible(50'000);
  auto write = [&] {
    Hdf5Writer writer(path, kKind);
    writer.WriteAttribute("/", "name", "new");
    writer.WriteDataset("/small", std::vector<double>{1, 2});
    for (const char* name : {"/large/one", "/large/two"}) {
      writer.WriteDataset<float>(name, values, {50, 1000});
    }
    writer.CreateGroup("/late");
    writer.Commit();
  };
  write();
  const int64_t needed = static_cast<int64_t>(fs::file_size(path));
  EXPECT_GT(needed, 400'000);
  WriteSmall(path);
  const std::string before = ReadWholeFile(path);
  for (int64_t limit = 0; limit < needed; limit += 7919) {
    FullDisk disk(limit);
    ASSERT_TRUE(Says(MessageOf(ExitCode::kEnvironment, write), path.string()))
        << limit;
    ASSERT_EQ(FilesIn(folder), Strings({"a.h5"})) << limit;
    ASSERT_TRUE(ReadWholeFile(path) == before) << limit;
  }
  {
    FullDisk disk(needed - 1);
    EXPECT_THROW(write(), EnvironmentError);
  }
  {
    FullDisk disk(needed);
    write();  // and after all these failures libhdf5 still works
  }
  EXPECT_EQ(Hdf5Reader(path, kKind).ReadDataset<float>("/large/two").values[0],
            values[0]);
}

}  // namespace
}  // namespace softmoe
