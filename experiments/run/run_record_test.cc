// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/run_record.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/philox.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "experiments/grids/experiment.h"
#include "experiments/run/run_folder.h"
#include "experiments/testing/report_test_util.h"
#include "trainer/results/metrics.h"
#include "trainer/results/run_digest.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;
using trainer::StepRecord;

// Eight finished runs, four rows with two seeds, as a grid leaves them.
GridOutcome FinishedGrid() {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2}});
  for (size_t i = 0; i < outcome.runs.size(); ++i) {
    RunOutcome& run = outcome.runs[i];
    trainer::RunResult& result = *run.result;
    const auto steps = static_cast<int64_t>(result.steps.size());
    for (Config* config : {&run.run.config, &outcome.grid.runs[i].config,
                           &result.config, &result.identity.config}) {
      config->training.steps = steps;
    }
    trainer::FinalEvaluations& measured = result.final_evaluations.emplace();
    measured.code_version = "0123456789ab";
    trainer::RouterHealth health;
    if (result.config.router.kind != RouterKind::kSparse) {
      health.truncated_mass = 0.125;
    }
    measured.router_health.assign(result.allocation.size(), health);
  }
  for (trainer::PreparedCorpus& corpus : outcome.corpora) {
    corpus.prefix = CorpusName(outcome.grid.runs[0]);
    corpus.tokens = outcome.runs[0].result->identity.tokens;
  }
  return outcome;
}

RunRecord Recorded(const GridOutcome& outcome, const fs::path& path) {
  RunRecord record = OpenRunRecord(path);
  AddFinishedRuns(outcome, record);
  WriteRunRecord(record);
  return ReadRunRecord(path);
}

std::vector<StepRecord> Steps(int64_t count) {
  std::vector<StepRecord> steps(static_cast<size_t>(count));
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].step = static_cast<int64_t>(i) + 1;
  }
  return steps;
}

TEST(RunRecord, ThinsCurvesToPointsThatClaimsNeed) {
  for (const int64_t count : {1, 150}) {
    EXPECT_EQ(ThinnedSteps(Steps(count)).size(), static_cast<size_t>(count));
  }
  for (const int64_t count : {151, 1000, 164062}) {
    const std::vector<StepRecord> points = ThinnedSteps(Steps(count));
    EXPECT_LE(points.size(), kRecordedPoints);
    EXPECT_GE(points.size(), 140u);
    EXPECT_EQ(points.front().step, 1);
    EXPECT_EQ(points.back().step, count);
    for (size_t i = 1; i < points.size(); ++i) {
      EXPECT_GT(points[i].step, points[i - 1].step);
    }
  }
  // 15 % of the mini grid's training: 150 of 1000 steps.
  const auto points = ThinnedSteps(Steps(1000));
  EXPECT_EQ(std::ranges::count(points, 150, &StepRecord::step), 1);
}

TEST(RunRecord, ReadsBackEveryBit) {
  const fs::path path = FreshFolder("record") / "example.h5";
  const GridOutcome outcome = FinishedGrid();
  const RunRecord record = Recorded(outcome, path);
  EXPECT_EQ(record.Missing(), std::vector<std::string>());
  ASSERT_EQ(record.runs.size(), 8u);
  for (const RunOutcome& run : outcome.runs) {
    SCOPED_TRACE(run.run.id);
    const RecordedRun* there = record.Find(RunIdentityKey(run.run));
    ASSERT_NE(there, nullptr);
    EXPECT_EQ(there->id, run.run.id);
    EXPECT_EQ(there->training_sha256, trainer::TrainingDigest(*run.result));
    trainer::RunResult expected = *run.result;
    expected.steps = ThinnedSteps(expected.steps);
    trainer::ExpectSameResult(expected, there->result);
    EXPECT_EQ(there->result.seconds, expected.seconds);
  }
  ASSERT_EQ(record.corpora.size(), 1u);
  EXPECT_EQ(record.corpora.begin()->second.corpus, outcome.corpora[0].corpus);
  // Equal records give equal bytes.
  RunRecord again = record;
  again.path = path.parent_path() / "again.h5";
  WriteRunRecord(again);
  EXPECT_EQ(ReadWholeFile(path), ReadWholeFile(again.path));
}

