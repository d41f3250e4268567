// SPDX-License-Identifier: Apache-2.0
//
// Whole runs of a tiny model: they learn, they are the same for any number of
// threads, and the budget holds. Interruptions are in resume_test.cc.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/parallel_for.h"
#include "core/philox.h"
#include "core/testing/config_test_util.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "optimized/initialize.h"
#include "optimized/model.h"
#include "trainer/evaluation/evaluation.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics_log.h"
#include "trainer/results/run_result.h"
#include "trainer/results/run_result_file.h"
#include "trainer/run/calibration.h"
#include "trainer/run/schedules.h"
#include "trainer/run/trainer.h"
#include "trainer/testing/corpus_test_util.h"
#include "trainer/testing/token_test_util.h"
#include "trainer/testing/trainer_test_util.h"
#include "trainer/tokens/dataset.h"
#include "trainer/tokens/prepare.h"

namespace softmoe::trainer {
namespace {

double MeanLoss(const std::vector<StepRecord>& steps, size_t begin,
                size_t end) {
  double sum = 0;
  for (size_t i = begin; i < end; ++i) sum += steps[i].loss;
  return sum / static_cast<double>(end - begin);
}

TEST(TrainRun, MeasuresTheBytesOfATokenWhereThereIsATokenizer) {
  const auto folder = FreshFolder("bytes");
  DataConfig data;
  data.corpus = "path:" + (folder / "text.txt").string();
  WriteFileAtomically(folder / "text.txt", TestText(TestDocuments(300)));
  Config config = TinyConfig(RouterKind::kSparse);
  config.model.vocab_size = 400;
  config.training.steps = 2;
  config.training.eval_every = 1;
  config.data = data;
  const PreparedCorpus corpus =
      PrepareCorpus(data, 400, {.cache = folder / "cache", .quiet = true});
  const RunResult result =
      TrainRun(config, QuietOptions(folder / "run", corpus.prefix));
  const auto all = static_cast<double>(corpus.text_bytes) /
                   static_cast<double>(corpus.num_tokens);
  // Training has 98 % of the documents, validation some of the rest.
  EXPECT_NEAR(result.train_bytes_per_token.value(), all, 0.05 * all);
  EXPECT_NEAR(result.val_bytes_per_token.value(), all, 0.3 * all);
  EXPECT_EQ(result.val_loss_per_byte,
            result.final_validation.loss / *result.val_bytes_per_token);
  // Of the run, two steps, and a validation after each.
  EXPECT_EQ(MetricsOf(folder / "run").size(), 5u);
  ExpectSameResult(result, ReadRunResult(folder / "run" / kResultName));
}

class TrainRunOfEveryRouter : public testing::TestWithParam<RouterKind> {};

INSTANTIATE_TEST_SUITE_P(TrainRun, TrainRunOfEveryRouter,
                         testing::ValuesIn(kRouterKinds), NameOfRouter);

TEST_P(TrainRunOfEveryRouter, LearnsAndReportsWhatItDid) {
  const auto folder = FreshFolder("learns");
  const auto tokens = WriteTinyTokens(folder / "data");
  Config config = TinyConfig(GetParam());
  config.training.steps = 100;
  config.training.eval_every = 40;
  std::vector<int64_t> seen;
  RunOptions options = QuietOptions(folder / "run", tokens);
  options.on_step = [&](const StepRecord& record) {
    seen.push_back(record.step);
  };
  const RunResult result = TrainRun(config, options);

  ASSERT_EQ(result.steps.size(), 100u);
  std::vector<int64_t> all(100);
  std::iota(all.begin(), all.end(), 1);
  EXPECT_EQ(seen, all);
  // The first update has learning rate 0: the first two steps see one model.
  EXPECT_LT(MeanLoss(result.steps, 90, 100), MeanLoss(result.steps, 0, 10));
  // Most tokens follow from the previous one, which the unigram cannot know.
  EXPECT_LT(result.final_validation.loss, result.unigram_loss);
  EXPECT_EQ(result.final_validation.num_tokens, 8 * 16);
  // These tokens have no tokenizer that would tell.
  EXPECT_FALSE(result.train_bytes_per_token || result.val_bytes_per_token ||
               result.val_loss_per_byte);
  EXPECT_FALSE(result.resumed);
  EXPECT_EQ(ConfigHash(result.identity.config), ConfigHash(config));

  const double k = config.router.mean_active_experts;
  for (const StepRecord& step : result.steps) {
    // K = k*L; k_l is a sum of two doubles of that size per layer.
    EXPECT_NEAR(step.allocation[0] + step.allocation[1], 2 * k,
                4 * 0x1p-52 * k);
    EXPECT_GE(step.allocation[0], 1.0);
    EXPECT_GE(step.allocation[1], 1.0);
    EXPECT_NEAR(
        (step.layer_active_experts[0] + step.layer_active_experts[1]) / 2,
        step.active_experts, 4 * 0x1p-52 * step.active_experts);
    EXPECT_GT(step.gradient_norm, 0);
  }
  EXPECT_LE(result.most_active_in_a_token, result.max_active);
  double train_ae = 0;
  for (const StepRecord& step : result.steps) train_ae += step.active_experts;
  EXPECT_EQ(result.train_ae, train_ae / 100);
  if (GetParam() == RouterKind::kSparse) {
    EXPECT_EQ(result.train_ae, k);
    EXPECT_EQ(result.final_validation.active_experts, k);
    EXPECT_EQ(result.tau, 0);
    EXPECT_FALSE(result.tau_calibrated);
  } else {
    EXPECT_GT(result.tau, 0);
    EXPECT_TRUE(result.tau_calibrated);
    EXPECT_EQ(result.config.router.tau, result.tau);
    EXPECT_EQ(result.steps[0].temperature, 5.0);
  }
  const double moved =
      std::fabs(result.allocation[0] - result.steps[0].allocation[0]);
  if (GetParam() == RouterKind::kSoftLearned) {
    EXPECT_GT(moved, 0.01) << "the budget logits did not learn";
  } else {
    EXPECT_EQ(moved, 0);
  }
}

TEST_P(TrainRunOfEveryRouter, MetricsFileHasEveryNumber) {
  const auto folder = FreshFolder("metrics");
  const auto tokens = WriteTinyTokens(folder / "data");
  Config config = TinyConfig(GetParam());
  config.training.eval_every = 5;
  RunOptions options = QuietOptions(folder / "run", tokens);
  options.runtime.checkpoint_every = 5;
  EvaluationOptions after_5;
  after_5.folder = folder / "after_5";
  options.on_step = [&](const StepRecord& record) {
    if (record.step != 6) return;
    MakeFolder(after_5.folder);
    std::filesystem::copy_file(folder / "run" / kCheckpointName,
                               after_5.folder / kCheckpointName);
  };
  const RunResult result = TrainRun(config, options);

  std::ifstream lines(folder / "run" / kMetricsName);
  std::string line;
  std::map<std::string, int> kinds;
  size_t step = 0;
  std::vector<int64_t> validated;
  while (std::getline(lines, line)) {
    const auto json = nlohmann::json::parse(line);
    ++kinds[json.at("kind")];
    if (json.at("kind") == "step") {
      const StepRecord& record = result.steps.at(step++);
      // Doubles must be equal: the text must not lose a bit.
      EXPECT_EQ(json.at("step"), record.step);
      EXPECT_EQ(json.at("loss"), record.loss);
      EXPECT_EQ(json.at("gradient_norm"), record.gradient_norm);
      EXPECT_EQ(json.at("seconds"), record.seconds);
      EXPECT_EQ(json.at("allocation"), record.allocation);
      // The schedules before the step's own update.
      EXPECT_EQ(json.at("temperature"), Temperature(config, record.step - 1));
      EXPECT_EQ(json.at("learning_rate"),
                LearningRate(config.training, record.step - 1));
    } else if (json.at("kind") == "validation") {
      validated.push_back(json.at("step"));
      const double scheduled = Temperature(config, validated.back());
      EXPECT_EQ(json.at("temperature"), scheduled);
      if (validated.back() != 5) continue;
      const Validation at_one = EvaluateRun(after_5).validation;
      after_5.temperature = scheduled;
      const Validation at_scheduled = EvaluateRun(after_5).validation;
      EXPECT_EQ(json.at("loss"), at_one.loss);
      EXPECT_EQ(json.at("active_experts"), at_one.active_experts);
      EXPECT_EQ(json.at("schedule_loss"), at_scheduled.loss);
      EXPECT_EQ(json.at("schedule_active_experts"),
                at_scheduled.active_experts);
      EXPECT_EQ(at_one.loss != at_scheduled.loss, TraitsOf(config).temperature);
    } else {
      EXPECT_EQ(json.at("kind"), "run");
      EXPECT_EQ(json.at("config_hash"), ConfigHash(config));
      EXPECT_EQ(json.at("tau"), result.tau);
    }
  }
  EXPECT_EQ(kinds["run"], 1);
  EXPECT_EQ(kinds["step"], 12);
  EXPECT_EQ(validated, (std::vector<int64_t>{5, 10, 12}));
}

// Noise, too, is keyed by its address.
TEST_P(TrainRunOfEveryRouter, AnyNumberOfThreadsGivesTheSameBits) {
  const auto folder = FreshFolder("threads");
  const auto tokens = WriteTinyTokens(folder / "data");
  Config config = TinyConfig(GetParam());
  config.training.eval_every = 5;
  config.router.noise = NoiseKind::kInputJitter;
  config.router.noise_amplitude = 0.05;
  const RunResult one =
      TrainRun(config, QuietOptions(folder / "one", tokens, 1));
  for (const int64_t threads : {3, 4}) {
    const auto run = folder / std::to_string(threads);
    ExpectSameResult(one, TrainRun(config, QuietOptions(run, tokens, threads)));
    ExpectSameTensors(folder / "one" / kCheckpointName, run / kCheckpointName);
  }
  config.router.noise = NoiseKind::kNone;
  config.router.noise_amplitude = 0;
  const RunResult quiet =
      TrainRun(config, QuietOptions(folder / "quiet", tokens, 1));
  EXPECT_NE(one.steps.back().loss, quiet.steps.back().loss);
}

TEST(TrainRun, MicroBatchesDoNotChangeTheBits) {
  // Ruling 6: micro-batches hold whole balance groups, which alone define the
  // result.
  const auto folder = FreshFolder("micro");
  const auto tokens = WriteTinyTokens(folder / "data");
  Config config = TinyConfig(RouterKind::kSoftLearned);
  const RunResult small =
      TrainRun(config, QuietOptions(folder / "small", tokens));
  config.training.micro_batch_sequences = 4;
  const RunResult large =
      TrainRun(config, QuietOptions(folder / "large", tokens));
  ExpectSameRecords(small.steps, large.steps);
  // With another balance group the definition differs.
  config.training.balance_group_sequences = 4;
  const RunResult other =
      TrainRun(config, QuietOptions(folder / "other", tokens));
  EXPECT_NE(small.steps[0].load_balance_loss, other.steps[0].load_balance_loss);
}

// The conditional entropy: the cross-entropy of the best predictor that sees
// the last `order` tokens, on the windows of `length` tokens that define it.
double ContextEntropy(const std::vector<int32_t>& stream, int64_t length,
                      int64_t order) {
  std::map<std::vector<int32_t>, std::map<int32_t, int64_t>> counts;
  const int64_t windows = static_cast<int64_t>(stream.size() - 1) / length;
  for (int64_t w = 0; w < windows; ++w) {
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = w * length + i;
      const int64_t begin = std::max(w * length, at - order + 1);
      ++counts[{stream.begin() + begin, stream.begin() + at + 1}]
              [stream[at + 1]];
    }
  }
  double nats = 0;
  for (const auto& [context, next] : counts) {
    int64_t total = 0;
    for (const auto& [token, count] : next) total += count;
    for (const auto& [token, count] : next) {
      nats -= static_cast<double>(count) *
              std::log(static_cast<double>(count) / static_cast<double>(total));
    }
  }
  return nats / static_cast<double>(windows * length);
}

TEST_P(TrainRunOfEveryRouter, MemorisesOneBatch) {
  // Random tokens over a small vocabulary, exactly one batch of them: only a
  // model that attends to earlier tokens can predict the next one.
  constexpr int kVocabulary = 4;
  const auto folder = FreshFolder("memorise");
  Config config = TinyConfig(GetParam());
  config.model.d_model = 32;
  config.model.vocab_size = kVocabulary;
  config.data.validation_fraction = 0.5;
  config.training.steps = 300;
  config.training.eval_sequences = 0;
  const int64_t length = config.model.sequence_length;
  const auto document = [&](uint64_t seed) {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i <= 4 * length; ++i) {
      ids.push_back(static_cast<int32_t>(
          PhiloxWords({.seed = seed}, static_cast<uint64_t>(i))[0] %
          kVocabulary));
    }
    return ids;
  };
  MakeFolder(folder);
  const std::vector<int32_t> train = document(1);
  WriteTokenFiles(folder / "tokens", kVocabulary, {train, document(2)});
  const RunResult result =
      TrainRun(config, QuietOptions(folder / "run", folder / "tokens"));
  const double one_token = ContextEntropy(train, length, 1);
  const double two_tokens = ContextEntropy(train, length, 2);
  ASSERT_GT(one_token, two_tokens);
  ASSERT_GT(two_tokens, 0.3);
  // The loss is below that of any function of the last token, or the last two.
  EXPECT_LT(result.steps.back().loss, two_tokens);
  // Nothing was learned about the other random document.
  EXPECT_GT(result.final_validation.loss, std::log(4.0));
}

