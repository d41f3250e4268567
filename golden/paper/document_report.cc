// SPDX-License-Identifier: Apache-2.0
#include "golden/paper/document_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/text/text_table.h"
#include "golden/document/claims.h"
#include "golden/document/document_format.h"

namespace softmoe::golden {
namespace {

using Strings = std::vector<std::string>;

std::string CellText(const Cell& cell) {
  if (cell.empty()) return cell.flags.empty() ? "-" : cell.flags[0];
  std::string text = cell.text;
  if (cell.deviation) text += fmt::format(" ({:.2g})", *cell.deviation);
  if (cell.bold) text += "*";
  const auto& flags = cell.flags;
  if (std::count(flags.begin(), flags.end(), "GRIM_IMPOSSIBLE") > 0) {
    text += "!";
  }
  return text;
}

bool Concerns(const Note& note, const Table& table) {
  return std::any_of(note.concerns.begin(), note.concerns.end(),
                     [&](const std::string& place) {
                       return place == table.id ||
                              place.starts_with(table.id + "/");
                     });
}

}  // namespace

std::string DescribeDocument(const Document& document) {
  const Provenance& from = document.provenance;
  std::string text = fmt::format("origin     {}\nsource     {}\n",
                                 EnumName(from.origin), from.source);
  text += fmt::format("generator  {}{}\n", from.generator,
                      from.git_commit.empty() ? "" : " at " + from.git_commit);
  TextTable tables({"table", "title", "rows", "columns", "rounding"});
  for (const Table& table : document.tables) {
    tables.Add({table.id, table.title, std::to_string(table.rows.size()),
                std::to_string(table.columns.size()),
                EnumName(table.rounding)});
  }
  text += fmt::format("holds      {} tables, {} notes, {} claims\n\n",
                      document.tables.size(), document.notes.size(),
                      document.claims.size());
  return text + tables.Text();
}

std::string DescribeTable(const Document& document, const Table& table) {
  std::string text = table.title + "  (" + table.id + ")\n";
  if (!table.caption.empty()) text += Wrap(table.caption, kTextWidth, 0) + "\n";
  std::vector<std::string> header = {"row"};
  for (const Column& column : table.columns) header.push_back(column.id);
  TextTable cells(header);
  for (const Row& row : table.rows) {
    std::vector<std::string> line = {row.id};
    for (const Cell& cell : row.cells) line.push_back(CellText(cell));
    cells.Add(line);
  }
  text += "\n" + cells.Text() + "\n";
  TextTable columns({"column", "unit", "lane", "margin", "what it is"});
  for (const Column& column : table.columns) {
    columns.Add({column.id, column.unit, EnumName(column.lane),
                 column.margin ? fmt::format("{:g}", *column.margin) : "-",
                 column.metric});
  }
  text += columns.Text();
  std::string notes;
  for (const Note& note : document.notes) {
    if (Concerns(note, table)) notes += " " + note.id;
  }
  if (!notes.empty()) {
    text += "notes:" + notes + "  (--notes shows them)\n";
  }
  return text;
}

std::string DescribeCells(const Document& document, const Table* table) {
  TextTable cells({"cell", "printed", "from", "to", "counts", "of", "runs",
                   "deviation", "flags and notes"});
  for (const Table& each : document.tables) {
    if (table != nullptr && each.id != table->id) continue;
    for (const Row& row : each.rows) {
      for (size_t c = 0; c < row.cells.size(); ++c) {
        const Cell& cell = row.cells[c];
        if (cell.empty()) continue;
        const auto& items = cell.proportion;
        Strings remarks = cell.flags;
        remarks.insert(remarks.end(), cell.notes.begin(), cell.notes.end());
        cells.Add(
            {each.id + "/" + row.id + "/" + each.columns[c].id,
             cell.text + (cell.bold ? "*" : ""), fmt::format("{}", cell.low),
             fmt::format("{}", cell.high),
             items ? fmt::format("{}", fmt::join(items->counts, " or ")) : "-",
             items ? fmt::format("{}", items->total) : "-",
             fmt::format("{}", cell.runs),
             cell.deviation ? fmt::format("{:.3g}", *cell.deviation) : "-",
             fmt::format("{}", fmt::join(remarks, " "))});
      }
    }
  }
  if (cells.num_rows() == 0) return "no numbers\n";
  return cells.Text();
}

std::string DescribeNotes(const Document& document, const Table* table) {
  std::string text;
  for (const Note& note : document.notes) {
    if (table != nullptr && !Concerns(note, *table)) continue;
    text +=
        Wrap(fmt::format("{:4} {}", note.id, note.text), kTextWidth, 5) + "\n";
    std::string places;
    for (const std::string& place : note.concerns) {
      places += (places.empty() ? "" : ", ") + place;
    }
    text += "     " + Wrap("on: " + places, kTextWidth - 5, 9) + "\n";
  }
  return text.empty() ? "no notes\n" : text;
}

std::string DescribeClaims(const Document& document, const Table* table) {
  TextTable claims({"published verdict", "claim", "left", "op", "right",
                    "difference", "resolved above", "with sampling error",
                    "lost to seeds from"});
  // For claims on most of their pairs: the pairs' published verdicts, in order.
  Strings groups;
  std::map<std::string, Strings> published;
  // For claims about percentages: how many pairs there are, how many hold as
  // printed, and how many are resolved.
  struct Count {
    int pairs = 0, printed = 0, resolved = 0;
  };
  std::map<std::string, Count> counts;
  for (const Claim& claim : document.claims) {
    if (table != nullptr && claim.scope != table->id) continue;
    const PublishedEvidence evidence = EvidenceOf(document, claim);
    if (claim.of_cases == Quantifier::kMost) {
      Strings& pairs = published[claim.group()];
      if (pairs.empty()) groups.push_back(claim.group());
      pairs.push_back(claim.published_verdict);
    }
    const bool has_data = evidence.as_printed != "NO_DATA";
    claims.Add(
        {claim.published_verdict, claim.id, claim.left, claim.op, claim.right,
         has_data ? fmt::format("{:+.3g}", evidence.difference) : "-",
         evidence.sampling ? fmt::format("{:.3g}", *evidence.sampling) : "-",
         evidence.sampling ? evidence.resolved : "-",
         evidence.deviation ? fmt::format("{:.2g}", *evidence.deviation)
                            : "-"});
    if (!evidence.sampling) continue;
    Count& count = counts[claim.group()];
    ++count.pairs;
    count.printed += evidence.as_printed == "HOLDS";
    count.resolved += evidence.resolved == "HOLDS";
  }
  if (claims.num_rows() == 0) return "no claims\n";
  std::string text = claims.Text();
  TextTable most({"published verdict", "claim on most pairs", "pairs", "hold",
                  "are refuted"});
  for (const std::string& group : groups) {
    const Strings& pairs = published[group];
    most.Add({PublishedOfMost(pairs), group, std::to_string(pairs.size()),
              std::to_string(std::ranges::count(pairs, "HOLDS")),
              std::to_string(std::ranges::count(pairs, "REFUTED"))});
  }
  if (most.num_rows() > 0) text += "\n" + most.Text();
  TextTable summary({"claim on percentages", "pairs", "hold as printed",
                     "with sampling error"});
  for (const auto& [claim, count] : counts) {
    summary.Add({claim, std::to_string(count.pairs),
                 std::to_string(count.printed),
                 std::to_string(count.resolved)});
  }
  if (summary.num_rows() > 0) text += "\n" + summary.Text();
  return text + "\n" +
         Wrap(fmt::format("The published verdict is that of the rounded "
                          "numbers. Percentages of counted items also have "
                          "the noise of these items: a difference is resolved "
                          "above {:g} standard errors (binomial, items "
                          "independent). The noise of other measurements is "
                          "not published, since everything was trained once: "
                          "the last column is the smallest deviation of a run "
                          "over seeds in which the verdict would be lost, in "
                          "the unit of the numbers.",
                          kResolvedErrors),
              kTextWidth, 0) +
         "\n";
}

std::string DescribeArithmetic(const std::vector<ArithmeticCheck>& checks) {
  TextTable wrong({"inconsistent", "printed", "computed", "note", "how"});
  // Counts of consistent checks and of all checks, in order of first
  // appearance.
  std::vector<std::string> rules;
  std::map<std::string, std::pair<int, int>> counts;
  for (const ArithmeticCheck& check : checks) {
    if (!counts.contains(check.rule)) rules.push_back(check.rule);
    auto& [consistent, all] = counts[check.rule];
    ++all;
    if (check.consistent) {
      ++consistent;
    } else {
      wrong.Add({check.rule + " " + check.place, check.printed, check.computed,
                 check.note, check.explanation});
    }
  }
  TextTable summary({"rule", "consistent", "of"});
  for (const std::string& rule : rules) {
    summary.Add({rule, std::to_string(counts[rule].first),
                 std::to_string(counts[rule].second)});
  }
  return wrong.Text() + "\n" + summary.Text();
}

}  // namespace softmoe::golden
