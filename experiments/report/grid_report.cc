// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/grid_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "core/code_version.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/text/text_table.h"
#include "experiments/plan/grid_estimate.h"
#include "experiments/report/invariants.h"
#include "experiments/report/mini_claims.h"
#include "experiments/report/plot.h"
#include "experiments/report/regime_results.h"
#include "experiments/report/report_csv.h"
#include "experiments/report/report_html.h"
#include "experiments/report/report_page.h"
#include "experiments/report/report_tables.h"
#include "experiments/report/results_document.h"
#include "experiments/report/row_summary.h"
#include "experiments/report/task_comparison.h"
#include "golden/document/document.h"
#include "golden/verdict/miniature_report.h"
#include "golden/verdict/verdict.h"
#include "golden/verdict/verdict_report.h"

namespace softmoe::experiments {
namespace {

// Summarizes the verdicts in a few lines: how many of each kind, and why not
// more.
std::string DescribeVerdicts(const JudgedResults& judged) {
  const golden::Verdicts& v = judged.verdicts;
  const std::string counts = StatusCounts(v.cells);
  std::string text =
      fmt::format("Against the paper{}: {} cells{}", judged.reading(),
                  v.cells.size(), counts.empty() ? "" : ": " + counts);
  text += fmt::format(". Overall {}.", StatusName(v.overall()));
  if (v.overall() == Status::kNotComparable &&
      !v.fingerprint_differences.empty()) {
    const auto differences = golden::DifferenceLines(v.fingerprint_differences);
    std::string first;
    for (size_t i = 0; i < std::min<size_t>(3, differences.size()); ++i) {
      first += (i == 0 ? "" : "; ") + differences[i];
    }
    text += fmt::format(" Not the paper's set-up: {} fields differ, e.g. {}.",
                        differences.size(), first);
  }
  return Wrap(text, kReportWidth, 2) + "\n";
}

// Names the runs trained by another version of this project: the program reads
// finished runs and does not retrain them.
std::string DescribeVersions(const GridOutcome& outcome) {
  std::map<std::string, std::vector<std::string>> others;
  for (const RunOutcome& run : outcome.runs) {
    if (run.result && run.result->code_version != CodeVersion()) {
      others[run.result->code_version].push_back(run.run.id);
    }
  }
  std::string text;
  for (const auto& [version, runs] : others) {
    text += Wrap(fmt::format("note: this is version {}; {} of {} runs were "
                             "trained by version {}, e.g. {}. Versions may "
                             "differ in their results (CHANGELOG.md): to train "
                             "again use another folder (--out).",
                             CodeVersion(), runs.size(), outcome.runs.size(),
                             version, runs.front()),
                 kReportWidth, 2) +
            "\n";
  }
  return text;
}

// The documents of all readings, not yet judged, each with the table of the
// claims in miniature, if any.
std::vector<JudgedResults> ReportDocuments(
    const GridOutcome& outcome, const std::optional<MiniClaims>& claims,
    const golden::Document& paper) {
  std::vector<JudgedResults> all;
  const auto accuracies = AccuracyReadings(outcome);
  for (const trainer::TaskMeasure by : accuracies) {
    for (const std::string& variant : Variants(outcome.grid)) {
      JudgedResults& one = all.emplace_back();
      one.variant = variant;
      if (accuracies.size() > 1) {
        one.accuracies = trainer::kTaskMeasureNames[static_cast<size_t>(by)];
      }
      one.file = ResultsName(outcome.grid, variant, by);
      one.results = ResultsDocument(outcome, variant, paper, by);
      if (claims) one.results.tables.push_back(ClaimsTable(*claims));
    }
  }
  return all;
}

// Writes the page in every format of `formats`, and the plots of its figures.
void WritePage(const ReportPage& page, const std::filesystem::path& folder,
               const std::set<ReportFormat>& formats, GridReport* report) {
  const auto write = [&](const std::filesystem::path& path,
                         const std::string& content) {
    WriteFileAtomically(folder / path, content);
    report->files.push_back(folder / path);
  };
  // A folder's files are not listed, only the folder.
  const auto write_all = [&](const char* name, const auto& files) {
    if (files.empty()) return;
    MakeFolder(folder / name);
    for (const auto& [file, content] : files) {
      WriteFileAtomically(folder / name / file, content);
    }
    report->files.push_back(folder / name);
  };
  const std::vector<const Figure*> figures = FiguresOf(page);
  const Drawings drawings = DrawFigures(figures);
  std::map<std::string, std::string> plots;
  for (const Figure* figure : figures) {
    for (const Plot& plot : figure->plots) {
      plots[plot.id + ".csv"] = PlotCsv(plot);
      const std::string file = plot.id + ".svg";
      if (const auto drawn = drawings.svgs.find(plot.id);
          drawn != drawings.svgs.end()) {
        plots[file] = drawn->second;
      } else {
        // An earlier report's drawing would be taken for this one's. What
        // cannot be removed cannot be written to either, which is told below.
        std::error_code error;
        std::filesystem::remove(folder / "plots" / file, error);
      }
    }
  }
  write_all("plots", plots);
  if (formats.contains(ReportFormat::kHtml)) {
    write("report.html", HtmlOf(page, drawings));
  }
  if (formats.contains(ReportFormat::kMarkdown)) {
    write("report.md", MarkdownOf(page, drawings));
  }
  if (formats.contains(ReportFormat::kJson)) write("report.json", JsonOf(page));
  if (formats.contains(ReportFormat::kCsv)) {
    std::map<std::string, std::string> tables;
    for (const auto& [id, text] : CsvTablesOf(page)) tables[id + ".csv"] = text;
    write_all("tables", tables);
  }
}

// Removes files that an earlier report left and this one does not write; they
// would be taken for its own.
void RemoveOthers(const Grid& grid, const std::filesystem::path& folder,
                  const std::vector<std::filesystem::path>& written) {
  std::vector<std::string> names = {"claims.txt",        "claims.csv",
                                    "differences.csv",   "tasks.csv",
                                    "inference_tau.csv", "router_health.csv"};
  for (const std::string& variant : Variants(grid)) {
    names.push_back(ResultsName(grid, variant, trainer::TaskMeasure::kAccNorm));
  }
  for (const std::string& name : names) {
    const std::filesystem::path path = folder / name;
    if (std::ranges::find(written, path) == written.end()) {
      std::filesystem::remove(path);
    }
  }
}

}  // namespace

GridReport WriteGridReport(const GridOutcome& outcome,
                           const std::filesystem::path& folder,
                           const ReportOptions& options) {
  const golden::Document paper = ReadPaper();
  const std::vector<Invariant> invariants = CheckInvariants(outcome);
  const std::optional<MiniClaims> claims = JudgeMiniClaims(outcome);
  const std::optional<RegimeResults> regime = JudgeRegimeRuns(outcome);
  const bool is_first = !std::filesystem::exists(folder / "runs.csv");
  GridReport report;
  report.invariants_hold = AllHold(invariants);
  std::vector<EvaluationTable> tables = EvaluationTables(outcome);
  const bool evaluated = !tables.empty();
  std::ranges::move(TaskComparisonTables(outcome), std::back_inserter(tables));
  std::ranges::move(ExperimentTables(outcome, paper),
                    std::back_inserter(tables));
  report.text = DescribeGridTable(outcome) + "\n" + DescribeTables(tables) +
                DescribeInvariants(invariants) + "\n";

  std::vector<JudgedResults> judged = ReportDocuments(outcome, claims, paper);
  for (JudgedResults& one : judged) {
    one.verdicts = golden::Judge(one.results, paper);
    golden::WriteDocument(one.results, folder / one.file);
    report.files.push_back(folder / one.file);
    report.text += DescribeVerdicts(one);
  }
  report.text += DescribeVersions(outcome);
  if (claims) {
    report.text += "\n" + golden::DescribeMiniature(claims->verdicts);
  }
  if (regime) report.text += "\n" + RegimeText(*regime);
  const auto write = [&](const char* name, const std::string& content) {
    WriteFileAtomically(folder / name, content);
    report.files.push_back(folder / name);
  };
  write("runs.csv", RunsCsv(outcome));
  write("steps.csv", StepsCsv(outcome, options.steps_every));
  if (evaluated) {
    write("inference_tau.csv", InferenceTauCsv(outcome));
    write("router_health.csv", RouterHealthCsv(outcome));
  }
  if (!judged.back().accuracies.empty()) {
    write("tasks.csv", TasksCsv(outcome));
  }
  if (claims) {
    write("claims.txt", ClaimsText(*claims));
    write("claims.csv", ClaimsCsv(*claims));
  }
  if (regime) {
    write("claims.txt", RegimeText(*regime));
    write("differences.csv", DifferencesCsv(DifferencesOverSteps(outcome)));
  }
  if (!is_first) RemoveOthers(outcome.grid, folder, report.files);
  std::vector<ReportPart> parts;
  if (claims) parts.push_back(ClaimsPart(*claims));
  if (regime) parts.push_back(RegimePart(*regime));
  WritePage(MakeReportPage(outcome, invariants, judged, std::move(parts),
                           std::move(tables), paper),
            folder, options.formats, &report);
  return report;
}

std::string SummarizeRecord(const Grid& grid, RunRecord& record) {
  GridOutcome outcome;
  outcome.grid = grid;
  for (const GridRun& run : grid.runs) {
    outcome.runs.emplace_back().run = run;
  }
  TakeRecordedRuns(record, outcome);
  const std::optional<MiniClaims> claims = JudgeMiniClaims(outcome);
  const std::optional<RegimeResults> regime = JudgeRegimeRuns(outcome);
  const golden::Document paper = ReadPaper();
  record.results = {};
  if (claims) record.results.miniature = claims->results;
  if (regime) record.results.miniature.runs = regime->runs;
  for (JudgedResults& one : ReportDocuments(outcome, claims, paper)) {
    record.results.documents.emplace_back(one.file, std::move(one.results));
  }
  if (claims) return ClaimsText(*claims);
  return regime ? RegimeText(*regime) : "";
}

std::filesystem::path VerdictsPath(const std::filesystem::path& record) {
  return record.parent_path() / (record.stem().string() + "_verdicts.txt");
}

}  // namespace softmoe::experiments