TEST(TrainRun, TrainsWithTheTauThatItCalibrated) {
  const auto folder = FreshFolder("tau");
  const auto tokens = WriteTinyTokens(folder / "data");
  const Config config = TinyConfig(RouterKind::kSoftLearned);
  const RunResult calibrated =
      TrainRun(config, QuietOptions(folder / "calibrated", tokens));
  ThreadPool pool(2);
  const Dataset data(config, tokens);
  const auto model = optimized::MakeModel(
      config, config.training.balance_group_sequences, pool);
  optimized::InitializeParameters(
      *model, static_cast<uint64_t>(config.training.seed), pool);
  EXPECT_EQ(calibrated.tau, CalibrateTau(*model, data, [] {}).tau);
  // Given as a number, the same tau gives the same run.
  Config given = config;
  given.router.tau = calibrated.tau;
  const RunResult again =
      TrainRun(given, QuietOptions(folder / "given", tokens));
  ExpectSameRecords(calibrated.steps, again.steps);
  ExpectSameValidation(calibrated.final_validation, again.final_validation);
  EXPECT_FALSE(again.tau_calibrated);
  EXPECT_EQ(ConfigToToml(calibrated.config), ConfigToToml(again.config));
  const IdentityDifferences differences =
      CompareIdentities(calibrated.identity, again.identity);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].name, "router.tau");
}

