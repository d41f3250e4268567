// SPDX-License-Identifier: Apache-2.0
//
// From finished runs of the mini grid to verdicts on its claims and their part
// of the report.
#include "experiments/report/mini_claims.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "experiments/grids/experiment.h"
#include "experiments/report/report_csv.h"
#include "experiments/report/report_html.h"
#include "experiments/run/run_folder.h"
#include "experiments/run/run_outcome.h"
#include "experiments/run/run_record.h"
#include "experiments/testing/report_test_util.h"
#include "golden/document/document.h"
#include "golden/testing/miniature_test_util.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;
using golden::AllocationPoint;
using golden::MiniatureRun;
using golden::MiniatureStatus;
using trainer::RunResult;

// ---- The mini grid with made-up results.

// k_l after `updates`, linear between the points of a run that begins with
// equal k_l.
std::vector<double> AllocationAfter(int64_t updates, const MiniatureRun& run) {
  const std::vector<double>& last = run.allocation.back().allocation;
  double mean = 0;
  for (const double k : last) mean += k / static_cast<double>(last.size());
  AllocationPoint before{0, std::vector<double>(last.size(), mean)};
  for (const AllocationPoint& after : run.allocation) {
    if (updates <= after.step) {
      const double part = static_cast<double>(updates - before.step) /
                          static_cast<double>(after.step - before.step);
      std::vector<double> between = before.allocation;
      for (size_t l = 0; l < between.size(); ++l) {
        between[l] += part * (after.allocation[l] - between[l]);
      }
      return between;
    }
    before = after;
  }
  return last;
}

RunResult ResultOf(const GridRun& run, const MiniatureRun& made_up) {
  RunResult result = ExampleResult(run);
  trainer::Validation& final = result.final_validation;
  final.loss = made_up.loss;
  final.active_experts = made_up.infer_ae;
  final.relative_load_variance = made_up.load_variance;
  result.train_ae = made_up.train_ae;
  // Uses learning rates at which C3 can be tested, and both readings of the
  // balance loss.
  result.config.training.learning_rate *= 8;
  result.config.router.load_balance = made_up.load_balance == "megatron"
                                          ? LoadBalanceKind::kMegatron
                                          : LoadBalanceKind::kSoft;
  const trainer::StepRecord step = result.steps.front();
  result.steps.clear();
  for (int64_t s = 1; s <= run.config.training.steps; ++s) {
    trainer::StepRecord& record = result.steps.emplace_back(step);
    record.step = s;
    if (!made_up.allocation.empty()) {
      record.allocation = AllocationAfter(s - 1, made_up);
    }
  }
  if (!made_up.allocation.empty()) {
    result.allocation = made_up.allocation.back().allocation;
  }
  if (!made_up.at_tau.empty()) result.final_evaluations.emplace();
  for (const golden::TauPoint& point : made_up.at_tau) {
    trainer::InferenceTau at{.factor = point.factor,
                             .tau = point.factor * result.tau,
                             .validation = final};
    at.validation.loss = point.loss;
    at.validation.active_experts = point.infer_ae;
    result.final_evaluations->inference_tau.push_back(std::move(at));
  }
  return result;
}

// All 76 runs of grids/mini.toml, finished, with the numbers of
// golden::MadeUpResults of the frozen claims.
GridOutcome MadeUpMini(const golden::RunChange& change = {}) {
  std::map<std::string, MiniatureRun> made_up;
  for (MiniatureRun& run :
       golden::MadeUpResults(golden::FrozenClaims(), change).runs) {
    const std::string id =
        run.corpus + "/" + run.row + "/seed" + std::to_string(run.seed);
    made_up[id] = std::move(run);
  }
  GridOutcome outcome;
  outcome.grid = LoadExperiment(ExperimentNames().front(),
                                RunfilePath("experiments/grids/mini.toml"), {});
  std::map<std::string, trainer::PreparedCorpus> corpora;
  for (const GridRun& run : outcome.grid.runs) {
    RunOutcome finished;
    finished.run = run;
    finished.state = RunState::kFinished;
    finished.result = ResultOf(run, made_up.at(run.id));
    trainer::PreparedCorpus& corpus = corpora[run.corpus.id];
    corpus.corpus = run.config.data.corpus;
    corpus.prefix = CorpusPrefix(run, "");
    corpus.tokens = finished.result->identity.tokens;
    outcome.runs.push_back(std::move(finished));
  }
  for (auto& [id, corpus] : corpora) {
    outcome.corpora.push_back(std::move(corpus));
  }
  return outcome;
}

