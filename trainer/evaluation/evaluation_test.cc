// SPDX-License-Identifier: Apache-2.0
//
// Runs on corpora with a tokenizer: their identity, and evaluation on other
// token files.
#include "trainer/evaluation/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/sha256.h"
#include "core/hdf5/hdf5_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "optimized/communicator/communicator.h"
#include "trainer/evaluation/loaded_model.h"
#include "trainer/evaluation/routing_trace.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics.h"
#include "trainer/results/run_result.h"
#include "trainer/run/trainer.h"
#include "trainer/tasks/score_requests.h"
#include "trainer/testing/corpus_test_util.h"
#include "trainer/testing/token_test_util.h"
#include "trainer/testing/trainer_test_util.h"
#include "trainer/tokens/dataset.h"
#include "trainer/tokens/prepare.h"
#include "trainer/tokens/prepared_corpus.h"
#include "trainer/tokens/token_file.h"
#include "trainer/tokens/tokenizer.h"

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
    // The noise is for training alone.
    config_.router.noise = NoiseKind::kLogitGauss;
    config_.router.noise_amplitude = 0.05;
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
  EvaluationReport report = EvaluateRun(evaluate_);
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
  });
  EXPECT_EQ(json.at("unigram_loss"), report.unigram_loss);
  EXPECT_EQ(json.at("val_bytes_per_token"),
            result_.val_bytes_per_token.value());
  EXPECT_EQ(json.at("val_loss_per_byte"), result_.val_loss_per_byte.value());
  const Validation& v = report.validation;
  EXPECT_TRUE(Says(
      text,
      "model                 soft_fixed after 12 steps, configuration " +
          report.config_hash + "\ntokens                " +
          corpus_.prefix.string() + "\n" +
          ReportLine(metrics::kTemperature, 1) +
          ReportLine(metrics::kTau, result_.tau) +
          ReportLine(metrics::kLoss, v.loss) +
          ReportLine(metrics::kNumTokens, static_cast<double>(v.num_tokens)),
      "\nAE by layer           " +
          Shown(metrics::kLayerActiveExperts, v.layer_active_experts[0]) + " " +
          Shown(metrics::kLayerActiveExperts, v.layer_active_experts[1]) +
          " experts/token\n" +
          ReportLine(metrics::kUnigramLoss, report.unigram_loss) +
          ReportLine(metrics::kValBytesPerToken, *result_.val_bytes_per_token) +
          ReportLine(metrics::kValLossPerByte, *result_.val_loss_per_byte)));
  // JSON texts are UTF-8, but paths may be any bytes.
  report.tokens = "caf\xE9/tokens";
  EXPECT_EQ(nlohmann::json::parse(EvaluationJson(report)).at("tokens"),
            "caf\uFFFD/tokens");
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