TEST(TrainRun, AFinishedRunIsOnlyRead) {
  const auto folder = FreshFolder("finished");
  const auto tokens = WriteTinyTokens(folder / "data");
  const Config config = TinyConfig(RouterKind::kSoftFixed);
  const RunResult first =
      TrainRun(config, QuietOptions(folder / "run", tokens));
  const auto written =
      std::filesystem::last_write_time(folder / "run" / kMetricsName);
  RunOptions options = QuietOptions(folder / "run", tokens);
  options.on_step = [](const StepRecord&) { FAIL() << "it trained again"; };
  ExpectSameResult(first, TrainRun(config, options));
  EXPECT_EQ(std::filesystem::last_write_time(folder / "run" / kMetricsName),
            written);

  Config other = config;
  other.training.seed = 99;
  const std::string message =
      MessageOf<ConfigError>([&] { TrainRun(other, options); });
  // Nothing differs because tau is calibrated there and not yet here.
  EXPECT_TRUE(Says(message, "training.seed is 1234 there and 99 here. Use"));
  options.tokens = WriteTinyTokens(folder / "other", 2);
  EXPECT_THROW(TrainRun(config, options), DataError);
}

TEST(TrainRun, SeedAndDataMatter) {
  const auto folder = FreshFolder("seed");
  const auto tokens = WriteTinyTokens(folder / "data");
  Config config = TinyConfig(RouterKind::kSparse);
  const RunResult first =
      TrainRun(config, QuietOptions(folder / "first", tokens));
  config.training.seed = 99;
  const RunResult second =
      TrainRun(config, QuietOptions(folder / "second", tokens));
  EXPECT_NE(first.steps[0].loss, second.steps[0].loss);
}