// Made once; tests that change it copy it.
const GridOutcome& Whole() {
  static const GridOutcome whole = MadeUpMini();
  return whole;
}

RunOutcome& RunCalled(GridOutcome& outcome, const std::string& id) {
  for (RunOutcome& run : outcome.runs) {
    if (run.run.id == id) return run;
  }
  throw InternalError("no run " + id);
}

TEST(MiniatureRunOf, TakesEveryNumberOfTheFinalModel) {
  GridOutcome outcome = Whole();
  RunOutcome& run = RunCalled(outcome, "gcide/softmoe-2-calibrated/seed1236");
  trainer::RunResult& result = *run.result;
  result.final_validation.loss = 2.5;
  result.final_validation.active_experts = 3.25;
  result.final_validation.relative_load_variance = 0.125;
  result.at_schedule_temperature.loss = 9;
  result.train_ae = 3;
  result.steps.back().loss = 9;
  const MiniatureRun one = MiniatureRunOf(run.run, result);
  EXPECT_EQ(one.row, "softmoe-2-calibrated");
  EXPECT_EQ(one.corpus, "gcide");
  EXPECT_EQ(one.seed, 1236);
  EXPECT_EQ(one.loss, 2.5);
  EXPECT_EQ(one.infer_ae, 3.25);
  EXPECT_EQ(one.train_ae, 3);
  EXPECT_EQ(one.load_variance, 0.125);
  EXPECT_EQ(one.load_balance, "megatron");  // as that row was made up
  EXPECT_FALSE(one.hellaswag.has_value());
}

// Step s uses the k_l after the s - 1 updates before it.
TEST(MiniatureRunOf, CountsTheUpdatesOfAnAllocation) {
  GridOutcome outcome = Whole();
  RunOutcome& run = RunCalled(outcome, "gcide/softmoe-1.5-calibrated/seed1234");
  trainer::RunResult& result = *run.result;
  for (trainer::StepRecord& step : result.steps) {
    step.allocation.assign(10, static_cast<double>(step.step - 1));
  }
  result.allocation.assign(10, 1000);
  const MiniatureRun one = MiniatureRunOf(run.run, result);
  ASSERT_EQ(one.allocation.size(), ThinnedSteps(result.steps).size() + 1);
  for (const golden::AllocationPoint& point : one.allocation) {
    EXPECT_EQ(point.allocation[9], static_cast<double>(point.step));
  }
  EXPECT_EQ(one.allocation.front().step, 0);
  EXPECT_EQ(one.allocation.back().step, 1000);
  // Rows with fixed allocation have no points.
  for (const char* id : {"gcide/sparse-1/seed1234",
                         "gcide/softmoe-star-1.5-calibrated/seed1234"}) {
    const RunOutcome& fixed = RunCalled(outcome, id);
    EXPECT_TRUE(MiniatureRunOf(fixed.run, *fixed.result).allocation.empty());
  }
}

// The first update has rate 0, and the sum covers the updates before a step.
TEST(MiniatureRunOf, SumsTheLearningRatesOfTheUpdates) {
  GridOutcome outcome = Whole();
  RunOutcome& run = RunCalled(outcome, "gcide/softmoe-1.5-calibrated/seed1234");
  run.result->config = run.run.config;
  const MiniatureRun one = MiniatureRunOf(run.run, *run.result);
  EXPECT_EQ(one.allocation[0].step, 0);
  EXPECT_EQ(one.allocation[0].learning_rate_sum, 0);
  // Warm-up: 50 steps up to 2e-3, so that update m has m * 4e-5. A thousand
  // additions of numbers below 1 round by less than 1e-12.
  EXPECT_EQ(one.allocation[3].step, 3);
  EXPECT_NEAR(one.allocation[3].learning_rate_sum, 3 * 4e-5, 1e-12);
  // 50 updates of warm-up, then 950 of a cosine from 2e-3 to 2e-5.
  EXPECT_NEAR(one.allocation.back().learning_rate_sum,
              1225 * 4e-5 + 950 * 1.01e-3 + 0.99e-3, 1e-12);
}

