// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "core/testing/message_test_util.h"
#include "experiments/testing/report_test_util.h"
#include "trainer/results/metrics.h"
#include "trainer/results/run_result.h"

namespace softmoe::experiments {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(ReportCsv, HasALineForEachRun) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2}});
  Fail(RunOf(outcome, "soft-2"), "score is NaN");
  outcome.runs[0].run.row.label = "Sparse, \"MoE\"";
  const std::vector<std::string> lines = Lines(RunsCsv(outcome));
  ASSERT_EQ(lines.size(), 1 + outcome.runs.size());
  // The first has commas inside quotes.
  for (size_t i = 2; i < lines.size(); ++i) {
    EXPECT_EQ(std::count(lines[i].begin(), lines[i].end(), ','),
              std::count(lines[0].begin(), lines[0].end(), ','))
        << lines[i];
  }
  EXPECT_TRUE(
      Says(lines[1], ",\"Sparse, \"\"MoE\"\"\",", "foldoc/sparse-1/seed1,"));
  const std::string loss =
      std::to_string(outcome.runs[0].result->final_validation.loss);
  EXPECT_TRUE(Says(lines[1], loss.substr(0, 7)));
  EXPECT_TRUE(Says(lines[7], ",failed,2,2,,"));
}

TEST(ReportCsv, ColumnsHaveTheNamesOfTheMetrics) {
  const std::string header = Lines(RunsCsv(ExampleOutcome()))[0];
  EXPECT_EQ(header,
            "run,corpus,row,label,variant,seed,state,mean_active_experts,"
            "expansion_factor,tau,train_ae,infer_ae,active_parameters,val_loss,"
            "unigram_loss,train_bytes_per_token,val_bytes_per_token,"
            "val_loss_per_byte,schedule_loss,zero_active_fraction,"
            "relative_load_variance,parameters,seconds,config_hash");
  std::string of_steps = "run,step";
  trainer::VisitStepMetrics([&](const trainer::Metric& metric, auto member) {
    constexpr bool kNumber =
        std::is_same_v<decltype(member), double trainer::StepRecord::*>;
    if (kNumber && !metric.clock) of_steps += "," + std::string(metric.name);
  });
  EXPECT_TRUE(of_steps.starts_with("run,step,loss,")) << of_steps;
  EXPECT_EQ(Lines(StepsCsv(ExampleOutcome()))[0], of_steps);
}

TEST(ReportCsv, NumbersReadBackExactly) {
  GridOutcome outcome = ExampleOutcome();
  outcome.runs[0].result->unigram_loss = 1.0 / 3;
  outcome.runs[0].result->parameters = int64_t{1} << 40;
  std::vector<std::string> fields;
  std::istringstream line(Lines(RunsCsv(outcome))[1]);
  for (std::string field; std::getline(line, field, ',');) {
    fields.push_back(field);
  }
  ASSERT_EQ(fields.size(), 24u);
  EXPECT_EQ(std::stod(fields[14]), 1.0 / 3);
  EXPECT_EQ(fields[21], "1099511627776");
  outcome.runs[0].result->unigram_loss = std::nan("");
  EXPECT_FALSE(Says(Lines(RunsCsv(outcome))[1], "nan"));
}

TEST(ReportCsv, HasALineForEachStepOfFinishedRuns) {
  GridOutcome outcome = ExampleOutcome();
  const size_t steps = outcome.runs[0].result->steps.size();
  EXPECT_EQ(Lines(StepsCsv(outcome)).size(), 1 + 4 * steps);
  Interrupt(outcome.runs[1]);
  const std::vector<std::string> lines = Lines(StepsCsv(outcome));
  EXPECT_EQ(lines.size(), 1 + 3 * steps);
  EXPECT_EQ(lines[1].find("foldoc/sparse-1/seed1234,1,"), 0u) << lines[1];
}

// Tables, figures and the results file do so, too.
TEST(ReportCsv, CountsLayersFromOne) {
  GridOutcome outcome = ExampleOutcome();
  trainer::RouterHealth second;
  second.dead_experts = 3;
  EvaluationsOf(outcome.runs[0]).router_health = {{}, second};
  const std::vector<std::string> lines = Lines(RouterHealthCsv(outcome));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].find("run,layer,"), 0u);
  EXPECT_EQ(lines[1].find("foldoc/sparse-1/seed1234,1,"), 0u) << lines[1];
  EXPECT_EQ(lines[2].find("foldoc/sparse-1/seed1234,2,"), 0u) << lines[2];
  EXPECT_TRUE(Says(lines[2], ",3,"));
}

TEST(ReportCsv, EveryNthStepAndTheLastAreKept) {
  GridOutcome outcome = ExampleOutcome();
  outcome.runs.erase(outcome.runs.begin() + 1, outcome.runs.end());
  ASSERT_EQ(outcome.runs[0].result->steps.back().step, 40);
  const auto steps_with = [&](int64_t every) {
    std::vector<std::string> steps;
    for (const std::string& line : Lines(StepsCsv(outcome, every))) {
      const size_t begin = line.find(',') + 1;
      steps.push_back(line.substr(begin, line.find(',', begin) - begin));
    }
    steps.erase(steps.begin());  // the header
    return steps;
  };
  using Steps = std::vector<std::string>;
  EXPECT_EQ(steps_with(12), (Steps{"12", "24", "36", "40"}));
  EXPECT_EQ(steps_with(20), (Steps{"20", "40"}));  // the last one once
  EXPECT_EQ(steps_with(100), (Steps{"40"}));
  EXPECT_EQ(StepsCsv(outcome, 1), StepsCsv(outcome));
  EXPECT_EQ(steps_with(1).size(), 40u);
  // A line that is kept is unchanged.
  const std::vector<std::string> all = Lines(StepsCsv(outcome));
  EXPECT_EQ(Lines(StepsCsv(outcome, 40)).back(), all.back());
}

}  // namespace
}  // namespace softmoe::experiments
