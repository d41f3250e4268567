// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/token_file.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/sha256.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/testing/token_test_util.h"

namespace softmoe::trainer {
namespace {

using Documents = std::vector<std::vector<int32_t>>;

Documents ReadDocuments(const TokenFile& file) {
  Documents documents;
  for (int64_t d = 0; d < file.num_documents(); ++d) {
    const int64_t begin = file.DocumentBegin(d);
    auto& ids = documents.emplace_back(
        static_cast<size_t>(file.DocumentBegin(d + 1) - begin));
    file.Read(begin, static_cast<int64_t>(ids.size()), ids.data());
  }
  return documents;
}

std::string ErrorOf(const std::filesystem::path& prefix, int64_t vocab_size) {
  return MessageOf<DataError>([&] {
    const TokenFile file(prefix, vocab_size);
    std::vector<int32_t> ids(static_cast<size_t>(file.num_tokens()));
    file.Read(0, file.num_tokens(), ids.data());
  });
}

RC_GTEST_PROP(TokenFile, ReadsWhatWasWritten, (bool wide)) {
  const int64_t vocab_size = wide ? 70000 : 65499;
  const auto documents =
      *rc::gen::container<Documents>(rc::gen::container<std::vector<int32_t>>(
          rc::gen::inRange<int32_t>(0, static_cast<int32_t>(vocab_size))));
  const auto folder = FreshFolder("round_trip");
  const std::string hash = WriteTokenFiles(folder / "t", vocab_size, documents);
  RC_ASSERT(hash == Sha256OfFile(folder / "t.idx"));
  RC_ASSERT(ReadDocuments(TokenFile(folder / "t", vocab_size)) == documents);
}

// More documents and more tokens than are written or read at a time.
TEST(TokenFile, ReadsLongFiles) {
  for (const int64_t vocab_size : {65499, 70000}) {
    Documents documents(9000);
    for (size_t d = 0; d < documents.size(); ++d) {
      documents[d].assign(d % 3, static_cast<int32_t>(d * 7));
    }
    documents.emplace_back(20000);
    std::iota(documents.back().begin(), documents.back().end(), 40000);
    const auto folder = FreshFolder("long");
    const std::string hash =
        WriteTokenFiles(folder / "t", vocab_size, documents);
    EXPECT_EQ(hash, Sha256OfFile(folder / "t.idx"));
    const TokenFile file(folder / "t", vocab_size);
    EXPECT_TRUE(ReadDocuments(file) == documents);
    EXPECT_NO_THROW(file.CheckIds());
    // The first such id is not among the first 4096.
    EXPECT_THROW(TokenFile(folder / "t", 59999).CheckIds(), DataError);
  }
}

// Megatron-LM may write such files: more sequences than are read at a time, all
// in one document.
TEST(TokenFile, ReadsADocumentOfManySequences) {
  constexpr int64_t kSequences = 5000;
  Documents sequences(kSequences);
  for (size_t s = 0; s < sequences.size(); ++s) {
    sequences[s] = {static_cast<int32_t>(s)};
  }
  const auto folder = FreshFolder("one_document");
  WriteTokenFiles(folder / "t", kSequences, sequences);
  std::string index = ReadWholeFile(folder / "t.idx");
  constexpr size_t kBoundaries = 34 + 12 * kSequences;
  const int64_t boundaries[] = {0, kSequences}, count = std::size(boundaries);
  std::memcpy(index.data() + 26, &count, sizeof(count));
  std::memcpy(index.data() + kBoundaries, boundaries, sizeof(boundaries));
  index.resize(kBoundaries + sizeof(boundaries));
  WriteFileAtomically(folder / "t.idx", index);
  std::vector<int32_t> all(kSequences);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(ReadDocuments(TokenFile(folder / "t", kSequences)), Documents{all});
}

class DamagedTokenFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = FreshFolder("damaged");
    WriteTokenFiles(folder_ / "t", 1000, {{0, 2, 3}, {4, 5}, {999}});
    idx_ = ReadWholeFile(folder_ / "t.idx");
    bin_ = ReadWholeFile(folder_ / "t.bin");
    ASSERT_EQ(Error(), kNoError);
  }
  // The error for files with the contents `idx_` and `bin_`.
  std::string Error(int64_t vocab_size = 1000) {
    WriteFileAtomically(folder_ / "t.idx", idx_);
    WriteFileAtomically(folder_ / "t.bin", bin_);
    return ErrorOf(folder_ / "t", vocab_size);
  }
  template <typename T>
  void Patch(size_t at, T value) {
    std::memcpy(idx_.data() + at, &value, sizeof(value));
  }
  // The whole message: which of the two files, what is wrong, what to do.
  void ExpectRefused(const std::string& suffix, const std::string& problem,
                     int64_t vocab_size = 1000) {
    EXPECT_EQ(Error(vocab_size),
              (folder_ / "t").string() + suffix + ": " + problem +
                  "; make the token files again with `./bazelw run "
                  "//:prepare_data`");
  }
  // Expects an error that the header's counts do not fit a file of this size.
  void ExpectMisfit(const std::string& sequences, const std::string& boundaries,
                    size_t bytes) {
    ExpectRefused(".idx",
                  "byte 18: " + sequences + " sequences and " + boundaries +
                      " document boundaries do not fit a file of " +
                      std::to_string(bytes) +
                      " bytes: it is truncated, or has the sequence modes of "
                      "multimodal data");
  }