// The mean of ceil(2 k_l), capped at all 16 experts, over the final k_l; k in a
// sparse row.
TEST(MiniatureRunOf, HasTheMeanCapOfTheFinalAllocation) {
  GridOutcome outcome = Whole();
  RunOutcome& run = RunCalled(outcome, "gcide/softmoe-2-calibrated/seed1234");
  run.result->allocation = {1, 1.5, 1.50001, 2, 2, 2, 2, 2, 2, 9};
  EXPECT_DOUBLE_EQ(MiniatureRunOf(run.run, *run.result).mean_cap,
                   (2 + 3 + 4 + 6 * 4 + 16) / 10.0);
  RunOutcome& sparse = RunCalled(outcome, "gcide/sparse-3/seed1234");
  sparse.result->allocation.assign(10, 3);
  EXPECT_EQ(MiniatureRunOf(sparse.run, *sparse.result).mean_cap, 3);
  EXPECT_EQ(MiniatureRunOf(sparse.run, *sparse.result).load_balance, "");
  run.result->config.router.load_balance = LoadBalanceKind::kMegatron;
  EXPECT_EQ(MiniatureRunOf(run.run, *run.result).load_balance, "megatron");
}

TEST(MiniatureRunOf, HasTheTrainedTauAmongTheOthers) {
  GridOutcome outcome = Whole();
  RunOutcome& run = RunCalled(outcome, "gcide/softmoe-2-calibrated/seed1234");
  auto& factors = run.result->final_evaluations->inference_tau;
  ASSERT_EQ(factors.size(), 4u);
  const MiniatureRun whole = MiniatureRunOf(run.run, *run.result);
  ASSERT_EQ(whole.at_tau.size(), 4u);
  EXPECT_EQ(whole.at_tau[3].factor, 2);
  EXPECT_EQ(whole.at_tau[3].loss, factors[3].validation.loss);
  EXPECT_EQ(whole.at_tau[3].infer_ae, factors[3].validation.active_experts);
  // The plan lists only other tau, but every result has the trained one.
  factors.erase(factors.begin() + 1);
  const MiniatureRun others = MiniatureRunOf(run.run, *run.result);
  ASSERT_EQ(others.at_tau.size(), 4u);
  EXPECT_EQ(others.at_tau[1].factor, 1);
  EXPECT_EQ(others.at_tau[1].loss, run.result->final_validation.loss);
  factors.clear();
  EXPECT_TRUE(MiniatureRunOf(run.run, *run.result).at_tau.empty());
  run.result->final_evaluations.reset();
  EXPECT_TRUE(MiniatureRunOf(run.run, *run.result).at_tau.empty());
}

TEST(JudgeMiniClaims, IsOfTheMiniGridAsItIs) {
  GridOutcome outcome = Whole();
  for (RunOutcome& run : outcome.runs) run.state = RunState::kWaiting;
  outcome.grid.overrides = {"runtime.threads=1"};
  EXPECT_TRUE(JudgeMiniClaims(outcome).has_value());
  outcome.grid.overrides.push_back("training.steps=10");
  EXPECT_FALSE(JudgeMiniClaims(outcome).has_value());
  outcome.grid.overrides.clear();
  outcome.grid.experiment = "jitter";
  EXPECT_FALSE(JudgeMiniClaims(outcome).has_value());
  outcome.grid.experiment = "main";
  EXPECT_TRUE(JudgeMiniClaims(outcome).has_value());
  outcome.grid.name = "midi";
  EXPECT_FALSE(JudgeMiniClaims(outcome).has_value());
}

