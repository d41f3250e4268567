// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/errors.h"
#include "core/text/markup.h"
#include "core/text/progress.h"
#include "experiments/report/report_curves.h"
#include "experiments/report/report_tables.h"
#include "experiments/report/row_summary.h"
#include "experiments/report/task_comparison.h"
#include "golden/verdict/miniature_report.h"
#include "golden/verdict/regime_report.h"
#include "golden/verdict/verdict_report.h"
#include "trainer/identity/run_identity.h"

namespace softmoe::experiments {
namespace {

using golden::CellVerdict;
using Cells = std::vector<HtmlCell>;

}  // namespace

// ---- Pieces of a page.

namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --line: #d8d8d8; --soft: #666; --good: #0a6b2d;
  --bad: #a81212; --open: #7a5b00; --card: #fff; }
@media (prefers-color-scheme: dark) { :root { --line: #444; --soft: #aaa;
  --good: #6fd58f; --bad: #ff8f8f; --open: #e5c35a; --card: #fff; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; }
h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
p, li { max-width: 46rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .6rem 0 1.2rem; font-size: .9rem;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
th, td { padding: .25rem .7rem .25rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; } .number { text-align: right; }
.pass { color: var(--good); font-weight: 600; }
.fail { color: var(--bad); font-weight: 600; }
.open, .note { color: var(--open); } .soft { color: var(--soft); }
.box { border: 1px solid var(--line); border-left: .3rem solid var(--open);
  padding: .4rem 1rem; border-radius: .3rem; }
figure { background: var(--card); border-radius: .4rem; margin: .6rem 0;
  padding: .4rem; } figcaption { color: #444; font-size: .9rem; }
figure svg { max-width: 100%; height: auto; }
pre { overflow-x: auto; font-size: .8rem; } summary { cursor: pointer; }
)";

// Digits, plus whatever accompanies a measured number.
bool IsNumber(const std::string& text) {
  return text.find_first_not_of("0123456789.+-eE%/ Mc<=") == std::string::npos;
}

}  // namespace

std::string HtmlTable(const std::string& caption,
                      const std::vector<std::string>& header,
                      const std::vector<std::vector<HtmlCell>>& rows) {
  std::vector<bool> numbers(header.size(), !rows.empty());
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      numbers[c] = numbers[c] && IsNumber(row[c].text);
    }
  }
  std::string html = fmt::format(
      "<div class=\"scroll\"><table>\n<caption>{}</caption>\n<thead><tr>",
      EscapeMarkup(caption));
  for (size_t c = 0; c < header.size(); ++c) {
    html += fmt::format("<th scope=\"col\"{}>{}</th>",
                        numbers[c] ? " class=\"number\"" : "",
                        EscapeMarkup(header[c]));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    html += "<tr>";
    for (size_t c = 0; c < row.size(); ++c) {
      std::string css = row[c].css_class;
      if (numbers[c]) css += css.empty() ? "number" : " number";
      html += fmt::format(
          "<td{}>{}</td>",
          css.empty() ? "" : fmt::format(" class=\"{}\"", EscapeMarkup(css)),
          EscapeMarkup(row[c].text));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string Details(const std::string& summary, const std::string& content) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n",
                     EscapeMarkup(summary), content);
}

std::string HtmlPage(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}</body>\n"
      "</html>\n",
      EscapeMarkup(title), kStyle, body);
}

// ---- The sections of the page.

