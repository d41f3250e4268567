// SPDX-License-Identifier: Apache-2.0
//
// Interrupted runs: signals, full disks, checkpoints of other runs. A resumed
// run must equal the uninterrupted one bit for bit.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/code_version.h"
#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "core/testing/config_test_util.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics_log.h"
#include "trainer/results/run_result.h"
#include "trainer/results/run_result_file.h"
#include "trainer/run/trainer.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

// Raises `signal` at the end of step `step`.
void StopAt(RunOptions& options, int64_t step, int signal = SIGTERM) {
  options.on_step = [step, signal](const StepRecord& record) {
    if (record.step == step) std::raise(signal);
  };
}

class EveryRouter : public testing::TestWithParam<RouterKind> {
 protected:
  void SetUp() override {
    folder_ = FreshFolder(std::string("resume_") + RouterKindName(GetParam()));
    tokens_ = WriteTinyTokens(folder_ / "data");
    config_ = TinyConfig(GetParam());
    config_.training.eval_every = 4;
    config_.router.noise = NoiseKind::kInputJitter;
    config_.router.noise_amplitude = 0.01;
    unbroken_ = TrainRun(config_, QuietOptions(folder_ / "unbroken", tokens_));
  }

  void ExpectAsUnbroken(const RunResult& result,
                        const std::filesystem::path& run) {
    ExpectSameResult(unbroken_, result);
    ExpectSameRun(folder_ / "unbroken", run);
  }

  std::filesystem::path folder_, tokens_;
  Config config_;
  RunResult unbroken_;
};

INSTANTIATE_TEST_SUITE_P(Resume, EveryRouter, testing::ValuesIn(kRouterKinds),
                         NameOfRouter);

TEST_P(EveryRouter, GoesOnBitForBitAfterEverySignal) {
  const auto run = folder_ / "interrupted";
  // Stops after the first step, at an evaluation, twice in a row, and at the
  // last step.
  double seconds = 0;  // of all sessions so far
  for (const auto& [step, signal] :
       {std::pair{int64_t{1}, SIGTERM}, std::pair{int64_t{4}, SIGINT},
        std::pair{int64_t{5}, SIGTERM}, std::pair{int64_t{12}, SIGINT}}) {
    RunOptions options = QuietOptions(run, tokens_);
    StopAt(options, step, signal);
    EXPECT_TRUE(
        Says(MessageOf<StoppedError>([&] { TrainRun(config_, options); }),
             fmt::format(": after step {}/12, saved in {}; the same command ",
                         step, (run / kCheckpointName).string())));
    const Checkpoint checkpoint(run / kCheckpointName);
    EXPECT_EQ(checkpoint.state().step, step);
    EXPECT_GT(checkpoint.state().seconds, seconds);
    seconds = checkpoint.state().seconds;
    EXPECT_FALSE(std::filesystem::exists(run / kResultName));
  }
  const RunResult result = TrainRun(config_, QuietOptions(run, tokens_));
  EXPECT_TRUE(result.resumed);
  EXPECT_GT(result.seconds, seconds);
  ExpectAsUnbroken(result, run);
}

struct Crash {};

TEST_P(EveryRouter, GoesOnFromAnOlderCheckpointAfterACrash) {
  // checkpoint_every = 3 and a crash after step 8: the run resumes from step 6,
  // and the metrics of steps 7 and 8 are dropped and written again.
  const auto run = folder_ / "crashed";
  RunOptions options = QuietOptions(run, tokens_);
  options.runtime.checkpoint_every = 3;
  options.on_step = [](const StepRecord& record) {
    if (record.step == 8) throw Crash();
  };
  EXPECT_THROW(TrainRun(config_, options), Crash);
  EXPECT_EQ(Checkpoint(run / kCheckpointName).state().step, 6);
  EXPECT_GE(MetricsOf(run).size(), 9u);  // run, 8 steps, validation
  // A crash of the machine may also leave half a line.
  std::ofstream(run / kMetricsName, std::ios::app) << R"({"kind":"st)";

  std::vector<int64_t> seen;
  options.on_step = [&](const StepRecord& record) {
    seen.push_back(record.step);
  };
  const RunResult result = TrainRun(config_, options);
  EXPECT_EQ(seen, (std::vector<int64_t>{7, 8, 9, 10, 11, 12}));
  ExpectAsUnbroken(result, run);
}

