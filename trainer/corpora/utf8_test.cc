// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/utf8.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "core/testing/utf8_test_util.h"

namespace softmoe::trainer {
namespace {

constexpr size_t kNone = std::string_view::npos;

TEST(AppendUtf8, GivesTheBytesOfEveryCharacter) {
  for (uint32_t point = 0; point < 0x110000; ++point) {
    std::string text = "a";
    AppendUtf8(point, &text);
    ASSERT_EQ(text, "a" + Utf8(point)) << point;
  }
}

// Utf8 makes four bytes of points beyond U+10FFFF, too.
TEST(FindNonText, AcceptsExactlyTheScalarValues) {
  for (uint32_t point = 1; point < 0x110100; ++point) {
    const bool scalar =
        point < 0x110000 && !(point >= 0xD800 && point <= 0xDFFF);
    ASSERT_EQ(FindNonText(Utf8(point)) == kNone, scalar) << point;
  }
}

// The character that these bytes would be, in its one allowed form (RFC 3629).
bool IsCharacter(const std::string& bytes) {
  auto bits = [&](size_t i, uint32_t mask) {
    return static_cast<unsigned char>(bytes[i]) & mask;
  };
  uint32_t point = bits(0, 0x7Fu >> bytes.size());
  for (size_t i = 1; i < bytes.size(); ++i) point = point * 64 + bits(i, 0x3F);
  const bool scalar = point < 0x110000 && !(point >= 0xD800 && point <= 0xDFFF);
  return scalar && Utf8(point) == bytes;
}

TEST(FindNonText, AcceptsExactlyWhatEncodesACharacter) {
  const unsigned char kLater[] = {0x01, 0x7F, 0x80, 0xBF, 0xC0, 0xFF};
  for (int lead = 0x80; lead < 0x100; ++lead) {
    const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    for (int second = 0; second < 0x100; ++second) {
      for (const unsigned char third : kLater) {
        for (const unsigned char fourth : kLater) {
          std::string bytes = {
              static_cast<char>(lead), static_cast<char>(second),
              static_cast<char>(third), static_cast<char>(fourth)};
          bytes.resize(length);
          ASSERT_EQ(FindNonText(bytes), IsCharacter(bytes) ? kNone : 0)
              << lead << " " << second << " " << int{third} << " "
              << int{fourth};
        }
      }
    }
  }
}

TEST(FindNonText, RefusesACharacterThatIsCutOffAtTheEnd) {
  for (const uint32_t point : {0xE9u, 0x20ACu, 0x1F600u}) {
    const std::string whole = Utf8(point);
    for (size_t size = 1; size < whole.size(); ++size) {
      EXPECT_EQ(FindNonText("ab" + whole + whole.substr(0, size)),
                2 + whole.size());
    }
  }
}

TEST(FindNonText, RefusesOverlongAndLoneBytes) {
  EXPECT_EQ(FindNonText("ab\xC0\xAF"), 2u);
  EXPECT_EQ(FindNonText("\xE0\x80\xAF"), 0u);
  EXPECT_EQ(FindNonText("\xF0\x80\x80\xAF"), 0u);
  EXPECT_EQ(FindNonText("x\x80"), 1u);
  EXPECT_EQ(FindNonText("x\xE2\x82"), 1u);  // cut off
  EXPECT_EQ(FindNonText("\xFF\xFE"), 0u);
  EXPECT_EQ(FindNonText(""), kNone);
}

TEST(FindNonText, RefusesNul) {
  EXPECT_EQ(FindNonText(std::string_view("text\0more", 9)), 4u);
}

TEST(RepairText, ReadsStrayBytesAsWindows1252) {
  int64_t repaired = 0;
  EXPECT_EQ(RepairText("market\x92s fa\xE7"
                       "ade",
                       &repaired),
            "market\u2019s fa\u00E7"
            "ade");
  EXPECT_EQ(repaired, 2);
}

TEST(RepairText, ReadsEveryStrayByte) {
  // The upper half of Windows-1252; five of its bytes are not characters.
  std::u32string text =
      U"\u20AC\u201A\u0192\u201E\u2026\u2020\u2021\u02C6\u2030\u0160\u2039"
      U"\u0152\u017D\u2018\u2019\u201C\u201D\u2022\u2013\u2014\u02DC\u2122"
      U"\u0161\u203A\u0153\u017E\u0178";
  for (int byte = 0xA0; byte < 0x100; ++byte) {
    text.push_back(static_cast<char32_t>(byte));
  }
  std::string expected, repaired_text;
  for (const char32_t point : text) expected += Utf8(point);
  int64_t repaired = 0;
  for (int byte = 0x80; byte < 0x100; ++byte) {
    const std::string stray(1, static_cast<char>(byte));
    repaired_text += RepairText(stray, &repaired);
  }
  EXPECT_EQ(repaired_text, expected);
  EXPECT_EQ(repaired, 128);
}

TEST(RepairText, LeavesOutNulAndGoesOnAfterIt) {
  int64_t repaired = 0;
  EXPECT_EQ(RepairText(std::string_view("a\0b\0\0", 5), &repaired), "ab");
  EXPECT_EQ(repaired, 3);
}

RC_GTEST_PROP(RepairText, AlwaysReturnsText, (const std::string& bytes)) {
  int64_t repaired = 0;
  const std::string text = RepairText(bytes, &repaired);
  RC_ASSERT(FindNonText(text) == kNone);
  // Bytes that were already text stay unchanged.
  RC_ASSERT((repaired == 0) == (FindNonText(bytes) == kNone));
  if (repaired == 0) RC_ASSERT(text == bytes);
}

}  // namespace
}  // namespace softmoe::trainer
