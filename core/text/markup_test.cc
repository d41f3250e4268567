// SPDX-License-Identifier: Apache-2.0
#include "core/text/markup.h"

#include <gtest/gtest.h>

#include <string>

#include "core/errors.h"

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
  EXPECT_EQ(EscapeMarkup("a\xef\xbf\xbe"
                         "b\xef\xbf\xbf"),
            "a?b?");
}

TEST(EscapeMarkup, Utf8StaysAsItIs) {
  EXPECT_EQ(EscapeMarkup("\xc3\xa9 \xe2\x89\xa4"), "\xc3\xa9 \xe2\x89\xa4");
  EXPECT_EQ(EscapeMarkup("\xef\xbf\xbd"), "\xef\xbf\xbd");
}

constexpr char kBegin[] = "<!-- begin: make table -->\n";
constexpr char kEnd[] = "<!-- end -->\n";

TEST(GeneratedPart, TakesThePlaceOfTheOldOne) {
  const std::string before = "a\n<!-- begin: make list -->\nkept\n" +
                             std::string(kEnd) + "b\n" + kBegin;
  const std::string after = kEnd + std::string("c\n") + kEnd;
  const std::string expected = before + "\nnew\n\n" + after;
  EXPECT_EQ(WithGeneratedPart(before + "old\n" + after, "make table", "new\n",
                              "here.md"),
            expected);
  // Once written, it stays as it is.
  EXPECT_EQ(WithGeneratedPart(expected, "make table", "new\n", "here.md"),
            expected);
}

TEST(GeneratedPart, NeedsBothLinesInThisOrder) {
  for (const std::string& document :
       {std::string("a\n"), std::string(kBegin), std::string(kEnd),
        std::string(kEnd) + kBegin}) {
    try {
      (void)WithGeneratedPart(document, "make table", "new\n", "here.md");
      FAIL() << document;
    } catch (const DataError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("here.md"), std::string::npos) << what;
      EXPECT_NE(what.find("'<!-- begin: make table -->'"), std::string::npos)
          << what;
    }
  }
}

}  // namespace
}  // namespace softmoe