TEST(Resume, WhatKilledProcessesLeftIsRemoved) {
  const auto folder = FreshFolder("leftovers");
  const auto tokens = WriteTinyTokens(folder / "data");
  const Config config = TinyConfig(RouterKind::kSparse);
  RunOptions options = QuietOptions(folder / "run", tokens);
  StopAt(options, 3);
  EXPECT_THROW(TrainRun(config, options), StoppedError);
  // Temporary files of two processes, such as half a checkpoint, and a file of
  // the user.
  for (const char* name :
       {".checkpoint.h5.4711.3.tmp", ".checkpoint.h5.12.1.tmp",
        ".metrics.jsonl.4711.1.tmp", ".result.h5.4711.9.tmp", ".notes.tmp"}) {
    std::ofstream(folder / "run" / name) << "half";
  }
  options.on_step = nullptr;
  TrainRun(config, options);
  EXPECT_EQ(FilesIn(folder / "run"),
            (std::vector<std::string>{".notes.tmp", kCheckpointName,
                                      kMetricsName, kResultName}));
}

TEST_P(EveryRouter, FullDiskKeepsTheOldCheckpoint) {
  const auto run = folder_ / "full";
  RunOptions options = QuietOptions(run, tokens_);
  StopAt(options, 3);
  EXPECT_THROW(TrainRun(config_, options), StoppedError);
  {
    // There is room for the metrics, but not for a checkpoint.
    const auto checkpoint = std::filesystem::file_size(run / kCheckpointName);
    FullDisk full(static_cast<int64_t>(checkpoint / 2));
    EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] {
                       TrainRun(config_, QuietOptions(run, tokens_));
                     }),
                     kCheckpointName));
  }
  EXPECT_EQ(Checkpoint(run / kCheckpointName).state().step, 3);
  EXPECT_EQ(FilesIn(run),
            (std::vector<std::string>{kCheckpointName, kMetricsName}));
  ExpectAsUnbroken(TrainRun(config_, QuietOptions(run, tokens_)), run);
}

// The next checkpoint adds the missing lines.
TEST_P(EveryRouter, FullDiskForTheLogAloneEndsNothing) {
  const auto run = folder_ / "log";
  RunOptions options = QuietOptions(run, tokens_);
  std::optional<FullDisk> full;
  options.on_step = [&](const StepRecord& record) {
    const auto log = std::filesystem::file_size(run / kMetricsName);
    if (record.step == 6) full.emplace(static_cast<int64_t>(log));
    if (record.step == 7) full.reset();
  };
  testing::internal::CaptureStderr();
  ExpectAsUnbroken(TrainRun(config_, options), run);
  EXPECT_TRUE(Says(testing::internal::GetCapturedStderr(),
                   "training continues, and the next checkpoint adds"));
}

TEST(Resume, SaysThatStepsOfALostSessionAreTrainedAnew) {
  const auto folder = FreshFolder("no_checkpoint");
  const Config config = TinyConfig(RouterKind::kSparse);
  RunOptions options =
      QuietOptions(folder / "run", WriteTinyTokens(folder / "data"));
  options.on_step = [](const StepRecord& record) {
    if (record.step == 5) throw Crash();
  };
  testing::internal::CaptureStderr();
  EXPECT_THROW(TrainRun(config, options), Crash);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  options.on_step = nullptr;
  testing::internal::CaptureStderr();
  TrainRun(config, options);
  EXPECT_TRUE(Says(testing::internal::GetCapturedStderr(), "warning: ",
                   "metrics.jsonl has 5 steps of a session that left no "
                   "checkpoint; beginning anew"));
}

// Rewrites a checkpoint with the changes of `edit`.
void EditCheckpoint(
    const std::filesystem::path& path, const Config& config,
    const std::function<void(TrainState&, std::vector<float>&)>& edit) {
  const int64_t total = ParameterLayout(config).total;
  CheckpointTensors arrays;
  RunIdentity identity;
  TrainState state;
  std::filesystem::path tokens;
  {
    const Checkpoint checkpoint(path);
    identity = checkpoint.identity();
    state = checkpoint.state();
    tokens = checkpoint.tokens();
    arrays = checkpoint.ReadTensors(total);
  }
  edit(state, arrays.parameters);
  WriteCheckpoint(path, identity, tokens, state, arrays);
}

