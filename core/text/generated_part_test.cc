// SPDX-License-Identifier: Apache-2.0
#include "core/text/generated_part.h"

#include <gtest/gtest.h>

#include <string>

#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

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
    EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                       (void)WithGeneratedPart(document, "make table", "new\n",
                                               "here.md");
                     }),
                     "here.md", "'<!-- begin: make table -->'"))
        << document;
  }
}

}  // namespace
}  // namespace softmoe
