// SPDX-License-Identifier: Apache-2.0
#include "core/text/ascii.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace softmoe {
namespace {

using namespace std::string_view_literals;

TEST(ParseNumber, ReadsWholeNumbersOfTheWholeRange) {
  EXPECT_EQ(ParseNumber<int>("-12"), -12);
  EXPECT_EQ(ParseNumber<int64_t>("007"), 7);
  EXPECT_EQ(ParseNumber<int64_t>("-9223372036854775808"),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ParseNumber<uint64_t>("fFfFfFfFfFfFfFfF", 16),
            std::numeric_limits<uint64_t>::max());
}

TEST(ParseNumber, ReadsReals) {
  EXPECT_EQ(ParseNumber<double>("12"), 12);
  EXPECT_EQ(ParseNumber<double>("-.5"), -0.5);
  EXPECT_EQ(ParseNumber<double>("1e-3"), 1e-3);
}

TEST(ParseNumber, IsNoneOfWhatIsMoreOrLessThanANumber) {
  for (const std::string_view text :
       {std::string_view(), ""sv, "-"sv, "x"sv, " 1"sv, "1 "sv, "+1"sv, "1,0"sv,
        "0x1"sv, "1\0"sv}) {
    EXPECT_EQ(ParseNumber<int64_t>(text), std::nullopt) << text;
    EXPECT_EQ(ParseNumber<double>(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseNumber<int>("1.5"), std::nullopt);
  EXPECT_EQ(ParseNumber<int>("1f"), std::nullopt);
  EXPECT_EQ(ParseNumber<uint64_t>("0x1f", 16), std::nullopt);
  // A view ends before its memory does.
  EXPECT_EQ(ParseNumber<int>(std::string_view("123").substr(0, 2)), 12);
}

TEST(ParseNumber, IsNoneOutOfRange) {
  EXPECT_EQ(ParseNumber<int>("2147483648"), std::nullopt);
  EXPECT_EQ(ParseNumber<int64_t>("9223372036854775808"), std::nullopt);
  EXPECT_EQ(ParseNumber<uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(ParseNumber<uint64_t>("10000000000000000", 16), std::nullopt);
  EXPECT_EQ(ParseNumber<double>("1e400"), std::nullopt);
}

TEST(LowerCase, ChangesTheLettersOfAsciiOnly) {
  EXPECT_EQ(LowerCase(""), "");
  EXPECT_EQ(LowerCase("AZaz09_-[@`{"), "azaz09_-[@`{");
  EXPECT_EQ(LowerCase("\xC3\x84_B\xC4"), "\xC3\x84_b\xC4");
}

}  // namespace
}  // namespace softmoe
