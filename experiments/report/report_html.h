// SPDX-License-Identifier: Apache-2.0
//
// report_html.h - the report of a grid as one self-contained page, and the
// pieces of it, in which every text is escaped.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_REPORT_HTML_H_
#define SOFTMOE_EXPERIMENTS_REPORT_REPORT_HTML_H_

#include <string>
#include <vector>

#include "experiments/report/invariants.h"
#include "experiments/report/mini_claims.h"
#include "experiments/report/regime_results.h"
#include "experiments/run/run_outcome.h"
#include "golden/document/document.h"
#include "golden/verdict/verdict.h"

namespace softmoe::experiments {

struct HtmlCell {
  std::string text;
  std::string css_class = {};  // "pass", "fail", ...
};

// A table with caption and header. Columns whose cells are all numbers or empty
// are right-aligned.
std::string HtmlTable(const std::string& caption,
                      const std::vector<std::string>& header,
                      const std::vector<std::vector<HtmlCell>>& rows);

// <details> with a summary line; `content` is already HTML.
std::string Details(const std::string& summary, const std::string& content);

// A whole page; `body` is already HTML. The page is self-contained: inline
// style, no script, nothing loaded from elsewhere.
std::string HtmlPage(const std::string& title, const std::string& body);

// The part on the claims in miniature, and that on the regime experiment.
std::string ClaimsHtml(const MiniClaims& judged);
std::string RegimeHtml(const RegimeResults& judged);

// One results file and what the paper's goldens say about it.
struct JudgedResults {
  std::string variant;  // the reading of tau, or ""
  std::string file;     // "results.h5"
  golden::Document results;
  golden::Verdicts verdicts;
};

// The page says what this is and is not. It shows results beside the paper's;
// measurements on the final models; invariants; curves; the verdict of every
// cell and claim; configurations and provenance. Without gnuplot the curves are
// missing, and the page says so. `claims_html`: ClaimsHtml, RegimeHtml, or "".
std::string ReportHtml(const GridOutcome& outcome,
                       const std::vector<Invariant>& invariants,
                       const std::vector<JudgedResults>& judged,
                       const std::string& claims_html,
                       const golden::Document& paper);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_REPORT_HTML_H_