TEST(RunRecord, GrowsAndNeverDropsARun) {
  const fs::path path = FreshFolder("grows") / "example.h5";
  const GridOutcome all = FinishedGrid();
  GridOutcome some = all;
  for (size_t i = 2; i < some.runs.size(); ++i) Interrupt(some.runs[i]);
  some.runs[0].result->final_evaluations.reset();
  const RunRecord partial = Recorded(some, path);
  EXPECT_EQ(partial.runs.size(), 2u);
  EXPECT_EQ(partial.Missing().size(), 6u);
  EXPECT_TRUE(Says(DescribeRecord(partial), "2 of 8 planned runs: PARTIAL",
                   "missing: foldoc/sparse-2/seed1, "));

  // Another session with other runs, and with evaluations of the first ones.
  GridOutcome others = all;
  Interrupt(others.runs[1]);
  RunRecord record = OpenRunRecord(path);
  const RecordChange change = AddFinishedRuns(others, record);
  EXPECT_EQ(change.added, 6u);
  EXPECT_EQ(change.completed, 1u);
  WriteRunRecord(record);
  record = ReadRunRecord(path);
  EXPECT_EQ(record.Missing(), std::vector<std::string>());
  for (const RecordedRun& run : record.runs) {
    EXPECT_TRUE(run.result.final_evaluations.has_value()) << run.id;
  }
  EXPECT_EQ(AddFinishedRuns(all, record).added, 0u);
  // Gives the same bytes as adding all at once.
  WriteRunRecord(record);
  Recorded(all, path.parent_path() / "at_once.h5");
  EXPECT_EQ(ReadWholeFile(path),
            ReadWholeFile(path.parent_path() / "at_once.h5"));

  // More was measured later. A run with fewer evaluations takes none away.
  GridOutcome later = all;
  trainer::RunResult& more = *later.runs[4].result;
  more.final_evaluations->inference_tau.push_back(
      {.factor = 2, .tau = 2, .validation = more.final_validation});
  EXPECT_EQ(AddFinishedRuns(later, record).completed, 1u);
  EXPECT_EQ(AddFinishedRuns(all, record).completed, 0u);
  more.final_evaluations->inference_tau[0].factor = 3;
  EXPECT_EQ(AddFinishedRuns(later, record).completed, 0u);
  const trainer::FinalEvaluations& kept =
      *record.Find(RunIdentityKey(later.runs[4].run))->result.final_evaluations;
  ASSERT_EQ(kept.inference_tau.size(), 1u);
  EXPECT_EQ(kept.inference_tau[0].factor, 2);
}

// Both have an evaluation, but with different numbers.
TEST(RunRecord, RefusesOtherEvaluations) {
  GridOutcome all = FinishedGrid();
  trainer::FinalEvaluations& has = EvaluationsOf(all.runs[4]);
  has.tasks = {{.name = "piqa",
                .sha256 = std::string(64, 'a'),
                .measures = std::vector<trainer::MeasuredAnswers>(
                    trainer::kNumTaskMeasures),
                .right = {1, 0}}};
  for (const double factor : {0.5, 1.0}) {
    has.inference_tau.push_back(
        {.factor = factor,
         .tau = factor,
         .validation = all.runs[4].result->final_validation,
         .tasks = has.tasks});
  }
  RunRecord record;
  record.path = "a.h5";
  AddFinishedRuns(all, record);
  const auto add =
      [&](const std::function<void(trainer::FinalEvaluations&)>& change) {
        GridOutcome other = all;
        change(EvaluationsOf(other.runs[4]));
        RunRecord grown = record;
        return AddFinishedRuns(other, grown).completed;
      };
  const auto more = [](trainer::FinalEvaluations& e) {
    e.inference_tau.push_back(e.inference_tau[1]);
    e.inference_tau.back().factor = 2;
  };
  EXPECT_EQ(add(more), 1u);
  EXPECT_EQ(add([](trainer::FinalEvaluations& e) {
              e.inference_tau.erase(e.inference_tau.begin());
              e.inference_tau[0].validation.active_histogram.clear();
              e.inference_tau[0].tasks.clear();
              e.tasks.clear();
              e.router_health.clear();
            }),
            0u);
  using Change = std::function<void(trainer::FinalEvaluations&)>;
  const std::string bits =
      "other evaluations (measured by version 0123456789ab";
  const std::pair<Change, std::string> kChanges[] = {
      {[](auto& e) { e.router_health[0].load_entropy += 1; }, bits},
      {[](auto& e) { e.inference_tau[1].validation.loss += 1; }, bits},
      {[](auto& e) { e.inference_tau[1].tasks[0].right[1] = 1; }, bits},
      {[](auto& e) { e.tasks[0].right[1] = 1; }, bits},
      {[](auto& e) { e.tasks[0].sha256[0] = 'b'; },
       "other items of the task piqa"}};
  for (const auto& [change, says] : kChanges) {
    const std::string message =
        MessageOf(ExitCode::kUsage, [&] { add(change); });
    EXPECT_TRUE(Says(message, "a.h5: has " + all.runs[4].run.id, says,
                     "--to another file records the new one"));
    // `verify-record` asks one set of items: it says nothing about the other.
    EXPECT_EQ(message.find("`verify-record` tells") != std::string::npos,
              says == bits);
    // New evaluations of such a run are not taken either.
    EXPECT_TRUE(Says(MessageOf(ExitCode::kUsage,
                               [&] {
                                 add([&](trainer::FinalEvaluations& e) {
                                   change(e);
                                   more(e);
                                 });
                               }),
                     says));
  }
}

