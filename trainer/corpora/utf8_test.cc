// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/utf8.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace softmoe::trainer {
namespace {

constexpr size_t kNone = std::string_view::npos;

// Straight from the table of RFC 3629, section 4: an independent statement.
std::string Encode(uint32_t point) {
  std::string out;
  const auto add = [&](uint32_t byte) {
    out.push_back(static_cast<char>(byte));
  };
  if (point < 0x80) {
    add(point);
  } else if (point < 0x800) {
    add(0xC0 + point / 64);
    add(0x80 + point % 64);
  } else if (point < 0x10000) {
    add(0xE0 + point / 4096);
    add(0x80 + point / 64 % 64);
    add(0x80 + point % 64);
  } else {
    add(0xF0 + point / 262144);
    add(0x80 + point / 4096 % 64);
    add(0x80 + point / 64 % 64);
    add(0x80 + point % 64);
  }
  return out;
}

TEST(FindNonText, AcceptsExactlyTheScalarValues) {
  for (uint32_t point = 1; point < 0x110100; ++point) {
    const bool scalar =
        point < 0x110000 && !(point >= 0xD800 && point <= 0xDFFF);
    ASSERT_EQ(FindNonText(Encode(point)) == kNone, scalar) << point;
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

RC_GTEST_PROP(RepairText, AlwaysReturnsText, (const std::string& bytes)) {
  int64_t repaired = 0;
  const std::string text = RepairText(bytes, &repaired);
  RC_ASSERT(FindNonText(text) == kNone);
  // What was already text is not touched.
  RC_ASSERT((repaired == 0) == (FindNonText(bytes) == kNone));
  if (repaired == 0) RC_ASSERT(text == bytes);
}

}  // namespace
}  // namespace softmoe::trainer
