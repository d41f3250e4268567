// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/metrics_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/config/config.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/results/metrics.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

RunIdentity SparseIdentity() {
  return {.config = TinyConfig(RouterKind::kSparse),
          .tokens = {"data", "index", "tokenizer"},
          .isa = "v3"};
}

TEST(MetricsLog, RewritingGivesTheBytesOfAppending) {
  const auto folder = FreshFolder("metrics");
  TrainState state;
  {
    MetricsLog log(folder / "appended.jsonl", SparseIdentity(), state);
    for (int64_t step = 1; step <= 4; ++step) {
      state.history.push_back(NumberedRecord(step, 2));
      log.Add(state.history.back());
      if (step % 2 == 0) {
        state.evaluations.push_back(NumberedEvaluation(step));
        log.Add(state.evaluations.back());
      }
    }
  }
  // The old content is not trusted: torn lines, steps after the checkpoint.
  std::ofstream(folder / "rewritten.jsonl") << "{\"step\":9}\nnonsense";
  { MetricsLog log(folder / "rewritten.jsonl", SparseIdentity(), state); }
  const std::string appended = ReadWholeFile(folder / "appended.jsonl");
  EXPECT_EQ(appended, ReadWholeFile(folder / "rewritten.jsonl"));
  EXPECT_EQ(std::count(appended.begin(), appended.end(), '\n'), 7);
}

TEST(MetricsLog, ReplacesOnlyLogs) {
  const auto path = FreshFolder("replaced") / "metrics.jsonl";
  EXPECT_NO_THROW(RequireReplaceableLog(path));
  const auto after = [&](const std::string& content) {
    WriteFileAtomically(path, content);
    return MessageOf<ConfigError>([&] { RequireReplaceableLog(path); });
  };
  for (const std::string& other :
       {std::string("notes\n"), std::string(R"({"kind":"runs","step":1})"),
        std::string("\0x", 2)}) {
    EXPECT_EQ(after(other), path.string() +
                                ": already exists and is not the log of a "
                                "run; choose another output folder, or move "
                                "it away");
  }
  // Empty, torn, and zeros in place of its lines.
  for (const std::string& torn :
       {std::string(), std::string(R"({"kin)"), std::string(100, '\0')}) {
    EXPECT_EQ(after(torn), kNoError);
  }
  { MetricsLog log(path, SparseIdentity(), TrainState()); }
  EXPECT_NO_THROW(RequireReplaceableLog(path));
}

TEST(MetricsLog, IsTheLogOfItsRunAlone) {
  const auto path = FreshFolder("checked") / "metrics.jsonl";
  {
    MetricsLog log(path, SparseIdentity(), TrainState());
    for (int64_t step = 1; step <= 4; ++step) {
      log.Add(NumberedRecord(step, 2));
      log.Add(NumberedEvaluation(step));
    }
  }
  const auto lines = ReadJsonLines(path);
  LogCheck check(ConfigHash(SparseIdentity().config));
  for (const auto& line : lines) {
    EXPECT_EQ(check.Line(line, "a"), line.at("kind") == "step");
  }
  EXPECT_EQ(check.steps(), 4);
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { check.Line(lines[1], "a:9"); }),
                   "a:9: 'step' is not 5"));
  Config other = SparseIdentity().config;
  other.training.seed += 1;
  LogCheck of_other(ConfigHash(other));
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { of_other.Line(lines[0], "a:1"); }),
           "a:1: a log of configuration", ConfigHash(other)));
}

TEST(MetricsLog, EveryFieldReadsBack) {
  const auto path = FreshFolder("fields") / "metrics.jsonl";
  const StepRecord record = NumberedRecord(1, 2);
  const EvaluationRecord evaluation = NumberedEvaluation(1);
  {
    MetricsLog log(path, SparseIdentity(), TrainState());
    log.Add(record);
    log.Add(evaluation);
  }
  const auto lines = ReadJsonLines(path);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].at("kind"), "run");
  EXPECT_EQ(lines[0].at("version"), 2);
  EXPECT_EQ(lines[0].at("data_sha256"), "data");
  EXPECT_EQ(lines[0].at("index_sha256"), "index");
  EXPECT_EQ(lines[0].at("tokenizer_sha256"), "tokenizer");
  EXPECT_EQ(lines[0].at("isa"), "v3");
  EXPECT_FALSE(lines[0].contains("backend") || lines[0].contains("ranks"));
  EXPECT_EQ(lines[1].at("step"), 1);
  VisitStepMetrics([&](const Metric& metric, auto member) {
    EXPECT_EQ(lines[1].at(metric.name), record.*member) << metric.name;
  });
  EXPECT_EQ(lines[2].at("kind"), "validation");
  EXPECT_EQ(lines[2].at("step"), 1);
  VisitEvaluationMetrics([&](const Metric& metric, auto member) {
    EXPECT_EQ(lines[2].at(metric.name), evaluation.*member) << metric.name;
  });
}

}  // namespace
}  // namespace softmoe::trainer
