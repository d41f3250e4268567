// SPDX-License-Identifier: Apache-2.0
//
// Whole runs on several ranks: every number and every file is that of one
// process, whoever began the run and whoever goes on with it.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "core/process/stop_signal.h"
#include "core/testing/config_test_util.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "optimized/communicator/communicator.h"
#include "optimized/communicator/in_process.h"
#include "optimized/device.h"
#include "optimized/updater.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics.h"
#include "trainer/results/metrics_log.h"
#include "trainer/results/run_result.h"
#include "trainer/results/run_result_file.h"
#include "trainer/results/train_state.h"
#include "trainer/run/run_loop.h"
#include "trainer/run/trainer.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

// 20 steps of four balance groups, with noise and evaluations.
Config FourGroups(RouterKind kind) {
  Config config = TinyConfig(kind);
  config.training.steps = 20;
  config.training.global_batch_sequences = 8;
  config.training.eval_every = 8;
  config.router.noise = NoiseKind::kInputJitter;
  config.router.noise_amplitude = 0.01;
  return config;
}

class Ranks : public testing::TestWithParam<RouterKind> {
 protected:
  virtual Config MakeConfig() const { return FourGroups(GetParam()); }
  void SetUp() override {
    folder_ = FreshFolder(std::string("ranks_") + RouterKindName(GetParam()));
    tokens_ = WriteTinyTokens(folder_ / "data");
    config_ = MakeConfig();
    alone_ = TrainRun(config_, Options("alone", 1));
  }

  RunOptions Options(const std::string& run, int ranks) const {
    // Two ranks get 1 and 2 threads.
    RunOptions options = QuietOptions(folder_ / run, tokens_, 3);
    options.ranks = ranks;
    options.evaluations = {.inference_tau_factors = {0.5, 1},
                           .active_histogram = true,
                           .router_health = true};
    return options;
  }

  void ExpectAsAlone(const RunResult& result, const std::string& run) const {
    ExpectSameResult(alone_, result);
    ExpectSameRun(folder_ / "alone", folder_ / run);
  }

  void ExpectTheBitsOfOneProcess() const {
    for (const int ranks : {2, 4}) {
      const std::string run = std::to_string(ranks);
      std::vector<int64_t> seen;
      RunOptions options = Options(run, ranks);
      options.on_step = [&](const StepRecord& record) {
        seen.push_back(record.step);
      };
      ExpectAsAlone(TrainRun(config_, options), run);
      EXPECT_EQ(seen.size(), 20u) << "only rank 0 calls back";
    }
  }

  void ExpectToGoOnWithWhatAnotherNumberLeft() const {
    const std::string run = "changing";
    int64_t step = 0;
    for (const auto& [ranks, until] :
         {std::pair{2, 3}, {4, 8}, {1, 11}, {2, 20}}) {
      RunOptions options = Options(run, ranks);
      options.on_step = [&, until = until](const StepRecord& record) {
        step = record.step;
        if (step == until) std::raise(SIGTERM);
      };
      EXPECT_THROW(TrainRun(config_, options), StoppedError);
      EXPECT_EQ(step, until);
      EXPECT_EQ(Checkpoint(folder_ / run / kCheckpointName).state().step,
                until);
    }
    ExpectAsAlone(TrainRun(config_, Options(run, 4)), run);
  }

  std::filesystem::path folder_, tokens_;
  Config config_;
  RunResult alone_;
};

INSTANTIATE_TEST_SUITE_P(TrainRun, Ranks, testing::ValuesIn(kRouterKinds),
                         NameOfRouter);

TEST_P(Ranks, GiveTheBitsOfOneProcess) { ExpectTheBitsOfOneProcess(); }

TEST_P(Ranks, GoOnWithWhatAnotherNumberOfThemLeft) {
  ExpectToGoOnWithWhatAnotherNumberLeft();
}

// Runs of a size at which each rank has many blocks of the norm.
class SmokeRanks : public Ranks {
 protected:
  Config MakeConfig() const override {
    Config config = SmokeConfig(GetParam());
    config.training.eval_every = 8;
    return config;
  }
};
INSTANTIATE_TEST_SUITE_P(TrainRun, SmokeRanks,
                         testing::Values(RouterKind::kSparse,
                                         RouterKind::kSoftLearned),
                         NameOfRouter);

TEST_P(SmokeRanks, GiveTheBitsOfOneProcessAndGoOn) {
  ExpectTheBitsOfOneProcess();
  ExpectToGoOnWithWhatAnotherNumberLeft();
}

