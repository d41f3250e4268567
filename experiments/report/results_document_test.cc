// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/results_document.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "experiments/run/run_folder.h"
#include "experiments/run/run_record.h"
#include "experiments/testing/report_test_util.h"
#include "golden/document/document.h"
#include "golden/document/fingerprint.h"
#include "golden/testing/document_test_util.h"
#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"
#include "golden/verdict/miniature_quantity.h"
#include "golden/verdict/verdict.h"

namespace softmoe::experiments {
namespace {

using golden::Cell;
using golden::Document;
using golden::Paper;
using golden::Table;
using trainer::TaskMeasure;

Document Results(const GridOutcome& outcome, const std::string& variant = "",
                 TaskMeasure by = TaskMeasure::kAcc) {
  const Document document = ResultsDocument(outcome, variant, Paper(), by);
  EXPECT_EQ(golden::FirstProblem(document), "");
  return document;
}

// Returned by value: the document may be a temporary.
Cell CellOf(const Document& document, const std::string& row,
            const std::string& column,
            const std::string& table_id = "main_results") {
  const Table* table = document.FindTable(table_id);
  const golden::Row* found = table->FindRow(row);
  if (found == nullptr) {
    ADD_FAILURE() << "no row " << row;
    return {};
  }
  return found->cells[static_cast<size_t>(table->FindColumn(column))];
}

std::string FieldOf(const Document& document, const std::string& row,
                    const std::string& name) {
  for (const auto& field :
       document.FindTable("main_results")->FindRow(row)->fields) {
    if (field.name == name) return field.value;
  }
  for (const auto& field : document.fields) {
    if (field.name == name) return field.value;
  }
  return "absent";
}

TEST(ResultsDocument, HoldsWhatWasMeasured) {
  GridOutcome outcome = ExampleOutcome();
  const Document document = Results(outcome);
  const auto& result = *RunOf(outcome, "soft-2").result;
  const Cell loss = CellOf(document, "owt/softmoe/k2/a2", "val_loss");
  EXPECT_EQ(loss.value, result.final_validation.loss);
  EXPECT_EQ(loss.runs, 1);
  EXPECT_FALSE(loss.deviation);
  EXPECT_EQ(CellOf(document, "owt/softmoe/k2/a2", "infer_ae").value, 2.25);
  EXPECT_EQ(CellOf(document, "owt/sparse/k1", "mean_active_experts").text, "1");
  EXPECT_TRUE(CellOf(document, "owt/sparse/k1", "expansion_factor").empty());
  EXPECT_TRUE(CellOf(document, "owt/sparse/k1", "piqa").empty());
  // These are counted by hand in report_tables_test.cc.
  EXPECT_EQ(CellOf(document, "owt/sparse/k1", "active_params").value, 2680e-6);
  EXPECT_EQ(CellOf(document, "owt/softmoe/k2/a2", "budget", "allocation").value,
            6);
  EXPECT_EQ(
      CellOf(document, "owt/softmoe/k2/a2", "least_allocation", "allocation")
          .value,
      1.75);
  EXPECT_EQ(document.FindTable("allocation")->rows.size(), 1u);
  EXPECT_EQ(
      CellOf(document, "owt/sparse/k2", "load_variance", "load_variance").value,
      0.04);
}

TEST(ResultsDocument, RecordsWhatThePaperDoesNotHave) {
  const Document document = Results(ExampleOutcome());
  EXPECT_EQ(CellOf(document, "owt/sparse/k1", "unigram_loss").value, 5.1);
  EXPECT_EQ(CellOf(document, "owt/sparse/k1", "zero_active_fraction").text,
            "0.000000");
  const std::string row = "owt/softmoe/k2/a2";
  EXPECT_EQ(CellOf(document, row, "layer_1", "layers").value, 1.75);
  EXPECT_EQ(CellOf(document, row, "layer_3", "layers").value, 2.25);
  EXPECT_EQ(document.FindTable("layers")->rows.size(), 1u);
}

// 58.54464 + 49.2 by the paper's formula, and 107.69728 if counted (SPEC.md
// 3.1).
TEST(ResultsDocument, ActiveParametersAreThePapersAtItsSizes) {
  const Document document = Results(
      ExampleOutcome({.both_variants = true, .paper_sizes = true}), "paper");
  EXPECT_EQ(CellOf(document, "owt/sparse/k1", "active_params").value,
            107.74464);
  EXPECT_EQ(CellOf(document, "owt/sparse/k1", "active_params_exact").value,
            107.69728);
}

// An active expert adds 3 x 3 x 8 x 12 = 864 parameters with 3 layers, 576 with
// 2 layers, and 49.2 million at the paper's sizes.
TEST(ResultsDocument, TheMarginOfActiveParametersIsForTheSizesOfTheGrid) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  const auto column = [&] {
    const Document document = Results(outcome);
    const Table& table = *document.FindTable("main_results");
    return table
        .columns[static_cast<size_t>(table.FindColumn("active_params"))];
  };
  EXPECT_DOUBLE_EQ(column().margin.value(), 0.3 * 864e-6);
  EXPECT_EQ(column().margin_basis,
            "0.000864 per active expert of this grid's smallest model x the "
            "margin 0.3 of Infer-AE");
  // This cell fails for a later run with one more active expert.
  GridOutcome later = outcome;
  for (RunOutcome& run : later.runs) {
    if (run.run.row.id != "soft-2") continue;
    run.result->final_validation.active_experts +=
        1 + 0.001 * static_cast<double>(run.run.seed);
  }
  const golden::Verdicts verdicts =
      golden::Judge(Results(later), Results(outcome));
  EXPECT_TRUE(std::ranges::any_of(verdicts.cells, [](const auto& cell) {
    return cell.row == "owt/softmoe/k2/a2" && cell.column == "active_params" &&
           cell.status == Status::kFail;
  }));