TEST(RunRecord, RefusesAChangedByte) {
  const fs::path path = FreshFolder("changed") / "example.h5";
  Recorded(FinishedGrid(), path);
  const std::string bytes = ReadWholeFile(path);
  for (const size_t at : {size_t{20}, bytes.size() / 2, bytes.size() - 1}) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    WriteFileAtomically(path, changed);
    EXPECT_TRUE(Says(MessageOf(ExitCode::kUsage, [&] { ReadRunRecord(path); }),
                     "get it from version control again"));
  }
  WriteFileAtomically(path, bytes.substr(0, bytes.size() - 1));
  EXPECT_NE(MessageOf(ExitCode::kUsage, [&] { OpenRunRecord(path); }),
            kNoError);
  EXPECT_NE(MessageOf(ExitCode::kEnvironment,
                      [&] { ReadRunRecord(path.parent_path() / "none.h5"); }),
            kNoError);
}

TEST(RunRecord, RefusesWhatCannotBe) {
  const fs::path path = FreshFolder("refuses") / "example.h5";
  const GridOutcome all = FinishedGrid();
  const RunRecord record = Recorded(all, path);
  const std::string bytes = ReadWholeFile(path);
  const auto writing = [&](const std::function<void(RunRecord&)>& change,
                           ExitCode code) {
    return MessageOf(code, [&] {
      RunRecord changed = record;
      change(changed);
      WriteRunRecord(changed);
    });
  };
  EXPECT_TRUE(Says(writing([](RunRecord& r) { r.runs.push_back(r.runs[0]); },
                           ExitCode::kUsage),
                   "holds a run twice: foldoc/soft-2/seed1"));
  EXPECT_TRUE(Says(writing([](RunRecord& r) { r.runs[1].key = r.runs[0].key; },
                           ExitCode::kUsage),
                   "also as foldoc/soft-2/seed1"));
  EXPECT_TRUE(Says(writing(
                       [](RunRecord& r) {
                         r.runs[1].training_sha256 = r.runs[0].training_sha256;
                       },
                       ExitCode::kMistrusted),
                   "MISTRUSTED: foldoc/soft-2/seed1 and foldoc/soft-2/seed2"));
  EXPECT_TRUE(
      Says(writing([](RunRecord& r) { r.diverged = {r.runs[0].key}; },
                   ExitCode::kUsage),
           "says that " + record.runs[0].key + " diverged, which is finished"));
  EXPECT_TRUE(Says(writing([](RunRecord& r) { r.diverged = {"foldoc/0"}; },
                           ExitCode::kUsage),
                   "says that foldoc/0 diverged, which is not planned"));

  const auto adding = [&](const std::function<void(GridOutcome&)>& change,
                          ExitCode code) {
    return MessageOf(code, [&] {
      RunRecord grown = record;
      GridOutcome changed = all;
      change(changed);
      AddFinishedRuns(changed, grown);
    });
  };
  EXPECT_TRUE(
      Says(adding([](GridOutcome& o) { o.runs[0].result->steps[0].loss += 1; },
                  ExitCode::kUsage),
           "has foldoc/sparse-1/seed1 with other bits"));
  EXPECT_TRUE(Says(adding(
                       [](GridOutcome& o) {
                         o.runs[0].run.config.training.beta1 = 0.5;
                         o.runs[0].result->identity.config.training.beta1 = 0.5;
                       },
                       ExitCode::kUsage),
                   "training.beta1 is 0.9 there and 0.5 here"));
  EXPECT_TRUE(Says(adding(
                       [](GridOutcome& o) {
                         o.corpora[0].tokens.data_sha256 = std::string(64, 'c');
                       },
                       ExitCode::kUsage),
                   "were trained on other token files"));
  EXPECT_TRUE(Says(adding(
                       [](GridOutcome& o) {
                         o.runs[0].result->identity.tokens.data_sha256 =
                             std::string(64, 'c');
                       },
                       ExitCode::kUsage),
                   "were trained on other token files"));
  // Two seeds with the same numbers.
  GridOutcome twins = all;
  const int64_t seed = twins.runs[1].result->config.training.seed;
  const auto config = twins.runs[1].result->identity.config;
  twins.runs[1].result = twins.runs[0].result;
  twins.runs[1].result->config.training.seed = seed;
  twins.runs[1].result->identity.config = config;
  RunRecord empty;
  empty.path = path;
  EXPECT_NE(
      MessageOf(ExitCode::kMistrusted, [&] { AddFinishedRuns(twins, empty); }),
      kNoError);
  EXPECT_TRUE(empty.runs.empty());

  RunRecord moved = record;
  moved.margins_sha256 = std::string(64, '0');
  EXPECT_TRUE(
      Says(MessageOf(ExitCode::kUsage, [&] { AddFinishedRuns(all, moved); }),
           "recorded under other margins"));
  EXPECT_EQ(ReadWholeFile(path), bytes);
}

