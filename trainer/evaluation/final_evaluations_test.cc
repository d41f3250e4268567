// SPDX-License-Identifier: Apache-2.0
//
// Evaluations after training give the same numbers at once, later from the
// checkpoint, interrupted anywhere, and with any number of threads.
#include "trainer/evaluation/final_evaluations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/testing/config_test_util.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "optimized/communicator/communicator.h"
#include "optimized/device.h"
#include "optimized/model.h"
#include "trainer/evaluation/router_health.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics_log.h"
#include "trainer/results/run_result_file.h"
#include "trainer/results/train_state.h"
#include "trainer/run/trainer.h"
#include "trainer/testing/trainer_test_util.h"
#include "trainer/tokens/dataset.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

const EvaluationPlan kNothing;
const EvaluationPlan kAll = {.inference_tau_factors = {0.5, 1, 1.5, 2},
                             .active_histogram = true,
                             .router_health = true};
// The groups processed with kAll: eval_sequences = 8 in groups of 2, at four
// tau, one of which also gives the router health.
constexpr int kGroups = 4 * 4;

EvaluationPlan AndGo(EvaluationPlan plan) {
  plan.keep_checkpoint = false;
  return plan;
}

class EveryRouter : public testing::TestWithParam<RouterKind> {
 protected:
  void SetUp() override {
    folder_ = FreshFolder(std::string("final_") + RouterKindName(GetParam()));
    tokens_ = WriteTinyTokens(folder_ / "data");
    config_ = TinyConfig(GetParam());
    // For training alone: what is measured afterwards has T = 1 and no noise.
    config_.router.temperature_end = 2;
    config_.router.noise = NoiseKind::kLogitGauss;
    config_.router.noise_amplitude = 0.05;
  }

  bool sparse() const { return GetParam() == RouterKind::kSparse; }

  RunOptions Options(const std::string& run, const EvaluationPlan& plan,
                     int64_t threads = 2) const {
    RunOptions options = QuietOptions(folder_ / run, tokens_, threads);
    options.evaluations = plan;
    return options;
  }
  RunResult Train(const std::string& run, const EvaluationPlan& plan,
                  int64_t threads = 2) const {
    return TrainRun(config_, Options(run, plan, threads));
  }
  fs::path CheckpointOf(const std::string& run) const {
    return folder_ / run / kCheckpointName;
  }
  static std::string Obstacle(const RunResult& result, const fs::path& path) {
    return EvaluationObstacle(result, path, optimized::Cpu().identity());
  }
  RunResult OnDisk(const std::string& run) const {
    return ReadRunResult(folder_ / run / kResultName);
  }

  fs::path folder_, tokens_;
  Config config_;
};

INSTANTIATE_TEST_SUITE_P(FinalEvaluations, EveryRouter,
                         testing::ValuesIn(kRouterKinds), NameOfRouter);