TEST(JudgeMiniClaims, JudgesWhatTheRunsSay) {
  const MiniClaims judged = *JudgeMiniClaims(Whole());
  EXPECT_EQ(judged.verdicts.finished, 76);
  EXPECT_EQ(judged.verdicts.planned, 76);
  EXPECT_TRUE(judged.unplanned.empty());
  const golden::MiniatureVerdicts expected = golden::JudgeMadeUp();
  for (size_t c = 0; c < expected.claims.size(); ++c) {
    const golden::MiniatureVerdict& claim = judged.verdicts.claims[c];
    EXPECT_EQ(claim.status, expected.claims[c].status) << claim.id;
    EXPECT_EQ(claim.status, claim.id == "C6" || claim.id == "H2"
                                ? MiniatureStatus::kNotTestable
                                : MiniatureStatus::kShown)
        << claim.id;
    for (size_t m = 0; m < claim.measures.size(); ++m) {
      const auto& measure = claim.measures[m];
      const auto& there = expected.claims[c].measures[m];
      // Caps follow from the allocation, which the made-up numbers lack.
      if (measure.id != "C5.experts") {
        EXPECT_EQ(measure.reason, there.reason);
      }
      // Curves are thinned, so that C3 interpolates between other steps.
      if (measure.id == "C3.early") {
        EXPECT_NEAR(measure.p, there.p, 1e-6 * there.p);
      } else {
        EXPECT_EQ(measure.p, there.p) << measure.id;
      }
    }
  }
}

// Plants the worst value that each kind of number can have.
TEST(JudgeMiniClaims, EveryNumberReachesItsClaim) {
  const struct {
    const char* claim;
    std::function<void(RunOutcome& run)> change;
  } kChanges[] = {
      {"C1b", [](RunOutcome& run) { run.result->final_validation.loss *= 2; }},
      {"C2",
       [](RunOutcome& run) { std::ranges::reverse(run.result->allocation); }},
      {"C3",
       [](RunOutcome& run) {
         for (auto& step : run.result->steps) {
           if (step.step <= 900) step.allocation.assign(10, 2.0);
         }
       }},
      {"C4",
       [](RunOutcome& run) {
         run.result->final_validation.relative_load_variance *= 100;
       }},
      {"C5",
       [](RunOutcome& run) {
         run.result->final_validation.active_experts -= 1.9;
       }},
      {"H1", [](RunOutcome& run) {
         for (auto& at : run.result->final_evaluations->inference_tau) {
           if (at.factor > 1) at.validation.loss += 1;
         }
       }}};
  for (const auto& [claim, change] : kChanges) {
    GridOutcome outcome = Whole();
    for (RunOutcome& run : outcome.runs) {
      if (run.run.row.id == "softmoe-2-calibrated" ||
          run.run.row.id == "softmoe-1.5-calibrated") {
        change(run);
      }
    }
    EXPECT_EQ(golden::ClaimOf(JudgeMiniClaims(outcome)->verdicts, claim).status,
              MiniatureStatus::kContradicted)
        << claim;
  }
  GridOutcome outcome = Whole();
  for (RunOutcome& run : outcome.runs) {
    if (run.run.row.id.find("jitter") != std::string::npos) {
      run.result->final_validation.loss -= 1;
    }
  }
  EXPECT_EQ(golden::ClaimOf(JudgeMiniClaims(outcome)->verdicts, "C7").status,
            MiniatureStatus::kContradicted);
  outcome = Whole();
  for (const double experts : {1.0, 1.5, 2.0, 3.0, 4.0}) {
    const double speed = 1e4 * (5 - experts);
    outcome.throughput.push_back(
        {experts, {speed, speed + 1, speed + 2}, "soft"});
  }
  EXPECT_EQ(golden::ClaimOf(JudgeMiniClaims(outcome)->verdicts, "H2").status,
            MiniatureStatus::kShown);
}

