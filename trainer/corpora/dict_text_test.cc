// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/dict_text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/testing/corpus_test_util.h"

namespace softmoe::trainer {
namespace {

using Strings = std::vector<std::string>;
using Views = std::vector<std::string_view>;

TEST(DictEntries, FollowsTheIndex) {
  // B: 1, F: 5, BA: 64.
  const std::string text =
      std::string(5, '-') + "first" + std::string(54, '-') + "second";
  const std::string index =
      "00-database-info\tA\tF\n"
      "zweitens\tBA\tG\n"
      "erstens\tF\tF\n"
      "one\tF\tF\toriginal spelling\n"
      "url\tA\tF\n";
  EXPECT_EQ(DictEntries(text, index, "x"), (Views{"first", "second"}));
}

TEST(DictEntries, RefusesPlacesOutside) {
  for (const std::string line :
       {"word\tA\tD", "word\tB\tC", "word\tD\tA", "word\t////////\t////////",
        "word\tA", "word", "word\t*\tA", "word\tAAAAAAAAA\tA"}) {
    EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                       DictEntries("ab", "fine\tA\tC\n" + line + "\n",
                                   "some.index");
                     }),
                     "some.index:2:"))
        << line;
  }
}

TEST(DictEntries, AcceptsTheLastPlaceAndLeavesOutBothNamesOfTheDatabase) {
  // C: 2. Eight digits are the most.
  EXPECT_EQ(DictEntries("ab",
                        "end\tC\tA\nall\tAAAAAAAA\tAAAAAAAC\n"
                        "00database-alphabet\tA\tB\nb\tB\tB\n",
                        "x"),
            (Views{"ab", "b", ""}));
}

RC_GTEST_PROP(DictEntries, NeverReadsOutside,
              (const std::string& text, const std::string& index)) {
  try {
    for (const auto entry : DictEntries(text, index, "x")) {
      RC_ASSERT(entry.size() <= text.size());
    }
  } catch (const DataError&) {
  }
}

// Made up in GCIDE's style.
TEST(CleanDictEntry, MakesParagraphsOfADictionaryEntry) {
  EXPECT_EQ(CleanDictEntry("Lamp \\L[a^]mp\\, n. [OE. See {Light\n"
                           "   house}.]\n"
                           "   1. A light for\n"
                           "      the night. [Obs.]       --Poet.\n"
                           "      [1913 Webster +PJC]\n"
                           "\n"
                           "   2. A friend. [1913 Webster] Lamps\n"
                           "\n"),
            "Lamp, n. [OE. See Light house.] 1. A light for the night. [Obs.] "
            "--Poet.\n"
            "2. A friend. Lamps");
}

// Made up in FOLDOC's style.
TEST(CleanDictEntry, DropsFieldTagsAndDates) {
  EXPECT_EQ(CleanDictEntry("lamp\nlight\n\n   <hardware, jargon> A\n   {diode}"
                           " < 3 mm > 2 mm.\n\n   (2006-10-10)\n\n"
                           "   (2006-1x-10)\n"),
            "lamp light\nA diode < 3 mm > 2 mm.\n(2006-1x-10)");
  EXPECT_EQ(CleanDictEntry("lamp\n\n   1. <language> A <b> tag.\n\n   <os>\n"),
            "lamp\n1. A <b> tag.");
}

// The end of a mark is searched only within a mark's length; anything longer is
// text.
TEST(CleanDictEntry, MarksAreShort) {
  auto around = [](const char* open, size_t length, const char* close) {
    return CleanDictEntry(open + std::string(length, 'x') + close + " end");
  };
  const std::string x79(79, 'x'), x80(80, 'x'), x76(76, 'x'), x59(59, 'x');
  EXPECT_EQ(around("\\", 79, "\\"), "end");
  EXPECT_EQ(around("\\", 80, "\\"), "\\" + x80 + "\\ end");
  EXPECT_EQ(around("[AS ", 76, "]"), "end");
  EXPECT_EQ(around("[AS ", 77, "]"), "[AS x" + x76 + "] end");
  EXPECT_EQ(around("<", 58, ">"), "end");
  EXPECT_EQ(around("<", 59, ">"), "<" + x59 + "> end");
}

TEST(CleanDictEntry, KnowsItsEditorsAndDatesExactly) {
  EXPECT_EQ(CleanDictEntry("a [PJC] b [WordNet 1.5] c [Webster 1913 Suppl.] d"),
            "a b c d");
  EXPECT_EQ(CleanDictEntry("a [ASx] b [A] c [] d"), "a [ASx] b [A] c [] d");
  for (const char* line :
       {"(2006-10-1)", "(2006-10-100)", "2006-10-10))", "((2006-10-10",
        "(2006-10-10x", "x2006-10-10)", "(2006-10-10))", "(x006-10-10)"}) {
    EXPECT_EQ(CleanDictEntry(line), line);
  }
  // A tag begins a sense only after its number.
  EXPECT_EQ(CleanDictEntry("1. <os> a 12. <os>b x. <os> c 2.<os> d 5mm<os>"),
            "1. a 12. b x. <os> c 2.<os> d 5mm<os>");
  EXPECT_EQ(CleanDictEntry(". <os> a"), ". <os> a");
  // The last digits, and their neighbours.
  EXPECT_EQ(CleanDictEntry("0. <os> a 9. <os> b /. <os> c :. <os> d"),
            "0. a 9. b /. <os> c :. <os> d");
}

TEST(CleanDictEntry, KeepsLoneMarks) {
  EXPECT_EQ(CleanDictEntry("a \\ b [ c < d"), "a \\ b [ c < d");
  EXPECT_EQ(CleanDictEntry(" \n\n"), "");
}

TEST(Fortunes, SplitsAtPercentLines) {
  EXPECT_EQ(Fortunes("One\tline.\n\t\t-- Me\n%\n%\n\n50% of\n\nlife\n%\n"),
            (Strings{"One line.\n-- Me", "50% of\n\nlife"}));
  EXPECT_EQ(Fortunes("_\bu_\bnder"), (Strings{"under"}));
  EXPECT_EQ(Fortunes("caf\u00e9\b\be, \u20ac\b5"), (Strings{"cae, 5"}));
}

// Quadratic time would take minutes.
TEST(CleanDictEntry, TakesLinearTime) {
  for (const char* part : {"[", "[AS]", "\\", "1. <", "1. <a> ", ", ", "{"}) {
    std::string entry;
    while (entry.size() < 4'000'000) entry += part;
    EXPECT_LE(CleanDictEntry(entry).size(), entry.size()) << part;
  }
  std::string overstruck;
  while (overstruck.size() < 4'000'000) overstruck += "a\b";
  EXPECT_EQ(Fortunes(overstruck), Strings{});
}

TEST(InflateFile, ReadsGzipAndRefusesDamage) {
  const auto path = FreshFolder("gzip") / "t.dz";
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * i) + "\n";
  WriteGzip(path, text);
  EXPECT_EQ(InflateFile(path), text);

  const std::string bytes = ReadWholeFile(path);
  for (size_t size = 20; size < bytes.size(); size += 997) {
    WriteFileAtomically(path, bytes.substr(0, size));
    EXPECT_THROW(InflateFile(path), DataError) << size;
  }
  EXPECT_THROW(InflateFile("/nowhere.dz"), EnvironmentError);
}

}  // namespace
}  // namespace softmoe::trainer
