// SPDX-License-Identifier: Apache-2.0
//
// //:train on a faulty device: its message, its exit code, and a last
// checkpoint that stays the same, byte for byte. The program is the released
// one except for the simulated device, which is told what fails.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/process/process.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/results/checkpoint.h"
#include "trainer/run/trainer.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

class DeviceFailure : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = FreshFolder(std::string("device_failure_") + test->name());
    tokens_ = WriteTinyTokens(folder_ / "data");
    config_ = TinyConfig(RouterKind::kSoftLearned);
    config_.model.sequence_length = 8;
    config_.router.calibration_batches = 1;
    config_.training.steps = 2;
    config_.training.eval_sequences = 2;
  }

  // Makes a run of config_ that stops after its first step, with a checkpoint.
  void StopAfterOneStep(const std::string& device) {
    RunOptions options = QuietOptions(folder_ / "run", tokens_, 1);
    options.runtime.device = device;
    options.on_step = [](const StepRecord&) { std::raise(SIGTERM); };
    EXPECT_THROW(TrainRun(config_, options), StoppedError);
    checkpoint_ = ReadWholeFile(folder_ / "run" / kCheckpointName);
  }

  // Tells the device what fails, and returns the program's output in `folder`.
  ProgramResult Train(const std::string& folder, const std::string& told,
                      const Strings& more) const {
    std::ofstream(folder_ / "tiny.toml") << ConfigToToml(config_);
    Strings command = {"env",
                       "SOFTMOE_SIMULATED_DEVICE=" + told,
                       RunfilePath("trainer/run/train_simulated").string(),
                       "--config",
                       "tiny.toml",
                       "--data",
                       tokens_.string(),
                       "--out",
                       folder,
                       "--threads=1"};
    command.insert(command.end(), more.begin(), more.end());
    return RunProgram(command, folder_);
  }

  // Expects the refusal both after a run has begun and before it begins, in
  // which case none begins.
  void ExpectRefused(ExitCode code, const std::string& told,
                     const Strings& phrases, bool new_runs_too,
                     const Strings& more = {"--device=cuda"}) const {
    SCOPED_TRACE(testing::Message() << "told: " << told);
    for (const std::string folder : {"run", "new"}) {
      if (folder == "new" && !new_runs_too) continue;
      const ProgramResult result = Train(folder, told, more);
      EXPECT_EQ(result.exit_status, static_cast<int>(code)) << result.output;
      size_t at = result.output.find("train: error: ");
      for (const std::string& phrase : phrases) {
        at = result.output.find(phrase, at);
        EXPECT_NE(at, std::string::npos)
            << "expected: " << phrase << "\ngot: " << result.output;
      }
    }
    EXPECT_FALSE(fs::exists(folder_ / "new"));
    EXPECT_EQ(FilesIn(folder_ / "run"),
              (Strings{"checkpoint.h5", "metrics.jsonl"}));
    EXPECT_TRUE(ReadWholeFile(folder_ / "run" / kCheckpointName) ==
                checkpoint_);
  }

  void ExpectGoesOn(const Strings& more) const {
    const ProgramResult result = Train("run", "", more);
    EXPECT_TRUE(EndedWith(result, 0, "continuing after step 1"));
  }

  fs::path folder_, tokens_;
  Config config_;
  std::string checkpoint_;
};

TEST_F(DeviceFailure, ADeviceThatCannotBeUsedEndsWithFive) {
  StopAfterOneStep("cuda");
  const std::string cpu = "Without --device the CPU is used";
  // Numbers of cudaError_t, except for cuBLAS.
  const std::vector<std::pair<std::string, Strings>> cases = {
      {"cudaGetDeviceCount=100",
       {"device \"cuda\": no CUDA device (driver ", "nvidia-smi",
        "CUDA_VISIBLE_DEVICES", cpu}},
      {"cudaDriverGetVersion=3 cudaGetDeviceCount=35",
       {"device \"cuda\": no NVIDIA driver is installed",
        "install one for CUDA", "--gpus all", cpu}},
      {"cudaGetDeviceCount=35",
       {"device \"cuda\": the NVIDIA driver is too old: it is for CUDA ",
        "install one for CUDA ", " or later", cpu}},
      {"driver=12040",
       {"device \"cuda\": the NVIDIA driver is too old: it is for CUDA 12.4",
        "install one for CUDA 13.0 or later", "cuda-compat", "LD_LIBRARY_PATH",
        cpu}},
      {"cudaGetDeviceProperties=101",
       {"device \"cuda\": device 0 does not answer", "nvidia-smi", cpu}},
      {"cudaFuncGetAttributes=209",
       {"device \"cuda\": simulated device is sm_90, and this program holds "
        "code for sm_80",
        "add the architecture to bazel/cuda_configure.bzl", cpu}},
      {"cublasLtGetVersion=1", {"device \"cuda\": no cuBLASLt: ", cpu}},
      {"memory=1000000",
       {"device \"cuda\": a product's workspace of 33554432 bytes: ",
        "1000000 of 1000000 are free", "take a device with more memory",
        "end what else uses this one", cpu}},
  };
  for (const auto& [told, phrases] : cases) {
    ExpectRefused(ExitCode::kEnvironment, told, phrases, /*new_runs_too=*/true);
  }
  ExpectGoesOn({"--device=cuda"});
}

