// SPDX-License-Identifier: Apache-2.0
//
// grid_report.h - the report on the runs of a grid: for the terminal, for
// people (report.html), for programs (results.h5, CSV).
#ifndef SOFTMOE_EXPERIMENTS_REPORT_GRID_REPORT_H_
#define SOFTMOE_EXPERIMENTS_REPORT_GRID_REPORT_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/report/mini_claims.h"
#include "experiments/run/run_outcome.h"
#include "golden/document/document.h"

namespace softmoe::experiments {

struct GridReport {
  // For the terminal: the paper-shaped table, what was measured on the final
  // models, the invariants, one line of verdicts.
  std::string text;
  bool invariants_hold = false;
  std::vector<std::filesystem::path> files;
};

// ResultsDocument, plus the table of the claims in miniature if there are any.
golden::Document ReportDocument(const GridOutcome& outcome,
                                const std::string& variant,
                                const std::optional<MiniClaims>& claims,
                                const golden::Document& paper);

// Judges what is finished and writes to `folder`, each file whole or not at
// all:
//
//   results.h5   the golden form (golden/FORMAT.md); results-calibrated.h5
//                beside it where rows come in both readings of tau. Equal runs
//                give equal bytes.
//   report.html  one self-contained page
//   runs.csv, steps.csv   report_csv.h; where final models were measured,
//                inference_tau.csv and router_health.csv beside them
//   claims.txt, claims.csv   of the mini grid: report_claims.h
//
// Throws EnvironmentError if a file cannot be written.
GridReport WriteGridReport(const GridOutcome& outcome,
                           const std::filesystem::path& folder);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_GRID_REPORT_H_
