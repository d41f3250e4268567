// SPDX-License-Identifier: Apache-2.0
//
// The trainer's whole path - train, validate, save, go on, report - where
// `device = "cuda"` is the simulated device: a run's identity on a device, and
// what remains when the device fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/bounded.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/testing/random_test_util.h"
#include "kernels/simt/device/device.h"
#include "optimized/allocation.h"
#include "optimized/communicator/communicator.h"
#include "optimized/device.h"
#include "optimized/initialize.h"
#include "optimized/memory_plan.h"
#include "optimized/model.h"
#include "optimized/step_memory.h"
#include "trainer/evaluation/evaluation.h"
#include "trainer/evaluation/final_evaluations.h"
#include "trainer/evaluation/loaded_model.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics.h"
#include "trainer/results/metrics_log.h"
#include "trainer/results/run_result.h"
#include "trainer/results/run_result_file.h"
#include "trainer/run/trainer.h"
#include "trainer/tasks/score_requests.h"
#include "trainer/testing/trainer_test_util.h"
#include "trainer/tokens/dataset.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSteps = 3;

// Values of cudaError_t and of ncclResult_t.
constexpr int kMemoryAllocation = 2;
constexpr int kLaunchFailure = 719;
constexpr int kRemoteError = 6;

// Expects that `measure` finds the same on a device as on the CPU with the same
// parameters, except for roundings. In norm, the roundings of a model move its
// results at most lambda sqrt(n) times as far as moving each parameter by a
// unit of rounding does, n being the longest sum; the reason is in
// property_tests/testing/model_difference.h. Both models round, and an ulp is
// at least such a unit.
void ExpectAsOnTheCpu(
    const std::vector<double>& on_device, optimized::Model& on_cpu,
    const std::function<std::vector<double>(optimized::Model&)>& measure) {
  constexpr double kLambda = 8;
  constexpr uint64_t kRuns = 4;
  const auto distance = [](const std::vector<double>& a,
                           const std::vector<double>& b) {
    double squares = 0;
    for (size_t i = 0; i < a.size(); ++i) squares += std::pow(a[i] - b[i], 2);
    return std::sqrt(squares);
  };
  const std::vector<double> expected = measure(on_cpu);
  ASSERT_EQ(on_device.size(), expected.size());
  const std::vector<float> parameters = on_cpu.ReadParameters();
  double squares = 0;
  for (uint64_t run = 0; run < kRuns; ++run) {
    std::vector<float> moved = parameters;
    const std::vector<int32_t> up = RandomIds(std::ssize(moved), 2, run, 2);
    for (size_t i = 0; i < moved.size(); ++i) {
      moved[i] = std::nextafter(moved[i], up[i] == 1 ? HUGE_VALF : -HUGE_VALF);
    }
    on_cpu.WriteParameters(moved, 0);
    squares += std::pow(distance(measure(on_cpu), expected), 2);
  }
  const ModelConfig& m = on_cpu.config().model;
  const auto longest_sum = static_cast<double>(
      std::max({m.d_model, m.d_ffn, m.vocab_size, m.sequence_length}));
  const double norm = distance(expected, std::vector<double>(expected.size()));
  EXPECT_LE(distance(on_device, expected),
            2 * kLambda * std::sqrt(longest_sum * squares / kRuns) +
                4 * kFloatUnit * norm);
}

