// SPDX-License-Identifier: Apache-2.0
#include "core/files/sha256.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/errors.h"

namespace softmoe {
namespace {

// Known answers: FIPS 180-4 examples (empty, "abc", two blocks).
constexpr char kEmpty[] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr char kAbc[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kTwoBlocks[] =
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";

TEST(Sha256, MatchesTheKnownAnswers) {
  EXPECT_EQ(Sha256Hex(""), kEmpty);
  EXPECT_EQ(Sha256Hex("abc"), kAbc);
  EXPECT_EQ(
      Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
      kTwoBlocks);
}

TEST(Sha256, PiecesGiveTheDigestOfTheWholeAndFinishStartsAnew) {
  Sha256 hash;
  hash.Update("a");
  hash.Update("");
  hash.Update("bc");
  EXPECT_EQ(Sha256Hex(hash.Finish()), kAbc);
  EXPECT_EQ(Sha256Hex(hash.Finish()), kEmpty);
}

TEST(Sha256, OfAFileIsOfItsContent) {
  const std::string path = ::testing::TempDir() + "/sha256_input";
  // Longer than one read buffer.
  const std::string content(3'000'001, 'x');
  std::ofstream(path, std::ios::binary) << content;
  EXPECT_EQ(Sha256OfFile(path), Sha256Hex(content));
}

TEST(Sha256, AFileThatCannotBeReadIsAnEnvironmentError) {
  EXPECT_THROW(Sha256OfFile(::testing::TempDir() + "/absent"),
               EnvironmentError);
  EXPECT_THROW(Sha256OfFile(::testing::TempDir()), EnvironmentError);
}

}  // namespace
}  // namespace softmoe
