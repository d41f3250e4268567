// SPDX-License-Identifier: Apache-2.0
//
// report_page.h - a grid's report before it has a format: what the writers of
// report_html.h and report_formats.h all write.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_REPORT_PAGE_H_
#define SOFTMOE_EXPERIMENTS_REPORT_REPORT_PAGE_H_

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "experiments/report/invariants.h"
#include "experiments/report/mini_claims.h"
#include "experiments/report/paper_tables.h"
#include "experiments/report/plot.h"
#include "experiments/report/regime_results.h"
#include "experiments/report/report_tables.h"
#include "experiments/run/run_outcome.h"
#include "golden/document/document.h"

namespace softmoe::experiments {

struct Paragraph {
  std::string text;
  bool warning = false;
};

struct TextList {
  std::vector<std::string> items;
};

// A command, a configuration, the text of a verdict: line by line.
struct Verbatim {
  std::string text;
};

struct ReportItem {
  std::variant<Paragraph, TextList, Verbatim, EvaluationTable, Figure> content;
  // The line under which a page folds the content away; "": always shown.
  std::string folded = {};
};

struct ReportPart {
  std::string title;
  std::vector<ReportItem> items;
};

struct ReportPage {
  std::string title, subtitle;
  std::vector<ReportPart> parts;
};

// The parts on the claims in miniature and on the regime experiment.
ReportPart ClaimsPart(const MiniClaims& judged);
ReportPart RegimePart(const RegimeResults& judged);

// The page says what this is and is not. It shows results; `claims`, if any;
// the paper's tables with ours beside them; the paper's figures, and curves;
// `tables`, of measurements on the final models; the verdict on every cell and
// claim; the commands that make it again, configurations and provenance.
ReportPage MakeReportPage(const GridOutcome& outcome,
                          const std::vector<Invariant>& invariants,
                          const std::vector<JudgedResults>& judged,
                          std::vector<ReportPart> claims,
                          std::vector<EvaluationTable> tables,
                          const golden::Document& paper);

// The figures of a page, in its order.
std::vector<const Figure*> FiguresOf(const ReportPage& page);

// The tables of a page, in its order, each with a name for a file: its title in
// lower-case letters, digits and '_', with a number if that is taken.
std::vector<std::pair<std::string, const EvaluationTable*>> TablesOf(
    const ReportPage& page);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_REPORT_PAGE_H_