class SimulatedRun : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = FreshFolder("simulated_run");
    tokens_ = WriteTinyTokens(folder_ / "data");
    config_ = TinyConfig(RouterKind::kSoftLearned);
    config_.training.steps = kSteps;
    config_.training.eval_every = 2;
    config_.training.eval_sequences = 2;
    config_.model.sequence_length = 8;
    config_.router.calibration_batches = 1;
    config_.router.noise = NoiseKind::kInputJitter;
    config_.router.noise_amplitude = 0.01;
  }
  void TearDown() override {
    EXPECT_LE(simt::LiveAllocations(), 0) << "of the device, after all runs";
    simt::SetDeviceLimits({});
  }

  RunOptions Options(const std::string& run,
                     const std::string& device = "cuda") const {
    RunOptions options = QuietOptions(folder_ / run, tokens_);
    options.runtime.device = device;
    return options;
  }
  RunResult Train(const std::string& run,
                  const std::string& device = "cuda") const {
    return TrainRun(config_, Options(run, device));
  }
  // Stops after `step`.
  void Interrupt(const std::string& run, int64_t step,
                 const std::string& device = "cuda") const {
    RunOptions options = Options(run, device);
    options.on_step = [step](const StepRecord& record) {
      if (record.step == step) std::raise(SIGTERM);
    };
    EXPECT_THROW(TrainRun(config_, options), StoppedError);
  }
  // Sets 12 steps of four groups, as many as there can be ranks.
  void MakeFourGroups();
  // Compares a run of two ranks, one of four, and one that was interrupted.
  void ExpectRanksTrainToTheBitsOfOne();
  // Lets a device fail midway, and expects that the last checkpoint stays.
  void ExpectAFailureLeavesTheCheckpoint(int ranks);
  // Returns TrainRun's message when it throws an ErrorType.
  template <typename ErrorType>
  std::string Refusal(const RunOptions& options) const {
    return MessageOf<ErrorType>([&] { TrainRun(config_, options); });
  }
  fs::path CheckpointOf(const std::string& run) const {
    return folder_ / run / kCheckpointName;
  }

  fs::path folder_, tokens_;
  Config config_;
};

void SimulatedRun::ExpectAFailureLeavesTheCheckpoint(int ranks) {
  Interrupt("run", 1);
  RunOptions options = Options("run");
  options.ranks = ranks;
  options.on_step = [](const StepRecord& record) {
    if (record.step == 2) {
      simt::FailCall("cudaMemcpyAsync", 1, kLaunchFailure);
    }
  };
  EXPECT_TRUE(Says(Refusal<EnvironmentError>(options),
                   "on the device: ", "continues from the last checkpoint"));
  EXPECT_EQ(Checkpoint(CheckpointOf("run")).state().step, 1);
  EXPECT_FALSE(fs::exists(folder_ / "run/result.h5"));
  EXPECT_TRUE(Train("run").resumed);
}

