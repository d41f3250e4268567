// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/grid_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/code_version.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "experiments/testing/report_test_util.h"
#include "golden/document/document.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

// Elements are closed in the order in which they were opened.
std::string FirstBadTag(const std::string& html) {
  static const std::vector<std::string> kVoid = {"meta", "br", "!DOCTYPE"};
  std::vector<std::string> open;
  for (size_t i = html.find('<'); i != std::string::npos;
       i = html.find('<', i + 1)) {
    if (html.compare(i, 4, "<!--") == 0) {
      i = html.find("-->", i);
      continue;
    }
    const size_t end = html.find('>', i);
    const std::string tag = html.substr(i + 1, end - i - 1);
    const std::string name = tag.substr(
        tag[0] == '/', tag.find_first_of(" \n\t/", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != name) {
        return "</" + name + "> after <" + (open.empty() ? "" : open.back());
      }
      open.pop_back();
    } else if (tag.back() != '/' &&
               std::find(kVoid.begin(), kVoid.end(), name) == kVoid.end()) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

TEST(GridReport, ShowsWhatWasMeasuredOnTheFinalModels) {
  const fs::path folder = FreshFolder("grid_report_evaluations");
  GridOutcome outcome = ExampleOutcome();
  trainer::FinalEvaluations evaluations;
  evaluations.inference_tau = {{.factor = 0.5,
                                .tau = 0.75,
                                .validation = {.loss = 3.14159265,
                                               .num_tokens = 10,
                                               .layer_active_experts = {},
                                               .active_histogram = {},
                                               .tokens_per_expert = {}}}};
  RunOf(outcome, "soft-2").result->final_evaluations = evaluations;
  const GridReport report = WriteGridReport(outcome, folder);
  EXPECT_EQ(report.files.size(), 7u);
  EXPECT_TRUE(Says(report.text, "3.1416"));
  EXPECT_TRUE(Says(ReadWholeFile(folder / "inference_tau.csv"), "3.14159265"));
  EXPECT_TRUE(fs::exists(folder / "router_health.csv"));
  const std::string html = ReadWholeFile(folder / "report.html");
  EXPECT_TRUE(Says(html, "3.1416"));
  EXPECT_EQ(FirstBadTag(html), "");
}

TEST(GridReport, WritesEverything) {
  const fs::path folder = FreshFolder("grid_report");
  const GridOutcome outcome = ExampleOutcome();
  const GridReport report = WriteGridReport(outcome, folder);
  EXPECT_TRUE(report.invariants_hold);
  EXPECT_EQ(report.files.size(), 5u);
  for (const fs::path& file : report.files) EXPECT_TRUE(fs::exists(file));
  EXPECT_TRUE(Says(report.text, "SoftMoE*", "<= 2", "unigram",
                   "PASS  sum of k_l = K", "NOT_COMPARABLE", "data.corpus"));
  const golden::Document results = golden::ReadDocument(folder / "results.h5");
  EXPECT_FALSE(results.tables.empty());
  EXPECT_EQ(results.provenance.git_commit, "0123456789ab");
}

TEST(GridReport, SaysThatNoRowIsThePapers) {
  GridOutcome outcome = ExampleOutcome();
  for (RunOutcome& run : outcome.runs) run.run.row.paper_row.clear();
  EXPECT_TRUE(
      Says(WriteGridReport(outcome, FreshFolder("grid_report_own")).text,
           "0 cells. Overall NOT_COMPARABLE."));
}

TEST(GridReport, SaysWhatAnotherVersionTrained) {
  const fs::path folder = FreshFolder("grid_report_versions");
  GridOutcome outcome = ExampleOutcome();
  const std::string note = "trained by version 0123456789ab, e.g.";
  EXPECT_TRUE(Says(WriteGridReport(outcome, folder).text, note));
  for (RunOutcome& run : outcome.runs) {
    run.result->code_version = CodeVersion();
  }
  EXPECT_FALSE(
      Says(WriteGridReport(outcome, folder).text, "trained by version"));
}

// Verdicts of an earlier report would be taken for this one's. Where there was
// no report, no files may be removed.
TEST(GridReport, LeavesNoVerdictsOfAnEarlierReport) {
  const fs::path folder = FreshFolder("grid_report_again");
  WritePlain(folder / "claims.txt", "mine");
  WriteGridReport(ExampleOutcome(), folder);
  EXPECT_TRUE(fs::exists(folder / "claims.txt"));
  WriteGridReport(ExampleOutcome(), folder);
  EXPECT_FALSE(fs::exists(folder / "claims.txt"));
}

TEST(GridReport, ThePageIsWellFormedAndSelfContained) {
  const fs::path folder = FreshFolder("grid_report_page");
  GridOutcome outcome = ExampleOutcome({.both_variants = true});
  Fail(RunOf(outcome, "sparse-1"), "a <bad> score & more");
  const GridReport report = WriteGridReport(outcome, folder);
  EXPECT_FALSE(report.invariants_hold);
  EXPECT_EQ(report.files.size(), 6u);
  const std::string page = ReadWholeFile(folder / "report.html");
  EXPECT_EQ(FirstBadTag(page), "");
  for (const RunOutcome& run : outcome.runs) {
    EXPECT_TRUE(Says(page, run.run.id));
  }
  EXPECT_TRUE(Says(page, "This is not a reproduction of the paper",
                   "A grid for &lt;tests&gt; &amp;",
                   "a &lt;bad&gt; score &amp; more", "<svg", "NOT_COMPARABLE",
                   "results-calibrated.h5", "aria-label"));
  for (const char* loads : {"<script", "<link", "src=", "@import"}) {
    EXPECT_FALSE(Says(page, loads));
  }
}

TEST(GridReport, WritesTheFormatsAskedFor) {
  const fs::path folder = FreshFolder("grid_report_formats");
  GridOutcome outcome = ExampleOutcome();
  outcome.grid.overrides = {"training.steps=4 0"};
  WriteGridReport(outcome, folder,
                  {.formats = {ReportFormat::kMarkdown, ReportFormat::kCsv,
                               ReportFormat::kJson}});
  EXPECT_FALSE(fs::exists(folder / "report.html"));
  EXPECT_TRUE(Says(ReadWholeFile(folder / "report.md"), "## Beside the paper",
                   "rows of owt was trained on A text.",
                   "### T1: SoftMoE and Sparse MoE", "plots/hard_soft_loss_0",
                   // The command for the runs of a figure.
                   "--rows sparse-2,star-1.5 --corpora foldoc --seeds 1234 "
                   "--set 'training.steps=4 0'"));
  EXPECT_TRUE(Says(ReadWholeFile(folder / "report.json"), "\"every_cell\""));
  EXPECT_TRUE(Says(ReadWholeFile(folder / "tables/every_cell.csv"),
                   "main_results,owt/sparse/k2,val_loss,,2.79,"));
  EXPECT_TRUE(Says(ReadWholeFile(folder / "plots/layers_0.csv"),
                   "series,layer,k_l,low,high\nsoft-2,1,1.75,,\n"));
  EXPECT_TRUE(fs::exists(folder / "plots/layers_0.svg"));
}

// Drawings of an earlier report would be taken for those of this one.
TEST(GridReport, LeavesNoDrawingsOfAnEarlierReport) {
  const fs::path folder = FreshFolder("grid_report_undrawn");
  const GridOutcome outcome = ExampleOutcome();
  const ReportOptions options = {.formats = {ReportFormat::kMarkdown}};
  WriteGridReport(outcome, folder, options);
  EXPECT_TRUE(fs::exists(folder / "plots/layers_0.svg"));
  WritePlain(folder / "plots/mine.svg", "mine");
  {
    const NoPrograms none;
    WriteGridReport(outcome, folder, options);
  }
  EXPECT_FALSE(fs::exists(folder / "plots/layers_0.svg"));
  EXPECT_TRUE(fs::exists(folder / "plots/layers_0.csv"));
  EXPECT_TRUE(fs::exists(folder / "plots/mine.svg"));
  const std::string page = ReadWholeFile(folder / "report.md");
  EXPECT_TRUE(Says(page, "No plots: "));
  EXPECT_FALSE(Says(page, ".svg)"));
}

// Without the option the command would train on the CPU.
TEST(GridReport, CommandsNameTheDeviceOfTheirRuns) {
  const fs::path folder = FreshFolder("grid_report_device");
  GridOutcome outcome = ExampleOutcome();
  const ReportOptions options = {.formats = {ReportFormat::kMarkdown}};
  const auto page = [&] {
    WriteGridReport(outcome, folder, options);
    return ReadWholeFile(folder / "report.md");
  };
  EXPECT_FALSE(Says(page(), "--device"));
  for (RunOutcome& run : outcome.runs) {
    run.result->identity.backend = "cuda";
  }
  const std::string all = page();
  EXPECT_TRUE(Says(all, " --seeds 1234 --device=cuda\n"));
  // The command for the report has no such option.
  const size_t report = all.find("grid -- report");
  ASSERT_NE(report, std::string::npos);
  EXPECT_FALSE(
      Says(all.substr(report, all.find('\n', report) - report), "--device"));
  // Figures that show none of the CPU runs name the device.
  RunOf(outcome, "sparse-1").result->identity.backend.clear();
  const std::string some = page();
  EXPECT_TRUE(Says(some,
                   "--rows sparse-2,star-1.5 --corpora foldoc "
                   "--seeds 1234 --device=cuda\n"));
  const size_t run = some.rfind("grid -- run");
  ASSERT_NE(run, std::string::npos);
  EXPECT_FALSE(Says(some.substr(run, some.find('\n', run) - run), "--device"));
  for (RunOutcome& one : outcome.runs) {
    one.result->identity.backend = "cuda";
  }
  EXPECT_TRUE(Says(page(), "--device"));
  // If the grid asks for the device, the command need not.
  for (RunOutcome& one : outcome.runs) one.run.runtime.device = "cuda";
  EXPECT_FALSE(Says(page(), "--device"));
}

TEST(GridReport, SaysWhatItWasGivenToBeMadeAgain) {
  const fs::path folder = FreshFolder("grid_report_options");
  WriteGridReport(ExampleOutcome(), folder,
                  {.formats = {ReportFormat::kMarkdown}});
  EXPECT_TRUE(Says(ReadWholeFile(folder / "report.md"), "--out", "--from",
                   "--task-files", "--tokens", "--place"));
}

// Ruling 18: each reading is a document of its own, and its verdict names it. A
// table without accuracies is shown only once.
TEST(GridReport, JudgesBothReadingsOfAccuracies) {
  const fs::path folder = FreshFolder("grid_report_accuracies");
  GridOutcome outcome = ExampleOutcome();
  EvaluationsOf(RunOf(outcome, "soft-2")).tasks = {
      {.name = "piqa",
       .sha256 = "of piqa",
       .measures = std::vector<trainer::MeasuredAnswers>(4),
       .right = std::vector<uint8_t>(1838)}};
  const GridReport report =
      WriteGridReport(outcome, folder, {.formats = {ReportFormat::kMarkdown}});
  EXPECT_TRUE(Says(report.text, "Against the paper (accuracies: acc): ",
                   "Against the paper (accuracies: acc_norm): "));
  EXPECT_TRUE(fs::exists(folder / "results-acc_norm.h5"));
  const std::string page = ReadWholeFile(folder / "report.md");
  EXPECT_TRUE(Says(page, "results-acc\\_norm.h5 (accuracies: acc\\_norm): ",
                   "on OWT and C4 (accuracies: acc)",
                   "on OWT and C4 (accuracies: acc\\_norm)",
                   "Every cell (accuracies: acc\\_norm)"));
  const size_t sizes = page.find("### T2");
  ASSERT_NE(sizes, std::string::npos);
  EXPECT_EQ(page.find("### T2", sizes + 1), std::string::npos);
  WriteGridReport(ExampleOutcome(), folder);
  EXPECT_FALSE(fs::exists(folder / "results-acc_norm.h5"));
}

TEST(GridReport, WorksBeforeAnythingIsFinished) {
  const fs::path folder = FreshFolder("grid_report_empty");
  GridOutcome outcome = ExampleOutcome();
  for (RunOutcome& run : outcome.runs) {
    run.result.reset();
    run.state = RunState::kWaiting;
  }
  outcome.corpora.clear();
  const GridReport report = WriteGridReport(outcome, folder);
  EXPECT_FALSE(report.invariants_hold);
  EXPECT_TRUE(Says(report.text, "not finished"));
  EXPECT_EQ(FirstBadTag(ReadWholeFile(folder / "report.html")), "");
}

TEST(GridReport, AFolderThatIsNotThereIsAnEnvironmentError) {
  EXPECT_THROW(WriteGridReport(ExampleOutcome(), "/nonexistent/folder"),
               EnvironmentError);
}

}  // namespace
}  // namespace softmoe::experiments