  RunOf(outcome, "sparse-2").run.config.model.num_layers = 2;
  EXPECT_DOUBLE_EQ(column().margin.value(), 0.3 * 576e-6);
  outcome = ExampleOutcome({.paper_sizes = true});
  EXPECT_EQ(column().margin, 14.76);
}

TEST(ResultsDocument, TheAllocationIsThatOfEveryStep) {
  GridOutcome outcome = ExampleOutcome();
  auto& result = *RunOf(outcome, "soft-2").result;
  result.steps[4].allocation = {1.25, 2, 2};
  const std::string row = "owt/softmoe/k2/a2";
  const auto cell = [&](const std::string& column) {
    return CellOf(Results(outcome), row, column, "allocation");
  };
  EXPECT_EQ(cell("budget").value, 5.25);
  EXPECT_EQ(cell("least_allocation").value, 1.25);
  EXPECT_EQ(cell("top3_share").value, 1);
  EXPECT_EQ(cell("moved_by_25k").flags,
            std::vector<std::string>{"NOT_MEASURED"});
  // The start, 2 for each, is 0.5 from the end, 1.75, 2 and 2.25; 1.9, 2 and
  // 2.1 are 0.3 from it. The steps are renumbered so that the fifth has what
  // 25000 updates left.
  for (auto& step : result.steps) step.step = 5000 * step.step + 1;
  result.steps[4].allocation = {1.9, 2, 2.1};
  // 1.9 and 2.1 are off by at most 2^-53 and 2^-52, the sum of their
  // differences by 2^-55; the quotient by 0.5 by twice that, and 0.4 by 2^-55.
  EXPECT_NEAR(cell("moved_by_25k").value, 0.4, 7 * 0x1p-53);
  // A run that ends earlier says nothing about later steps.
  for (auto& step : result.steps) step.step /= 8;
  ASSERT_EQ(result.steps.back().step, 25000);
  EXPECT_EQ(cell("moved_by_25k").flags,
            std::vector<std::string>{"NOT_MEASURED"});
}

// In 25000 updates the first layer gains all, half or none of what the last one
// gains by the end, or the last one gains a quarter of it. All numbers are
// exact and equal those that C3 has for such a run.
TEST(ResultsDocument, MovesAwayFromTheFinalAllocationAreNotEarlyOnes) {
  GridOutcome outcome = ExampleOutcome();
  auto& result = *RunOf(outcome, "soft-2").result;
  result.allocation = {1.75, 2, 2.25};
  for (const auto& [last, expected] :
       {std::pair{1.75, -1.0}, {1.875, -0.5}, {2.0, 0.0}, {2.0625, 0.25}}) {
    result.steps.clear();
    golden::MiniatureRun run;
    for (const int64_t s : {12'500, 25'000, 100'000}) {
      trainer::StepRecord& step = result.steps.emplace_back();
      step.step = s + 1;
      step.allocation = s == 100'000 ? result.allocation
                                     : std::vector<double>{4 - last, 2, last};
      run.allocation.push_back({.step = s, .allocation = step.allocation});
    }
    EXPECT_EQ(CellOf(Results(outcome), "owt/softmoe/k2/a2", "moved_by_25k",
                     "allocation")
                  .value,
              expected);
    golden::MiniatureMeasure early;
    early.quantity = golden::Quantity::kEarlyMovement;
    early.share_of_steps = 0.25;
    EXPECT_EQ(ReadQuantity(early, run).value, expected);
  }
}

// 8 of 12 experts, whatever the budget of the layers is.
TEST(ResultsDocument, ActiveExpertsOfTheLastThreeLayersAreAShare) {
  GridOutcome outcome = ExampleOutcome();
  auto& validation = RunOf(outcome, "soft-2").result->final_validation;
  validation.layer_active_experts = {1, 3, 2, 1, 5};
  const std::string row = "owt/softmoe/k2/a2";
  const auto cell = [&] {
    return CellOf(Results(outcome), row, "top3_active_share", "allocation");
  };
  EXPECT_EQ(cell().value, 8.0 / 12);
  validation.layer_active_experts.clear();
  EXPECT_EQ(cell().flags, std::vector<std::string>{"NOT_MEASURED"});
}

// k_l moves along a straight line, by 2^-20 a step. The quotient is off by
// 2^-54, and 25/164 by 2^-56. In a recorded run 2 + x and 2 - x round by 2^-52
// and 2^-53, the increments over the step before by less than 2^-61, and the
// sum by 2^-55; it is divided by 2 * 164000 / 2^20 = 0.31.
TEST(ResultsDocument, ARecordSaysWhatMovedEarly) {
  GridOutcome outcome = ExampleOutcome();
  auto& result = *RunOf(outcome, "soft-2").result;
  result.steps.clear();
  const auto after = [](int64_t updates) {
    const double moved = static_cast<double>(updates) * 0x1p-20;
    return std::vector<double>{2 - moved, 2, 2 + moved};
  };
  for (int64_t s = 1; s <= 164'000; ++s) {
    trainer::StepRecord& step = result.steps.emplace_back();
    step.step = s;
    step.allocation = after(s - 1);
  }
  result.allocation = after(164'000);
  const auto moved_early = [&] {
    return CellOf(Results(outcome), "owt/softmoe/k2/a2", "moved_by_25k",
                  "allocation")
        .value;
  };
  EXPECT_NEAR(moved_early(), 25.0 / 164, 0x1p-53);
  result.steps = ThinnedSteps(result.steps);
  EXPECT_NEAR(moved_early(), 25.0 / 164, 12 * 0x1p-53);
}

TEST(ResultsDocument, FieldsAreConfigurationKeys) {
  const Document document = Results(ExampleOutcome());
  EXPECT_EQ(FieldOf(document, "owt/sparse/k1", "model.d_model"), "8");
  EXPECT_EQ(FieldOf(document, "owt/sparse/k1", "data.corpus"), "\"foldoc\"");
  EXPECT_EQ(FieldOf(document, "owt/softmoe/k2/a2", "router.tau"),
            "calibrated: 1.174");
  EXPECT_EQ(FieldOf(document, "owt/softmoe/k2/a2", "router.kind"),
            "\"soft_learned\"");
  // Fields that all rows share are stored once, in the document.
  for (const auto& row : document.FindTable("main_results")->rows) {
    for (const auto& field : row.fields) {
      EXPECT_NE(field.name, "model.d_model");
    }
  }
}

TEST(ResultsDocument, NamesWhatReallyRan) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2}});
  Document document = Results(outcome);
  const auto field = [&](const std::string& row, const std::string& name) {
    return FieldOf(document, row, name);
  };
  EXPECT_EQ(field("owt/sparse/k1", "framework"),
            "the CPU backend of this project");
  EXPECT_EQ(field("owt/sparse/k1", "gpus"), "0");
  EXPECT_EQ(field("owt/sparse/k1", "hardware"), "absent");
  EXPECT_EQ(document.provenance.isa, "v3");

  // A row on devices, whose number one run lacks, and a row on both kinds.
  const auto move = [&](size_t run, int64_t devices) {
    trainer::RunResult& result = *outcome.runs[run].result;
    result.identity.isa = "sm_90";
    result.identity.backend = "cuda";
    result.identity.device = "NVIDIA H100 80GB HBM3";
    result.identity.libraries = "driver 13.0";
    result.devices = devices;
  };
  ASSERT_EQ(outcome.runs[0].run.row.id, outcome.runs[1].run.row.id);
  move(0, 8);
  move(1, 0);
  move(2, 8);
  Fail(RunOf(outcome, "soft-2"), "score is NaN");
  Fail(outcome.runs.back(), "score is NaN");
  document = Results(outcome);
  EXPECT_EQ(field("owt/sparse/k1", "framework"),
            "the CUDA backend of this project");
  EXPECT_EQ(field("owt/sparse/k1", "gpus"), "8, not recorded");
  EXPECT_EQ(field("owt/sparse/k1", "hardware"), "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(
      field("owt/sparse/k2", "framework"),
      "the CUDA backend of this project, the CPU backend of this project");
  EXPECT_EQ(field("owt/sparse/k2", "gpus"), "8, 0");
  // Nothing ran.
  EXPECT_EQ(field("owt/softmoe/k2/a2", "framework"), "");
  EXPECT_EQ(field("owt/softmoe/k2/a2", "gpus"), "");
  EXPECT_EQ(document.provenance.isa,
            "cuda (NVIDIA H100 80GB HBM3, sm_90; driver 13.0), v3");
}