// The device must not be a healthy one, on which such a test proves nothing.
TEST_F(DeviceFailure, AWordThatTellsTheDeviceNothingEndsWithSix) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"memroy=65536", "'memroy=65536'"},
      {"memory=64k driver=12040", "'memory=64k'"},
      {"driver=12040 cudaMemcpyAsync=", "'cudaMemcpyAsync='"},
      {"cudaMemcpyAsync", "'cudaMemcpyAsync'"},
  };
  for (const auto& [told, word] : cases) {
    const ProgramResult result = Train("new", told, {"--device=cuda"});
    EXPECT_TRUE(
        EndedWith(result, 6, "SOFTMOE_SIMULATED_DEVICE: " + word + ": "));
  }
}

// The device has room for the workspaces of products, what is reserved, and 64
// KiB more.
TEST_F(DeviceFailure, TooLittleMemoryNamesPartsSizesAndKey) {
  StopAfterOneStep("cuda");
  ExpectRefused(
      ExitCode::kEnvironment,
      "memory=" +
          std::to_string((int64_t{160} << 20) + 2'000'000'000 + (64 << 10)),
      {"the device has 64.0 KiB of memory left",
       "after keeping 1.9 GiB for what", "the next allocation needs",
       "parameters        65.0 KiB", "moments  ", "gradients  ", "total",
       "no runtime.recompute makes it fit", "training.balance_group_sequences"},
      /*new_runs_too=*/true);
  ExpectGoesOn({"--device=cuda"});
}

// They are refused whatever the device can hold.
TEST_F(DeviceFailure, SizesThatDoNotSuitBf16EndWithTwo) {
  StopAfterOneStep("cuda");
  ExpectRefused(ExitCode::kUsage, "memory=1",
                {"model.d_model is 12, and in bf16 it must be a multiple of 8",
                 "train in fp32"},
                /*new_runs_too=*/true,
                {"--device=cuda", "--set", "training.precision=bf16", "--set",
                 "model.d_model=12"});
  ExpectGoesOn({"--device=cuda"});
}

TEST_F(DeviceFailure, ANanEndsWithOne) {
  config_.training.learning_rate = 1e30;
  config_.training.clip_norm = 0;
  config_.training.warmup_fraction = 0;
  StopAfterOneStep("cuda");
  ExpectRefused(
      ExitCode::kFailed, "",
      {"step 2", "the run has diverged", "lower training.learning_rate"},
      /*new_runs_too=*/false);
}

// Fails while the model's parameters are copied; simulated_device_test covers
// failures within a step.
TEST_F(DeviceFailure, ADeviceThatFailsEndsWithFive) {
  StopAfterOneStep("cuda");
  ExpectRefused(ExitCode::kEnvironment, "cudaMemcpyAsync=719",
                {"on the device: ", "continues from the last checkpoint"},
                /*new_runs_too=*/false);
  ExpectGoesOn({"--device=cuda"});
}

TEST_F(DeviceFailure, ACheckpointOfTheCpuEndsWithTwo) {
  StopAfterOneStep("");
  ExpectRefused(ExitCode::kUsage, "",
                {"checkpoint.h5", "with instruction set v",
                 "this run uses simulated (simulated device, sm_90",
                 "Continue with --device=cpu --isa v"},
                /*new_runs_too=*/false);
  ExpectGoesOn({"--device=cpu"});
}

TEST_F(DeviceFailure, ACheckpointOfADeviceEndsWithTwoOnTheCpu) {
  StopAfterOneStep("cuda");
  for (const Strings& more : {Strings{}, Strings{"--device=cpu"}}) {
    ExpectRefused(
        ExitCode::kUsage, "",
        {"checkpoint.h5",
         "was trained with simulated (simulated device, sm_90; driver 13.0, "
         "CUDA runtime 13.0, cuBLASLt 13.1.0)",
         "this run uses instruction set v", "Continue with --device=cuda"},
        /*new_runs_too=*/false, more);
  }
  ExpectGoesOn({"--device=cuda"});
}

}  // namespace
}  // namespace softmoe::trainer