// Otherwise its row would be judged by the seeds that did not diverge.
TEST(RunRecord, KeepsThatARunDiverged) {
  const fs::path path = FreshFolder("diverged") / "example.h5";
  const GridOutcome all = FinishedGrid();
  GridOutcome outcome = all;
  Fail(outcome.runs[2], "step 3: the loss is nan");
  RunRecord record = Recorded(outcome, path);
  const std::string& id = outcome.runs[2].run.id;
  EXPECT_EQ(record.Missing(), std::vector<std::string>());
  EXPECT_TRUE(Says(DescribeRecord(record), ": 7 of 8 planned runs\n",
                   "diverged, so that its row has no number: " + id + "\n"));
  for (RunOutcome& run : outcome.runs) {
    run.state = RunState::kWaiting;
    run.problem.clear();
  }
  TakeRecordedRuns(record, outcome);
  EXPECT_EQ(outcome.runs[2].state, RunState::kFailed);
  EXPECT_TRUE(Says(outcome.runs[2].problem, path.string()));
  EXPECT_EQ(outcome.runs[3].state, RunState::kFinished);
  // On other tokens it says nothing, and neither does a finished run.
  GridOutcome other = outcome;
  other.runs[2].state = RunState::kWaiting;
  other.corpora[0].tokens.data_sha256 = std::string(64, 'c');
  EXPECT_TRUE(Says(TakeRecordedRuns(record, other).front(), id,
                   "does not count as diverged"));
  EXPECT_EQ(other.runs[2].state, RunState::kWaiting);
  // The run goes on in the folder, which counts for more than the record.
  Interrupt(outcome.runs[2]);
  TakeRecordedRuns(record, outcome);
  EXPECT_EQ(outcome.runs[2].state, RunState::kInterrupted);
  // The run finished after all, perhaps on another instruction set.
  EXPECT_EQ(AddFinishedRuns(all, record).added, 1u);
  EXPECT_TRUE(record.diverged.empty());
}

TEST(RunRecord, RefusesThatARunDivergedWhichRegimeDoesNotPlan) {
  GridOutcome outcome = FinishedGrid();
  outcome.grid.experiment = "regime";
  outcome.grid.scale_grid = outcome.grid.scale = "mini";
  for (RunOutcome& run : outcome.runs) Interrupt(run);
  Fail(outcome.runs[0], "step 3: the loss is nan");
  RunRecord record;
  EXPECT_TRUE(Says(
      MessageOf(ExitCode::kUsage, [&] { AddFinishedRuns(outcome, record); }),
      "foldoc/sparse-1/seed1 is neither a judged run nor a pilot"));
}

// What //:bench writes, with made-up speeds.
std::string Bench(double speed) {
  return fmt::format(
      R"({{"benchmarks": [{{"name": "mini/sparse1/real_time",
      "run_type": "iteration", "active_experts": 1.0, "tokens/s": {},
      "label": "layers=10 d_model=128 heads=4 d_ffn=256 experts=16 vocab=2048 )"
      R"(length=128 sequences=16"}}]}})",
      speed);
}

