// SPDX-License-Identifier: Apache-2.0
#include "core/files/hmac.h"

#include <gtest/gtest.h>

#include <string>

namespace softmoe {
namespace {

std::string Hex(const std::string& key, const std::string& message) {
  return Sha256Hex(HmacSha256(key, message));
}

// Known answers: test cases 1, 2, 3 and 6 of RFC 4231.
TEST(Hmac, MatchesTheKnownAnswers) {
  EXPECT_EQ(Hex(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(Hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(Hex(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  // A key longer than a block of the hash.
  EXPECT_EQ(Hex(std::string(131, '\xaa'),
                "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Hmac, DigestsAreTheSameOnlyIfEveryByteIs) {
  const Sha256Digest digest = HmacSha256("key", "message");
  EXPECT_TRUE(SameDigest(digest, digest));
  for (size_t i = 0; i < digest.size(); ++i) {
    Sha256Digest other = digest;
    other[i] ^= 1;
    EXPECT_FALSE(SameDigest(digest, other)) << i;
  }
}

TEST(RandomBytes, AreNotTheSameTwice) {
  EXPECT_EQ(RandomBytes(32).size(), 32u);
  EXPECT_NE(RandomBytes(32), RandomBytes(32));
}

}  // namespace
}  // namespace softmoe