TEST(ResultsDocument, SeedsGiveMeanAndDeviation) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  for (size_t i = 0; i < 3; ++i) {
    outcome.runs[i].result->final_validation.loss =
        3 + 0.25 * static_cast<double>(i);
  }
  const Cell cell = CellOf(Results(outcome), "owt/sparse/k1", "val_loss");
  EXPECT_EQ(cell.value, 3.25);
  EXPECT_EQ(cell.runs, 3);
  EXPECT_EQ(*cell.deviation, 0.25);
}

// A deviation of one rounding would not be real noise: pooled with others it
// would narrow their intervals. In doubles 7 x (1/7) is not 1.
TEST(ResultsDocument, EqualRunsHaveNoDeviation) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3, 4, 5, 6, 7}});
  for (RunOutcome& run : outcome.runs) run.result->train_ae = 1;
  const Cell cell = CellOf(Results(outcome), "owt/sparse/k1", "train_ae");
  EXPECT_EQ(cell.value, 1);
  EXPECT_EQ(cell.runs, 7);
  EXPECT_EQ(cell.deviation, 0.0);
}

TEST(ResultsDocument, FailuresAndGapsAreNoNumbers) {
  GridOutcome outcome = ExampleOutcome();
  Fail(RunOf(outcome, "sparse-1"), "diverged");
  Interrupt(RunOf(outcome, "sparse-2"));
  const Document document = Results(outcome);
  const Cell failed = CellOf(document, "owt/sparse/k1", "val_loss");
  EXPECT_TRUE(failed.empty());
  EXPECT_EQ(failed.flags, std::vector<std::string>{"DIVERGED"});
  EXPECT_TRUE(CellOf(document, "owt/sparse/k1", "unigram_loss").empty());
  const Cell waiting = CellOf(document, "owt/sparse/k2", "val_loss");
  EXPECT_TRUE(waiting.empty());
  EXPECT_EQ(waiting.flags, std::vector<std::string>{"NOT_RUN"});
}