TEST_F(SimulatedRun, IsInterruptedAndGoesOnBitForBit) {
  const RunResult unbroken = Train("unbroken");
  EXPECT_LT(unbroken.steps.back().loss, unbroken.steps.front().loss);
  EXPECT_EQ(unbroken.identity.isa, "sm_90");
  EXPECT_EQ(unbroken.identity.backend, "simulated");
  EXPECT_EQ(unbroken.identity.device, "simulated device");
  EXPECT_EQ(unbroken.identity.libraries,
            "driver 13.0, CUDA runtime 13.0, cuBLASLt 13.1.0");
  // Every file contains the identity.
  ExpectSameResult(unbroken, ReadRunResult(folder_ / "unbroken/result.h5"));
  EXPECT_TRUE(SamePlace(Checkpoint(CheckpointOf("unbroken")).identity(),
                        unbroken.identity));
  std::ifstream log(folder_ / "unbroken" / kMetricsName);
  std::string line;
  std::getline(log, line);
  EXPECT_TRUE(Says(line, R"("isa":"sm_90")", R"("backend":"simulated")",
                   R"("device":"simulated device")",
                   R"("libraries":"driver 13.0)"));

  // Stops at an evaluation and at the last step.
  Interrupt("broken", 2);
  Interrupt("broken", kSteps);
  const RunResult broken = Train("broken");
  EXPECT_TRUE(broken.resumed);
  ExpectSameResult(unbroken, broken);
  ExpectSameTensors(CheckpointOf("unbroken"), CheckpointOf("broken"));
}

// The ranks share one device, or have one each and exchange over NCCL unless
// told otherwise. Any number of them may begin, and any may go on.
void SimulatedRun::ExpectRanksTrainToTheBitsOfOne() {
  const RunResult alone = Train("alone");
  const auto expect_as_alone = [&](const RunResult& result,
                                   const std::string& run, int64_t devices) {
    ExpectSameResult(alone, result);
    EXPECT_EQ(ReadRunResult(folder_ / run / kResultName).devices, devices);
    ExpectSameTensors(CheckpointOf("alone"), CheckpointOf(run));
    EXPECT_EQ(MetricsOf(folder_ / "alone"), MetricsOf(folder_ / run));
  };
  RunOptions options = Options("two");
  options.ranks = 2;
  expect_as_alone(TrainRun(config_, options), "two", 1);
  options = Options("four");
  options.ranks = 4;
  simt::SetDeviceLimits({.devices = 4});
  const int sends = simt::CallsOf("ncclSend");  // in all tests so far
  options.exchange = ExchangeChoice::kHost;
  expect_as_alone(TrainRun(config_, options), "four", 4);
  EXPECT_EQ(simt::CallsOf("ncclSend"), sends);
  options.folder = folder_ / "over_nccl";
  options.exchange = ExchangeChoice::kAuto;
  expect_as_alone(TrainRun(config_, options), "over_nccl", 4);
  EXPECT_GT(simt::CallsOf("ncclSend"), sends);

  Interrupt("broken", 3);
  options = Options("broken");
  options.ranks = 4;
  options.on_step = [](const StepRecord& record) {
    if (record.step == 8) std::raise(SIGTERM);
  };
  EXPECT_THROW(TrainRun(config_, options), StoppedError);
  simt::SetDeviceLimits({});
  options.ranks = 2;
  options.on_step = nullptr;
  expect_as_alone(TrainRun(config_, options), "broken", 1);
}

void SimulatedRun::MakeFourGroups() {
  config_.training.steps = 12;
  config_.training.eval_every = 8;
  config_.training.global_batch_sequences = 4;
  config_.training.micro_batch_sequences = 1;
  config_.training.balance_group_sequences = 1;
}

TEST_F(SimulatedRun, RanksTrainToTheBitsOfOne) {
  MakeFourGroups();
  ExpectRanksTrainToTheBitsOfOne();
}

TEST_F(SimulatedRun, RanksTrainInBf16ToTheBitsOfOne) {
  MakeFourGroups();
  config_.training.precision = Precision::kBf16;
  ExpectRanksTrainToTheBitsOfOne();
}

TEST_F(SimulatedRun, ADeviceThatDoesNotHoldAllOfItsRanksIsRefused) {
  config_.training.global_batch_sequences = 8;
  RunOptions options = Options("run");
  options.ranks = 2;
  // The queues of both ranks, what is reserved, and the arrays of one rank.
  const size_t queues = size_t{320} << 20, one = 350 << 10;
  const size_t reserved = 2'000'000'000, for_nccl = 1'000'000'000;
  simt::SetDeviceLimits({.memory = queues + reserved + one});
  EXPECT_TRUE(Says(Refusal<EnvironmentError>(options),
                   "2 ranks share the device", "what each of them has",
                   "start fewer"));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  simt::SetDeviceLimits(
      {.devices = 2, .memory = queues + reserved + for_nccl + one});
  EXPECT_EQ(TrainRun(config_, options).steps.size(),
            static_cast<size_t>(kSteps));
}

TEST_F(SimulatedRun, NcclIsRefusedWhereItCannotCarry) {
  config_.training.global_batch_sequences = 8;
  RunOptions options = Options("run");
  options.ranks = 2;
  options.exchange = ExchangeChoice::kNccl;
  EXPECT_TRUE(Says(Refusal<EnvironmentError>(options), "--exchange nccl",
                   "2 ranks share a device",
                   "as many ranks as "
                   "there are devices",
                   "leave --exchange out"));
  options.runtime.device = "cpu";
  EXPECT_TRUE(Says(Refusal<ConfigError>(options), "--exchange nccl",
                   "on the CPU", "--device=cuda"));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  options.exchange = ExchangeChoice::kAuto;
  EXPECT_EQ(TrainRun(config_, options).steps.size(),
            static_cast<size_t>(kSteps));
}

// The network of a rank fails in the middle of a run.
TEST_F(SimulatedRun, RanksEndTogetherWhenNcclFails) {
  config_.training.global_batch_sequences = 8;
  simt::SetDeviceLimits({.devices = 2});
  Interrupt("run", 1);
  RunOptions options = Options("run");
  options.ranks = 2;
  options.on_step = [](const StepRecord& record) {
    if (record.step == 2) {
      simt::FailCall("ncclCommGetAsyncError", 3, kRemoteError);
    }
  };
  EXPECT_TRUE(
      Says(Refusal<EnvironmentError>(options), "NCCL, ", "NCCL_DEBUG=INFO"));
  EXPECT_EQ(simt::LiveNcclCommunicators(), 0);
  EXPECT_EQ(Checkpoint(CheckpointOf("run")).state().step, 1);
  EXPECT_FALSE(fs::exists(folder_ / "run/result.h5"));
  EXPECT_TRUE(Train("run").resumed);
}

TEST_F(SimulatedRun, RanksEndTogetherWhenTheDeviceFails) {
  config_.training.global_batch_sequences = 8;
  ExpectAFailureLeavesTheCheckpoint(2);
}

TEST_F(SimulatedRun, TheOtherRoutersTrainToo) {
  for (const RouterKind kind : {RouterKind::kSparse, RouterKind::kSoftFixed}) {
    const Config full = config_;
    config_ = TinyConfig(kind);
    config_.model = full.model;
    config_.training = full.training;
    config_.training.steps = 1;
    const RunResult result = Train(RouterKindName(kind));
    EXPECT_EQ(result.identity.backend, "simulated");
    EXPECT_EQ(result.steps.size(), 1u);
  }
}

// A later evaluation of the checkpoint needs the same device and gives the
// run's bits.
TEST_F(SimulatedRun, IsEvaluatedOnItsDevice) {
  config_.training.steps = 1;
  const RunResult result = Train("run");
  EvaluationOptions options;
  options.folder = folder_ / "run";
  options.runtime.device = "cuda";
  const EvaluationReport report = EvaluateRun(options);
  EXPECT_EQ(report.validation.loss, result.final_validation.loss);
  EXPECT_EQ(report.device.backend, "simulated");
  EXPECT_TRUE(Says(EvaluationText(report), "simulated device, driver 13.0"));
  EXPECT_TRUE(Says(EvaluationJson(report), R"("backend":"simulated")"));
  // It can be measured elsewhere, too; the report says where.
  options.runtime.device = "";
  const EvaluationReport on_cpu = EvaluateRun(options);
  EXPECT_EQ(on_cpu.device.backend, "");
  EXPECT_FALSE(Says(EvaluationJson(on_cpu), "backend"));

  RunOptions later = Options("run");
  later.evaluations.inference_tau_factors = {1};
  later.evaluations.router_health = true;
  later.evaluations.keep_checkpoint = true;
  later.runtime.device = "";  // the result is read, and stays as it is
  EXPECT_FALSE(TrainRun(config_, later).final_evaluations.has_value());
  later.runtime.device = "cuda";
  const RunResult measured = TrainRun(config_, later);
  ASSERT_TRUE(measured.final_evaluations.has_value());
  ExpectSameValidation(result.final_validation, [&] {
    Validation at = measured.final_evaluations->inference_tau[0].validation;
    at.active_histogram = result.final_validation.active_histogram;
    return at;
  }());

  // No token is so near a tie that the CPU chooses different experts for it.
  LoadedModel loaded(Checkpoint(CheckpointOf("run")), config_, 1,
                     optimized::Cpu());
  const Dataset data(config_, tokens_);
  optimized::SingleCommunicator alone;
  const auto health = [&](optimized::Model& model) {
    return MeasureFinalModel(model, data, result.tau, {.router_health = true},
                             {}, tokens_, "", alone, [] {})
        ->router_health;
  };
  const auto truncated_masses = [](const std::vector<RouterHealth>& layers) {
    std::vector<double> masses;
    for (const RouterHealth& layer : layers) {
      masses.push_back(layer.truncated_mass.value());
    }
    return masses;
  };
  const std::vector<RouterHealth> expected = health(*loaded.model);
  const std::vector<RouterHealth>& got =
      measured.final_evaluations->router_health;
  ASSERT_EQ(got.size(), expected.size());
  for (size_t l = 0; l < got.size(); ++l) {
    VisitHealthMetrics([&](const Metric& metric, auto member) {
      if (&metric == &metrics::kTruncatedMass) return;
      EXPECT_EQ(got[l].*member, expected[l].*member) << metric.name;
    });
  }
  ExpectAsOnTheCpu(
      truncated_masses(got), *loaded.model,
      [&](optimized::Model& model) { return truncated_masses(health(model)); });
}

// Without gradients no layer keeps its activations. So the memory of a run that
// recomputes them is enough; the device lacks that of a run that keeps them.
TEST_F(SimulatedRun, IsEvaluatedInTheLeastMemoryOfTraining) {
  config_.training.steps = 1;
  const RunResult result = Train("run");
  const auto needed = [&](Recompute recompute) {
    optimized::MemoryPlan plan = optimized::PlanModel(config_);
    plan.Add(optimized::PlanPasses(
        config_,
        optimized::SizesOf(optimized::InitialAllocations(config_, /*tau=*/0),
                           config_.training.balance_group_sequences *
                               config_.model.sequence_length),
        recompute, optimized::MemoryKind::kDevice));
    return plan.bytes();
  };
  const int64_t least = needed(Recompute::kLayer);
  const int64_t most = needed(Recompute::kNone);
  ASSERT_LT(least, most);
  simt::SetDeviceLimits(
      {.memory = static_cast<size_t>(optimized::kProductWorkspaces +
                                     (least + most) / 2)});
  EvaluationOptions options;
  options.folder = folder_ / "run";
  options.runtime.device = "cuda";
  EXPECT_EQ(EvaluateRun(options).validation.loss, result.final_validation.loss);
}

// A batch of shorter sequences (without gradients) gives the bits of a model of
// that sequence length, whose products have the same sizes.
TEST_F(SimulatedRun, ShorterSequencesAreThoseOfAShorterModel) {
  const std::vector<int32_t> inputs = RandomIds(16, 64, 1, 0);
  const std::vector<int32_t> targets = RandomIds(16, 64, 1, 1);
  const auto losses = [&](int64_t sequence_length) {
    Config config = config_;
    config.model.sequence_length = sequence_length;
    RuntimeConfig runtime;
    runtime.device = "cuda";
    const auto device = optimized::MakeDevice(runtime);
    ThreadPool pool(1);
    const auto model = optimized::MakeModel(config, 2, pool, *device);
    optimized::InitializeParameters(*model, 1, pool);
    const optimized::Batch batch = {.num_sequences = 2,
                                    .inputs = inputs,
                                    .targets = targets,
                                    .sequence_length = 8};
    const optimized::RoutingState routing = {.temperature = 2, .tau = 1.1};
    if (sequence_length != 8) {
      std::vector<float> gradients(static_cast<size_t>(model->layout().total));
      EXPECT_TRUE(Says(MessageOf<InternalError>([&] {
                         model->ForwardBackward(batch, routing, 1, 1,
                                                gradients);
                       }),
                       "gradients of sequences of 8 on a device"));
    }
    const double whole = model->Forward(batch, routing).loss_sum;
    const std::span<const float> view = model->LastTokenLosses();
    double sum = 0;
    for (const float loss : view) sum += loss;
    // Both round the sum of so many doubles, in whatever order.
    EXPECT_NEAR(sum, whole, 2 * kDoubleUnit * sum * std::size(view));
    return std::vector<float>(view.begin(), view.end());
  };
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    config_.training.precision = precision;
    const std::vector<float> shorter = losses(8);
    EXPECT_EQ(shorter.size(), 16u);
    EXPECT_EQ(losses(16), shorter);
    EXPECT_EQ(losses(24), shorter);
  }
}

