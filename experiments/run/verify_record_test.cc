// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/verify_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/sha256.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/results/run_digest.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

RecordedRun Run(const std::string& row, double learning_rate, int64_t seed,
                double loss) {
  RecordedRun run;
  Config config;
  config.training.learning_rate = learning_rate;
  config.training.seed = seed;
  run.result.identity = {.config = config, .tokens = {}, .isa = "v3"};
  run.result.config = config;
  run.result.final_validation.loss = loss;
  run.id = "text/" + row + "/seed" + std::to_string(seed);
  run.key = "text/" + ConfigHash(config);
  run.training_sha256 = trainer::TrainingDigest(run.result);
  return run;
}

// Two rows of two seeds: squares 2 * 0.01^2 and 2 * 0.02^2 over 2 degrees of
// freedom, a deviation of sqrt(0.0005); a third row has one seed.
RunRecord ExampleRecord() {
  RunRecord record;
  record.path = "a.h5";
  record.runs = {Run("a", 1e-3, 1, 3.01), Run("a", 1e-3, 2, 2.99),
                 Run("b", 2e-3, 1, 4.02), Run("b", 2e-3, 2, 3.98),
                 Run("c", 3e-3, 1, 9)};
  RecordedRun elsewhere = Run("a", 1e-3, 3, 100);
  elsewhere.key[0] = 'T';
  record.runs.push_back(elsewhere);
  return record;
}

void Expect(const RunVerdict& verdict, ExitCode code, const std::string& says) {
  EXPECT_EQ(verdict.code, code) << verdict.text;
  EXPECT_TRUE(Says(verdict.text, says));
}

TEST(VerifyRecord, PoolsDeviationsOverRowsOfTheCorpus) {
  const RunRecord record = ExampleRecord();
  const golden::PooledDeviation pooled = LossDeviation(record, record.runs[4]);
  EXPECT_EQ(pooled.freedom, 2);
  EXPECT_NEAR(pooled.deviation, std::sqrt(0.0005), 1e-14);
  EXPECT_FALSE(LossDeviation(record, record.runs[5]).known());
}

TEST(VerifyRecord, Judges) {
  const RunRecord record = ExampleRecord();
  const RecordedRun& run = record.runs[0];
  trainer::RunResult again = run.result;
  Expect(JudgeAgain(record, run, again, ""), ExitCode::kDone, "same bits");
  // Evaluations after training count as well.
  again.final_evaluations.emplace().inference_tau.resize(1);
  Expect(JudgeAgain(record, run, again, ""), ExitCode::kFailed, "FAIL");
  again = run.result;
  again.final_validation.loss += 0.06;  // within 3 * 0.02236...
  Expect(JudgeAgain(record, run, again, ""), ExitCode::kFailed, "FAIL");
  Expect(JudgeAgain(record, run, again, "0123456"), ExitCode::kDone,
         "other bits since 0123456");
  again.final_validation.loss += 0.01;
  Expect(JudgeAgain(record, run, again, "0123456"), ExitCode::kFailed,
         "more than 0.0671");
  again.identity.isa = "v4";
  Expect(JudgeAgain(record, run, again, ""), ExitCode::kNotComparable,
         "--isa v3");
  again.identity.isa = "v3";
  Expect(JudgeAgain(record, record.runs[5], again, "0123456"),
         ExitCode::kInconclusive, "no row of this corpus has two seeds");
}

// The hash alone would not show that a number beside it was changed.
TEST(VerifyRecord, JudgesTheNumbersThatTheRecordHolds) {
  const RunRecord record = ExampleRecord();
  const RecordedRun run = record.runs[0];
  trainer::RunResult again = run.result;
  for (int64_t step = 1; step <= 1000; ++step) {
    again.steps.push_back(trainer::NumberedRecord(step, 1));
  }
  again.val_bytes_per_token = 4;
  const auto judge =
      [&](const std::function<void(trainer::RunResult&)>& change) {
        RecordedRun changed = run;
        changed.result = again;
        changed.result.steps = ThinnedSteps(again.steps);
        changed.training_sha256 = trainer::TrainingDigest(again);
        change(changed.result);
        return JudgeAgain(record, changed, again, "");
      };
  using trainer::RunResult;
  Expect(judge([](RunResult&) {}), ExitCode::kDone, "same bits");
  const std::function<void(RunResult&)> kChanges[] = {
      [](RunResult& r) { r.final_validation.loss -= 0.001; },
      [](RunResult& r) { r.steps[70].loss -= 0.001; },
      [](RunResult& r) { r.steps.erase(r.steps.begin() + 70); }};
  for (const auto& change : kChanges) {
    Expect(judge(change), ExitCode::kFailed,
           "FAIL: training gave the recorded hash, but not the numbers in the "
           "record");
  }
  // A metric that the hash does not cover and that an older record lacks.
  Expect(judge([](RunResult& r) { r.val_bytes_per_token = 5; }),
         ExitCode::kFailed, "FAIL: other bits");
  Expect(judge([](RunResult& r) { r.val_bytes_per_token.reset(); }),
         ExitCode::kDone, "same bits");
}

TEST(VerifyRecord, RefusesRanksThatAreNoNumber) {
  const RunRecord record = ExampleRecord();
  for (const char* ranks :
       {"two", "3x", " 3", "0", "-1", "99999999999999999999"}) {
    RecordedRun forged = record.runs[0];
    forged.result.identity.ranks = ranks;
    EXPECT_TRUE(Says(
        MessageOf(ExitCode::kUsage,
                  [&] { VerifyRecordedRun(record, forged, {}); }),
        "a.h5: text/a/seed1 was trained by '" + std::string(ranks) + "' ranks",
        "get it from version control again"));
  }
}

// Refused before the corpus is looked for: equal bits would give other answers.
TEST(VerifyRecord, RefusesOtherItemsOfATask) {
  const fs::path folder = FreshFolder("verify_items");
  const std::string item = R"({"goal": "g", "sol1": "a", "sol2": "b", )";
  WriteFileAtomically(folder / "valid.jsonl",
                      item + "\"label\": 0}\n" + item + "\"label\": 1}\n");
  const RunRecord record = ExampleRecord();
  RecordedRun run = record.runs[0];
  run.result.identity.config.data.corpus = "path:" + (folder / "text").string();
  const std::string there(64, 'a'), here = Sha256OfFile(folder / "valid.jsonl");
  const auto verify = [&](const std::string& sha256) {
    run.result.final_evaluations.emplace().tasks = {
        {.name = "piqa", .sha256 = sha256, .measures = {}, .right = {1, 0, 1}}};
    VerifyOptions options;
    options.task_files = folder;
    VerifyRecordedRun(record, run, options);
  };
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { verify(there); }),
                   "a.h5: text/a/seed1 was asked other items of the task piqa",
                   (folder / "valid.jsonl").string(),
                   "3 items, SHA-256 " + there, "here 2, SHA-256 " + here));
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { verify(here); }),
                   (folder / "text").string()));
}

TEST(VerifyRecord, TakesCommitsFromTheChangelogOnly) {
  const std::string text = "- 0123456789ab: dropout is off.\n";
  RequireInChangelog("0123456", text);
  RequireInChangelog("0123456789ab", text);
  for (const char* commit :
       {"012345", "1123456", "123456789ab", "dropout", "", "0123456789ab: "}) {
    EXPECT_THROW(RequireInChangelog(commit, text), ConfigError) << commit;
  }
}

}  // namespace
}  // namespace softmoe::experiments
