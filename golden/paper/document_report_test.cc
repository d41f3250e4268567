// SPDX-License-Identifier: Apache-2.0
//
// Whole reports, letter by letter: every column, width and mark.
#include "golden/paper/document_report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "golden/document/document.h"
#include "golden/testing/document_test_util.h"

namespace softmoe::golden {
namespace {

// `count` words of four letters.
std::string Words(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += i == 0 ? "word" : " word";
  return text;
}

// The example document plus texts longer than a line, ambiguous counts, and
// claims about percentages.
Document Shown() {
  Document document = ExampleDocument();
  Table& main = document.tables[0];
  main.title = "Main results";
  main.caption = Words(21);
  main.rows[0].cells[1].proportion->counts = {1130, 1131};
  main.rows[0].cells[1].deviation = 0.125;
  main.rows[0].cells[1].runs = 2;
  document.notes[0].text = Words(21);
  document.notes[1].id = "N22";
  // One ends where a line must; with the next but one a line would be longer.
  for (const size_t length : {33u, 40u, 35u}) {
    document.notes[1].concerns.push_back("text/" + std::string(length, 'x'));
  }
  document.notes.push_back({"N3", "Of the text.", {"text/abstract"}});
  auto claim = [&](const char* id, const char* left, const char* op,
                   const char* right, const char* verdict) {
    document.claims.push_back({id, "t", left, op, right, "main", verdict});
  };
  claim("share.1", "owt/sparse/k2:piqa", ">", "owt/sparse/k1:piqa", "HOLDS");
  claim("share.2", "owt/sparse/k2:piqa", ">", "50", "HOLDS");
  claim("share.3", "owt/sparse/k1:piqa", ">", "owt/sparse/k2:piqa", "REFUTED");
  claim("other.1", "owt/sparse/k1:params", "<", "owt/sparse/k2:params",
        "HOLDS");
  return document;
}

TEST(DescribeDocument, SaysWhereItIsFromAndWhatItHolds) {
  EXPECT_EQ(DescribeDocument(Shown()), R"(origin     our_run
source     //:grid run smoke
generator  grid 0.2 at 0123abc
holds      2 tables, 3 notes, 6 claims

table                 title         rows  columns  rounding
--------------------  ------------  ----  -------  --------
main                  Main results     2        3  nearest
a_table_without_rows  Nothing yet      0        0  unknown
)");
  Document without = Shown();
  without.provenance.git_commit = "";
  EXPECT_NE(DescribeDocument(without).find("\ngenerator  grid 0.2\n"),
            std::string::npos);
}

TEST(DescribeTable, WritesEveryCellColumnAndMark) {
  const Document document = Shown();
  EXPECT_EQ(DescribeTable(document, document.tables[0]), R"(Main results  (main)
word word word word word word word word word word word word word word word word word word word word
word

row            loss                   piqa  params
-------------  -------------  ------------  ------
owt/sparse/k1  2.84 (0.004)*  61.53 (0.12)  107.74
owt/sparse/k2  DIVERGED       62.63 (0.5)!  156.94

column  unit        lane         margin  what it is
------  ----------  -----------  ------  ------------------
loss    nat/token   statistical    0.03  mean cross-entropy
piqa    percent     statistical    2.25  accuracy
params  1e6 params  exact             -  active parameters
notes: N1 N22  (--notes shows them)
)");
  // A table without caption, rows and notes.
  EXPECT_EQ(DescribeTable(document, document.tables[1]),
            R"(Nothing yet  (a_table_without_rows)

row
---

column  unit  lane  margin  what it is
------  ----  ----  ------  ----------
)");
}

TEST(DescribeCells, WritesWhatEachNumberStandsFor) {
  const Document document = Shown();
  EXPECT_EQ(
      DescribeCells(document, nullptr),
      R"(cell                       printed     from       to  counts          of  runs  deviation  flags and notes
-------------------------  -------  -------  -------  ------------  ----  ----  ---------  ----------------------
main/owt/sparse/k1/loss      2.84*    2.835    2.845  -                -     3      0.004  N1
main/owt/sparse/k1/piqa      61.53   61.525   61.535  1130 or 1131  1838     2      0.125  CONFLICTS_WITH DERIVED
main/owt/sparse/k1/params   107.74  107.735  107.745  -                -     1          -
main/owt/sparse/k2/piqa      62.63   62.625   62.635                1838     2        0.5  GRIM_IMPOSSIBLE
main/owt/sparse/k2/params   156.94  156.935  156.945  -                -     1          -
)");
  EXPECT_EQ(DescribeCells(document, &document.tables[0]),
            DescribeCells(document, nullptr));
  EXPECT_EQ(DescribeCells(document, &document.tables[1]), "no numbers\n");
}

TEST(DescribeNotes, WrapsThemAndTheirPlaces) {
  const Document document = Shown();
  EXPECT_EQ(
      DescribeNotes(document, nullptr),
      R"(N1 word word word word word word word word word word word word word word word word word word word
     word word
     on: main/owt/sparse/k1/loss, claim/lower
N22 Another.
     on: text/abstract, main, main/owt/sparse/k2, main/piqa, text/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx,
         text/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx,
         text/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
N3 Of the text.
     on: text/abstract
)");
  // N3 is about the text.
  const std::string of_table = DescribeNotes(document, &document.tables[0]);
  EXPECT_EQ(of_table + "N3 Of the text.\n     on: text/abstract\n",
            DescribeNotes(document, nullptr));
  EXPECT_EQ(DescribeNotes(document, &document.tables[1]), "no notes\n");
  // "mains" is not a part of "main".
  Document other = document;
  other.notes = {{"N1", "Text.", {"mains"}}};
  EXPECT_EQ(DescribeNotes(other, &document.tables[0]), "no notes\n");
}

TEST(DescribeClaims, WritesTheirEvidenceAndHowManyHold) {
  const Document document = Shown();
  EXPECT_EQ(
      DescribeClaims(document, nullptr),
      R"(published verdict  claim    left                  op  right                 difference  resolved above  with sampling error    lost to seeds from
-----------------  -------  --------------------  --  --------------------  ----------  --------------  ---------------------  ------------------
NO_DATA            lower    owt/sparse/k2:loss    <   owt/sparse/k1:loss             -               -  -                                       -
HOLDS              at_most  owt/sparse/k1:loss    <=  3.0                        -0.16               -  -                                   0.079
HOLDS              share.1  owt/sparse/k2:piqa    >   owt/sparse/k1:piqa          +1.1            3.14  NOT_RESOLVED_BY_PAPER                   -
HOLDS              share.2  owt/sparse/k2:piqa    >   50                         +12.6            2.21  HOLDS                                   -
REFUTED            share.3  owt/sparse/k1:piqa    >   owt/sparse/k2:piqa          -1.1            3.14  NOT_RESOLVED_BY_PAPER                   -
HOLDS              other.1  owt/sparse/k1:params  <   owt/sparse/k2:params       -49.2               -  -                                       -

claim on percentages  pairs  hold as printed  with sampling error
--------------------  -----  ---------------  -------------------
share                     3                2                    1

The published verdict is that of the rounded numbers. Percentages of counted items also have the
noise of these items: a difference is resolved above 1.96 standard errors (binomial, items
independent). The noise of other measurements is not published, since everything was trained once:
the last column is the smallest deviation of a run over seeds in which the verdict would be lost, in
the unit of the numbers.
)");
  EXPECT_EQ(DescribeClaims(document, &document.tables[0]),
            DescribeClaims(document, nullptr));
  EXPECT_EQ(DescribeClaims(document, &document.tables[1]), "no claims\n");
  Document none = document;
  none.claims.resize(2);
  EXPECT_EQ(DescribeClaims(none, nullptr).find("claim on percentages"),
            std::string::npos);
}

TEST(DescribeClaims, CountsThePairsOfClaimsOnMost) {
  Document document = Shown();
  for (Claim& claim : document.claims) {
    if (claim.group() == "share") claim.of_cases = Quantifier::kMost;
  }
  const std::string text = DescribeClaims(document, nullptr);
  EXPECT_NE(text.find(R"(
published verdict  claim on most pairs  pairs  hold  are refuted
-----------------  -------------------  -----  ----  -----------
HOLDS              share                    3     2            1

claim on percentages )"),
            std::string::npos)
      << text;
}

TEST(DescribeArithmetic, ListsWhatIsInconsistentAndCountsAll) {
  const std::vector<ArithmeticCheck> checks = {
      {"z", "main/a/c", "1", "2", false, "N1", "by hand"},
      {"z", "main/b/c", "1", "1", true, "", "by hand"},
      {"a", "main/a/d", "3.5", "<= 3", false, "", "the bound"},
      {"z", "main/c/c", "5", "5", true, "", "by hand"},
      {"b", "main/a/e", "1", "1", true, "", "again"}};
  EXPECT_EQ(DescribeArithmetic(checks),
            R"(inconsistent  printed  computed  note  how
------------  -------  --------  ----  ---------
z main/a/c          1  2         N1    by hand
a main/a/d        3.5  <= 3            the bound

rule  consistent  of
----  ----------  --
z              2   3
a              0   1
b              1   1
)");
}

}  // namespace
}  // namespace softmoe::golden