TEST(JudgeMiniClaims, SaysWhatIsNotThere) {
  GridOutcome outcome = Whole();
  for (RunOutcome& run : outcome.runs) run.result->final_evaluations.reset();
  MiniClaims judged = *JudgeMiniClaims(outcome);
  const golden::MiniatureVerdict& tau = golden::ClaimOf(judged.verdicts, "H1");
  EXPECT_EQ(tau.status, MiniatureStatus::kNotTestable);
  EXPECT_TRUE(Says(tau.measures[0].reason, "was not evaluated at other tau"));

  // A run that has begun, one that diverged, and one whose seed was not
  // planned.
  outcome = Whole();
  RunCalled(outcome, "gcide/sparse-1/seed1234").state = RunState::kInterrupted;
  Fail(RunCalled(outcome, "foldoc/sparse-4/seed1235"), "the loss is nan");
  RunOutcome more = RunCalled(outcome, "gcide/sparse-2/seed1234");
  more.run.seed = 1238;
  more.run.id = "gcide/sparse-2/seed1238";
  outcome.runs.push_back(more);
  judged = *JudgeMiniClaims(outcome);
  EXPECT_EQ(judged.verdicts.finished, 75);
  EXPECT_EQ(judged.verdicts.missing,
            std::vector<std::string>{"gcide/sparse-1/seed1234"});
  EXPECT_EQ(judged.unplanned,
            std::vector<std::string>{"gcide/sparse-2/seed1238"});
  for (const golden::MiniatureVerdict& claim : judged.verdicts.claims) {
    EXPECT_EQ(claim.status, MiniatureStatus::kInterim) << claim.id;
  }
  EXPECT_TRUE(
      Says(ClaimsText(judged), "not judged: gcide/sparse-2/seed1238\n"));

  // If a seed diverges, the other seeds decide no claim.
  outcome = Whole();
  Fail(RunCalled(outcome, "foldoc/sparse-4/seed1235"), "the loss is nan");
  judged = *JudgeMiniClaims(outcome);
  EXPECT_EQ(judged.verdicts.finished, 76);
  const golden::MiniatureVerdict& loss =
      golden::ClaimOf(judged.verdicts, "C1a");
  EXPECT_EQ(loss.status, MiniatureStatus::kNotTestable);
  EXPECT_TRUE(Says(loss.measures[0].reason,
                   "foldoc: sparse-4, seed 1235, gave no number"));

  // Two seeds have the same numbers.
  outcome = Whole();
  RunCalled(outcome, "gcide/sparse-1/seed1235").result =
      RunCalled(outcome, "gcide/sparse-1/seed1234").result;
  EXPECT_EQ(golden::ClaimOf(JudgeMiniClaims(outcome)->verdicts, "C1a").status,
            MiniatureStatus::kMistrusted);

  // No run is left.
  for (RunOutcome& run : outcome.runs) run.state = RunState::kWaiting;
  EXPECT_TRUE(
      Says(ClaimsText(*JudgeMiniClaims(outcome)), "runs     0 of 76 planned"));
}

// A record made under earlier definitions passes their hash to the judge.
TEST(JudgeMiniClaims, MarksWhatWasRecordedUnderEarlierDefinitions) {
  GridOutcome outcome = Whole();
  outcome.margins_sha256 = golden::FrozenClaims().history[0].hash;
  const MiniClaims judged = *JudgeMiniClaims(outcome);
  ASSERT_TRUE(judged.verdicts.recorded_under.has_value());
  EXPECT_TRUE(Says(ClaimsText(judged),
                   "C3     SHOWN, after the fact         C3: CONTR"));
  EXPECT_TRUE(
      Says(ClaimsCsv(judged), "\nC2,\"SHOWN, after the fact\",C2.share,"));
  outcome.margins_sha256 = golden::FrozenClaims().Hash();
  EXPECT_FALSE(JudgeMiniClaims(outcome)->verdicts.recorded_under.has_value());
  outcome.margins_sha256 = std::string(64, '0');
  EXPECT_THROW(JudgeMiniClaims(outcome), DataError);
}

// The record's curves are thinned, and its runs are sorted by id.
TEST(MiniClaims, OfARecordAreThoseOfTheFolders) {
  const fs::path path = FreshFolder("claims_record") / "mini.h5";
  RunRecord record = OpenRunRecord(path);
  GridOutcome whole = Whole();
  for (RunOutcome& run : whole.runs) run.result->config = run.run.config;
  AddFinishedRuns(whole, record);
  WriteRunRecord(record);
  GridOutcome told = whole;
  for (RunOutcome& run : told.runs) {
    run.state = RunState::kWaiting;
    run.result.reset();
  }
  TakeRecordedRuns(ReadRunRecord(path), told);
  const MiniClaims there = *JudgeMiniClaims(whole);
  const MiniClaims here = *JudgeMiniClaims(told);
  EXPECT_EQ(here.verdicts.finished, 76);
  EXPECT_EQ(ClaimsText(here), ClaimsText(there));
  EXPECT_EQ(ClaimsCsv(here), ClaimsCsv(there));
}