TEST(RunRecord, KeepsTheBenchmarkThatItHas) {
  const fs::path path = FreshFolder("bench") / "example.h5";
  RunRecord record = OpenRunRecord(path);
  AddFinishedRuns(FinishedGrid(), record);
  AddBenchmark(Bench(1000), "bench.json", record);
  AddBenchmark(Bench(1000), "bench.json", record);
  WriteRunRecord(record);
  record = ReadRunRecord(path);
  EXPECT_EQ(record.bench, Bench(1000));
  EXPECT_TRUE(
      Says(MessageOf(ExitCode::kUsage,
                     [&] { AddBenchmark(Bench(2000), "b.json", record); }),
           "nobody may choose"));
  EXPECT_TRUE(Says(MessageOf(ExitCode::kUsage,
                             [&] { AddBenchmark("{}", "b.json", record); }),
                   "b.json: is not JSON from //:bench"));
  EXPECT_EQ(record.bench, Bench(1000));
  GridOutcome outcome = FinishedGrid();
  TakeRecordedRuns(record, outcome);
  ASSERT_EQ(outcome.throughput.size(), 1u);
  EXPECT_EQ(outcome.throughput[0].tokens_per_second, std::vector<double>{1000});
  EXPECT_EQ(outcome.margins_sha256, record.margins_sha256);
}

// One row with different settings under different seeds: its numbers would
// belong to neither.
TEST(RunRecord, RefusesMixedReadings) {
  const fs::path path = FreshFolder("mixed") / "example.h5";
  GridOutcome outcome = FinishedGrid();
  RunRecord record = Recorded(outcome, path);
  const std::string before = ReadWholeFile(path);
  for (RunOutcome& run : outcome.runs) {
    run.state = RunState::kWaiting;
  }
  RunOutcome other = outcome.runs.front();
  other.state = RunState::kFinished;
  other.run.seed = 3;
  other.run.id.back() = '3';
  trainer::RunResult& result = *other.result;
  for (Config* config :
       {&other.run.config, &result.config, &result.identity.config}) {
    config->training.seed = 3;
    config->router.aux_loss_coeff = 0.125;
  }
  result.steps.front().loss += 1;  // so that it differs from the other seed
  outcome.runs.push_back(other);
  const std::string refusal =
      MessageOf(ExitCode::kUsage, [&] { AddFinishedRuns(outcome, record); });
  EXPECT_TRUE(
      Says(refusal, "mixes readings of a row", other.run.id, "aux_loss_coeff"));
  // With one setting the row is accepted.
  other.run.config.router = outcome.runs.front().run.config.router;
  other.result->config.router = other.run.config.router;
  other.result->identity.config.router = other.run.config.router;
  outcome.runs.back() = other;
  EXPECT_EQ(AddFinishedRuns(outcome, record).added, 1u);
  EXPECT_EQ(ReadWholeFile(path), before);  // written by WriteRunRecord alone
}

TEST(RunRecord, StandsInForFolders) {
  const fs::path path = FreshFolder("stands") / "example.h5";
  const GridOutcome all = FinishedGrid();
  RunRecord record = Recorded(all, path);
  GridOutcome here = all;
  for (RunOutcome& run : here.runs) Interrupt(run);
  here.corpora.clear();
  GridOutcome filled = here;
  std::vector<std::string> notes = TakeRecordedRuns(record, filled);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(Says(notes[0],
                   "8 runs count as finished, of version 0123456789ab (8), "
                   "instruction set v3 (8) (here "));
  for (const RunOutcome& run : filled.runs) {
    EXPECT_EQ(run.state, RunState::kFinished);
    EXPECT_TRUE(run.recorded);
  }
  ASSERT_EQ(filled.corpora.size(), 1u);
  EXPECT_EQ(filled.corpora[0].description, all.corpora[0].description);

  // Other settings, other tokens.
  GridOutcome other = here;
  other.runs[0].run.config.training.learning_rate *= 2;
  notes = TakeRecordedRuns(record, other);
  EXPECT_EQ(other.runs[0].state, RunState::kInterrupted);
  EXPECT_EQ(other.runs[1].state, RunState::kFinished);
  other = here;
  other.corpora = all.corpora;
  other.corpora[0].tokens.tokenizer_sha256 = std::string(64, 'c');
  notes = TakeRecordedRuns(record, other);
  ASSERT_EQ(notes.size(), 9u);
  EXPECT_TRUE(Says(notes[0], "does not count as finished"));
  EXPECT_TRUE(Says(notes[8], "0 runs count as finished"));
  EXPECT_EQ(other.runs[0].state, RunState::kInterrupted);
  // A run trained here is not replaced by the record's, nor is a failure here
  // hidden.
  GridOutcome ended = all;
  Fail(ended.runs[1], "step 3: the loss is nan");
  TakeRecordedRuns(record, ended);
  EXPECT_FALSE(ended.runs[0].recorded);
  EXPECT_EQ(ended.runs[1].state, RunState::kFailed);
  EXPECT_EQ(ended.runs[1].problem, "step 3: the loss is nan");
}