namespace {

std::string CssOf(Status status) {
  switch (status) {
    case Status::kPass:
      return "pass";
    case Status::kFail:
    case Status::kMistrusted:
      return "fail";
    default:
      return "open";
  }
}

std::string Paragraph(const std::string& text, const std::string& css = "") {
  return fmt::format("<p{}>{}</p>\n",
                     css.empty() ? "" : fmt::format(" class=\"{}\"", css),
                     EscapeMarkup(text));
}

std::string Heading(const std::string& text) {
  return fmt::format("<h2>{}</h2>\n", EscapeMarkup(text));
}

std::string WhatThisIs(const GridOutcome& outcome) {
  const Grid& grid = outcome.grid;
  std::string html =
      fmt::format("<h1>Grid {}</h1>\n", EscapeMarkup(grid.name)) +
      Paragraph(grid.title, "soft");
  if (grid.scale != "paper") {
    html +=
        "<div class=\"box\">" +
        Paragraph(fmt::format(
            "This is not a reproduction of the paper. At {} scale the models, "
            "the texts and the training are other and far smaller ones, so "
            "no number here is comparable with the paper's. What is "
            "checked is that the method does what its formulas say: the "
            "invariants below.",
            grid.scale)) +
        "</div>\n";
  }
  std::string corpora;
  for (const GridCorpus& corpus : grid.corpora) {
    corpora += fmt::format(
        "<li>{}: {}{}</li>\n", EscapeMarkup(corpus.id),
        EscapeMarkup(corpus.title),
        corpus.paper_dataset.empty() ? ", not a corpus of the paper" : "");
  }
  return html + "<ul>\n" + corpora + "</ul>\n";
}

std::string Results(const GridOutcome& outcome) {
  const GridTable table = MakeGridTable(outcome);
  std::vector<std::string> header = {"corpus"};
  header.insert(header.end(), table.header.begin(), table.header.end());
  std::vector<Cells> rows;
  for (const GridTable::Row& row : table.rows) {
    Cells cells = {{row.corpus}};
    for (const std::string& text : row.cells) cells.push_back({text});
    if (!row.problem.empty()) cells.back().css_class = "fail";
    rows.push_back(std::move(cells));
  }
  return Heading("Results") +
         HtmlTable("Mean over the finished seeds. " + table.legend, header,
                   rows);
}

std::string MoreTables(const std::vector<EvaluationTable>& tables) {
  std::string html;
  for (const EvaluationTable& table : tables) {
    std::vector<Cells> rows;
    for (const std::vector<std::string>& row : table.rows) {
      Cells cells;
      for (const std::string& text : row) cells.push_back({text});
      rows.push_back(std::move(cells));
    }
    html += Heading(table.title) + HtmlTable(table.caption, table.header, rows);
  }
  return html;
}

std::string Invariants(const std::vector<Invariant>& invariants) {
  std::vector<Cells> rows;
  for (const Invariant& invariant : invariants) {
    rows.push_back(
        {{invariant.holds ? "PASS" : "FAIL", invariant.holds ? "pass" : "fail"},
         {invariant.text},
         {invariant.detail}});
  }
  return Heading("Invariants") +
         HtmlTable("They hold at any scale and decide the exit code.",
                   {"", "what", "worst case"}, rows);
}

std::string CurvePlots(const GridOutcome& outcome) {
  std::string html = Heading("Training");
  for (const Curves& curves : MakeCurves(outcome)) {
    std::string drawing;
    try {
      drawing = DrawSvg(curves.plot);
    } catch (const EnvironmentError& error) {
      return html +
             Paragraph(fmt::format("No plots: {}", error.what()), "note");
    }
    html += fmt::format(
        "<figure role=\"img\" aria-label=\"{}\">\n{}\n<figcaption><b>{}.</b> "
        "{}</figcaption>\n</figure>\n",
        EscapeMarkup(curves.title + ". " + curves.caption), drawing,
        EscapeMarkup(curves.title), EscapeMarkup(curves.caption));
  }
  return html;
}

template <typename Item>
std::string Counts(const std::vector<Item>& items) {
  std::map<std::string, int> counts;
  for (const Item& item : items) ++counts[StatusName(item.status)];
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

std::string List(const std::vector<std::string>& lines) {
  std::string html = "<ul>\n";
  for (const std::string& line : lines) {
    html += "<li>" + EscapeMarkup(line) + "</li>\n";
  }
  return html + "</ul>\n";
}

Cells VerdictRow(const CellVerdict& cell, bool judged) {
  std::string notes;
  for (const std::string& note : cell.notes) {
    notes += (notes.empty() ? "" : " ") + note;
  }
  return {{cell.table},
          {cell.row},
          {cell.column},
          {cell.golden_text},
          {cell.ours ? fmt::format("{:.6g}", *cell.ours) : ""},
          {judged ? StatusName(cell.status) : "recorded",
           judged ? CssOf(cell.status) : "soft"},
          {golden::ReasonText(cell)},
          {notes}};
}

std::string Verdicts(const std::vector<JudgedResults>& judged) {
  std::string html =
      Heading("Beside the paper") +
      Paragraph(
          "Every cell of the paper's tables that a row of this grid stands "
          "beside, with its verdict. A verdict other than NOT_COMPARABLE needs "
          "the paper's own set-up; //:golden -- compare judges results.h5 the "
          "same way.");
  for (const JudgedResults& one : judged) {
    const golden::Verdicts& v = one.verdicts;
    const std::string reading =
        one.variant.empty() ? "" : " (tau: " + one.variant + ")";
    html += Paragraph(
        fmt::format("{}{}: {} cells: {}. {} claims: {}. Overall: {}.", one.file,
                    reading, v.cells.size(), Counts(v.cells), v.claims.size(),
                    Counts(v.claims), StatusName(v.overall)));
    if (!v.fingerprint_differences.empty()) {
      html += Details(
          "What differs from the paper's set-up, so that nothing "
          "can be compared",
          List(golden::DifferenceLines(v.fingerprint_differences)));
    }
    if (!v.assumptions.empty()) {
      html += Details("What the paper leaves open: assumptions",
                      List(golden::AssumptionLines(v)));
    }
    const auto record = golden::RecordLines(v);
    if (!record.empty()) html += Details("For the record", List(record));
    std::vector<Cells> cells;
    for (const CellVerdict& cell : v.cells) {
      cells.push_back(VerdictRow(cell, true));
    }
    for (const CellVerdict& cell : v.recorded) {
      cells.push_back(VerdictRow(cell, false));
    }
    html += Details(
        fmt::format("Every cell{}", reading),
        HtmlTable("N..: notes on the paper's number, shown by //:golden -- "
                  "show --notes.",
                  {"table", "row", "column", "paper", "here", "verdict",
                   "reason", "notes"},
                  cells));
    std::vector<Cells> claims;
    for (const golden::ClaimVerdict& claim : v.claims) {
      claims.push_back({{claim.claim},
                        {StatusName(claim.status), CssOf(claim.status)},
                        {golden::ReasonText(claim)}});
    }
    html += Details(fmt::format("Every claim{}", reading),
                    HtmlTable("The paper's statements about these rows.",
                              {"claim", "verdict", "reason"}, claims));
  }
  return html;
}

std::string Provenance(const GridOutcome& outcome) {
  std::string html = Heading("How this came about");
  std::vector<Cells> corpora;
  for (const trainer::PreparedCorpus& corpus : outcome.corpora) {
    corpora.push_back(
        {{corpus.corpus},
         {corpus.description},
         {std::to_string(corpus.num_tokens)},
         {fmt::format("{:.3f}", static_cast<double>(corpus.text_bytes) /
                                    static_cast<double>(std::max<int64_t>(
                                        1, corpus.num_tokens)))},
         {std::to_string(corpus.vocab_size)},
         {corpus.provenance},
         {corpus.tokens.data_sha256}});
  }
  html += HtmlTable("Texts.",
                    {"corpus", "what", "tokens", "bytes per token",
                     "vocabulary", "source", "SHA-256 of the tokens"},
                    corpora);
  std::vector<Cells> runs;
  std::string configs;
  for (const RunOutcome& run : outcome.runs) {
    const bool finished = run.state == RunState::kFinished;
    runs.push_back(
        {{run.run.id},
         {run.folder.filename().string()},
         {finished ? std::to_string(run.result->parameters) : ""},
         {finished ? FormatDuration(run.result->seconds) : ""},
         {finished ? trainer::PlaceText(run.result->identity) : ""},
         {finished ? run.result->code_version : ""},
         {finished ? (run.result->resumed ? "resumed" : "") : run.problem,
          finished ? "soft" : "fail"}});
    configs += Details(
        run.run.id,
        "<pre>" + EscapeMarkup(ConfigToToml(run.run.config)) + "</pre>\n");
  }
  return html +
         HtmlTable("Runs.",
                   {"run", "folder", "parameters", "time",
                    "ISA level or device", "code version", ""},
                   runs) +
         Details("Configurations", configs);
}

std::string HtmlOf(const std::string& caption,
                   const golden::MiniatureTable& table) {
  std::vector<std::vector<HtmlCell>> rows;
  for (const std::vector<std::string>& texts : table.rows) {
    std::vector<HtmlCell>& row = rows.emplace_back();
    for (const std::string& text : texts) row.push_back({text});
  }
  return HtmlTable(caption, table.header, rows);
}

}  // namespace

std::string ClaimsHtml(const MiniClaims& judged) {
  const golden::MiniatureVerdicts& verdicts = judged.verdicts;
  return fmt::format(
      "<h2>Claims in miniature</h2>\n<p>{}</p>\n{}{}{}{}{}",
      EscapeMarkup(fmt::format(
          "{} {} of {} planned runs are in{}. Margins, {}: {}.",
          golden::MiniatureDisclaimer(), verdicts.finished, verdicts.planned,
          verdicts.missing.empty() ? "" : ", so that every verdict is INTERIM",
          golden::MiniatureMarginsFixed(verdicts), verdicts.hash)),
      HtmlOf("Could it have been shown?",
             golden::MiniatureDesignTable(verdicts)),
      HtmlOf("The paper's claims, in a form without scale.",
             golden::MiniatureClaimTable(verdicts, /*of_paper=*/true)) +
          HtmlOf("Hypotheses of this project.",
                 golden::MiniatureClaimTable(verdicts, /*of_paper=*/false)),
      HtmlOf(golden::MiniatureMeasureLegend(),
             golden::MiniatureMeasureTable(verdicts)),
      Details("Every case", HtmlOf("Of every measure.",
                                   golden::MiniatureCaseTable(verdicts))),
      Details("Reasons, assumptions, and what the grid can resolve",
              "<pre>" + EscapeMarkup(ClaimsText(judged)) + "</pre>\n"));
}

std::string RegimeHtml(const RegimeResults& judged) {
  return fmt::format(
      "<h2>Soft and sparse routing at equal active experts</h2>\n<p>{}</p>\n{}",
      EscapeMarkup(golden::RegimeBottomLine(judged.verdicts)),
      Details("Every estimate, row and control",
              "<pre>" + EscapeMarkup(RegimeText(judged)) + "</pre>\n"));
}

// ---- The page.

std::string ReportHtml(const GridOutcome& outcome,
                       const std::vector<Invariant>& invariants,
                       const std::vector<JudgedResults>& judged,
                       const std::string& claims_html,
                       const golden::Document& paper) {
  const std::string body =
      WhatThisIs(outcome) + Invariants(invariants) + Results(outcome) +
      claims_html + MoreTables(EvaluationTables(outcome)) +
      MoreTables(TaskComparisonTables(outcome)) +
      MoreTables(ExperimentTables(outcome, paper)) + CurvePlots(outcome) +
      Verdicts(judged) + Provenance(outcome) +
      Paragraph("Paper: " + paper.provenance.source, "soft");
  return HtmlPage("SoftMoE grid " + outcome.grid.name, body);
}

}  // namespace softmoe::experiments
