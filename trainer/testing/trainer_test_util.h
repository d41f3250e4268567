// SPDX-License-Identifier: Apache-2.0
//
// trainer_test_util.h - shared by the tests of runs: tiny configurations,
// learnable generated tokens, and comparison to the last bit.
#ifndef SOFTMOE_TRAINER_TESTING_TRAINER_TEST_UTIL_H_
#define SOFTMOE_TRAINER_TESTING_TRAINER_TEST_UTIL_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/parallel_for.h"
#include "optimized/model.h"
#include "trainer/results/run_result.h"
#include "trainer/results/train_state.h"
#include "trainer/run/trainer.h"
#include "trainer/tokens/dataset.h"

namespace softmoe::trainer {

// Two layers of 16 x 32 with 4 experts, 64 tokens, 12 steps of 4 sequences in
// two balance groups: milliseconds per step, every code path.
Config TinyConfig(RouterKind kind);

// Returns a row of the smoke grid whose batch is four balance groups of four
// sequences, for 20 steps on generated tokens.
Config SmokeConfig(RouterKind kind);

// Writes PREFIX.{bin,idx} and returns PREFIX: documents over 64 tokens in which
// most tokens determine the next one, so that a model learns quickly.
std::filesystem::path WriteTinyTokens(const std::filesystem::path& folder,
                                      uint64_t seed = 1);

// A model of `config` with parameters of `seed`, and tiny tokens for it.
struct FreshModel {
  explicit FreshModel(const Config& config, uint64_t seed = 1);
  ThreadPool pool{2};
  Dataset data;
  std::unique_ptr<optimized::Model> model;
};

// A run that prints nothing.
RunOptions QuietOptions(const std::filesystem::path& folder,
                        const std::filesystem::path& tokens,
                        int64_t threads = 2);

// Return records in which no two numbers are the same.
StepRecord NumberedRecord(int64_t step, int64_t num_layers);
EvaluationRecord NumberedEvaluation(int64_t step);

// Adds a gtest failure for every number that differs, except those of a clock.
void ExpectSameRecords(const std::vector<StepRecord>& expected,
                       const std::vector<StepRecord>& got);
void ExpectSameEvaluations(const std::vector<EvaluationRecord>& expected,
                           const std::vector<EvaluationRecord>& got);
void ExpectSameValidation(const Validation& expected, const Validation& got);
void ExpectSameEvaluations(const FinalEvaluations& expected,
                           const FinalEvaluations& got);
void ExpectSameResult(const RunResult& expected, const RunResult& got);
// Compares the parameters and moments of two checkpoints.
void ExpectSameTensors(const std::filesystem::path& expected,
                       const std::filesystem::path& got);

// Compares results, checkpoints, logs and the names of files in two folders.
void ExpectSameRun(const std::filesystem::path& expected,
                   const std::filesystem::path& got);

// Returns the lines of metrics.jsonl in a run's folder, without clock times.
std::vector<nlohmann::json> MetricsOf(const std::filesystem::path& run);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TESTING_TRAINER_TEST_UTIL_H_