// A number with all bits in use, different at each call.
double Digits() {
  static uint64_t index = 0;
  const auto words = PhiloxWords({1, RandomStream::kTestData, 0, 0}, ++index);
  return std::sqrt(UniformFromWord(words[0]) + 1);
}

void Fill(trainer::Validation& v) {
  v.loss = Digits();
  v.active_experts = Digits();
  for (double& value : v.layer_active_experts) value = Digits();
  for (auto* rows : {&v.active_histogram, &v.tokens_per_expert}) {
    for (std::vector<int64_t>& row : *rows) {
      for (int64_t& count : row) {
        count = static_cast<int64_t>(1e5 * (Digits() - 1));
      }
    }
  }
}

// A record of the size of the mini grid: 76 runs of 1000 steps, 10 layers and
// 16 experts, 36 of them sparse; nothing that a run measures compresses.
TEST(RunRecord, OfTheMiniGridHasAtMostFiveMebibytes) {
  std::vector<int64_t> seeds;
  for (int64_t seed = 1; seed <= 19; ++seed) seeds.push_back(seed);
  GridOutcome outcome = ExampleOutcome({.seeds = seeds});
  ASSERT_EQ(outcome.runs.size(), 76u);
  constexpr size_t kLayers = 10;
  for (size_t i = 0; i < outcome.runs.size(); ++i) {
    RunOutcome& run = outcome.runs[i];
    trainer::RunResult& r = *run.result;
    for (Config* config : {&run.run.config, &outcome.grid.runs[i].config,
                           &r.config, &r.identity.config}) {
      config->model.num_layers = kLayers;
      config->model.num_experts = 16;
      config->training.steps = 1000;
    }
    const bool sparse = r.config.router.kind == RouterKind::kSparse;
    trainer::Validation validation;
    validation.layer_active_experts.resize(kLayers);
    validation.active_histogram.assign(kLayers, std::vector<int64_t>(17));
    validation.tokens_per_expert.assign(kLayers, std::vector<int64_t>(16));
    r.allocation.assign(kLayers, 1);
    r.final_validation = r.at_schedule_temperature = validation;
    Fill(r.final_validation);
    Fill(r.at_schedule_temperature);
    r.steps.clear();
    for (int64_t step = 1; step <= 1000; ++step) {
      StepRecord& record =
          r.steps.emplace_back(trainer::NumberedRecord(step, kLayers));
      trainer::VisitStepMetrics([&](const trainer::Metric&, auto member) {
        auto& value = record.*member;
        if constexpr (std::is_same_v<decltype(value), double&>) {
          value = Digits();
        } else {
          for (double& one : value) one = Digits();
        }
      });
      if (sparse)
        record.allocation = record.layer_active_experts = r.allocation;
    }
    trainer::FinalEvaluations& evaluations = r.final_evaluations.emplace();
    evaluations.router_health.resize(kLayers);
    for (trainer::RouterHealth& layer : evaluations.router_health) {
      layer.load_entropy = Digits();
      if (!sparse) layer.truncated_mass = Digits();
    }
    for (int factor = 1; !sparse && factor <= 4; ++factor) {
      Fill(evaluations.inference_tau
               .emplace_back(trainer::InferenceTau{
                   .factor = 0.5 * factor, .tau = 1, .validation = validation})
               .validation);
    }
  }
  const fs::path path = FreshFolder("small") / "mini.h5";
  outcome.corpora[0].prefix = CorpusName(outcome.runs[0].run);
  outcome.corpora[0].tokens = outcome.runs[0].result->identity.tokens;
  EXPECT_EQ(Recorded(outcome, path).runs.size(), 76u);
  EXPECT_LE(fs::file_size(path), 5u << 20);
  EXPECT_GT(fs::file_size(path), 2u << 20);
}

}  // namespace
}  // namespace softmoe::experiments