// Such a number does not fit into a document, but its other rows are right.
TEST(ResultsDocument, AnExplosionIsADivergenceThoughItIsFinite) {
  GridOutcome outcome = ExampleOutcome();
  double& loss = RunOf(outcome, "sparse-1").result->final_validation.loss;
  const auto cell = [&] {
    return CellOf(Results(outcome), "owt/sparse/k1", "val_loss");
  };
  loss = 1e10;
  EXPECT_EQ(cell().text, "10000000000.000000");
  for (const double exploded : {1.1e10, 1e12, 1e300}) {
    loss = exploded;
    EXPECT_TRUE(cell().empty()) << exploded;
    EXPECT_EQ(cell().flags, std::vector<std::string>{"DIVERGED"}) << exploded;
  }
}

TEST(ResultsDocument, TheMeanOfTheSurvivorsIsNoResult) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  Interrupt(outcome.runs[0]);
  EXPECT_EQ(CellOf(Results(outcome), "owt/sparse/k1", "val_loss").runs, 2);
  Fail(outcome.runs[1], "diverged");
  const Cell cell = CellOf(Results(outcome), "owt/sparse/k1", "val_loss");
  EXPECT_TRUE(cell.empty());
  EXPECT_EQ(cell.flags, std::vector<std::string>{"DIVERGED"});
  // A setting does not diverge.
  EXPECT_EQ(
      CellOf(Results(outcome), "owt/sparse/k1", "mean_active_experts").text,
      "1");
}

TEST(ResultsDocument, EveryReadingOfTauIsADocument) {
  const GridOutcome one = ExampleOutcome();
  EXPECT_EQ(Variants(one.grid), std::vector<std::string>{""});
  const GridOutcome both = ExampleOutcome({.both_variants = true});
  EXPECT_EQ(Variants(both.grid),
            (std::vector<std::string>{"paper", "calibrated"}));
  EXPECT_EQ(ResultsName(both.grid, "paper"), "results.h5");
  EXPECT_EQ(ResultsName(both.grid, "calibrated"), "results-calibrated.h5");
  const Document paper = Results(both, "paper");
  const Document calibrated = Results(both, "calibrated");
  EXPECT_EQ(FieldOf(paper, "owt/softmoe/k2/a2", "router.tau"), "1.2");
  EXPECT_EQ(FieldOf(calibrated, "owt/softmoe/k2/a2", "router.tau"),
            "calibrated: 1.174");
  for (const Document* document : {&paper, &calibrated}) {
    EXPECT_EQ(document->FindTable("main_results")->rows.size(), 4u);
  }
}

TEST(ResultsDocument, SmallScalesAreNeverComparable) {
  const golden::Verdicts verdicts =
      golden::Judge(Results(ExampleOutcome()), Paper());
  EXPECT_EQ(verdicts.overall(), Status::kNotComparable);
  EXPECT_FALSE(verdicts.cells.empty());
  for (const golden::CellVerdict& cell : verdicts.cells) {
    EXPECT_EQ(cell.status, Status::kNotComparable)
        << cell.row << " " << cell.column;
    EXPECT_NE(cell.reason.find("data.corpus"), std::string::npos)
        << cell.reason;
  }
}

// With the paper's own set-up, numbers near the paper's pass and others fail.
TEST(ResultsDocument, ThePapersSetUpIsJudged) {
  GridOutcome outcome = ExampleOutcome(
      {.seeds = {1, 2, 3, 4, 5}, .both_variants = true, .paper_sizes = true});
  for (RunOutcome& run : outcome.runs) {
    // The paper: Sparse-1 2.84, Sparse-2 2.79; seeds scatter by 0.002.
    const double paper = run.run.row.id == "sparse-1" ? 2.84 : 2.99;
    run.result->final_validation.loss =
        paper + 0.001 * static_cast<double>(run.run.seed - 3);
    if (run.run.row.label != "Sparse MoE") {
      run.result->final_validation.active_experts +=
          0.01 * static_cast<double>(run.run.seed);
    }
  }
  const golden::Verdicts verdicts =
      golden::Judge(Results(outcome, "paper"), Paper());
  EXPECT_TRUE(verdicts.fingerprint_differences.empty())
      << verdicts.fingerprint_differences.front().field.name;
  const auto status = [&](const std::string& row, const std::string& column) {
    for (const golden::CellVerdict& cell : verdicts.cells) {
      if (cell.table == "main_results" && cell.row == row &&
          cell.column == column) {
        return cell.status;
      }
    }
    ADD_FAILURE() << row << " " << column;
    return Status::kUnsupported;
  };
  EXPECT_EQ(status("owt/sparse/k1", "val_loss"), Status::kPass);
  EXPECT_EQ(status("owt/sparse/k2", "val_loss"), Status::kFail);
  EXPECT_EQ(status("owt/sparse/k1", "mean_active_experts"), Status::kPass);
  EXPECT_EQ(status("owt/sparse/k1", "active_params"), Status::kPass);
  EXPECT_EQ(status("owt/sparse/k1", "piqa"), Status::kUnsupported);
}

// A part of OpenWebText can be trained on, but only the whole, wherever it
// lies, is the paper's corpus.
TEST(ResultsDocument, APartOfACorpusIsAnother) {
  GridOutcome outcome =
      ExampleOutcome({.both_variants = true, .paper_sizes = true});
  ASSERT_FALSE(outcome.corpora.empty());
  const auto judge = [&](const std::string& text_of) {
    for (auto& corpus : outcome.corpora) corpus.text_of = text_of;
    return golden::Judge(Results(outcome, "paper"), Paper());
  };
  EXPECT_TRUE(judge("owt").fingerprint_differences.empty());
  const auto part = judge("a part of owt: 5 of 8013769 documents");
  ASSERT_FALSE(part.fingerprint_differences.empty());
  EXPECT_EQ(part.fingerprint_differences.front().field.name, "data.corpus");
}