TEST_P(EveryRouter, GetsWhatThePlanListsOnItsFinalParameters) {
  const RunResult plain = Train("plain", kNothing);
  EXPECT_FALSE(plain.final_evaluations.has_value());
  RunResult result = Train("all", kAll);
  ASSERT_TRUE(result.final_evaluations.has_value());
  const FinalEvaluations all = *result.final_evaluations;
  EXPECT_EQ(MissingEvaluations(kAll, result), "");

  // Training is the same as without evaluations.
  result.final_evaluations.reset();
  ExpectSameResult(plain, result);
  ExpectSameTensors(CheckpointOf("plain"), CheckpointOf("all"));

  ASSERT_EQ(all.router_health.size(), 2u);
  const Validation& v = plain.final_validation;
  double zero_active = 0;
  for (int l = 0; l < 2; ++l) {
    const RouterHealth& health = all.router_health[l];
    EXPECT_EQ(health.dead_experts,
              std::ranges::count(v.tokens_per_expert[l], 0));
    EXPECT_GT(health.load_entropy, 0);
    EXPECT_EQ(health.load_entropy, LoadEntropy(v.tokens_per_expert[l]));
    EXPECT_LT(health.relative_load_entropy, 1);
    EXPECT_EQ(health.truncated_mass.has_value(), !sparse());
    if (sparse()) {
      EXPECT_EQ(health.at_cap_fraction, 1);
    } else {
      EXPECT_GT(*health.truncated_mass, 0);
      EXPECT_LT(*health.truncated_mass, plain.allocation[l]);
    }
    zero_active += health.zero_active_fraction / 2;
  }
  // Quotients of integers by powers of two: 128 tokens, 2 layers.
  EXPECT_EQ(zero_active, v.zero_active_fraction);

  if (sparse()) {
    EXPECT_TRUE(all.inference_tau.empty());
    return;
  }
  ASSERT_EQ(all.inference_tau.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const InferenceTau& at = all.inference_tau[i];
    EXPECT_EQ(at.factor, kAll.inference_tau_factors[i]);
    EXPECT_EQ(at.tau, at.factor * plain.tau);
    // The input of the first layer does not depend on tau, so there a larger
    // tau can only remove experts.
    if (i > 0) {
      EXPECT_LE(at.validation.layer_active_experts[0],
                all.inference_tau[i - 1].validation.layer_active_experts[0]);
    }
  }
  ExpectSameValidation(v, all.inference_tau[1].validation);
  EXPECT_LT(all.inference_tau[3].validation.active_experts,
            all.inference_tau[0].validation.active_experts);
}

TEST_P(EveryRouter, AnyNumberOfThreadsGivesTheSameBits) {
  const RunResult one = Train("one", kAll, 1);
  ExpectSameResult(one, Train("two", kAll, 2));
  ExpectSameResult(one, Train("three", kAll, 3));
}

TEST_P(EveryRouter, MeasuresOnlyWhatIsAsked) {
  EvaluationPlan plan = {.inference_tau_factors = {2}};
  const RunResult two = Train("two", plan);
  plan = {.inference_tau_factors = {}, .router_health = true};
  const RunResult health = Train("health", plan);
  const FinalEvaluations all = *Train("all", kAll).final_evaluations;
  FinalEvaluations expected = all;
  expected.inference_tau.clear();
  ExpectSameEvaluations(expected, *health.final_evaluations);
  if (sparse()) {
    // The sparse router has no tau: nothing to measure, and nothing missing.
    EXPECT_FALSE(two.final_evaluations.has_value());
    EXPECT_EQ(MissingEvaluations({.inference_tau_factors = {2}}, two), "");
    return;
  }
  expected = all;
  expected.inference_tau = {all.inference_tau[3]};
  expected.inference_tau[0].validation.active_histogram.clear();
  expected.router_health.clear();
  ExpectSameEvaluations(expected, *two.final_evaluations);
  EXPECT_EQ(MissingEvaluations(kAll, two),
            "inference tau x0.5, x1, x1.5; histograms of active experts at "
            "inference tau x2; router health");
}

TEST_P(EveryRouter, AFinishedRunIsEvaluatedFromItsCheckpoint) {
  const RunResult expected = Train("at once", kAll);
  const RunResult before = Train("later", kNothing);
  EXPECT_NE(MissingEvaluations(kAll, before), "");
  EXPECT_EQ(Obstacle(before, CheckpointOf("later")), "");
  ExpectSameResult(before, Train("later", kNothing));
  // A factor that an earlier plan measured and the second one does not name is
  // kept.
  Train("later", {.inference_tau_factors = {0.5}, .active_histogram = true});
  const EvaluationPlan rest = {.inference_tau_factors = {1, 1.5, 2},
                               .router_health = true};
  RunOptions options = Options("later", AndGo(rest), 3);
  options.on_step = [](const StepRecord&) { FAIL() << "trained again"; };
  ExpectSameResult(expected, TrainRun(config_, options));
  ExpectSameResult(expected, OnDisk("later"));
  EXPECT_EQ(OnDisk("later").seconds, before.seconds);
  EXPECT_EQ(FilesIn(folder_ / "later"),
            (std::vector<std::string>{kMetricsName, kResultName}));
  // Nothing is missing, so nothing is measured.
  options.on_evaluation = [] { FAIL() << "measured again"; };
  ExpectSameResult(expected, TrainRun(config_, options));
}

