// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "core/text/ascii.h"
#include "core/text/progress.h"
#include "core/text/text_table.h"
#include "experiments/grids/grid_select.h"
#include "experiments/plan/slurm_jobs.h"
#include "experiments/report/paper_figures.h"
#include "experiments/report/report_curves.h"
#include "golden/verdict/miniature_report.h"
#include "golden/verdict/regime_report.h"
#include "golden/verdict/verdict_report.h"
#include "trainer/identity/run_identity.h"

namespace softmoe::experiments {
namespace {

using Strings = std::vector<std::string>;

// The cells of the paper's tables by each reading of its accuracies.
using CellsByReading =
    std::vector<std::pair<std::string, std::vector<PaperCell>>>;

ReportItem Folded(const std::string& summary, auto content) {
  return {std::move(content), summary};
}

// ---- What the report is, and how to make it again.

ReportPart WhatThisIs(const Grid& grid) {
  ReportPart part;
  if (grid.scale != "paper") {
    part.items.push_back({Paragraph{
        fmt::format(
            "This is not a reproduction of the paper. At {} scale the models, "
            "the texts and the training are different and far smaller, so no "
            "number here is comparable with the paper's. What is checked is "
            "that the method does what its formulas say: the invariants below.",
            grid.scale),
        /*warning=*/true}});
  }
  TextList corpora;
  for (const GridCorpus& corpus : grid.corpora) {
    corpora.items.push_back(fmt::format(
        "{}: {}{}", corpus.id, corpus.title,
        corpus.paper_dataset.empty() ? ", not a corpus of the paper" : ""));
  }
  part.items.push_back({std::move(corpora)});
  return part;
}

// Whether the finished runs of these rows and corpora (empty: all) were trained
// on GPUs although the grid does not say so.
bool NeedsCuda(const GridOutcome& outcome, const Strings& rows,
               const Strings& corpora) {
  const auto has = [](const Strings& ids, const std::string& id) {
    return ids.empty() || std::ranges::count(ids, id) > 0;
  };
  bool needs = false;
  for (const RunOutcome& run : outcome.runs) {
    if (run.state != RunState::kFinished || !has(rows, run.run.row.id) ||
        !has(corpora, run.run.corpus.id)) {
      continue;
    }
    if (run.result->identity.backend != "cuda") return false;
    needs |= run.run.runtime.device != "cuda";
  }
  return needs;
}

// The command line for these rows and corpora of a grid (empty: all).
Verbatim Command(const GridOutcome& outcome, const std::string& verb,
                 const Strings& rows, const Strings& corpora) {
  const Grid& grid = outcome.grid;
  Strings words = {"./bazelw", "run", "//:grid", "--", verb};
  for (const std::string& word : CommandWords(grid)) words.push_back(word);
  const auto add = [&](const char* option, const Strings& values) {
    if (values.empty()) return;
    words.push_back(option);
    words.push_back(fmt::format("{}", fmt::join(values, ",")));
  };
  add("--rows", rows);
  add("--corpora", corpora);
  Strings seeds;
  for (const int64_t seed : grid.seeds) seeds.push_back(std::to_string(seed));
  add("--seeds", seeds);
  for (const std::string& assignment : grid.overrides) {
    add("--set", {assignment});
  }
  if (verb == "run" && NeedsCuda(outcome, rows, corpora)) {
    words.push_back("--device=cuda");
  }
  for (std::string& word : words) word = ShellQuoted(word);
  return {fmt::format("{}", fmt::join(words, " "))};
}

ReportPart HowToMakeIt(const GridOutcome& outcome) {
  return {
      "To make this again",
      {{Paragraph{
           "The first command trains, the second writes this report. Give "
           "both the --out and --from that were given for this one, and the "
           "first also the --task-files, --tokens and --place of its runs. "
           "Trained runs are read, not trained again. The points of the "
           "figures are in plots/, as CSV and, drawn, as SVG."}},
       {Verbatim{Command(outcome, "run", {}, {}).text + "\n" +
                 Command(outcome, "report", {}, {}).text}}}};
}

// ---- What was measured.

ReportPart InvariantsPart(const std::vector<Invariant>& invariants) {
  EvaluationTable table{"Invariants",
                        "They hold at any scale and decide the exit code.",
                        {"", "what", "worst case"},
                        {}};
  for (const Invariant& invariant : invariants) {
    table.rows.push_back(
        {invariant.holds ? "PASS" : "FAIL", invariant.text, invariant.detail});
  }
  return {"Invariants", {{std::move(table)}}};
}

ReportPart ResultsPart(const GridOutcome& outcome) {
  const GridTable grid_table = MakeGridTable(outcome);
  EvaluationTable table{"Results",
                        "Mean over the finished seeds. " + grid_table.legend,
                        grid_table.header,
                        {}};
  table.header.insert(table.header.begin(), "corpus");
  for (const GridTable::Row& row : grid_table.rows) {
    Strings& cells = table.rows.emplace_back(row.cells);
    cells.insert(cells.begin(), row.corpus);
  }
  return {"Results", {{std::move(table)}}};
}

ReportPart TablePart(EvaluationTable table) {
  const std::string title = table.title;
  return {title, {{std::move(table)}}};
}

// Each figure with the command that trains what it shows.
ReportPart FiguresPart(const std::string& title, const std::string& text,
                       std::vector<Figure> figures,
                       const GridOutcome& outcome) {
  ReportPart part{title, {}};
  if (!text.empty()) part.items.push_back({Paragraph{text}});
  for (Figure& figure : figures) {
    const Verbatim command =
        Command(outcome, "run", figure.rows, figure.corpora);
    part.items.push_back({std::move(figure)});
    part.items.push_back(Folded("The command for its runs", command));
  }
  return part;
}

// ---- Verdicts.

ReportPart PaperPart(const GridOutcome& outcome,
                     const std::vector<JudgedResults>& judged,
                     const CellsByReading& cells,
                     const golden::Document& paper) {
  ReportPart part{
      "Beside the paper",
      {{Paragraph{
          "The paper's tables as it prints them, and under each row what was "
          "measured here: the mean over the seeds, ± half the width of its "
          "95 % interval (Student's t) where there are several. A verdict "
          "other than NOT_COMPARABLE needs the paper's own set-up; //:golden "
          "-- compare judges the results file the same way."}}}};
  for (const GridCorpus& corpus : outcome.grid.corpora) {
    if (corpus.stands_for.empty()) continue;
    part.items.push_back({Paragraph{fmt::format(
        "What is measured here for the paper's rows of {} was trained on {}.",
        corpus.stands_for, corpus.title)}});
  }
  for (const JudgedResults& one : judged) {
    const golden::Verdicts& v = one.verdicts;
    part.items.push_back({Paragraph{fmt::format(
        "{}{}: {} cells: {}. {} claims: {}. Overall: {}.", one.file,
        one.reading(), v.cells.size(), StatusCounts(v.cells), v.claims.size(),
        StatusCounts(v.claims), StatusName(v.overall()))}});
  }
  std::set<std::string> shown;
  for (const auto& [accuracies, own] : cells) {
    for (EvaluationTable& table :
         PaperTables(outcome.grid, own, paper, accuracies)) {
      // A table without accuracies is the same in every reading.
      if (!shown.insert(table.title).second) continue;
      part.items.push_back({std::move(table)});
      part.items.push_back(
          Folded("The command for its runs", Command(outcome, "run", {}, {})));
    }
  }
  return part;
}

ReportPart VerdictsPart(const std::vector<JudgedResults>& judged,
                        const CellsByReading& cells) {
  ReportPart part{"Verdicts in full", {}};
  for (const JudgedResults& one : judged) {
    const golden::Verdicts& v = one.verdicts;
    const std::string reading = one.reading();
    if (!v.fingerprint_differences.empty()) {
      part.items.push_back(
          Folded("What differs from the paper's set-up, so that nothing can be "
                 "compared" +
                     reading,
                 TextList{golden::DifferenceLines(v.fingerprint_differences)}));
    }
    if (!v.assumptions.empty()) {
      part.items.push_back(
          Folded("What the paper leaves open: assumptions" + reading,
                 TextList{golden::AssumptionLines(v)}));
    }
    if (const auto record = golden::RecordLines(v); !record.empty()) {
      part.items.push_back(
          Folded("For the record" + reading, TextList{record}));
    }
    const EvaluationTable claims{"Every claim" + reading,
                                 "The paper's statements about these rows.",
                                 {"claim", "verdict", "reason"},
                                 golden::ClaimRows(v)};
    part.items.push_back(Folded(claims.title, claims));
  }
  for (const auto& [accuracies, own] : cells) {
    EvaluationTable every = CellTable(own, accuracies);
    part.items.push_back(Folded(every.title, every));
  }
  return part;
}

// ---- Provenance.

ReportPart ProvenancePart(const GridOutcome& outcome,
                          const golden::Document& paper) {
  EvaluationTable corpora{"Texts",
                          "What the runs were trained on.",
                          {"corpus", "what", "tokens", "bytes per token",
                           "vocabulary", "source", "SHA-256 of the tokens"},
                          {}};
  for (const trainer::PreparedCorpus& corpus : outcome.corpora) {
    corpora.rows.push_back(
        {corpus.corpus, corpus.description, std::to_string(corpus.num_tokens),
         fmt::format("{:.3f}", static_cast<double>(corpus.text_bytes) /
                                   static_cast<double>(std::max<int64_t>(
                                       1, corpus.num_tokens))),
         std::to_string(corpus.vocab_size), corpus.provenance,
         corpus.tokens.data_sha256});
  }
  EvaluationTable runs{"Runs",
                       "Where and by which version each was trained.",
                       {"run", "folder", "parameters", "time",
                        "ISA level or device", "code version", ""},
                       {}};
  std::string configs;
  std::set<std::string> shown;
  for (const RunOutcome& run : outcome.runs) {
    const bool finished = run.state == RunState::kFinished;
    runs.rows.push_back(
        {run.run.id, run.folder.filename().string(),
         finished ? std::to_string(run.result->parameters) : "",
         finished ? FormatDuration(run.result->seconds) : "",
         finished ? trainer::PlaceText(run.result->identity) : "",
         finished ? run.result->code_version : "",
         !finished             ? run.problem
         : run.result->resumed ? "resumed"
                               : ""});
    const std::string row = run.run.corpus.id + "/" + run.run.row.id;
    if (!shown.insert(row).second) continue;
    configs +=
        fmt::format("# {}\n{}\n", run.run.id, ConfigToToml(run.run.config));
  }
  return {"How this came about",
          {{std::move(corpora)},
           Folded(runs.title, runs),
           Folded("Configurations, of the first seed of each row",
                  Verbatim{configs}),
           {Paragraph{"Paper: " + paper.provenance.source}}}};
}

EvaluationTable TableOf(const std::string& title, const std::string& caption,
                        const TextTable& table) {
  const auto& rows = table.rows();
  return {title, caption, rows[0], {rows.begin() + 1, rows.end()}};
}

template <typename Content>
std::vector<const Content*> ContentsOf(const ReportPage& page) {
  std::vector<const Content*> contents;
  for (const ReportPart& part : page.parts) {
    for (const ReportItem& item : part.items) {
      if (const auto* content = std::get_if<Content>(&item.content)) {
        contents.push_back(content);
      }
    }
  }
  return contents;
}

}  // namespace

ReportPart ClaimsPart(const MiniClaims& judged) {
  const golden::MiniatureVerdicts& verdicts = judged.verdicts;
  return {
      "Claims in miniature",
      {{Paragraph{fmt::format(
           "{} {} of {} planned runs are in{}. Margins, {}: {}.",
           golden::MiniatureDisclaimer(), verdicts.finished, verdicts.planned,
           verdicts.missing.empty() ? "" : ", so that every verdict is INTERIM",
           golden::MiniatureMarginsFixed(verdicts), verdicts.hash)}},
       {TableOf("Could it have been shown?", "",
                golden::MiniatureDesignTable(verdicts))},
       {TableOf("Claims of the paper", "In a form without scale.",
                golden::MiniatureClaimTable(verdicts, /*of_paper=*/true))},
       {TableOf("Hypotheses of this project", "",
                golden::MiniatureClaimTable(verdicts, /*of_paper=*/false))},
       {TableOf("Measures", golden::MiniatureMeasureLegend(),
                golden::MiniatureMeasureTable(verdicts))},
       Folded("Every case", TableOf("Every case", "Of every measure.",
                                    golden::MiniatureCaseTable(verdicts))),
       Folded("Reasons, assumptions, and what the grid can resolve",
              Verbatim{ClaimsText(judged)})}};
}

ReportPart RegimePart(const RegimeResults& judged) {
  return {"Soft and sparse routing at equal active experts",
          {{Paragraph{golden::RegimeBottomLine(judged.verdicts)}},
           Folded("Every estimate, row and control",
                  Verbatim{RegimeText(judged)})}};
}

ReportPage MakeReportPage(const GridOutcome& outcome,
                          const std::vector<Invariant>& invariants,
                          const std::vector<JudgedResults>& judged,
                          std::vector<ReportPart> claims,
                          std::vector<EvaluationTable> tables,
                          const golden::Document& paper) {
  const Grid& grid = outcome.grid;
  CellsByReading cells;
  for (const JudgedResults& one : judged) {
    const std::string& by = one.accuracies;
    if (!cells.empty() && cells.back().first == by) continue;
    cells.emplace_back(by, PaperCells(outcome, judged, paper, by));
  }
  ReportPage page{"Grid " + grid.name, grid.title, {}};
  const auto add = [&](ReportPart part) {
    if (!part.items.empty()) page.parts.push_back(std::move(part));
  };
  add(WhatThisIs(grid));
  add(InvariantsPart(invariants));
  add(ResultsPart(outcome));
  for (ReportPart& part : claims) add(std::move(part));
  add(PaperPart(outcome, judged, cells, paper));
  add(FiguresPart("The paper's figures",
                  "The paper printed them without their data, so nothing of "
                  "its own is drawn here. It does not say which k its curves "
                  "have: ASSUMED, the rows of its T4.",
                  PaperFigures(outcome), outcome));
  add(FiguresPart("Training", "", MakeCurves(outcome), outcome));
  for (EvaluationTable& table : tables) add(TablePart(std::move(table)));
  add(VerdictsPart(judged, cells));
  add(HowToMakeIt(outcome));
  add(ProvenancePart(outcome, paper));
  return page;
}

std::vector<const Figure*> FiguresOf(const ReportPage& page) {
  return ContentsOf<Figure>(page);
}

std::vector<std::pair<std::string, const EvaluationTable*>> TablesOf(
    const ReportPage& page) {
  std::vector<std::pair<std::string, const EvaluationTable*>> tables;
  std::map<std::string, int> taken;
  for (const EvaluationTable* table : ContentsOf<EvaluationTable>(page)) {
    std::string name;
    for (const char c : LowerCase(table->title)) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x80 && std::isalnum(byte)) {
        name += c;
      } else if (!name.empty() && name.back() != '_') {
        name += '_';
      }
    }
    if (!name.empty() && name.back() == '_') name.pop_back();
    const int number = ++taken[name];
    tables.emplace_back(number == 1 ? name : fmt::format("{}_{}", name, number),
                        table);
  }
  return tables;
}

}  // namespace softmoe::experiments