  std::filesystem::path folder_;
  std::string idx_, bin_;
};

TEST_F(DamagedTokenFile, Truncated) {
  const std::string whole = idx_;
  ASSERT_EQ(whole.size(), 34u + 3 * 12 + 4 * 8);
  for (size_t size = 0; size < whole.size(); ++size) {
    idx_ = whole.substr(0, size);
    if (size < 34) {
      ExpectRefused(".idx", "truncated: " + std::to_string(size) +
                                " bytes, the header alone has 34");
    } else {
      ExpectMisfit("3", "4", size);
    }
  }
  idx_ = whole;
  const std::string tokens = bin_;
  for (size_t size = 0; size < tokens.size(); ++size) {
    bin_ = tokens.substr(0, size);
    const char* end = size < 6    ? "sequence 0 ends at byte 6"
                      : size < 10 ? "sequence 1 ends at byte 10"
                                  : "sequence 2 ends at byte 12";
    ExpectRefused(".bin",
                  "truncated: " + std::to_string(size) + " bytes, but " + end);
  }
}

TEST_F(DamagedTokenFile, Extended) {
  bin_ += "xx";
  ExpectRefused(".bin", "14 bytes, but the sequences end at byte 12");
  bin_.resize(12);
  idx_ += std::string(3, '\0');  // what the modes of 3 sequences would be
  ExpectMisfit("3", "4", 105);
}

TEST_F(DamagedTokenFile, Magic) {
  idx_[0] = 'X';
  ExpectRefused(".idx",
                "byte 0: no Megatron token index (magic MMIDIDX missing)");
}

TEST_F(DamagedTokenFile, Version) {
  Patch<uint64_t>(9, 2);
  ExpectRefused(".idx", "byte 9: version 2, only 1 is known");
}

TEST_F(DamagedTokenFile, ElementType) {
  Patch<uint8_t>(17, 6);
  ExpectRefused(".idx",
                "byte 17: element type 6, only 8 (uint16) and 4 (int32) hold "
                "token ids");
  // int32 where the bytes are uint16: the sizes do not fit.
  Patch<uint8_t>(17, kTokenInt32);
  ExpectRefused(".idx",
                "sequence 1: begins at byte 6 of the .bin file, its "
                "predecessor ends at 12");
}

// Counts whose bytes would fit the file if they were computed modulo 2^64.
TEST_F(DamagedTokenFile, Counts) {
  Patch<uint64_t>(18, (uint64_t{1} << 62) + 3);
  ExpectMisfit("4611686018427387907", "4", 102);
  Patch<uint64_t>(18, 3);
  Patch<uint64_t>(26, (uint64_t{1} << 61) + 4);
  ExpectMisfit("3", "2305843009213693956", 102);
  Patch<uint64_t>(26, 0);
  idx_.resize(34 + 3 * 12);
  ExpectRefused(".idx", "byte 26: no document boundary");
}

TEST_F(DamagedTokenFile, Pointers) {
  constexpr size_t kPointers = 34 + 3 * 4;
  Patch<int64_t>(kPointers + 8, int64_t{1} << 62);
  ExpectRefused(".idx",
                "sequence 1: begins at byte 4611686018427387904 of the .bin "
                "file, its predecessor ends at 6");
  Patch<int64_t>(kPointers + 8, -2);
  ExpectRefused(".idx",
                "sequence 1: begins at byte -2 of the .bin file, its "
                "predecessor ends at 6");
}