TEST(TrainRun, TheCutoffThatActivatesNobodyIsReported) {
  const auto folder = FreshFolder("nobody");
  const auto tokens = WriteTinyTokens(folder / "data");
  Config config = TinyConfig(RouterKind::kSoftFixed);
  // In training all weights are equal: 1, in the unit of tau.
  config.router.temperature_start = config.router.temperature_end = 1e9;
  config.router.tau = 1.02;
  const RunResult none =
      TrainRun(config, QuietOptions(folder / "none", tokens));
  EXPECT_EQ(none.tau, 1.02);
  EXPECT_FALSE(none.tau_calibrated);
  for (const StepRecord& step : none.steps) {
    EXPECT_EQ(step.active_experts, 0);
    EXPECT_EQ(step.zero_active_fraction, 1);
    EXPECT_EQ(step.layer_relative_load_variance, (std::vector<double>{0, 0}));
  }
  // The validation at T = 1 counts, too.
  EXPECT_GT(none.final_validation.active_experts, 0);
  EXPECT_GT(none.most_active_in_a_token, 0);
  config.router.fallback = Fallback::kTop1;
  const RunResult top1 =
      TrainRun(config, QuietOptions(folder / "top1", tokens));
  for (const StepRecord& step : top1.steps) {
    EXPECT_EQ(step.active_experts, 1);
    EXPECT_EQ(step.zero_active_fraction, 1);  // before the fallback
  }
}