// Contexts of several lengths, each continued by every id of the vocabulary.
TEST_F(SimulatedRun, ScoresRequestsAsTheCpuDoes) {
  config_.model.vocab_size = 8;
  config_.model.sequence_length = 40;
  std::vector<RequestTokens> requests;
  for (const int64_t length : {3, 20, 38}) {
    for (int32_t id = 0; id < config_.model.vocab_size; ++id) {
      requests.push_back({.ids = RandomIds(length, 8, 1, 0), .scored = 1});
      requests.back().ids.push_back(id);
    }
  }
  const auto score = [&](optimized::Model& model) {
    optimized::SingleCommunicator alone;
    return ScoreRequests(requests, model, {.temperature = 2, .tau = 1.1},
                         2 * config_.model.sequence_length, alone, [] {});
  };
  const auto likelihoods = [](const std::vector<RequestScore>& scores) {
    std::vector<double> all;
    for (const RequestScore& s : scores) all.push_back(s.log_likelihood);
    return all;
  };
  ThreadPool pool(1);
  RuntimeConfig runtime;
  runtime.device = "cuda";
  const auto device = optimized::MakeDevice(runtime);
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    config_.training.precision = precision;
    const auto model = optimized::MakeModel(config_, 2, pool, *device);
    optimized::InitializeParameters(*model, 1, pool);
    const std::vector<RequestScore> scores = score(*model);
    for (size_t i = 0; i < scores.size(); ++i) {
      const auto context = std::span(scores).subspan(i / 8 * 8, 8);
      const auto likeliest =
          std::ranges::max_element(context, {}, &RequestScore::log_likelihood);
      EXPECT_EQ(scores[i].is_greedy, &*likeliest == &scores[i]) << i;
    }
    if (precision == Precision::kBf16) continue;  // not for the CPU
    const auto on_cpu = optimized::MakeModel(config_, 2, pool);
    optimized::InitializeParameters(*on_cpu, 1, pool);
    ExpectAsOnTheCpu(likelihoods(scores), *on_cpu, [&](optimized::Model& cpu) {
      return likelihoods(score(cpu));
    });
  }
}

