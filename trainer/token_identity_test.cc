// SPDX-License-Identifier: Apache-2.0
#include "trainer/token_identity.h"

#include <gtest/gtest.h>

#include <string>

namespace softmoe::trainer {
namespace {

// A digest of one digit, so that nothing but that can be in a message.
std::string Digest(char digit) { return std::string(64, digit); }

const TokenIdentity kThere = {Digest('1'), Digest('2'), Digest('3')};

// Each phrase must be in the message, and both digests if there are any.
void ExpectSays(const TokenIdentity& there, const TokenIdentity& here,
                const std::string& phrase, const std::string& digits) {
  const std::string message = DescribeTokenDifference(there, here);
  EXPECT_NE(message.find(phrase), std::string::npos) << message;
  for (const char digit : {'1', '2', '3', '4'}) {
    EXPECT_EQ(message.find(Digest(digit).substr(0, 16)) != std::string::npos,
              digits.find(digit) != std::string::npos)
        << digit << ": " << message;
  }
}

TEST(TokenIdentity, SameTokensHaveNoDifference) {
  EXPECT_EQ(DescribeTokenDifference(kThere, kThere), "");
  // A result of before the index was recorded.
  EXPECT_EQ(DescribeTokenDifference({Digest('1'), "", Digest('3')}, kThere),
            "");
}

TEST(TokenIdentity, NamesTheFileThatDiffers) {
  TokenIdentity here = kThere;
  here.data_sha256 = Digest('4');
  ExpectSays(kThere, here, "other tokens", "14");
  here = kThere;
  here.index_sha256 = Digest('4');
  ExpectSays(kThere, here, "another split", "24");
  // Whatever else differs: with another vocabulary all does.
  here = {Digest('4'), Digest('4'), Digest('4')};
  ExpectSays(kThere, here, "another tokenizer", "34");
}

TEST(TokenIdentity, AMissingDescriptionIsNotAnotherTokenizer) {
  TokenIdentity without = kThere;
  without.tokenizer_sha256 = "";
  ExpectSays(kThere, without, "the tokens are the same", "");
  ExpectSays(kThere, without, "put the .json file back", "");
  ExpectSays(without, kThere, "move it away", "");
}

}  // namespace
}  // namespace softmoe::trainer
