// SPDX-License-Identifier: Apache-2.0
//
// grid_report.h - the report on a grid's runs, for the terminal, for people
// (report.html, .md) and for programs (results.h5, CSV, JSON), and the part of
// it that a record of runs keeps.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_GRID_REPORT_H_
#define SOFTMOE_EXPERIMENTS_REPORT_GRID_REPORT_H_

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"
#include "experiments/report/report_formats.h"
#include "experiments/run/run_outcome.h"
#include "experiments/run/run_record.h"

namespace softmoe::experiments {

struct GridReport {
  // For the terminal: the paper-shaped table, what was measured on the final
  // models, the invariants, a paragraph of verdicts for each results file, a
  // note on runs that another version trained, and the claims.
  std::string text;
  bool invariants_hold = false;
  std::vector<std::filesystem::path> files;
};

struct ReportOptions {
  std::set<ReportFormat> formats = {ReportFormat::kHtml};
  int64_t steps_every = 1;  // as StepsCsv's `every`
};

// Judges the finished runs and writes these files to `folder`, each whole or
// not at all:
//
//   results.h5   the golden form (golden/FORMAT.md); results-calibrated.h5
//                beside it where rows come in both readings of tau, and
//                results-acc_norm.h5, ... where runs were given tasks. Equal
//                runs give equal bytes.
//   report.html, .md, .json   the page in the formats asked for
//                (report_html.h, report_formats.h); as CSV: tables/ID.csv
//   plots/       for every figure its points, ID.csv, and its drawing, ID.svg,
//                unless gnuplot is missing
//   runs.csv, steps.csv   report_csv.h; where final models were measured,
//                also inference_tau.csv and router_health.csv; where they
//                were given tasks, tasks.csv
//   claims.txt, claims.csv        mini grid: mini_claims.h, report_csv.h
//   claims.txt, differences.csv   experiment `regime`: regime_results.h
//
// Pages that an earlier report wrote in other formats stay. Its files of
// claims, tasks and evaluations, and its drawings of this page's figures, are
// removed if this report has none.
//
// Throws EnvironmentError if a file cannot be written.
GridReport WriteGridReport(const GridOutcome& outcome,
                           const std::filesystem::path& folder,
                           const ReportOptions& options = {});

// Sets `record.results` to what `grid report --from` would compute from the
// record's runs of `grid` alone (main at the record's scale, or the regime
// experiment). Returns the text of the verdicts on the mini grid's claims or on
// the regime experiment; "" for any other grid.
std::string SummarizeRecord(const Grid& grid, RunRecord& record);

// The file with that text beside a record: "golden/runs/mini_verdicts.txt".
std::filesystem::path VerdictsPath(const std::filesystem::path& record);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_GRID_REPORT_H_