// Two corpora of a grid may share one text, of which one takes only a part.
TEST(ResultsDocument, CorporaOfOneTextAreToldApart) {
  GridOutcome outcome = ExampleOutcome();
  RunOutcome part = outcome.runs.front();
  part.run.corpus.id = "part";
  part.run.corpus.stands_for = "";
  part.run.config.data.max_bytes = 1000;
  trainer::PreparedCorpus& whole = outcome.corpora.front();
  whole.prefix = CorpusPrefix(outcome.runs.front().run, "");
  whole.text_of = "all";
  trainer::PreparedCorpus less = whole;
  less.prefix = CorpusPrefix(part.run, "");
  less.text_of = "some";
  outcome.corpora.insert(outcome.corpora.begin(), less);
  outcome.runs.push_back(part);
  const Document document = Results(outcome);
  EXPECT_EQ(FieldOf(document, "owt/sparse/k1", "data.corpus"), "\"all\"");
  EXPECT_EQ(FieldOf(document, "part/sparse-1", "data.corpus"), "\"some\"");
  std::vector<std::string> described;
  for (const golden::Field& field : document.provenance.more) {
    if (field.name.ends_with(".provenance")) described.push_back(field.name);
  }
  EXPECT_EQ(described, (std::vector<std::string>{"corpus.part.provenance",
                                                 "corpus.foldoc.provenance"}));
}

// Sums of an allocation differ in their last bits between builds, and the
// allocation itself between seeds: no FAIL unless the noise is tested.
TEST(ResultsDocument, ServesAsTheGoldenOfLaterRuns) {
  const GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  GridOutcome later = outcome;
  for (RunOutcome& run : later.runs) {
    for (double& k : run.result->allocation) k *= 1 + 1e-9;
  }
  const golden::Verdicts verdicts =
      golden::Judge(Results(later), Results(outcome));
  EXPECT_TRUE(verdicts.fingerprint_differences.empty());
  for (const golden::CellVerdict& cell : verdicts.cells) {
    EXPECT_NE(cell.status, Status::kFail)
        << cell.row << " " << cell.column << ": " << cell.reason;
  }
  const auto recorded = [&](const std::string& column) {
    return std::any_of(
        verdicts.recorded.begin(), verdicts.recorded.end(),
        [&](const golden::CellVerdict& cell) { return cell.column == column; });
  };
  EXPECT_TRUE(recorded("budget"));
  EXPECT_TRUE(recorded("least_allocation"));
  EXPECT_FALSE(recorded("mean_active_experts"));  // a setting, which must agree
}

// Rulings 6 and 8. One of our older documents says that they must match.
TEST(ResultsDocument, MicroBatchesAndEvaluationsOnTheWayMayDiffer) {
  const GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  GridOutcome later = outcome;
  for (RunOutcome& run : later.runs) {
    run.run.config.training.micro_batch_sequences *= 2;
    run.run.config.training.eval_every += 10;
  }
  const Document document = Results(outcome);
  Document older = document;
  int changed = 0;
  for (golden::Field& field : older.fields) {
    if (!golden::ChangesNoResult(field.name)) continue;
    EXPECT_EQ(field.field_class, golden::FieldClass::kIgnore) << field.name;
    field.field_class = golden::FieldClass::kMustMatch;
    ++changed;
  }
  EXPECT_EQ(changed, 2);
  for (const Document& golden : {document, older}) {
    EXPECT_TRUE(
        golden::Judge(Results(later), golden).fingerprint_differences.empty());
  }
  for (RunOutcome& run : later.runs) {
    run.run.config.training.balance_group_sequences *= 2;
  }
  EXPECT_FALSE(
      golden::Judge(Results(later), document).fingerprint_differences.empty());
}

// A difference within the margin of 0.3 experts still fails a sparse row, which
// has exactly k; for a soft row the number is measured.
TEST(ResultsDocument, AsAGoldenFixesTheActiveExpertsOfSparseRows) {
  const GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  GridOutcome later = outcome;
  for (RunOutcome& run : later.runs) {
    run.result->train_ae += 0.2;
    run.result->final_validation.active_experts += 0.2;
  }
  const Document golden = Results(outcome);
  const golden::Verdicts verdicts = golden::Judge(Results(later), golden);
  for (const char* column : {"train_ae", "infer_ae", "active_params"}) {
    EXPECT_EQ(CellOf(golden, "owt/sparse/k2", column).flags,
              std::vector<std::string>{"DERIVED"});
    EXPECT_EQ(golden::Verdict(verdicts, "owt/sparse/k2", column).status,
              Status::kFail)
        << column;
    EXPECT_TRUE(CellOf(golden, "owt/softmoe/k2/a2", column).flags.empty());
    EXPECT_NE(golden::Verdict(verdicts, "owt/softmoe/k2/a2", column).status,
              Status::kFail)
        << column;
  }
  EXPECT_TRUE(CellOf(golden, "owt/sparse/k2", "val_loss").flags.empty());
  for (const golden::CellVerdict& cell : golden::Judge(golden, golden).cells) {
    EXPECT_NE(cell.status, Status::kFail) << cell.row << " " << cell.column;
  }
}

