// SPDX-License-Identifier: Apache-2.0
//
// report_html.h - the report of a grid as one self-contained page.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_REPORT_HTML_H_
#define SOFTMOE_EXPERIMENTS_REPORT_REPORT_HTML_H_

#include <string>
#include <vector>

#include "experiments/report/invariants.h"
#include "experiments/run/run_outcome.h"
#include "golden/document/document.h"
#include "golden/verdict/verdict.h"

namespace softmoe::experiments {

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
// missing, and the page says so. `claims_html`: ClaimsHtml, or "".
std::string ReportHtml(const GridOutcome& outcome,
                       const std::vector<Invariant>& invariants,
                       const std::vector<JudgedResults>& judged,
                       const std::string& claims_html,
                       const golden::Document& paper);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_REPORT_HTML_H_