// A step's time is that of the clock of rank 0, which waits for the others;
// everything else that is measured is compared above.
TEST_P(Ranks, CountTheTokensOfAllOfThemInASecond) {
  const auto tokens = static_cast<double>(
      config_.training.global_batch_sequences * config_.model.sequence_length);
  (void)TrainRun(config_, Options("four", 4));
  const RunResult result = ReadRunResult(folder_ / "four" / kResultName);
  ASSERT_EQ(result.steps.size(), 20u);
  for (const StepRecord& step : result.steps) {
    EXPECT_GT(step.seconds, 0);
    EXPECT_EQ(step.tokens_per_second, tokens / step.seconds);
    EXPECT_GE(result.seconds, step.seconds);
  }
  std::ifstream log(folder_ / "four" / kMetricsName);
  int steps = 0;
  for (std::string line; std::getline(log, line);) {
    const auto json = nlohmann::json::parse(line);
    if (!json.contains(metrics::kTokensPerSecond.name)) continue;
    EXPECT_EQ(json.at(metrics::kTokensPerSecond.name).get<double>(),
              tokens / json.at(metrics::kStepSeconds.name).get<double>());
    ++steps;
  }
  EXPECT_EQ(steps, 20);
}

// The ranks stop in the middle of evaluations that they share, during training
// and at its end.
TEST_P(Ranks, StopInAnEvaluationAndRepeatIt) {
  const std::string run = "stopped";
  int64_t step = 0;
  for (const auto& [ranks, after, call] :
       {std::tuple{2, 8, 2}, {4, 8, 1}, {1, 16, 3}, {2, 16, 2}, {2, 20, 2}}) {
    RunOptions options = Options(run, ranks);
    int calls = 0;
    options.on_step = [&](const StepRecord& record) {
      step = record.step;
      calls = 0;
    };
    options.on_validation = [&, after = after, call = call] {
      if (step == after && ++calls == call) std::raise(SIGTERM);
    };
    EXPECT_THROW(TrainRun(config_, options), StoppedError);
    EXPECT_EQ(step, after);
    EXPECT_EQ(calls, call);
    EXPECT_EQ(Checkpoint(folder_ / run / kCheckpointName).state().step, after);
    EXPECT_FALSE(std::filesystem::exists(folder_ / run / kResultName));
  }
  ExpectAsAlone(TrainRun(config_, Options(run, 4)), run);
}

// The ranks stop before every group of the evaluations after training: at two
// tau, one of which also gives the routers' health; a sparse router has no tau.
TEST_P(Ranks, StopInAnEvaluationOfTheFinalModel) {
  const std::string run = "measured";
  int stops = 0;
  for (bool stopped = true; stopped;) {
    RunOptions options = Options(run, 2);
    int calls = 0;
    options.on_evaluation = [&] {
      if (++calls > stops) std::raise(SIGTERM);
    };
    try {
      ExpectAsAlone(TrainRun(config_, options), run);
      stopped = false;
    } catch (const StoppedError&) {
      ++stops;
      EXPECT_EQ(calls, stops);
      EXPECT_EQ(Checkpoint(folder_ / run / kCheckpointName).state().step, 20);
      EXPECT_FALSE(std::filesystem::exists(folder_ / run / kResultName));
    }
  }
  EXPECT_EQ(stops, GetParam() == RouterKind::kSparse ? 2 : 4);
}

TEST_P(Ranks, EndTogetherWhenOneFails) {
  RunOptions options = Options("failing", 4);
  options.runtime.checkpoint_every = 5;
  options.on_step = [](const StepRecord& record) {
    if (record.step == 7) throw EnvironmentError("the disk is full");
  };
  EXPECT_EQ(MessageOf<EnvironmentError>([&] { TrainRun(config_, options); }),
            "the disk is full");
  EXPECT_EQ(Checkpoint(folder_ / "failing" / kCheckpointName).state().step, 5);
  ExpectAsAlone(TrainRun(config_, Options("failing", 2)), "failing");
}

TEST_P(Ranks, RefuseADamagedCheckpoint) {
  std::filesystem::create_directory(folder_ / "damaged");
  std::ofstream(folder_ / "damaged" / kCheckpointName) << "no checkpoint";
  EXPECT_THROW(TrainRun(config_, Options("damaged", 2)), DataError);
}

// The others make no result, for which they would read the text again.
TEST_P(Ranks, LeaveTheResultToTheFirst) {
  const StopSignal stop;
  const RunOptions options = Options("result", 1);
  std::filesystem::create_directory(options.folder);
  std::vector<RunResult> results(2);
  optimized::RunInProcessRanks(2, [&](optimized::Communicator& ranks) {
    results[static_cast<size_t>(ranks.rank())] =
        RunLoop(alone_.identity, options, {}, ranks,
                optimized::CarrierKind::kHost, optimized::Cpu(), stop)
            .Run();
  });
  EXPECT_EQ(results[0].unigram_loss, alone_.unigram_loss);
  EXPECT_EQ(results[1].unigram_loss, RunResult().unigram_loss);
  EXPECT_NE(results[0].unigram_loss, results[1].unigram_loss);
}

