// SPDX-License-Identifier: Apache-2.0
#include "core/text/text_table.h"

#include <gtest/gtest.h>

#include "core/errors.h"

namespace softmoe {
namespace {

TEST(TextTable, AlignsTextLeftAndNumbersRight) {
  TextTable table({"name", "value"});
  table.Add({"a", "1.5"});
  table.Add({"łódź", "-12.25*"});
  table.Add({"c", "-"});
  EXPECT_EQ(table.Text(),
            "name    value\n"
            "----  -------\n"
            "a         1.5\n"
            "łódź  -12.25*\n"
            "c           -\n");
  EXPECT_EQ(table.num_rows(), 3u);
}

TEST(TextTable, NumbersMayHaveSeparators) {
  TextTable table({"parameters"});
  table.Add({"1,631,409,280"});
  table.Add({"640"});
  EXPECT_EQ(table.Text(),
            "   parameters\n"
            "-------------\n"
            "1,631,409,280\n"
            "          640\n");
}

TEST(TextTable, EndsNoLineWithSpaces) {
  TextTable table({"number", "text"});
  table.Add({"1", ""});
  table.Add({"2", "words"});
  EXPECT_EQ(table.Text(),
            "number  text\n"
            "------  -----\n"
            "     1\n"
            "     2  words\n");
}

TEST(TextTable, IsATableOfADocument) {
  TextTable table({"name", "value"});
  EXPECT_EQ(table.Markdown(), "| name | value |\n|-|-|\n");
  table.Add({"a", ""});
  table.Add({"b | c", "2"});
  EXPECT_EQ(table.Markdown(),
            "| name | value |\n|-|-|\n| a |  |\n| b | c | 2 |\n");
  EXPECT_EQ(table.rows()[0][1], "value");
  EXPECT_EQ(table.rows()[2][0], "b | c");
}

TEST(TextTable, RefusesRaggedRows) {
  TextTable table({"a", "b"});
  EXPECT_THROW(table.Add({"1"}), InternalError);
}

TEST(Wrap, BreaksAtSpaces) {
  EXPECT_EQ(Wrap("one two three four", 9, 2), "one two\n  three\n  four");
  EXPECT_EQ(Wrap("short", 80, 2), "short");
  EXPECT_EQ(Wrap("", 80, 2), "");
  EXPECT_EQ(Wrap("unbreakable_word x", 5, 0), "unbreakable_word\nx");
}

TEST(FormatBytes, PicksTheUnit) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(FormatBytes(int64_t{13} << 30), "13.0 GiB");
}

}  // namespace
}  // namespace softmoe