TEST_F(DamagedTokenFile, Lengths) {
  Patch<int32_t>(34, -1);
  ExpectRefused(".idx", "sequence 0: length -1");
  Patch<int32_t>(34, 0x7FFFFFFF);
  ExpectRefused(".bin",
                "truncated: 12 bytes, but sequence 0 ends at byte 4294967294");
}

TEST_F(DamagedTokenFile, DocumentBoundaries) {
  constexpr size_t kBoundaries = 34 + 3 * 12;
  auto expect = [&](const std::vector<int64_t>& boundaries,
                    const std::string& problem) {
    for (size_t d = 0; d < boundaries.size(); ++d) {
      Patch<int64_t>(kBoundaries + 8 * d, boundaries[d]);
    }
    ExpectRefused(".idx",
                  "document boundary " + problem + ", there are 3 sequences)");
  };
  expect({1, 1, 2, 3}, "0: sequence 1 (the previous one is 0");
  expect({-1, 1, 2, 3}, "0: sequence -1 (the previous one is 0");
  expect({0, 4, 2, 3}, "1: sequence 4 (the previous one is 0");
  expect({0, 1, 2, 2}, "3: sequence 2 (the previous one is 2");
  expect({0, 3, 2, 3}, "2: sequence 2 (the previous one is 3");
}

TEST_F(DamagedTokenFile, IdOutsideTheVocabulary) {
  ExpectRefused(".bin", "token 5: id 999 outside the vocabulary of 999", 999);
}

// Only ids of four bytes have room for a sign.
TEST_F(DamagedTokenFile, NegativeId) {
  WriteTokenFiles(folder_ / "t", 70000, {{1, 2}, {69999}});
  idx_ = ReadWholeFile(folder_ / "t.idx");
  bin_ = ReadWholeFile(folder_ / "t.bin");
  ASSERT_EQ(bin_.size(), 12u);
  ASSERT_EQ(Error(70000), kNoError);
  const int32_t id = -1;
  std::memcpy(bin_.data() + 4, &id, sizeof(id));
  ExpectRefused(".bin", "token 1: id -1 outside the vocabulary of 70000",
                70000);
}

TEST_F(DamagedTokenFile, Missing) {
  std::filesystem::remove(folder_ / "t.bin");
  EXPECT_THROW(TokenFile(folder_ / "t", 1000), EnvironmentError);
}

// Both files were whole when opened.
TEST_F(DamagedTokenFile, ShorterWhileInUse) {
  const TokenFile file(folder_ / "t", 1000);
  const auto error_of = [&](const auto& read) -> std::string {
    return MessageOf<DataError>([&] { read(); });
  };
  std::vector<int32_t> ids(6);
  std::filesystem::resize_file(folder_ / "t.bin", 8);
  EXPECT_EQ(error_of([&] { file.Read(0, 4, ids.data()); }), kNoError);
  std::string error = error_of([&] { file.Read(3, 3, ids.data()); });
  EXPECT_TRUE(Says(error, "damaged/t.bin: became shorter", "at most 8"));
  std::filesystem::resize_file(folder_ / "t.idx", 34);
  error = error_of([&] { file.DocumentBegin(1); });
  EXPECT_TRUE(Says(error, "damaged/t.idx: became shorter", "restore it"));
}

// Whatever a few flipped bytes do, the file is refused or read within bounds
// (which the sanitizer builds check).
RC_GTEST_FIXTURE_PROP(DamagedTokenFile, MutationsNeverCrash, ()) {
  const auto flips = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::pair<uint32_t, uint8_t>>>(
          rc::gen::pair(rc::gen::arbitrary<uint32_t>(),
                        rc::gen::arbitrary<uint8_t>())));
  for (const auto& [where, mask] : flips) {
    const size_t at = where % (idx_.size() + bin_.size());
    char& byte = at < idx_.size() ? idx_[at] : bin_[at - idx_.size()];
    byte = static_cast<char>(byte ^ static_cast<char>(mask));
  }
  RC_CLASSIFY(Error() == kNoError, "still readable");
}

}  // namespace
}  // namespace softmoe::trainer
