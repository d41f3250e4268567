// SPDX-License-Identifier: Apache-2.0
//
// The links of the table in trainer/METRICS.md that explains a report's numbers
// lead where they say, and the table is complete. Invariants and columns of a
// grid's report, which no test here may link, are read from its source.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "property_tests/verify/document_map.h"

namespace softmoe::verify {
namespace {

using document_map::All;
using document_map::AnchorOf;
using document_map::FromRoot;
using document_map::Has;
using document_map::Link;
using document_map::LinksOf;
using document_map::Names;
using document_map::NamesIn;
using document_map::Row;
using document_map::TableUnder;
using document_map::TextOf;

// Whether the document has a row "F7", or a heading, with the link's anchor.
bool HasPlace(const std::string& document, const Link& link) {
  if (document.find("<a id=\"" + link.anchor + "\"></a>" + link.text + " ") !=
      std::string::npos) {
    return true;
  }
  const std::vector<std::string> headings = All(document, "\n#+ ([^\n]+)");
  return std::any_of(headings.begin(), headings.end(),
                     [&](const std::string& heading) {
                       return AnchorOf(heading) == link.anchor;
                     });
}

const char kInvariants[] = "experiments/report/invariants.cc";

// The ids of the invariants of a grid's runs.
Names Invariants() {
  return NamesIn(
      TextOf(kInvariants),
      R"~((?:OverRuns\(\s*outcome,|Invariant invariant\{)\s*"(\w+)")~");
}

// The metrics that a grid's report shows for a run, and the titles of the
// table's other columns.
Names ReportColumns() {
  Names names = NamesIn(TextOf("experiments/report/report_tables.cc"),
                        R"~(header\.push_back\("(\w+)"\))~");
  for (const std::string& metric :
       NamesIn(TextOf("experiments/report/run_columns.cc"),
               R"(\{metrics::(\w+),)")) {
    const std::string name = "\\b" + metric + R"~( = \{\s*\.name = "(\w+)")~";
    names.merge(NamesIn(TextOf("trainer/results/metrics.h"), name.c_str()));
  }
  return names;
}

enum ReportColumn { kNumber, kComputed, kShown, kPinned, kJudged };

bool NamesInvariant(int column, const Link& link) {
  return column == kJudged && FromRoot(link, "trainer") == kInvariants;
}

// Why this link in METRICS.md's table leads nowhere; "" if it is valid.
std::string WhyNotInReport(int column, const Link& link) {
  const std::filesystem::path path = FromRoot(link, "trainer");
  if (TextOf(path).empty()) return path.string() + " is not there";
  const bool has = column == kNumber ? HasPlace(TextOf(path), link)
                   : NamesInvariant(column, link)
                       ? Invariants().contains(link.text)
                       : Has(path, link.text);
  if (!has) return path.string() + " has no " + link.text;
  const bool is_test = path.string().ends_with("_test.cc");
  return column == kPinned && !is_test ? path.string() + " is no test" : "";
}

// All problems of this text of the table, one sentence each.
Names ReportProblems(const std::string& text) {
  static const char* kTitle =
      "From the numbers of a report to code, test and verdict";
  const std::vector<Row> rows = TableUnder(kTitle, text);
  if (rows.empty()) return {"no table"};
  Names problems, numbers, judges;
  for (const Row& row : rows) {
    const std::string& number = row.cells[kNumber];
    const std::string title = number.substr(0, number.find_first_of(":;"));
    if (row.cells.size() != kJudged + 1) {
      problems.insert(title + ": not as many cells as columns");
      continue;
    }
    numbers.merge(NamesIn(number, "`(\\w+)`"));
    for (int column = kNumber; column <= kJudged; ++column) {
      const std::vector<Link> links = LinksOf(row.cells[column]);
      const bool may_be_empty =
          column == kNumber ||
          (column == kJudged && row.cells[column].starts_with('-'));
      if (links.empty() && !may_be_empty) {
        problems.insert(title + ": leads nowhere");
      }
      for (const Link& link : links) {
        const std::string why = WhyNotInReport(column, link);
        if (!why.empty()) problems.insert(title + ": " + why);
        if (NamesInvariant(column, link)) judges.insert(link.text);
      }
    }
  }
  for (const std::string& name : ReportColumns()) {
    if (!numbers.contains(name)) problems.insert("no row has " + name);
  }
  for (const std::string& id : Invariants()) {
    if (!judges.contains(id)) problems.insert("no row is judged by " + id);
  }
  return problems;
}

TEST(ReportMap, LeadsEverywhere) {
  const std::string& text = TextOf("trainer/METRICS.md");
  EXPECT_EQ(ReportProblems(text), Names());
  const auto planted = [&](const std::string& old, const char* instead) {
    std::string changed = text;
    const size_t at = changed.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    return ReportProblems(changed.replace(at, old.size(), instead));
  };
  const auto one = [](const std::string& problem) { return Names{problem}; };
  EXPECT_EQ(planted("[`TokensASecond`]", "[`MakeCurves`]"),
            one("tokens/s of a run: experiments/report/report_tables.cc has no "
                "MakeCurves"));
  EXPECT_EQ(planted("(run/train_step.cc)", "(run/train_steps.cc)"),
            one("train loss: trainer/run/train_steps.cc is not there"));
  EXPECT_EQ(planted("[`H2.throughput`]", "[`H2.through`]"),
            one("tokens/s of the benchmark: golden/paper/miniature.toml has no "
                "H2.through"));
  EXPECT_EQ(planted("[`ReportsCapsAndTime`](run/train_step_test.cc)", "-"),
            one("largest cap, most experts of a token: leads nowhere"));
  EXPECT_EQ(planted("[F31](../reference/NOTATION.md#f31)",
                    "[F31](../reference/NOTATION.md#f30)"),
            one("active parameters: reference/NOTATION.md has no F31"));
  EXPECT_EQ(planted("[`cap`]", "[`Cap`]"),
            one("tokens by active experts and by expert: "
                "experiments/report/invariants.cc has no Cap"));
  EXPECT_EQ(planted("From the numbers", "The numbers"), one("no table"));
}

TEST(ReportMap, HasEveryInvariantOfAGrid) {
  const std::string& text = TextOf("trainer/METRICS.md");
  EXPECT_EQ(Invariants(), NamesIn(TextOf("experiments/report/invariants.h"),
                                  R"(\n// - (\w+):)"));
  for (const std::string& id : Invariants()) {
    const std::regex links(R"(\[`)" + id + R"(`\]\([^)]*\))");
    EXPECT_EQ(ReportProblems(std::regex_replace(text, links, "-")),
              Names{"no row is judged by " + id});
  }
}

TEST(ReportMap, HasEveryColumnOfAGrid) {
  const std::string& text = TextOf("trainer/METRICS.md");
  const Names columns = ReportColumns();
  // One for each function that reads a result, plus "sd" and "seeds".
  EXPECT_EQ(columns.size(), All(TextOf("experiments/report/run_columns.cc"),
                                R"((\[\]\(const RunResult& r\)))")
                                    .size() +
                                2);
  EXPECT_TRUE(columns.contains("sd") && columns.contains("seeds"));
  for (const std::string& name : columns) {
    const std::regex named("`" + name + "`");
    EXPECT_EQ(ReportProblems(std::regex_replace(text, named, "`gone`")),
              Names{"no row has " + name});
  }
}

}  // namespace
}  // namespace softmoe::verify
