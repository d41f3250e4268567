// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/rewrite.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe::mutation {
namespace {

std::string Found(const std::string& text, const Pattern& pattern) {
  const Span span = FindOnce(text, pattern);
  return text.substr(span.begin, span.end - span.begin);
}

TEST(FindOnce, FindsTheOriginalWithinItsContext) {
  const std::string text = "a = b + c;\nd = b + e;\n";
  EXPECT_EQ(FindOnce(text, {"d = ", "b", ""}).begin, 15u);
  EXPECT_EQ(FindOnce(text, {"", "b", " + c"}).begin, 4u);
  EXPECT_EQ(Found(text, {"= ", "b + e", ";"}), "b + e");
}

TEST(FindOnce, DoesNotMindHowTheSourceIsFormatted) {
  const std::string text = "return Sum(\n    first,\n    second\n);";
  EXPECT_EQ(Found(text, {"return ", "Sum(first, second)", ";"}),
            "Sum(\n    first,\n    second\n)");
  EXPECT_EQ(Found("a=b+c;", {"a = ", "b + c", " ;"}), "b+c");
  // Words are still kept apart.
  EXPECT_EQ(MessageOf<DataError>([&] {
              FindOnce(text, {"return", "Sum", ""});
            }).find("'returnSum' is not in it"),
            0u);
  EXPECT_EQ(Found("int x; intx;", {"", "int x", ";"}), "int x");
}

TEST(FindOnce, BeginsAndEndsBetweenTokens) {
  EXPECT_EQ(FindOnce("recap = cap;", {"", "cap", ""}).begin, 8u);
  EXPECT_EQ(FindOnce("caps = cap;", {"", "cap", ""}).begin, 7u);
  EXPECT_EQ(FindOnce("x1 + 1", {"", "1", ""}).begin, 5u);
}

TEST(FindOnce, NamesThePlaces) {
  const std::string text = "one;\ntwo;\nthree(four);\ntwo;\n";
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     FindOnce(text, {"", "two", ";"});
                   }),
                   "'two;' is in lines 2, 4"));
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     FindOnce(text, {"", "three(five)", ""});
                   }),
                   "'three(five)' is not in it",
                   "line 3 begins like it: 'three(f'"));
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     FindOnce(text, {"", "", ""});
                   }),
                   "is not in it"));
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     FindOnce("", {"", "x", ""});
                   }),
                   "is not in it"));
}

// A text, and edits of parts that occur in it once.
struct Part {
  std::string id, original, instead;
  Syntax syntax = Syntax::kExpression;
};

std::string Rewritten(const std::string& text, const std::vector<Part>& parts) {
  std::vector<Edit> edits;
  for (const Part& part : parts) {
    edits.push_back({part.id, FindOnce(text, {"", part.original, ""}),
                     part.syntax, part.instead});
  }
  return Rewrite(text, edits);
}

TEST(Rewrite, PutsBothBehindTheSwitch) {
  EXPECT_EQ(Rewritten("x = a + b;", {{"i", "a + b", "a - b"}}),
            "x = (SOFTMOE_MUTANT_ON(\"i\") ? (a - b) : (a + b));");
  EXPECT_EQ(Rewritten("if (c) f(); else g();",
                      {{"i", "f();", "", Syntax::kStatement}}),
            "if (c) {if (SOFTMOE_MUTANT_ON(\"i\")) {} else {f();}} else g();");
  EXPECT_EQ(Rewrite("nothing", {}), "nothing");
}

TEST(Rewrite, KeepsEveryLineWhereItWas) {
  const std::string text = "f(a,\n  b);\ng();\n";
  const std::string result =
      Rewritten(text, {{"i", "f(a, b);", "h(\n1);\n", Syntax::kStatement}});
  EXPECT_EQ(std::ranges::count(result, '\n'), std::ranges::count(text, '\n'));
  EXPECT_TRUE(Says(result, "\ng();\n"));
}

TEST(Rewrite, NestsWhatLiesWithin) {
  EXPECT_EQ(Rewritten("x = a + b * c;",
                      {{"inner", "b * c", "b"}, {"outer", "a + b * c", "a"}}),
            "x = (SOFTMOE_MUTANT_ON(\"outer\") ? (a) : (a + "
            "(SOFTMOE_MUTANT_ON(\"inner\") ? (b) : (b * c))));");
  // Several edits of one place keep their order.
  EXPECT_EQ(Rewritten("f(a);", {{"i", "a", "b"}, {"j", "a", "c"}}),
            "f((SOFTMOE_MUTANT_ON(\"i\") ? (b) : "
            "((SOFTMOE_MUTANT_ON(\"j\") ? (c) : (a)))));");
}

TEST(Rewrite, RefusesWhatCannotBeWritten) {
  const auto message = [](const std::string& text,
                          const std::vector<Part>& parts) {
    return MessageOf<DataError>([&] { Rewritten(text, parts); });
  };
  EXPECT_TRUE(Says(
      message("x =\n a + b + c;", {{"i", "a + b", "a"}, {"j", "b + c", "c"}}),
      "i and j overlap in line 2"));
  EXPECT_TRUE(Says(message("f(a);", {{"i", "f(a", "b"}}), "i: brackets"));
  EXPECT_TRUE(Says(message("f(a);", {{"i", "a", "b)"}}), "i: brackets"));
  EXPECT_TRUE(
      Says(message("f(a);", {{"i", "a", "\"b"}}), "i: brackets, quotes"));
  EXPECT_TRUE(Says(message("f(a);", {{"i", "a", "b // c"}}), "i: "));
  EXPECT_TRUE(
      Says(message("f(a);", {{"i", "a", "b /* c */"}}), "i: ", "one line"));
  EXPECT_TRUE(
      Says(message("f(a);", {{"i", "a", "\n#define b\n"}}), "one line"));
  EXPECT_TRUE(Says(message("f( a );", {{"i", "f(a)", "f (a)"}}), "by itself"));
  EXPECT_TRUE(Says(message("f(a);", {{"i", "a", " "}}), "cannot be left out"));
  EXPECT_TRUE(Says(MessageOf<DataError>([] {
                     Rewrite("ab", {{"i", {1, 3}, {}, "c"}});
                   }),
                   "i: [1, 3) is not a place in a text of 2 bytes"));
  EXPECT_TRUE(Says(MessageOf<DataError>([] {
                     Rewrite("ab", {{"i", {1, 1}, {}, "c"}});
                   }),
                   "not a place"));
}

// Brackets in strings and comments do not count, nor do digit separators as
// quotation marks.
TEST(Rewrite, ReadsStringsAndComments) {
  EXPECT_NE(Rewritten("f(')', \"(\\\"\"); // don't",
                      {{"i", "f(')', \"(\\\"\");", "", Syntax::kStatement}}),
            "");
  EXPECT_NE(Rewritten("f(1'000);", {{"i", "1'000", "1'001"}}), "");
  const std::string body = "{ g();  // (it's so\n h(); }";
  const Span whole = {0, body.size()};
  EXPECT_NE(Rewrite(body, {{"i", whole, Syntax::kStatement, ""}}), "");
  const Span cut = {0, body.find('\n')};
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     Rewrite(body, {{"i", cut, Syntax::kStatement, ""}});
                   }),
                   "i: brackets"));
}

}  // namespace
}  // namespace softmoe::mutation