// The trace holds what the evaluation counted: no other pass, no other
// sequences, nothing moved from layer to layer or token to token.
TEST_F(Evaluation, TracesWhatItCounts) {
  evaluate_.sequences = 3;  // a whole balance group, and a part of one
  const EvaluationReport untraced = EvaluateRun(evaluate_);
  evaluate_.trace = folder_ / "trace.h5";
  const EvaluationReport report = EvaluateRun(evaluate_);
  ExpectSameValidation(untraced.validation, report.validation);

  const Hdf5Reader file(evaluate_.trace, RoutingTraceKind());
  EXPECT_EQ(file.ReadString("/", "config_hash"), report.config_hash);
  EXPECT_EQ(file.ReadString("/", "config"),
            ConfigToToml(result_.identity.config));
  EXPECT_EQ(file.ReadString("/", "data_sha256"), report.data_sha256);
  EXPECT_EQ(file.ReadInt("/", "step"), 12);
  EXPECT_EQ(file.ReadDouble("/", "tau"), result_.tau);
  EXPECT_EQ(file.ReadDouble("/", "temperature"), 1);

  const auto tokens = file.ReadDataset<int32_t>("/tokens");
  EXPECT_EQ(tokens.shape, (std::vector<int64_t>{3, 16}));
  std::vector<int32_t> inputs(3 * 16), targets(3 * 16);
  Dataset(config_, corpus_.prefix).FillValidation(0, 3, inputs, targets);
  EXPECT_EQ(tokens.values, inputs);
  EXPECT_EQ(file.ReadDataset<int32_t>("/targets").values, targets);

  const auto active = file.ReadDataset<uint8_t>("/active");
  EXPECT_EQ(active.shape, (std::vector<int64_t>{2, 48, 4}));
  EXPECT_EQ(file.ReadDataset<float>("/scores").shape, active.shape);
  EXPECT_EQ(file.ReadDataset<float>("/soft_weights").shape, active.shape);
  std::vector<std::vector<int64_t>> histogram(2, std::vector<int64_t>(5));
  std::vector<std::vector<int64_t>> load(2, std::vector<int64_t>(4));
  for (int64_t l = 0; l < 2; ++l) {
    for (int64_t t = 0; t < 48; ++t) {
      int64_t count = 0;
      for (int64_t e = 0; e < 4; ++e) {
        const uint8_t one = active.values[(l * 48 + t) * 4 + e];
        ASSERT_LE(one, 1);
        count += one;
        load[l][e] += one;
      }
      ++histogram[l][count];
    }
  }
  EXPECT_EQ(histogram, report.validation.active_histogram);
  EXPECT_EQ(load, report.validation.tokens_per_expert);
  EXPECT_EQ(file.ReadDataset<double>("/mean_active").values,
            (std::vector<double>{1.5, 1.5}));
  EXPECT_EQ(file.ReadDataset<int64_t>("/max_active").values,
            (std::vector<int64_t>{3, 3}));

  // The scores are those of the model, without the noise of training.
  const Checkpoint checkpoint(folder_ / "run" / kCheckpointName);
  LoadedModel loaded(checkpoint, config_, 1, optimized::Cpu());
  const std::span<const int32_t> read(inputs), next(targets);
  loaded.model->Forward(
      {.num_sequences = 2, .inputs = read.first(32), .targets = next.first(32)},
      {.temperature = 1, .tau = result_.tau});
  const auto scores = file.ReadDataset<float>("/scores").values;
  for (int64_t l = 0; l < 2; ++l) {
    const std::span<const float> expected = loaded.model->LastRouting(l).scores;
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                           scores.begin() + l * 48 * 4));
  }

  // With another tau, its cutoff.
  evaluate_.tau = 0.5;
  EvaluateRun(evaluate_);
  const Hdf5Reader other(evaluate_.trace, RoutingTraceKind());
  EXPECT_EQ(other.ReadDouble("/", "tau"), 0.5);
  EXPECT_EQ(other.ReadDataset<double>("/cutoff").values,
            (std::vector<double>{0.5 * 1.5 / 4, 0.5 * 1.5 / 4}));
}

// No batch is asked for.
TEST(EvaluateRun, TakesATextThatIsTooSmallForABatch) {
  const auto folder = FreshFolder("small_text");
  Config config = TinyConfig(RouterKind::kSparse);
  config.training.steps = 1;
  config.training.global_batch_sequences = 8;
  TrainRun(config,
           QuietOptions(folder / "run", WriteTinyTokens(folder / "data")));
  const auto length = static_cast<size_t>(config.model.sequence_length);
  const std::vector<int32_t> four(4 * length + 1, 7), one(length + 1, 7);
  EvaluationOptions options;
  options.folder = folder / "run";
  options.tokens = folder / "small";
  WriteTokenFiles(options.tokens, config.model.vocab_size, {four, one});
  EXPECT_EQ(EvaluateRun(options).validation.num_tokens,
            config.model.sequence_length);
  options.tokens = folder / "smaller";
  WriteTokenFiles(options.tokens, config.model.vocab_size, {four, {7}});
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { EvaluateRun(options); }),
                   "smaller.bin", "a sequence of 16 tokens",
                   "token files of a larger text"));
}

TEST_F(Evaluation, RefusesTokensOfAnotherTokenizer) {
  // The tokenizer has as many pieces, but other ones: only the hash can tell.
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
  // The run's tokens without the file that describes them.
  for (const char* suffix : {".bin", ".idx"}) {
    std::filesystem::copy_file(corpus_.prefix.string() + suffix,
                               folder_ / (std::string("bare") + suffix));
  }
  evaluate_.tokens = folder_ / "bare";
  std::string message = refusal();
  EXPECT_TRUE(Says(message, "put back the .json file"));
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
                   "the checkpoint is gone: a grid deletes",
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
  for (const double temperature : {0.0, 1e-50, 1e50}) {
    options.temperature = temperature;
    refused(options);
  }
  options = evaluate_;
  options.runtime.isa = "v9";
  refused(options);
  options = evaluate_;
  options.folder = folder_ / "nowhere";
  EXPECT_THROW(EvaluateRun(options), EnvironmentError);
}

