// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/record_results.h"

#include <optional>

#include "core/files/paths.h"
#include "experiments/report/grid_report.h"
#include "experiments/report/mini_claims.h"
#include "experiments/report/regime_results.h"
#include "experiments/report/report_claims.h"
#include "experiments/report/results_document.h"
#include "golden/document/document.h"

namespace softmoe::experiments {

std::string SummarizeRecord(const Grid& grid, RunRecord& record) {
  GridOutcome outcome;
  outcome.grid = grid;
  for (const GridRun& run : grid.runs) {
    outcome.runs.emplace_back().run = run;
  }
  TakeRecordedRuns(record, outcome);
  const std::optional<MiniClaims> claims = JudgeMiniClaims(outcome);
  const std::optional<RegimeResults> regime = JudgeRegimeRuns(outcome);
  const golden::Document paper =
      golden::ReadDocument(RunfilePath("golden/paper/paper.h5"));
  record.results = {};
  if (claims) record.results.miniature = claims->results;
  if (regime) record.results.miniature.runs = regime->runs;
  for (const std::string& variant : Variants(grid)) {
    record.results.documents.emplace_back(
        ResultsName(grid, variant),
        ReportDocument(outcome, variant, claims, paper));
  }
  if (claims) return ClaimsText(*claims);
  return regime ? RegimeText(*regime) : "";
}

std::filesystem::path VerdictsPath(const std::filesystem::path& record) {
  return record.parent_path() / (record.stem().string() + "_verdicts.txt");
}

}  // namespace softmoe::experiments