// Ranks that are processes may each see different files under the same path.
TEST_P(Ranks, NeedTheCheckpointThatTheFirstOneFinds) {
  const StopSignal stop;
  const auto message = MessageOf<EnvironmentError>([&] {
    optimized::RunInProcessRanks(2, [&](optimized::Communicator& ranks) {
      const RunOptions options =
          Options(ranks.rank() == 0 ? "alone" : "elsewhere", 1);
      RunLoop(alone_.identity, options, {}, ranks,
              optimized::CarrierKind::kHost, optimized::Cpu(), stop);
    });
  });
  EXPECT_TRUE(Says(message,
                   (folder_ / "elsewhere" / kCheckpointName).string() +
                       ": rank 0 continues from this file",
                   "under the same path"));
}

// Or one has another checkpoint: of another step, or with another tau or other
// budgets.
TEST_P(Ranks, RefuseToGoOnFromDifferentCheckpoints) {
  const StopSignal stop;
  TrainState state;
  CheckpointTensors tensors;
  {
    const Checkpoint checkpoint(folder_ / "alone" / kCheckpointName);
    state = checkpoint.state();
    tensors = checkpoint.ReadTensors(alone_.parameters);
  }
  const auto leave_for = [&](const std::string& rank) {
    std::filesystem::create_directories(folder_ / rank);
    WriteCheckpoint(folder_ / rank / kCheckpointName, alone_.identity, tokens_,
                    state, tensors);
  };
  const auto expect_refused = [&](const std::string& difference) {
    leave_for("1");
    EXPECT_EQ(
        MessageOf<ConfigError>([&] {
          optimized::RunInProcessRanks(2, [&](optimized::Communicator& ranks) {
            RunLoop(alone_.identity, Options(std::to_string(ranks.rank()), 1),
                    {}, ranks, optimized::CarrierKind::kHost, optimized::Cpu(),
                    stop);
          });
        }),
        "rank 0 has " + difference +
            "; start all ranks with the same program, configuration and files");
    leave_for("0");  // from now on both have this
  };
  state.tau = 1.25;
  leave_for("0");
  state.tau = 0.75;
  expect_refused("tau 0x1.4p+0, rank 1 has 0x1.8p-1");
  state.history.pop_back();
  state.step = 19;
  expect_refused("step 20, rank 1 has 19");
  if (GetParam() != RouterKind::kSoftLearned) return;
  // The two layers share three experts as 1.5 and 1.5, or as 2 and 1; a cap is
  // twice as much.
  float* const logits =
      &tensors.parameters.at(ParameterLayout(config_).budget_logits);
  logits[0] = logits[1] = 0;
  leave_for("0");
  logits[0] = 100;
  expect_refused("caps 3 3 , rank 1 has 4 2 ");
}

TEST_P(Ranks, RefuseGroupsThatDoNotDivideBeforeAnythingIsWritten) {
  const auto message = [&](int ranks) -> std::string {
    return MessageOf<ConfigError>(
        [&] { TrainRun(config_, Options("refused", ranks)); });
  };
  EXPECT_TRUE(Says(message(3), "start 1, 2 or 4 ranks"));
  EXPECT_TRUE(Says(message(0), "0 ranks"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
}

// Three ranks of two groups each add in an order unlike that of one process.
TEST_P(Ranks, ThatAreNoSubtreesAreARunOfTheirOwn) {
  config_.training.global_batch_sequences = 12;
  const auto message = [&](const std::string& run, int ranks) -> std::string {
    return MessageOf<ConfigError>(
        [&] { TrainRun(config_, Options(run, ranks)); });
  };
  const RunResult unbroken = TrainRun(config_, Options("unbroken", 3));
  EXPECT_EQ(unbroken.identity.ranks, "3");
  // Where ranks are subtrees, their number does not matter.
  EXPECT_EQ(TrainRun(config_, Options("two", 2)).identity.ranks, "");

  // Only three ranks can resume what three ranks left.
  RunOptions options = Options("stopped", 3);
  options.on_step = [](const StepRecord& record) {
    if (record.step == 7) std::raise(SIGTERM);
  };
  EXPECT_THROW(TrainRun(config_, options), StoppedError);
  for (const int others : {1, 2, 6}) {
    const std::string text = message("stopped", others);
    EXPECT_TRUE(
        Says(text,
             "was trained by 3 ranks, this run has a number of ranks that "
             "gives the bits of one: they add gradients in another order, so "
             "the bits would differ. Continue with --ranks 3"));
  }
  ExpectSameResult(unbroken, TrainRun(config_, Options("stopped", 3)));
  ExpectSameTensors(folder_ / "unbroken" / kCheckpointName,
                    folder_ / "stopped" / kCheckpointName);

  // A finished run is only read, by one process or by three.
  for (const int readers : {1, 3}) {
    const RunResult read = TrainRun(config_, Options("unbroken", readers));
    EXPECT_EQ(read.identity.ranks, "3");
    ExpectSameResult(unbroken, read);
  }
  EXPECT_TRUE(Says(message("unbroken", 2), "was trained by 3 ranks"));
  EXPECT_TRUE(Says(message("two", 3),
                   "ranks that gives the bits of one, this run has 3 ranks"));
}

}  // namespace
}  // namespace softmoe::trainer