TEST(ResultsDocument, EqualRunsGiveEqualBytes) {
  const std::filesystem::path folder = FreshFolder("results_document");
  GridOutcome later = ExampleOutcome();
  for (RunOutcome& run : later.runs) {
    run.result->seconds *= 2;
    run.folder = "/elsewhere";
    run.result->resumed = true;
  }
  golden::WriteDocument(Results(ExampleOutcome()), folder / "a.h5");
  golden::WriteDocument(Results(later), folder / "b.h5");
  EXPECT_EQ(ReadWholeFile(folder / "a.h5"), ReadWholeFile(folder / "b.h5"));
}

// Rows of an experiment are put beside those of the table that it repeats;
// Table 1 and tables like it do not have them.
TEST(ResultsDocument, RepeatsTheTableOfTheExperiment) {
  GridOutcome outcome = ExampleOutcome();
  outcome.grid.table = "tau_ablation";
  RunOutcome& run = RunOf(outcome, "star-1.5");
  run.run.row.paper_row = "softmoe_star/k1.5/a2/tau1.8";
  run.run.row.paper_dataset = "owt";
  run.run.config.router.tau = run.result->tau = 1.8;
  const std::string row = "owt/softmoe_star/k1.5/a2/tau1.8";
  const Document document = Results(outcome);
  EXPECT_EQ(CellOf(document, row, "ae", "tau_ablation").value, 1.75);
  EXPECT_EQ(CellOf(document, row, "tau", "tau_ablation").text, "1.8");
  EXPECT_EQ(CellOf(document, row, "piqa", "tau_ablation").flags,
            std::vector<std::string>{"NOT_MEASURED"});
  EXPECT_EQ(document.FindTable("main_results")->FindRow(row), nullptr);
  EXPECT_EQ(CellOf(document, "foldoc/star-1.5", "infer_ae").value, 1.75);
  // The verdict names the cell as the golden does.
  const golden::Verdicts verdicts = golden::Judge(document, Paper());
  EXPECT_TRUE(std::ranges::any_of(verdicts.cells, [&](const auto& cell) {
    return cell.table == "tau_ablation" && cell.row == row &&
           cell.column == "ae" && cell.status == Status::kNotComparable;
  }));

  outcome.grid.table = "jitter";
  run.run.row.paper_row = "sparse/k2/jitter0.05";
  run.run.row.paper_dataset = "unstated";
  EXPECT_EQ(CellOf(Results(outcome), "unstated/sparse/k2/jitter0.05",
                   "val_loss", "jitter")
                .value,
            run.result->final_validation.loss);
}

// A cell is a plain decimal of at most 18 digits.
TEST(ResultsDocument, SettingsOfAnySizeArePlainDecimals) {
  GridOutcome outcome = ExampleOutcome();
  outcome.grid.table = "tau_ablation";
  RunOutcome& run = RunOf(outcome, "star-1.5");
  run.run.row.paper_row = "softmoe_star/k1.5/a2/tau1.8";
  run.run.row.paper_dataset = "owt";
  for (const auto& [tau, text] : {std::pair{1e-4, "0.0001"},
                                  {5e-5, "0.00005"},
                                  {1.25e-6, "0.00000125"},
                                  {1e-20, "0"},
                                  {1.5e6, "1500000"},
                                  {1234567.5, "1234567.5"}}) {
    run.run.config.router.tau = run.result->tau = tau;
    const Cell cell =
        CellOf(Results(outcome), "owt/softmoe_star/k1.5/a2/tau1.8", "tau",
               "tau_ablation");
    EXPECT_EQ(cell.text, text);
    EXPECT_EQ(cell.value, tau);
  }
}

// With the paper's tau the rows are the paper's; others are named by their
// factor, and the sparse router has none.
TEST(ResultsDocument, HasInferenceAtOtherTau) {
  GridOutcome outcome = ExampleOutcome();
  outcome.grid.table = "inference_tau_ablation";
  for (RunOutcome& run : outcome.runs) {
    run.run.evaluations.inference_tau_factors = {0.5, 2};
    trainer::FinalEvaluations evaluations;
    trainer::InferenceTau half{.factor = 0.5, .tau = 0.6, .validation = {}};
    half.validation.active_experts = 4.5;
    half.validation.loss = 2.75;
    evaluations.inference_tau = {half};
    run.result->final_evaluations = evaluations;
  }
  RunOutcome& run = RunOf(outcome, "soft-2");
  run.run.config.router.tau = run.result->tau = 1.2;
  const Document document = Results(outcome);
  const std::string id = "inference_tau_ablation";
  const std::string row = "owt/softmoe/k2/a2/infer_tau";
  EXPECT_EQ(CellOf(document, row + "0.6", "ae", id).value, 4.5);
  EXPECT_EQ(CellOf(document, row + "0.6", "loss", id).value, 2.75);
  EXPECT_EQ(CellOf(document, row + "0.6", "infer_tau", id).text, "0.6");
  const auto& fields = document.FindTable(id)->FindRow(row + "0.6")->fields;
  EXPECT_TRUE(std::ranges::any_of(fields, [](const golden::Field& field) {
    return field.name == "eval.tau" && field.value == "0.6";
  }));
  // Planned but not measured.
  EXPECT_EQ(CellOf(document, row + "2.4", "ae", id).flags,
            std::vector<std::string>{"NOT_MEASURED"});
  EXPECT_EQ(
      CellOf(document, "owt/softmoe_star/k1.5/a2/infer_tau_x0.5", "ae", id)
          .value,
      4.5);
  EXPECT_EQ(document.FindTable(id)->rows.size(), 4u);
}