// (device_failure_test has runs that are not finished.)
TEST_F(SimulatedRun, AFinishedRunIsReadUnlessAnotherDeviceIsAskedFor) {
  const RunResult result = Train("device");
  Train("cpu", "");
  ExpectSameResult(result, TrainRun(config_, Options("device", "")));
  EXPECT_TRUE(Says(Refusal<ConfigError>(Options("device", "cpu")), "result.h5",
                   "leave --isa and --device out"));
  EXPECT_TRUE(Says(Refusal<ConfigError>(Options("cpu")), "result.h5",
                   "leave --isa and --device out"));
}

// Planned and reserved memory suffice, although kernels and algorithms are
// loaded when they are first used, and NCCL takes buffers.
TEST_F(SimulatedRun, TrainsInWhatIsPlannedAndReserved) {
  MakeFourGroups();
  config_.training.steps = config_.training.eval_every = 2;
  constexpr size_t kContext = 500'000'000, kFirstUse = 10'000'000;
  // A device has run its first products before it is asked for free memory.
  constexpr size_t kFirstProducts = 3 * kFirstUse;
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    const optimized::MemoryPlan plan = optimized::PlanStep(
        config_, optimized::InitialAllocations(config_, /*tau=*/0),
        config_.training.balance_group_sequences, Recompute::kNone,
        optimized::kProductWorkspaces, ranks);
    const int64_t needed = plan.bytes() + optimized::kReservedMemory +
                           (ranks > 1 ? optimized::kReservedForNccl : 0);
    simt::DeviceLimits limits = {
        .devices = ranks,
        .memory = kContext + kFirstProducts + static_cast<size_t>(needed),
        .context = kContext,
        .first_use = kFirstUse,
        .nccl = static_cast<size_t>(optimized::kReservedForNccl)};
    simt::SetDeviceLimits(limits);
    RunOptions options = Options("fits_" + std::to_string(ranks));
    options.ranks = ranks;
    TrainRun(config_, options);
    EXPECT_GT(simt::LoadedCode(0), 30 * kFirstUse);

    --limits.memory;
    simt::SetDeviceLimits(limits);
    options.folder = folder_ / ("misses_" + std::to_string(ranks));
    EXPECT_TRUE(Says(Refusal<EnvironmentError>(options), " of memory left",
                     "after keeping"));
    EXPECT_FALSE(fs::exists(options.folder));
  }
}