TEST(TrainRun, RefusesBadInputAndWritesNothing) {
  const auto folder = FreshFolder("refuses");
  const auto tokens = WriteTinyTokens(folder / "data");
  const Config good = TinyConfig(RouterKind::kSoftLearned);
  Config bad = good;
  bad.router.mean_active_experts = 0.5;
  EXPECT_THROW(TrainRun(bad, QuietOptions(folder / "run", tokens)),
               ConfigError);
  bad = good;
  bad.router.temperature_end = 0;
  EXPECT_THROW(TrainRun(bad, QuietOptions(folder / "run", tokens)),
               ConfigError);
  EXPECT_THROW(TrainRun(good, QuietOptions(folder / "run", folder / "missing")),
               EnvironmentError);
  RunOptions options = QuietOptions(folder / "run", tokens);
  options.runtime.isa = "v5";
  EXPECT_THROW(TrainRun(good, options), ConfigError);
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST(TrainRun, ReplacesNobodysLog) {
  const auto folder = FreshFolder("theirs");
  const auto tokens = WriteTinyTokens(folder / "data");
  std::filesystem::create_directory(folder / "run");
  const auto log = folder / "run" / kMetricsName;
  WriteFileAtomically(log, "notes\n");
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] {
                     TrainRun(TinyConfig(RouterKind::kSparse),
                              QuietOptions(folder / "run", tokens));
                   }),
                   log.string() + ": already exists and is not the log of"));
  EXPECT_EQ(ReadWholeFile(log), "notes\n");
  EXPECT_EQ(FilesIn(folder / "run"), std::vector<std::string>{kMetricsName});
}

TEST(TrainRun, RefusesTokensOfAnotherVocabulary) {
  const auto folder = FreshFolder("vocabulary");
  const auto tokens = WriteTinyTokens(folder / "data");  // ids below 64
  Config config = TinyConfig(RouterKind::kSparse);
  config.model.vocab_size = 32;
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     TrainRun(config, QuietOptions(folder / "run", tokens));
                   }),
                   "tokens.bin"));
}

// A foreign token file has no description that vouches for it.
TEST(TrainRun, OneWrongIdIsFoundBeforeTheFirstStep) {
  const auto folder = FreshFolder("wrong_id");
  const Config config = TinyConfig(RouterKind::kSparse);
  const auto tokens = folder / "foreign";
  std::vector<std::vector<int32_t>> documents(2, std::vector(3000, 7));
  // No batch of the twelve steps and no validation contains the very last
  // token.
  documents[1].back() = static_cast<int32_t>(config.model.vocab_size);
  WriteTokenFiles(tokens, 1000, documents);
  int64_t steps = 0;
  RunOptions options = QuietOptions(folder / "run", tokens);
  options.on_step = [&](const StepRecord&) { ++steps; };
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { TrainRun(config, options); }),
                   "foreign.bin: token 5999: id 64"));
  EXPECT_EQ(steps, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

// The same tokens divided into other documents have another split and are
// another run.
TEST(TrainRun, AnotherSplitIsAnotherRun) {
  const auto folder = FreshFolder("split");
  const Config config = TinyConfig(RouterKind::kSparse);
  const auto write = [&](const std::string& name, const size_t cut) {
    std::vector<std::vector<int32_t>> documents(2);
    for (size_t i = 0; i < 4000; ++i) {
      documents[i < cut ? 0 : 1].push_back(static_cast<int32_t>(i % 50));
    }
    WriteTokenFiles(folder / name, config.model.vocab_size, documents);
    return folder / name;
  };
  TrainRun(config, QuietOptions(folder / "run", write("one", 3000)));
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     TrainRun(config,
                              QuietOptions(folder / "run", write("two", 2000)));
                   }),
                   "result.h5", "another split"));
}

}  // namespace
}  // namespace softmoe::trainer