TEST(ClaimsText, HasVerdictsCasesAndRowsAndIsNoReproduction) {
  const std::string text = ClaimsText(*JudgeMiniClaims(Whole()));
  EXPECT_TRUE(Says(text, "No reproduction of the paper,\nwhatever the verdicts",
                   "C1a    SHOWN         SoftMoE* has the lower loss",
                   "\nEvery case:\n"));
  // Shown beside the others but not judged.
  EXPECT_TRUE(Says(text, "gcide   softmoe-2-paper-tau"));
  EXPECT_EQ(text, ClaimsText(*JudgeMiniClaims(Whole())));
  EXPECT_EQ(Count(text, "reproduc"), 1);
}

TEST(ClaimsCsv, HasALineForEachCase) {
  const MiniClaims judged = *JudgeMiniClaims(Whole());
  const std::string text = ClaimsCsv(judged);
  size_t cases = 0;
  for (const auto& claim : judged.verdicts.claims) {
    for (const auto& measure : claim.measures) {
      cases += measure.cases.size() + measure.parts.size();
    }
  }
  EXPECT_EQ(Count(text, "\n"), static_cast<int>(cases) + 1);
  const golden::MiniatureCase& first =
      golden::MeasureOf(judged.verdicts, "C1a.group").cases[0];
  EXPECT_TRUE(
      Says(text, fmt::format("\nC1a,SHOWN,C1a.group,SHOWN,gcide,{},{},{},{},"
                             "nat/token,0,4,",
                             first.label, first.estimate, first.interval.low,
                             first.interval.high)));
  // A case that cannot be tested has its reason and no numbers.
  EXPECT_TRUE(Says(text, "H2,NOT_TESTABLE,H2.throughput,NOT_TESTABLE,,",
                   ",,,,log,0,0,,,0,"));
  // One case decides each measure that can be tested: ten of twelve.
  EXPECT_EQ(Count(text, ",1,,"), 10);
}

TEST(ClaimsPart, EscapesWhatItSays) {
  MiniClaims judged = *JudgeMiniClaims(Whole());
  judged.verdicts.claims[0].title = "a < b & c";
  const std::string html = HtmlOf({"", "", {ClaimsPart(judged)}}, {});
  EXPECT_TRUE(Says(html, "a &lt; b &amp; c", "No reproduction of the paper",
                   "76 of 76 planned runs are in.", "C5.experts"));
  EXPECT_EQ(html.find("INTERIM"), std::string::npos);
}

TEST(ClaimsTable, IsATableThatADocumentCanHave) {
  for (const bool whole : {true, false}) {
    GridOutcome outcome = Whole();
    if (!whole) outcome.runs.resize(5);
    golden::Document document;
    document.provenance.source = "a test";
    document.provenance.generator = "a test";
    document.tables = {ClaimsTable(*JudgeMiniClaims(outcome))};
    EXPECT_EQ(golden::FirstProblem(document), "");
    const fs::path path = FreshFolder("claims_table") / "results.h5";
    golden::WriteDocument(document, path);
    const golden::Table table = golden::ReadDocument(path).tables[0];
    ASSERT_EQ(table.rows.size(), 13u);
    const golden::Row& row = *table.FindRow("C1a.group");
    const golden::Cell& effect =
        row.cells[static_cast<size_t>(table.FindColumn("effect"))];
    EXPECT_EQ(effect.empty(), !whole);
    if (whole) {
      const golden::MiniatureMeasureVerdict measure =
          golden::MeasureOf(JudgeMiniClaims(outcome)->verdicts, "C1a.group");
      EXPECT_EQ(effect.value, measure.cases[measure.deciding].estimate);
      EXPECT_EQ(effect.runs, measure.cases[measure.deciding].seeds);
    }
    EXPECT_EQ(row.fields[1].name, "claim.verdict");
    EXPECT_EQ(row.fields[1].value,
              whole ? "SHOWN" : "INTERIM (NOT_TESTABLE so far)");
  }
}

}  // namespace

}  // namespace softmoe::experiments