// As a golden, such a row must accept runs with other seeds, which calibrate to
// another tau, but another factor is another setting.
TEST(ResultsDocument, OtherCalibratedTauOfInferenceAreComparable) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  outcome.grid.table = "inference_tau_ablation";
  for (RunOutcome& run : outcome.runs) {
    run.run.evaluations.inference_tau_factors = {0.5, 2};
    trainer::FinalEvaluations evaluations;
    for (const double factor : {0.5, 2.0}) {
      trainer::InferenceTau at{
          .factor = factor, .tau = factor, .validation = {}};
      at.validation.active_experts =
          2 + 0.001 * static_cast<double>(run.run.seed);
      at.validation.loss = 3;
      evaluations.inference_tau.push_back(at);
    }
    run.result->final_evaluations = evaluations;
  }
  GridOutcome later = outcome;
  for (RunOutcome& run : later.runs) run.result->tau *= 1.001;
  const Document golden = Results(outcome);
  const golden::Verdicts verdicts = golden::Judge(Results(later), golden);
  EXPECT_TRUE(verdicts.fingerprint_differences.empty());
  int64_t judged = 0;
  for (const golden::CellVerdict& cell : verdicts.cells) {
    if (cell.table != outcome.grid.table) continue;
    EXPECT_NE(cell.status, Status::kNotComparable) << cell.row << cell.reason;
    EXPECT_NE(cell.status, Status::kFail) << cell.row << cell.reason;
    ++judged;
  }
  EXPECT_GT(judged, 0);
  const auto tau = [&](const std::string& factor) {
    const std::string row = "owt/softmoe/k2/a2/infer_tau_x" + factor;
    EXPECT_TRUE(CellOf(golden, row, "infer_tau", outcome.grid.table).empty());
    return golden::FieldValue(
        golden, *golden.FindTable(outcome.grid.table)->FindRow(row),
        "eval.tau");
  };
  EXPECT_EQ(tau("0.5"), "calibrated x 0.5: 0.587");
  EXPECT_EQ(tau("2"), "calibrated x 2: 2.348");
  EXPECT_FALSE(golden::SameValue(tau("0.5"), tau("2")));
}

// The paper's rows give tau with one digit, which other tau share: 1.52 * 1.2
// and 1.48 * 1.2 are 1.8 as printed. 1.5 * 1.2 is 1.8 but for the rounding.
TEST(ResultsDocument, InferenceIsThePapersOnlyAtItsTau) {
  GridOutcome outcome = ExampleOutcome();
  outcome.grid.table = "inference_tau_ablation";
  for (RunOutcome& run : outcome.runs) {
    run.run.evaluations.inference_tau_factors = {1.48, 1.5, 1.52, 1.5200001};
  }
  RunOutcome& run = RunOf(outcome, "soft-2");
  run.run.config.router.tau = run.result->tau = 1.2;
  const Document document = Results(outcome);
  const Table& table = *document.FindTable(outcome.grid.table);
  std::vector<std::string> rows;
  for (const golden::Row& row : table.rows) {
    if (row.id.starts_with("owt/softmoe/")) rows.push_back(row.id);
  }
  const std::string id = "owt/softmoe/k2/a2/infer_tau";
  EXPECT_EQ(rows,
            (std::vector<std::string>{id + "_x1.48", id + "1.8", id + "_x1.52",
                                      id + "_x1.5200001"}));
}

trainer::TaskResult Answered(const std::string& name, size_t items,
                             double accuracy) {
  return {.name = name,
          .sha256 = "of " + name,
          .measures = {{.correct = static_cast<int64_t>(
                            accuracy * static_cast<double>(items)),
                        .accuracy = accuracy},
                       {},
                       {},
                       {}},
          .right = std::vector<uint8_t>(items)};
}