// Returns the error of TrainRun in a folder whose checkpoint `damage` changes
// after 3 steps.
template <typename ErrorType, typename Damage>
std::string Refusal(Damage damage) {
  const auto folder = FreshFolder("refusal");
  const auto tokens = WriteTinyTokens(folder / "data");
  Config config = TinyConfig(RouterKind::kSoftLearned);
  RunOptions options = QuietOptions(folder / "run", tokens);
  StopAt(options, 3);
  EXPECT_THROW(TrainRun(config, options), StoppedError);
  options.on_step = nullptr;
  damage(folder / "run" / kCheckpointName, config, options);
  return MessageOf<ErrorType>([&] { TrainRun(config, options); });
}

TEST(Resume, RefusesACheckpointOfAnotherConfiguration) {
  const std::string message = Refusal<ConfigError>(
      [](const std::filesystem::path&, Config& config, RunOptions&) {
        config.training.learning_rate = 0.5;
      });
  EXPECT_TRUE(Says(message, "checkpoint.h5",
                   "training.learning_rate is 0.01 there and 0.5 here"));
}

TEST(Resume, RefusesACheckpointOfOtherTokens) {
  const std::string message =
      Refusal<DataError>([](const std::filesystem::path& checkpoint, Config&,
                            RunOptions& options) {
        options.tokens = WriteTinyTokens(checkpoint.parent_path() / "new", 2);
      });
  EXPECT_TRUE(Says(message, "other tokens"));
}

TEST(Resume, ANanInTheParametersIsFoundWhereItIs) {
  const std::string message = Refusal<NumericsError>(
      [](const std::filesystem::path& path, Config& config, RunOptions&) {
        // Column 2 of the second layer's router: every token's score for expert
        // 2 is NaN there, and none in the first layer is.
        const ParameterLayout layout(config);
        EditCheckpoint(path, config,
                       [&](TrainState&, std::vector<float>& parameters) {
                         parameters[layout.layers[1].router_weight + 2] =
                             std::numeric_limits<float>::quiet_NaN();
                       });
      });
  EXPECT_TRUE(Says(message, "step 4", "layer 1", "token 0", "expert 2"));
}

TEST(Resume, NamesEveryVersionThatTrainedIt) {
  const auto folder = FreshFolder("versions");
  const Config config = TinyConfig(RouterKind::kSparse);
  RunOptions options =
      QuietOptions(folder / "run", WriteTinyTokens(folder / "data"));
  for (const int64_t step : {2, 3}) {
    StopAt(options, step);
    EXPECT_THROW(TrainRun(config, options), StoppedError);
  }
  const auto path = folder / "run" / kCheckpointName;
  EXPECT_EQ(Checkpoint(path).state().code_version, CodeVersion());
  EditCheckpoint(path, config, [](TrainState& state, std::vector<float>&) {
    state.code_version = "0123456789ab";
  });
  options.on_step = nullptr;
  const std::string both = "0123456789ab, " + CodeVersion();
  testing::internal::CaptureStderr();
  EXPECT_EQ(TrainRun(config, options).code_version, both);
  EXPECT_TRUE(Says(testing::internal::GetCapturedStderr(),
                   ": trained so far by version 0123456789ab of this project, "
                   "but this is " +
                       CodeVersion() + ": "));
  EXPECT_EQ(Checkpoint(path).state().code_version, both);
  EXPECT_EQ(ReadRunResult(folder / "run" / kResultName).code_version, both);
}

TEST(Resume, TwoRunsDoNotShareAFolder) {
  const auto folder = FreshFolder("shared");
  const auto tokens = WriteTinyTokens(folder / "data");
  const Config config = TinyConfig(RouterKind::kSparse);
  RunOptions outer = QuietOptions(folder / "run", tokens);
  outer.on_step = [&](const StepRecord& record) {
    if (record.step > 1) return;
    EXPECT_THROW(TrainRun(config, QuietOptions(folder / "run", tokens)),
                 EnvironmentError);
  };
  EXPECT_NO_THROW(TrainRun(config, outer));
}

}  // namespace
}  // namespace softmoe::trainer