// The CPU, which tells when it is asked for its identity.
class WatchedCpu : public optimized::Device {
 public:
  explicit WatchedCpu(std::function<void()> asked) : asked_(std::move(asked)) {}
  optimized::DeviceIdentity identity() const override {
    asked_();
    return optimized::Cpu().identity();
  }
  std::unique_ptr<optimized::Model> MakeModel(
      const Config& config, int64_t group_sequences, ThreadPool& pool,
      Recompute recompute, optimized::Communicator* communicator) override {
    return optimized::Cpu().MakeModel(config, group_sequences, pool, recompute,
                                      communicator);
  }
  int64_t FreeMemory() const override { return optimized::Cpu().FreeMemory(); }
  int count() const override { return 1; }
  std::string id() const override { return ""; }
  std::string WhyNoLink() const override { return ""; }
  std::unique_ptr<Device> OfRank(int) const override { return nullptr; }

 private:
  std::function<void()> asked_;
};

// Another process measures the run between reading its result and the lock: the
// CPU is asked first for the run's identity, then to judge its checkpoint.
TEST_P(EveryRouter, WhatAnotherProcessHasMeasuredMeanwhileIsOnlyRead) {
  Train("run", kNothing);
  static int asked;
  static std::function<void()> other_process;
  asked = 0;
  other_process = [&] { Train("run", kAll); };
  const optimized::DeviceMaker maker = optimized::CudaDeviceMaker();
  optimized::CudaDeviceMaker() = [](int) -> std::unique_ptr<optimized::Device> {
    return std::make_unique<WatchedCpu>([] {
      if (++asked == 2) other_process();
    });
  };
  RunOptions options = Options("run", kAll);
  options.runtime.device = "cuda";
  options.on_evaluation = [] { FAIL() << "measured again"; };
  const RunResult result = TrainRun(config_, options);
  optimized::CudaDeviceMaker() = maker;
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(MissingEvaluations(kAll, result), "");
  ExpectSameResult(OnDisk("run"), result);
}

TEST_P(EveryRouter, TheCheckpointGoesOnlyAfterTheResult) {
  const RunResult kept = Train("kept", kAll);
  EXPECT_TRUE(fs::exists(CheckpointOf("kept")));
  RunOptions options = Options("gone", AndGo(kAll));
  options.on_evaluation = [&] {
    EXPECT_TRUE(fs::exists(CheckpointOf("gone")));
    EXPECT_FALSE(fs::exists(folder_ / "gone" / kResultName));
  };
  ExpectSameResult(kept, TrainRun(config_, options));
  EXPECT_EQ(FilesIn(folder_ / "gone"),
            (std::vector<std::string>{kMetricsName, kResultName}));
  ExpectSameResult(kept, OnDisk("gone"));
  // A finished run is only read, whether or not its checkpoint was to be kept.
  Train("kept", AndGo(kAll));
  EXPECT_TRUE(fs::exists(CheckpointOf("kept")));
}

TEST_P(EveryRouter, StoppedAnywhereGivesTheSameBits) {
  const RunResult expected = Train("unbroken", kAll);
  const int groups = sparse() ? kGroups / 4 : kGroups;
  const RunResult plain = Train("finished", kNothing);
  // Stops before every group in turn: right after training, and in later calls.
  for (const std::string run : {"fresh", "finished"}) {
    int seen = groups;
    for (int group = 1; group <= groups; ++group) {
      RunOptions options = Options(run, AndGo(kAll));
      seen = 0;
      options.on_evaluation = [&] {
        if (++seen == group) std::raise(group % 2 ? SIGTERM : SIGINT);
      };
      EXPECT_THROW(TrainRun(config_, options), StoppedError);
      EXPECT_EQ(seen, group);
      EXPECT_EQ(Checkpoint(CheckpointOf(run)).state().step, 12);
      if (run == "finished") {
        ExpectSameResult(plain, OnDisk(run));
      } else {
        EXPECT_FALSE(fs::exists(folder_ / run / kResultName));
      }
    }
    seen = 0;
    RunOptions options = Options(run, AndGo(kAll));
    options.on_evaluation = [&] { ++seen; };
    ExpectSameResult(expected, TrainRun(config_, options));
    EXPECT_EQ(seen, groups);
    ExpectSameResult(expected, OnDisk(run));
    EXPECT_FALSE(fs::exists(CheckpointOf(run)));
  }
}