// In percent, on whole splits; on ARC-Easy only the paper's part.
TEST(ResultsDocument, HasTheAccuraciesThatAGridAsksFor) {
  GridOutcome outcome = ExampleOutcome({.paper_sizes = true});
  EXPECT_EQ(CellOf(Results(outcome), "owt/sparse/k1", "piqa").flags,
            std::vector<std::string>{"NOT_MEASURED"});
  for (RunOutcome& run : outcome.runs) {
    run.run.evaluations.tasks = {"piqa", "hellaswag", "arc_easy_validation"};
    run.run.evaluations.inference_tau_factors = {0.5};
  }
  trainer::FinalEvaluations measured;
  measured.tasks = {Answered("piqa", 1838, 0.5),
                    Answered("hellaswag", 10041, 0.25),
                    Answered("arc_easy_validation", 570, 0.75),
                    Answered("arc_easy_validation_four_choices", 567, 0.375)};
  // acc_norm
  measured.tasks[0].measures[1] = {.correct = 1149, .accuracy = 0.625};
  measured.inference_tau = {{.factor = 0.5, .tau = 0.6, .validation = {}}};
  measured.inference_tau[0].tasks = {Answered("piqa", 1838, 0.875)};
  RunOf(outcome, "sparse-1").result->final_evaluations = measured;
  RunOf(outcome, "soft-2").result->final_evaluations = measured;
  RunOf(outcome, "soft-2").run.config.router.tau = 1.2;

  Document document = Results(outcome);
  const std::string row = "owt/sparse/k1";
  EXPECT_EQ(CellOf(document, row, "piqa").value, 50);
  EXPECT_EQ(CellOf(document, row, "arc_e").value, 37.5);
  const Document norm = Results(outcome, "", TaskMeasure::kAccNorm);
  EXPECT_EQ(CellOf(norm, row, "piqa").value, 62.5);
  EXPECT_EQ(CellOf(norm, row, "piqa").proportion,
            (golden::Proportion{1838, {1149}}));
  EXPECT_TRUE(Says(norm.provenance.source, "accuracies: acc_norm"));
  // One item is missing.
  EXPECT_EQ(CellOf(document, row, "hellaswag").flags,
            std::vector<std::string>{"NOT_MEASURED"});
  EXPECT_EQ(CellOf(document, "owt/sparse/k2", "piqa").flags,
            std::vector<std::string>{"NOT_MEASURED"});
  EXPECT_EQ(FieldOf(document, row, "eval.piqa.sha256"), "of piqa");
  EXPECT_EQ(FieldOf(document, "owt/sparse/k2", "eval.piqa.sha256"), "absent");
  // The verdict is on the numbers, and names the reading of them.
  const golden::Verdicts verdicts = golden::Judge(document, Paper());
  EXPECT_TRUE(std::ranges::any_of(verdicts.cells, [&](const auto& cell) {
    return cell.table == "main_results" && cell.row == row &&
           cell.column == "piqa" && cell.ours == 50 &&
           cell.status == Status::kInconclusive;  // one seed
  }));
  const auto assumes = [](const golden::Verdicts& of, const char* reading) {
    return std::ranges::any_of(of.assumptions, [&](const auto& one) {
      return one.field.name == "definition of arc_e" &&
             one.field.ours.starts_with(reading) &&
             one.field.ours.find("ASSUMED") != std::string::npos;
    });
  };
  EXPECT_TRUE(assumes(verdicts, "'acc of lm-evaluation-harness"));
  EXPECT_TRUE(assumes(golden::Judge(norm, Paper()),
                      "'acc_norm of lm-evaluation-harness"));

  // One run gives a count; how many answers flip needs a second run.
  EXPECT_EQ(CellOf(document, row, "piqa").proportion,
            (golden::Proportion{1838, {919}}));
  EXPECT_FALSE(CellOf(document, row, "piqa").flip_share);

  const auto set = [&](const std::string& table, const std::string& paper_row,
                       const std::string& dataset) {
    outcome.grid.table = table;
    RunOf(outcome, "sparse-1").run.row.paper_row = paper_row;
    RunOf(outcome, "sparse-1").run.row.paper_dataset = dataset;
    document = Results(outcome);
  };
  set("jitter", "sparse/k1/jitternone", "unstated");
  EXPECT_EQ(
      CellOf(document, "unstated/sparse/k1/jitternone", "piqa", "jitter").value,
      50);
  set("tau_ablation", "softmoe_star/k1.5/a2/tau1.8", "owt");
  EXPECT_EQ(CellOf(document, "owt/softmoe_star/k1.5/a2/tau1.8", "arc_e",
                   "tau_ablation")
                .value,
            37.5);
  set("inference_tau_ablation", "sparse/k1", "");
  const std::string half = "owt/softmoe/k2/a2/infer_tau0.6";
  EXPECT_EQ(CellOf(document, half, "piqa", outcome.grid.table).value, 87.5);
  EXPECT_EQ(CellOf(document, half, "arc_e", outcome.grid.table).flags,
            std::vector<std::string>{"NOT_MEASURED"});
}

// Seed 1 answers the first 919 of 1838 items rightly, seed 2 items 100 to 1018:
// 200 flip. By acc_norm, seed 2 answers one rightly and seed 1 none.
TEST(ResultsDocument, GivesTheVerdictTheAnswersThatFlipBetweenSeeds) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2}, .paper_sizes = true});
  std::vector<trainer::TaskResult*> tasks;
  for (RunOutcome& run : outcome.runs) {
    run.run.evaluations.tasks = {"piqa"};
    trainer::FinalEvaluations measured;
    measured.tasks = {Answered("piqa", 1838, 0.5)};
    run.result->final_evaluations = measured;
    if (run.run.row.id != "sparse-1") continue;
    tasks.push_back(&run.result->final_evaluations->tasks[0]);
    const bool first = tasks.size() == 1;
    for (size_t i = 0; i < 919; ++i)
      tasks.back()->right[first ? i : i + 100] = 1;
    if (!first) tasks.back()->right[7] |= 2;
  }
  const auto share = [&outcome](const std::string& row) {
    return CellOf(Results(outcome), row, "piqa").flip_share;
  };
  const Document document = Results(outcome);
  EXPECT_EQ(share("owt/sparse/k1"), 200.0 / 1838);
  EXPECT_EQ(CellOf(document, "owt/sparse/k1", "piqa").proportion,
            (golden::Proportion{1838, {}}));
  EXPECT_FALSE(CellOf(document, "owt/sparse/k1", "val_loss").proportion);
  EXPECT_EQ(CellOf(Results(outcome, "", TaskMeasure::kAccNorm), "owt/sparse/k1",
                   "piqa")
                .flip_share,
            1.0 / 1838);
  // Rows whose answers never flip are left out of the pool.
  EXPECT_EQ(share("owt/sparse/k2"), 0);
  EXPECT_TRUE(std::ranges::any_of(
      golden::Judge(document, Paper()).remarks, [](const auto& remark) {
        return remark ==
               "main_results/piqa on owt: 10.9 % of the answers flip between "
               "seeds of a row, which is the noise of its items";
      }));
  tasks[1]->sha256 = "another file";
  EXPECT_FALSE(share("owt/sparse/k1"));
}

}  // namespace
}  // namespace softmoe::experiments