TEST_F(SimulatedRun, TrainsInBf16AndGoesOnBitForBit) {
  config_.training.precision = Precision::kBf16;
  const RunResult unbroken = Train("unbroken");
  EXPECT_LT(unbroken.steps.back().loss, unbroken.steps.front().loss);
  EXPECT_EQ(unbroken.identity.config.training.precision, Precision::kBf16);
  Interrupt("broken", 2);
  const RunResult broken = Train("broken");
  EXPECT_TRUE(broken.resumed);
  ExpectSameResult(unbroken, broken);
  ExpectSameTensors(CheckpointOf("unbroken"), CheckpointOf("broken"));

  EvaluationOptions options;
  options.folder = folder_ / "unbroken";
  options.runtime.device = "cuda";
  EXPECT_EQ(EvaluateRun(options).validation.loss,
            unbroken.final_validation.loss);
  options.runtime.device = "";
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] { EvaluateRun(options); }),
                   CheckpointOf("unbroken").string(),
                   "only in fp32; measure it on a device (--device=cuda)"));
  // Without a device, finished runs are read but none is trained.
  ExpectSameResult(unbroken, TrainRun(config_, Options("unbroken", "")));
  EXPECT_TRUE(Says(Refusal<ConfigError>(Options("new", "")),
                   "training.precision = \"bf16\"", "--device=cuda"));
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

