// SPDX-License-Identifier: Apache-2.0
//
// Every character is compared with Python's own answers in
// property_tests/tasks_oracle_test.cc; here are cases to read.
#include "trainer/corpora/python_text.h"

#include <gtest/gtest.h>

#include <string>

namespace softmoe::trainer {
namespace {

TEST(PythonText, CountsCodePoints) {
  EXPECT_EQ(CodePoints(""), 0);
  EXPECT_EQ(CodePoints("abc"), 3);
  EXPECT_EQ(CodePoints("é水🎈"), 3);
  EXPECT_EQ(CodePoints("e\u0301"), 2);
}

TEST(PythonText, StripsTheWhiteSpaceOfUnicode) {
  EXPECT_EQ(Strip("\t \u00A0\u3000\u001C a  b\u2028\n"), "a  b");
  EXPECT_EQ(Strip(" \u2003"), "");
  EXPECT_EQ(Strip(""), "");
  EXPECT_EQ(StripEnd(" a \u0085"), " a");
  // Zero-width characters are not white space.
  EXPECT_EQ(Strip("\u200Bx\uFEFF"), "\u200Bx\uFEFF");
}

TEST(PythonText, CapitalizesTheFirstAndLowersTheRest) {
  EXPECT_EQ(Capitalize(""), "");
  EXPECT_EQ(Capitalize("the MAN"), "The man");
  EXPECT_EQ(Capitalize(" The"), " the");
  EXPECT_EQ(Capitalize("éCOLE ÀB"), "École àb");
  EXPECT_EQ(Capitalize("ßA"), "Ssa");
  EXPECT_EQ(Capitalize("ǆǄ"), "ǅǆ");  // title case, not upper
  EXPECT_EQ(Capitalize("aİ"), "Ai\u0307");
  EXPECT_EQ(Capitalize("𐐨𐐀"), "𐐀𐐨");
}

TEST(PythonText, KnowsWhereASigmaEndsAWord) {
  EXPECT_EQ(Capitalize("ΟΔΟΣ ΟΔΟΣ."), "Οδος οδος.");
  EXPECT_EQ(Capitalize("x Σ ΣΑ"), "X σ σα");
  EXPECT_EQ(Capitalize("ΑΣ\u0301Β"), "Ασ\u0301β");
  EXPECT_EQ(Capitalize("ΑΣ\u0301"), "Ας\u0301");
  EXPECT_EQ(Capitalize("'Σ"), "'σ");
}

TEST(PythonText, ReplacesOnceFromLeftToRight) {
  EXPECT_EQ(ReplaceAll("a    b   c", "  ", " "), "a  b  c");
  EXPECT_EQ(ReplaceAll("aaa", "aa", "b"), "ba");
  EXPECT_EQ(ReplaceAll("abc", "d", "e"), "abc");
  EXPECT_EQ(ReplaceAll("", "d", "e"), "");
}

TEST(PythonText, RemovesTheShortestBracketsOfALine) {
  EXPECT_EQ(RemoveBrackets("[a] b [c]d"), " b d");
  EXPECT_EQ(RemoveBrackets("[[nested]]"), "]");
  EXPECT_EQ(RemoveBrackets("[] ]["), " ][");
  EXPECT_EQ(RemoveBrackets("[a\nb] [c]"), "[a\nb] ");
  EXPECT_EQ(RemoveBrackets("[a\n[b]"), "[a\n");
  EXPECT_EQ(RemoveBrackets("[a\rb]"), "");  // \r ends no line
  EXPECT_EQ(RemoveBrackets(std::string(1 << 20, '[')).size(), 1u << 20);
}

}  // namespace
}  // namespace softmoe::trainer