// The reason is printed, and the result is unchanged.
TEST_P(EveryRouter, WithoutItsCheckpointAFinishedRunStaysAsItIs) {
  const RunResult before = Train("run", AndGo(kNothing));
  RunOptions options = Options("run", kAll);
  options.on_evaluation = [] { FAIL() << "measured on what?"; };
  const auto expect_obstacle = [&](const std::vector<std::string>& words) {
    ExpectSameResult(before, TrainRun(config_, options));
    ExpectSameResult(before, OnDisk("run"));
    const std::string text = Obstacle(before, CheckpointOf("run"));
    for (const std::string& word : words) {
      EXPECT_TRUE(Says(text, word));
    }
  };
  const std::string path = CheckpointOf("run").string();
  expect_obstacle(
      {path + ": the checkpoint is gone; delete the result beside it to have "
              "the same command train the run again, or leave these "
              "evaluations out"});
  EXPECT_NE(MissingEvaluations(kAll, before), "");

  Config other = config_;
  other.training.seed += 1;
  TrainRun(other, Options("other", kNothing));
  fs::copy_file(CheckpointOf("other"), CheckpointOf("run"));
  expect_obstacle({"are of different runs", "train the run"});

  RunOptions early = Options("early", kNothing);
  early.on_step = [](const StepRecord& record) {
    if (record.step == 5) std::raise(SIGTERM);
  };
  EXPECT_THROW(TrainRun(config_, early), StoppedError);
  fs::copy_file(CheckpointOf("early"), CheckpointOf("run"),
                fs::copy_options::overwrite_existing);
  expect_obstacle({"is of step 5 of 12", "train the run"});

  // Another version of the code, which computed otherwise.
  TrainRun(config_, Options("changed", kNothing));
  {
    const Checkpoint trained(CheckpointOf("changed"));
    TrainState state = trained.state();
    state.history[7].gradient_norm *= 1 + 1e-7;
    WriteCheckpoint(CheckpointOf("run"), trained.identity(), tokens_, state,
                    trained.ReadTensors(ParameterLayout(config_).total));
  }
  expect_obstacle({"are of different trainings", "train the run"});

  fs::resize_file(CheckpointOf("run"), fs::file_size(CheckpointOf("run")) - 1);
  expect_obstacle({path, "train the run"});

  RunResult elsewhere = before;
  elsewhere.identity.isa = "v5";
  EXPECT_EQ(Obstacle(elsewhere, path),
            path + ": the run was trained with v5, this process uses " +
                before.identity.isa +
                ", and a result must not mix the two. Continue with --isa v5");
}

TEST(MeasureFinalModel, RefusesAPlanThatCannotBeMeant) {
  const Config config = TinyConfig(RouterKind::kSoftFixed);
  ThreadPool pool(1);
  const Dataset data(config, WriteTinyTokens(FreshFolder("plan")));
  const auto model = optimized::MakeModel(config, 2, pool);
  optimized::SingleCommunicator alone;
  EXPECT_THROW(
      MeasureFinalModel(*model, data, 1, {.inference_tau_factors = {-1}}, {},
                        "", "", alone, [] {}),
      ConfigError);
  RunOptions options;
  options.evaluations.inference_tau_factors = {2, 1};
  EXPECT_THROW(TrainRun(config, options), ConfigError);
}

}  // namespace
}  // namespace softmoe::trainer
