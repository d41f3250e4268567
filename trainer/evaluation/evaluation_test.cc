// SPDX-License-Identifier: Apache-2.0
//
// Runs on corpora with a tokenizer: their identity, and evaluation on other
// token files.
#include "trainer/evaluation/evaluation.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/errors.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/results/metrics.h"
#include "trainer/results/run_result.h"
#include "trainer/run/trainer.h"
#include "trainer/testing/corpus_test_util.h"
#include "trainer/testing/trainer_test_util.h"
#include "trainer/tokens/prepare.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::trainer {
namespace {

constexpr int64_t kVocabulary = 330;

// Prepares token files from `seed`'s text, with a tokenizer trained on it.
PreparedCorpus Prepare(const std::filesystem::path& folder, uint64_t seed,
                       int64_t vocab_size = kVocabulary) {
  const auto text = folder / ("text" + std::to_string(seed) + ".txt");
  std::ofstream(text) << TestText(TestDocuments(400, seed));
  DataConfig data;
  data.corpus = "path:" + text.string();
  PrepareOptions options;
  options.cache = folder / "cache";
  options.threads = 2;
  options.quiet = true;
  return PrepareCorpus(data, vocab_size, options);
}

class Evaluation : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = FreshFolder("evaluation");
    corpus_ = Prepare(folder_, 1);
    config_ = TinyConfig(RouterKind::kSoftFixed);
    config_.model.vocab_size = kVocabulary;
    // Not 1, so that the tables' numbers differ from the schedule's.
    config_.router.temperature_end = 2;
    RunOptions options;
    options.folder = folder_ / "run";
    options.tokens = corpus_.prefix;
    options.quiet = true;
    result_ = TrainRun(config_, options);
    evaluate_.folder = folder_ / "run";
  }

  std::filesystem::path folder_;
  PreparedCorpus corpus_;
  Config config_;
  RunResult result_;
  EvaluationOptions evaluate_;
};

TEST_F(Evaluation, RepeatsTheRunsOwnNumbers) {
  EXPECT_EQ(result_.identity.tokens.data_sha256, corpus_.tokens.data_sha256);
  EXPECT_EQ(result_.identity.tokens.tokenizer_sha256,
            corpus_.tokens.tokenizer_sha256);
  const EvaluationReport report = EvaluateRun(evaluate_);
  ExpectSameValidation(result_.final_validation, report.validation);
  evaluate_.temperature = 2;
  ExpectSameValidation(result_.at_schedule_temperature,
                       EvaluateRun(evaluate_).validation);
  EXPECT_NE(result_.at_schedule_temperature.loss, report.validation.loss);
  EXPECT_EQ(report.tau, result_.tau);
  EXPECT_EQ(report.step, 12);
  EXPECT_EQ(report.unigram_loss, result_.unigram_loss);
  EXPECT_EQ(report.config_hash, ConfigHash(result_.identity.config));
  EXPECT_FALSE(report.other_tokens);

  const auto json = nlohmann::json::parse(EvaluationJson(report));
  const std::string text = EvaluationText(report);
  VisitValidationMetrics([&](const Metric& metric, auto member) {
    EXPECT_EQ(json.at(metric.name), report.validation.*member) << metric.name;
    if (metric.shape == MetricShape::kLayersAndCounts ||
        metric.shape == MetricShape::kLayersAndExperts) {
      return;
    }
    EXPECT_TRUE(Says(text, "\n" + std::string(metric.title) + " "))
        << metric.title;
  });
  EXPECT_EQ(json.at("unigram_loss"), report.unigram_loss);
  EXPECT_TRUE(Says(text, ReportLine(metrics::kLoss, report.validation.loss)));
}

TEST_F(Evaluation, TakesAnotherTauTemperatureAndLength) {
  evaluate_.sequences = 3;
  EXPECT_EQ(EvaluateRun(evaluate_).validation.num_tokens, 3 * 16);
  evaluate_.tau = 0.0;
  EXPECT_EQ(EvaluateRun(evaluate_).validation.active_experts, 3);  // the cap
  evaluate_.tau = 1e6;
  EXPECT_EQ(EvaluateRun(evaluate_).validation.zero_active_fraction, 1);
  evaluate_.tau.reset();
  const double at_one = EvaluateRun(evaluate_).validation.loss;
  evaluate_.temperature = 5;
  EXPECT_NE(EvaluateRun(evaluate_).validation.loss, at_one);
}

TEST_F(Evaluation, RefusesTokensOfAnotherTokenizer) {
  // The same number of pieces, but different ones: only the hash can tell.
  evaluate_.tokens = Prepare(folder_, 2).prefix;
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { EvaluateRun(evaluate_); }),
                   "another tokenizer", evaluate_.tokens.string(), "--data"));
  evaluate_.tokens = Prepare(folder_, 1, kVocabulary + 20).prefix;
  EXPECT_THROW(EvaluateRun(evaluate_), DataError);
}