// It would be recorded as if it had been applied.
TEST_F(Evaluation, RefusesWhatTheSparseRouterDoesNotHave) {
  RunOptions options;
  options.folder = folder_ / "sparse";
  options.tokens = corpus_.prefix;
  options.quiet = true;
  Config sparse = TinyConfig(RouterKind::kSparse);
  sparse.model.vocab_size = kVocabulary;
  TrainRun(sparse, options);
  evaluate_.folder = options.folder;
  EvaluationOptions hotter = evaluate_, cut = evaluate_;
  hotter.temperature = 5;
  cut.tau = 1;
  EXPECT_EQ(MessageOf<ConfigError>([&] { EvaluateRun(hotter); }),
            "--temperature has no meaning for the sparse router; leave it out");
  EXPECT_EQ(MessageOf<ConfigError>([&] { EvaluateTasks(hotter, {}); }),
            "--temperature has no meaning for the sparse router; leave it out");
  EXPECT_EQ(MessageOf<ConfigError>([&] { EvaluateRun(cut); }),
            "--tau has no meaning for the sparse router; leave it out");
  EXPECT_NO_THROW(EvaluateRun(evaluate_));
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

// A child process tries the tokenizer before anything is trained, as no child
// may be started once there are threads.
TEST_F(Evaluation, ATokenizerIsTriedBeforeTheRunAndStaysTheSame) {
  PreparedCorpus copy = CopyPreparedCorpus(corpus_, folder_ / "copy");
  const std::filesystem::path model = WithSuffix(copy.prefix, ".model");
  RunOptions options;
  options.folder = folder_ / "run2";
  options.tokens = copy.prefix;
  options.quiet = true;
  options.on_step = [&](const StepRecord&) {
    WriteFileAtomically(model, "no model");
  };
  const auto refusal = [&]() -> std::string {
    return MessageOf<DataError>([&] { TrainRun(config_, options); });
  };
  EXPECT_TRUE(Says(refusal(), model.string() + ": replaced while"));

  copy.tokens.tokenizer_sha256 = Sha256Hex("no model");
  WritePreparedCorpus(copy);
  options.folder = folder_ / "run3";
  EXPECT_TRUE(Says(refusal(), model.string() + ": not a usable SentencePiece"));
  EXPECT_FALSE(std::filesystem::exists(options.folder));
}

TaskItems TwoItems() {
  return {.name = "piqa",
          .file = "valid.jsonl",
          .sha256 = "",
          .items = {{"the", {"a", "of the"}, 0, {{"goal", "the"}}},
                    {"", {"x", ""}, 1, {{"goal", ""}}}}};
}

std::vector<double> LogLikelihoods(const ScoredTask& task) {
  std::vector<double> result;
  for (const ItemScore& item : task.scores) {
    for (const ChoiceScore& choice : item.choices) {
      result.push_back(choice.log_likelihood);
    }
  }
  return result;
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
  EXPECT_EQ(Answering(report).device, report.device.isa);

  // It answers at T = 1, without the noise of training.
  const Checkpoint checkpoint(evaluate_.folder / kCheckpointName);
  LoadedModel loaded(checkpoint, config_, 1, optimized::Cpu());
  const Tokenizer tokenizer =
      Tokenizer::FromFile(WithSuffix(corpus_.prefix, ".model"));
  optimized::SingleCommunicator alone;
  const auto expected = [&](double temperature, double tau, bool noise) {
    return LogLikelihoods(ScoreTask(
        TwoItems(), *loaded.model,
        {.temperature = temperature, .tau = tau, .noise = noise},
        [&](std::string_view text) { return tokenizer.Encode(text); },
        tokenizer.end_of_document(), alone, [] {}));
  };
  const auto asked = [&] {
    return LogLikelihoods(EvaluateTasks(evaluate_, {TwoItems()}).tasks[0]);
  };
  const std::vector<double> trained = LogLikelihoods(report.tasks[0]);
  EXPECT_EQ(trained, expected(1, result_.tau, false));
  EXPECT_NE(trained, expected(1, result_.tau, true));
  evaluate_.temperature = 5;
  EXPECT_NE(trained, asked());
  EXPECT_EQ(asked(), expected(5, result_.tau, false));
  evaluate_.temperature = 1;
  evaluate_.tau = 0.0;  // the inference ablation
  EXPECT_NE(trained, asked());
  EXPECT_EQ(asked(), expected(1, 0, false));
  evaluate_.tau.reset();
  evaluate_.runtime.threads = 1;
  EXPECT_EQ(trained, asked());
}

TEST_F(Evaluation, RefusesTasksWithoutTheModelsTokenizer) {
  evaluate_.tokens = Prepare(folder_, 2).prefix;
  EXPECT_TRUE(Says(
      MessageOf<DataError>([&] { EvaluateTasks(evaluate_, {TwoItems()}); }),
      "not the tokenizer of the model", evaluate_.tokens.string() + ".model",
      "--data"));
  evaluate_.tokens.clear();
  std::filesystem::remove(corpus_.prefix.string() + ".model");
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>(
                       [&] { EvaluateTasks(evaluate_, {TwoItems()}); }),
                   "--data"));
}

}  // namespace
}  // namespace softmoe::trainer
