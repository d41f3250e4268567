// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/record_results.h"

#include "core/files/runfiles.h"
#include "experiments/report/grid_report.h"
#include "experiments/report/results_document.h"
#include "golden/document/document.h"

namespace softmoe::experiments {

std::optional<MiniClaims> SummarizeRecord(const Grid& grid, RunRecord& record) {
  GridOutcome outcome;
  outcome.grid = grid;
  for (const GridRun& run : grid.runs) {
    outcome.runs.emplace_back().run = run;
  }
  TakeRecordedRuns(record, outcome);
  std::optional<MiniClaims> claims = JudgeMiniClaims(outcome);
  const golden::Document paper =
      golden::ReadDocument(RunfilePath("golden/paper/paper.h5"));
  record.results = {};
  if (claims) record.results.miniature = claims->results;
  for (const std::string& variant : Variants(grid)) {
    record.results.documents.emplace_back(
        ResultsName(grid, variant),
        ReportDocument(outcome, variant, claims, paper));
  }
  return claims;
}

std::filesystem::path VerdictsPath(const std::filesystem::path& record) {
  return record.parent_path() / (record.stem().string() + "_verdicts.txt");
}

}  // namespace softmoe::experiments
