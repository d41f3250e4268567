// SPDX-License-Identifier: Apache-2.0
#include "core/text/markup.h"

#include <gtest/gtest.h>

#include <string>

namespace softmoe {
namespace {

TEST(EscapeMarkup, LeavesNothingThatMeansSomething) {
  EXPECT_EQ(EscapeMarkup("a < b && c > \"d\" 'e'"),
            "a &lt; b &amp;&amp; c &gt; &quot;d&quot; &#39;e&#39;");
  EXPECT_EQ(EscapeMarkup("&amp;"), "&amp;amp;");
}

TEST(EscapeMarkup, ControlCharactersAreNoXml) {
  EXPECT_EQ(EscapeMarkup("a\tb\nc\rd"), "a\tb\nc\rd");
  EXPECT_EQ(EscapeMarkup(std::string("a\0b\x1b[1m", 7)), "a?b?[1m");
}

TEST(EscapeMarkup, Utf8StaysAsItIs) {
  EXPECT_EQ(EscapeMarkup("\xc3\xa9 \xe2\x89\xa4"), "\xc3\xa9 \xe2\x89\xa4");
}

}  // namespace
}  // namespace softmoe
