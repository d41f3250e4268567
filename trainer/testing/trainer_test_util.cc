// SPDX-License-Identifier: Apache-2.0
#include "trainer/testing/trainer_test_util.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/config/benchmark_sizes.h"
#include "core/errors.h"
#include "core/files/paths.h"
#include "core/hdf5/hdf5_file.h"
#include "core/philox.h"
#include "core/testing/bits_test_util.h"
#include "core/testing/file_test_util.h"
#include "optimized/initialize.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics.h"
#include "trainer/results/metrics_log.h"
#include "trainer/results/run_result_file.h"
#include "trainer/testing/token_test_util.h"

namespace softmoe::trainer {

Config TinyConfig(RouterKind kind) {
  Config config;
  config.model = {.num_layers = 2,
                  .d_model = 16,
                  .num_heads = 2,
                  .d_ffn = 32,
                  .num_experts = 4,
                  .vocab_size = 64,
                  .sequence_length = 16};
  // At 0.02 a model this narrow is almost linear and learns slowly.
  config.model.init_std = 0.2;
  config.router.kind = kind;
  config.router.mean_active_experts = kind == RouterKind::kSparse ? 2 : 1.5;
  config.router.calibration_batches = 2;
  config.training.steps = 12;
  config.training.global_batch_sequences = 4;
  config.training.micro_batch_sequences = 2;
  config.training.balance_group_sequences = 2;
  config.training.learning_rate = 1e-2;
  config.training.min_learning_rate = 1e-4;
  config.training.warmup_fraction = 0.1;
  config.training.eval_sequences = 8;
  config.data.corpus = "generated";
  config.data.validation_fraction = 0.1;
  return config;
}

Config SmokeConfig(RouterKind kind) {
  const auto& size = kBenchmarkSizes[0];
  SOFTMOE_CHECK(std::string(size.name) == "smoke") << size.name;
  Config config;
  config.model = size.Model();
  config.router.kind = kind;
  config.router.mean_active_experts = kind == RouterKind::kSparse ? 2 : 1.5;
  config.training.steps = 20;
  config.training.global_batch_sequences = size.num_sequences;
  config.training.micro_batch_sequences = size.num_sequences;
  config.training.balance_group_sequences = 4;
  config.training.learning_rate = 5e-3;
  config.training.min_learning_rate = 5e-5;
  config.training.warmup_fraction = 0.1;
  config.training.eval_sequences = 128;
  config.data.corpus = "generated";
  config.data.validation_fraction = 0.1;
  return config;
}

std::filesystem::path WriteTinyTokens(const std::filesystem::path& folder,
                                      uint64_t seed) {
  constexpr int kVocabulary = 64;
  constexpr int64_t kDocuments = 60, kLength = 150;
  MakeFolder(folder);
  std::vector<std::vector<int32_t>> documents;
  for (int64_t d = 0; d < kDocuments; ++d) {
    std::vector<int32_t>& ids = documents.emplace_back();
    uint32_t token = 1;
    for (int64_t i = 0; i < kLength; ++i) {
      ids.push_back(static_cast<int32_t>(token));
      const auto words =
          PhiloxWords({.seed = seed}, static_cast<uint64_t>(d * kLength + i));
      // Seven times out of eight the next token follows from this one.
      token = words[0] % 8 == 0 ? words[1] % kVocabulary
                                : (5 * token + 17) % kVocabulary;
    }
    ids.push_back(0);
  }
  WriteTokenFiles(folder / "tokens", kVocabulary, documents);
  return folder / "tokens";
}

namespace {

// Gives numbers, no two of which are equal.
class Numbering {
 public:
  // Thirds have no short decimal, so a lossy format would show.
  Numbering(double first, int64_t num_layers)
      : next_(first), num_layers_(num_layers) {}

  void Fill(double& value) {
    value = next_;
    next_ += 1.0 / 7.0;
  }
  void Fill(std::vector<double>& values) {
    values.resize(static_cast<size_t>(num_layers_));
    for (double& value : values) Fill(value);
  }

 private:
  double next_;
  int64_t num_layers_;
};

}  // namespace

StepRecord NumberedRecord(int64_t step, int64_t num_layers) {
  StepRecord record;
  record.step = step;
  Numbering numbering(static_cast<double>(step) + 1.0 / 3.0, num_layers);
  VisitStepMetrics(
      [&](const Metric&, auto member) { numbering.Fill(record.*member); });
  return record;
}

EvaluationRecord NumberedEvaluation(int64_t step) {
  EvaluationRecord record;
  record.step = step;
  Numbering numbering(static_cast<double>(step) + 2.0 / 3.0, 0);
  VisitEvaluationMetrics(
      [&](const Metric&, auto member) { numbering.Fill(record.*member); });
  return record;
}

void ExpectSameRecords(const std::vector<StepRecord>& expected,
                       const std::vector<StepRecord>& got) {
  ASSERT_EQ(expected.size(), got.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "step " << expected[i].step);
    EXPECT_EQ(expected[i].step, got[i].step);
    VisitStepMetrics([&](const Metric& metric, auto member) {
      if (metric.clock) return;
      EXPECT_EQ(expected[i].*member, got[i].*member) << metric.name;
    });
  }
}

void ExpectSameEvaluations(const std::vector<EvaluationRecord>& expected,
                           const std::vector<EvaluationRecord>& got) {
  ASSERT_EQ(expected.size(), got.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "after step " << expected[i].step);
    EXPECT_EQ(expected[i].step, got[i].step);
    VisitEvaluationMetrics([&](const Metric& metric, auto member) {
      EXPECT_EQ(expected[i].*member, got[i].*member) << metric.name;
    });
  }
}