// Another precision is another configuration, which cannot continue the
// checkpoint.
TEST_F(SimulatedRun, ACheckpointOfAnotherPrecisionIsRefused) {
  Interrupt("fp32", 1);
  config_.training.precision = Precision::kBf16;
  Interrupt("bf16", 1);
  EXPECT_TRUE(Says(Refusal<ConfigError>(Options("fp32")),
                   CheckpointOf("fp32").string(), "training.precision"));
  config_.training.precision = Precision::kFp32;
  EXPECT_TRUE(Says(Refusal<ConfigError>(Options("bf16")),
                   CheckpointOf("bf16").string(), "training.precision"));
  EXPECT_TRUE(Train("fp32").resumed);
}

TEST_F(SimulatedRun, AFailureEndsTheRunAndLeavesTheCheckpoint) {
  ExpectAFailureLeavesTheCheckpoint(1);
}

// The second update, the first with a learning rate above 0, moves a budget and
// a layer's cap with it. Of two ranks, one lacks the memory.
TEST_F(SimulatedRun, IsSavedWhereTheNextStepLacksMemory) {
  const RunResult unbroken = Train("unbroken");
  for (const int ranks : {1, 2}) {
    const std::string run = "short_" + std::to_string(ranks);
    RunOptions options = Options(run);
    options.ranks = ranks;
    options.on_step = [](const StepRecord& record) {
      if (record.step == 2) {
        simt::FailCall("cudaMalloc", 1, kMemoryAllocation);
      }
    };
    EXPECT_TRUE(Says(Refusal<EnvironmentError>(options), "memory",
                     "after step 2/3, saved in ", "runtime.recompute"));
    EXPECT_EQ(Checkpoint(CheckpointOf(run)).state().step, 2);
    const RunResult broken = Train(run);
    EXPECT_TRUE(broken.resumed);
    ExpectSameResult(unbroken, broken);
    ExpectSameTensors(CheckpointOf("unbroken"), CheckpointOf(run));
  }
}

}  // namespace
}  // namespace softmoe::trainer