TEST_F(Evaluation, SaysWhatIsMissingWhereFilesWereMoved) {
  const auto refusal = [&]() -> std::string {
    return MessageOf<Error>([&] { EvaluateRun(evaluate_); });
  };
  // The run's tokens without the file beside them that describes them.
  for (const char* suffix : {".bin", ".idx"}) {
    std::filesystem::copy_file(corpus_.prefix.string() + suffix,
                               folder_ / (std::string("bare") + suffix));
  }
  evaluate_.tokens = folder_ / "bare";
  std::string message = refusal();
  EXPECT_TRUE(Says(message, "put the .json file back"));
  EXPECT_FALSE(Says(message, "another tokenizer"));

  evaluate_.tokens.clear();
  for (const char* suffix : {".bin", ".idx", ".model", ".json"}) {
    std::filesystem::rename(corpus_.prefix.string() + suffix,
                            folder_ / (std::string("moved") + suffix));
  }
  message = refusal();
  EXPECT_TRUE(Says(message, corpus_.prefix.string(), "--data"));
  evaluate_.tokens = folder_ / "moved";
  EXPECT_EQ(refusal(), kNoError);
}

TEST_F(Evaluation, SaysWhatToDoWhereTheCheckpointOfAFinishedRunIsGone) {
  std::filesystem::remove(evaluate_.folder / "checkpoint.h5");
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { EvaluateRun(evaluate_); }),
                   "the checkpoint is gone",
                   (evaluate_.folder / "result.h5").string(),
                   "--keep-checkpoints"));
}

TEST_F(Evaluation, RefusesValuesOutOfRange) {
  const auto refused = [&](const EvaluationOptions& options) {
    EXPECT_THROW(EvaluateRun(options), ConfigError);
  };
  EvaluationOptions options = evaluate_;
  options.tau = -1;
  refused(options);
  options = evaluate_;
  options.temperature = 0;
  refused(options);
  options = evaluate_;
  options.runtime.isa = "v9";
  refused(options);
  options = evaluate_;
  options.folder = folder_ / "nowhere";
  EXPECT_THROW(EvaluateRun(options), EnvironmentError);
}

TEST_F(Evaluation, ADamagedTokenFileIsFound) {
  // A copy with one bit of the tokens changed: still valid ids.
  const PreparedCorpus copy =
      CopyPreparedCorpus(corpus_, folder_ / "copy" / "tokens");
  EXPECT_NO_THROW(
      IdentifyRun(config_, copy.prefix, optimized::Cpu().identity()));
  {
    std::fstream bin(copy.prefix.string() + ".bin",
                     std::ios::in | std::ios::out | std::ios::binary);
    const int byte = bin.peek();
    bin.put(static_cast<char>(byte ^ 1));
  }
  RunOptions options;
  options.folder = folder_ / "run2";
  options.tokens = copy.prefix;
  options.quiet = true;
  EXPECT_THROW(TrainRun(config_, options), DataError);
  EXPECT_FALSE(std::filesystem::exists(options.folder));
}

TaskItems TwoItems() {
  return {.name = "piqa",
          .file = "valid.jsonl",
          .sha256 = "",
          .items = {{"the", {"a", "of the"}, 0, {{"goal", "the"}}},
                    {"", {"x", ""}, 1, {{"goal", ""}}}}};
}

TEST_F(Evaluation, AsksTasksInTheTokensOfTheRun) {
  const TaskReport report = EvaluateTasks(evaluate_, {TwoItems()});
  EXPECT_EQ(report.tokenizer_sha256, corpus_.tokens.tokenizer_sha256);
  EXPECT_EQ(report.tau, result_.tau);
  EXPECT_EQ(report.step, 12);
  ASSERT_EQ(report.tasks.size(), 1u);
  const auto& choices = report.tasks[0].scores[0].choices;
  EXPECT_GT(choices[1].tokens, choices[0].tokens);
  EXPECT_TRUE(Says(TaskText(report), "after 12 steps", "piqa", "acc_norm"));
  EXPECT_EQ(Answering(report).config_hash, report.config_hash);

  evaluate_.tau = 0.0;  // the inference ablation
  const TaskReport other = EvaluateTasks(evaluate_, {TwoItems()});
  EXPECT_NE(other.tasks[0].scores[0].choices[0].log_likelihood,
            choices[0].log_likelihood);
  evaluate_.tau.reset();
  evaluate_.runtime.threads = 1;
  const TaskReport same = EvaluateTasks(evaluate_, {TwoItems()});
  EXPECT_EQ(same.tasks[0].scores[0].choices[0].log_likelihood,
            choices[0].log_likelihood);
}

TEST_F(Evaluation, RefusesTasksWithoutTheModelsTokenizer) {
  evaluate_.tokens = Prepare(folder_, 2).prefix;
  EXPECT_TRUE(Says(
      MessageOf<DataError>([&] { EvaluateTasks(evaluate_, {TwoItems()}); }),
      "another tokenizer", evaluate_.tokens.string() + ".model", "--data"));
  evaluate_.tokens.clear();
  std::filesystem::remove(corpus_.prefix.string() + ".model");
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>(
                       [&] { EvaluateTasks(evaluate_, {TwoItems()}); }),
                   "--data"));
}

}  // namespace
}  // namespace softmoe::trainer