void ExpectSameValidation(const Validation& expected, const Validation& got) {
  VisitValidationMetrics([&](const Metric& metric, auto member) {
    EXPECT_EQ(expected.*member, got.*member) << metric.name;
  });
}

namespace {

void ExpectSameTasks(const std::vector<TaskResult>& expected,
                     const std::vector<TaskResult>& got) {
  ASSERT_EQ(expected.size(), got.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "task " << expected[i].name);
    EXPECT_EQ(expected[i].name, got[i].name);
    EXPECT_EQ(expected[i].sha256, got[i].sha256);
    EXPECT_EQ(expected[i].right, got[i].right);
    ASSERT_EQ(expected[i].measures.size(), got[i].measures.size());
    for (size_t m = 0; m < expected[i].measures.size(); ++m) {
      VisitAnswerMetrics([&](const Metric& metric, auto member) {
        EXPECT_EQ(expected[i].measures[m].*member, got[i].measures[m].*member)
            << metric.name << " " << m;
      });
    }
  }
}

}  // namespace

void ExpectSameEvaluations(const FinalEvaluations& expected,
                           const FinalEvaluations& got) {
  EXPECT_EQ(expected.code_version, got.code_version);
  ASSERT_EQ(expected.inference_tau.size(), got.inference_tau.size());
  for (size_t i = 0; i < expected.inference_tau.size(); ++i) {
    const InferenceTau &a = expected.inference_tau[i],
                       &b = got.inference_tau[i];
    SCOPED_TRACE(testing::Message() << "inference tau x" << a.factor);
    EXPECT_EQ(a.factor, b.factor);
    EXPECT_EQ(a.tau, b.tau);
    ExpectSameValidation(a.validation, b.validation);
    ExpectSameTasks(a.tasks, b.tasks);
  }
  ASSERT_EQ(expected.router_health.size(), got.router_health.size());
  for (size_t l = 0; l < expected.router_health.size(); ++l) {
    const RouterHealth &a = expected.router_health[l],
                       &b = got.router_health[l];
    SCOPED_TRACE(testing::Message() << "layer " << l);
    VisitHealthMetrics([&](const Metric& metric, auto member) {
      EXPECT_EQ(a.*member, b.*member) << metric.name;
    });
  }
  ExpectSameTasks(expected.tasks, got.tasks);
}

void ExpectSameResult(const RunResult& expected, const RunResult& got) {
  EXPECT_EQ(ConfigToToml(expected.config), ConfigToToml(got.config));
  EXPECT_EQ(CompareIdentities(expected.identity, got.identity),
            IdentityDifferences());
  VisitRunMetrics([&](const Metric& metric, auto member) {
    if (metric.clock) return;
    EXPECT_EQ(expected.*member, got.*member) << metric.name;
  });
  EXPECT_EQ(expected.tau_calibrated, got.tau_calibrated);
  ExpectSameRecords(expected.steps, got.steps);
  {
    SCOPED_TRACE("validation at the schedule's temperature");
    ExpectSameValidation(expected.at_schedule_temperature,
                         got.at_schedule_temperature);
  }
  {
    SCOPED_TRACE("validation at T = 1");
    ExpectSameValidation(expected.final_validation, got.final_validation);
  }
  EXPECT_EQ(expected.code_version, got.code_version);
  ASSERT_EQ(expected.final_evaluations.has_value(),
            got.final_evaluations.has_value());
  if (expected.final_evaluations) {
    ExpectSameEvaluations(*expected.final_evaluations, *got.final_evaluations);
  }
}

FreshModel::FreshModel(const Config& config, uint64_t seed)
    : data(config, WriteTinyTokens(FreshFolder("fresh_model"))),
      model(optimized::MakeModel(
          config, config.training.balance_group_sequences, pool)) {
  optimized::InitializeParameters(*model, seed, pool);
}

RunOptions QuietOptions(const std::filesystem::path& folder,
                        const std::filesystem::path& tokens, int64_t threads) {
  RunOptions options;
  options.folder = folder;
  options.tokens = tokens;
  options.quiet = true;
  options.runtime.threads = threads;
  return options;
}

void ExpectSameTensors(const std::filesystem::path& expected,
                       const std::filesystem::path& got) {
  const Hdf5Kind kind{.name = "checkpoint", .version = 3};
  const Hdf5Reader a(expected, kind), b(got, kind);
  for (const char* name : {"/parameters", "/first_moment", "/second_moment"}) {
    const auto from = a.ReadDataset<float>(name).values;
    EXPECT_FALSE(from.empty());
    EXPECT_TRUE(SameBits(from, b.ReadDataset<float>(name).values)) << name;
  }
}

void ExpectSameRun(const std::filesystem::path& expected,
                   const std::filesystem::path& got) {
  ExpectSameResult(ReadRunResult(expected / kResultName),
                   ReadRunResult(got / kResultName));
  ExpectSameTensors(expected / kCheckpointName, got / kCheckpointName);
  EXPECT_EQ(MetricsOf(expected), MetricsOf(got));
  EXPECT_EQ(FilesIn(got), (std::vector<std::string>{
                              kCheckpointName, kMetricsName, kResultName}));
}

std::vector<nlohmann::json> MetricsOf(const std::filesystem::path& run) {
  std::vector<nlohmann::json> result;
  std::ifstream lines(run / kMetricsName);
  std::string line;
  while (std::getline(lines, line)) {
    result.push_back(nlohmann::json::parse(line));
    VisitStepMetrics([&](const Metric& metric, auto) {
      if (metric.clock) result.back().erase(metric.name);
    });
  }
  return result;
}

}  // namespace softmoe::trainer
