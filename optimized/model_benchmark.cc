// SPDX-License-Identifier: Apache-2.0
//
// model_benchmark.cc - tokens per second of whole training steps: forward,
// backward, clipping and AdamW, with synthetic tokens.
//
//   bench [--isa=v3] [--threads=4] [--benchmark_filter=smoke/sparse2] ...
//   bench --profile=midi/sparse2       one step, operation by operation
//   bench --benchmark_filter='^mini/ranks2/' --benchmark_min_time=20
//                                      two ranks alternating with two threads
//   bench --benchmark_filter='^mini/soft_ae' --benchmark_repetitions=5
//         --benchmark_format=json      for `grid record mini --bench`
//   bench --device=cuda --benchmark_filter=^step/
//                                      the paper's step on a device
//
// The peer with the same sizes is experiments/peers/pytorch_step.py.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/config/benchmark_sizes.h"
#include "core/config/config.h"
#include "core/config/config_enums.h"
#include "core/errors.h"
#include "kernels/benchmark_options.h"
#include "optimized/allocation.h"
#include "optimized/communicator/in_process.h"
#include "optimized/device.h"
#include "optimized/initialize.h"
#include "optimized/model.h"
#include "optimized/paper_shapes.h"
#include "optimized/step_memory.h"
#include "optimized/step_profile.h"
#include "optimized/step_traffic.h"
#include "optimized/updater.h"

namespace softmoe::optimized {
namespace {

// A row of the results at one size: "midi/soft_fixed2".
struct Row {
  const char* name;
  RouterKind kind;
  double mean_active_experts;
  // For a soft router at initialization: the cutoff is chosen so that exactly
  // that many experts are active.
  bool exact = false;
};
constexpr Row kRows[] = {{"sparse1", RouterKind::kSparse, 1},
                         {"sparse2", RouterKind::kSparse, 2},
                         {"soft_fixed2", RouterKind::kSoftFixed, 2},
                         {"soft_learned2", RouterKind::kSoftLearned, 2}};
// More rows at the mini size: throughput by active experts, hypothesis H2.
constexpr Row kMiniRows[] = {{"soft_ae1", RouterKind::kSoftFixed, 1, true},
                             {"soft_ae1.5", RouterKind::kSoftFixed, 1.5, true},
                             {"soft_ae2", RouterKind::kSoftFixed, 2, true},
                             {"soft_ae3", RouterKind::kSoftFixed, 3, true},
                             {"soft_ae4", RouterKind::kSoftFixed, 4, true},
                             {"sparse3", RouterKind::kSparse, 3},
                             {"sparse4", RouterKind::kSparse, 4}};

std::vector<Row> RowsOf(const BenchmarkSize& size) {
  std::vector<Row> rows(std::begin(kRows), std::end(kRows));
  if (std::string(size.name) == "mini") {
    rows.insert(rows.end(), std::begin(kMiniRows), std::end(kMiniRows));
  }
  return rows;
}

std::string NameOf(const BenchmarkSize& size, const Row& row) {
  return std::string(size.name) + "/" + row.name;
}

Config ConfigOf(const BenchmarkSize& size, const Row& row, int64_t groups) {
  Config config;
  config.model = size.Model();
  config.router.kind = row.kind;
  config.router.mean_active_experts = row.mean_active_experts;
  config.training.global_batch_sequences = size.num_sequences;
  config.training.balance_group_sequences = size.num_sequences / groups;
  return config;
}

// A model that trains on one batch of synthetic tokens.
class Trainee {
 public:
  Trainee(const BenchmarkSize& size, const Row& row, ThreadPool& pool)
      : Trainee(ConfigOf(size, row, /*groups=*/1), row, pool, nullptr) {}
  // Trains on batches of several balance groups, together with the other ranks
  // of the communicator if there is one.
  Trainee(const Config& config, const Row& row, ThreadPool& pool,
          Communicator* communicator, Device& device = Cpu(),
          Recompute recompute = Recompute::kNone)
      : group_sequences_(config.training.balance_group_sequences),
        group_tokens_(group_sequences_ * config.model.sequence_length),
        model_(MakeModel(config, group_sequences_, pool, device, recompute)),
        updater_(communicator == nullptr
                     ? model_->MakeUpdater()
                     : model_->MakeUpdater(*communicator, CarrierKind::kHost)) {
    InitializeParameters(*model_, 1, pool);
    const int64_t tokens =
        config.training.global_batch_sequences * config.model.sequence_length;
    for (int64_t t = 0; t <= tokens; ++t) {
      text_.push_back(BenchmarkToken(t, config.model.vocab_size));
    }
    if (row.exact) ChooseTau(row.mean_active_experts);
  }

  // Does one step. On a device the update is still pending when it returns: the
  // next step waits for it.
  UpdateGradient Step() {
    UpdateGradient gradient = updater_->ComputeGradient(
        routing_, [&](int64_t group) { return Text(group); });
    // A rate of 0 costs the same, and keeps the routing as initialised.
    updater_->Apply(0.0, step_++);
    return gradient;
  }
  int64_t MemoryBytes() const { return model_->MemoryBytes(); }

 private:
  Batch Text(int64_t group) const {
    const auto n = static_cast<size_t>(group_tokens_);
    const auto ids = std::span<const int32_t>(text_).subspan(
        static_cast<size_t>(group) * n, n + 1);
    return {group_sequences_, ids.first(n), ids.subspan(1),
            group * group_tokens_};
  }

  // Bisects: the larger tau, the fewer experts are active.
  void ChooseTau(double active_experts) {
    double low = 0, high = 8;
    for (int i = 0; i < 24; ++i) {
      routing_.tau = (low + high) / 2;
      const double active =
          model_->Forward(Text(0), routing_).MeanActiveExperts();
      (active > active_experts ? low : high) = routing_.tau;
    }
  }

  const int64_t group_sequences_, group_tokens_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Updater> updater_;
  std::vector<int32_t> text_;
  // A cutoff that leaves about mean_active_experts active.
  RoutingState routing_{.temperature = 1.5, .tau = 1.0};
  int64_t step_ = 0;
};

ThreadPool& Pool() {
  static ThreadPool pool(kernels::benchmark_threads);
  return pool;
}

// Wall-clock seconds.
double SecondsOf(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - begin;
  return taken.count();
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t last = values.size() - 1;
  return (values[last / 2] + values[(last + 1) / 2]) / 2;
}

void BM_TrainingStep(benchmark::State& state, const BenchmarkSize& size,
                     const Row& row) {
  Trainee trainee(size, row, Pool());
  const UpdateGradient first = trainee.Step();  // touches all memory
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(SecondsOf([&] { trainee.Step(); }));
  }
  const auto tokens = static_cast<double>(size.tokens());
  state.counters["tokens/s"] = tokens / Median(seconds);
  state.counters["best_tokens/s"] = tokens / *std::ranges::min_element(seconds);
  state.counters["active_experts"] = first.groups[0].MeanActiveExperts();
  state.counters["threads"] = Pool().threads();
  state.SetLabel(size.Label());
}

// Times steps of two ranks, alternating with those of a process of two threads,
// both on the grid's balance groups, so that whatever else slows the machine
// slows both. The ranks are threads here, each with one thread of its own.
constexpr int kRanks = 2;

// Times of rank 0, which drives the benchmark.
struct RankTimes {
  std::vector<double> alone, together;  // s, of each step
  int64_t bytes = 0;                    // sent by rank 0, in all steps
};

RankTimes TimeRanks(benchmark::State& state, const Config& config,
                    const Row& row) {
  RankTimes times;
  RunInProcessRanks(kRanks, [&](Communicator& rank) {
    const bool leads = rank.rank() == 0;
    std::optional<ThreadPool> both;
    std::optional<Trainee> alone;
    if (leads) {
      both.emplace(kRanks);
      alone.emplace(config, row, *both, nullptr);
      alone->Step();  // touches all memory
    }
    ThreadPool own(1);
    Trainee ranked(config, row, own, &rank);
    ranked.Step();
    for (;;) {
      uint8_t go_on[] = {leads && state.KeepRunning()};
      rank.Broadcast<uint8_t>(go_on, 0);
      if (go_on[0] == 0) return;
      if (leads) times.alone.push_back(SecondsOf([&] { alone->Step(); }));
      rank.Barrier();
      const int64_t sent = rank.sent_bytes();
      const double together = SecondsOf([&] {
        ranked.Step();
        rank.Barrier();
      });
      if (!leads) continue;
      times.together.push_back(together);
      times.bytes += rank.sent_bytes() - sent;
    }
  });
  return times;
}

void BM_Ranks(benchmark::State& state, const BenchmarkSize& size,
              const Row& row) {
  const Config config = ConfigOf(size, row, size.grid_groups);
  const RankTimes times = TimeRanks(state, config, row);
  const auto tokens = static_cast<double>(size.tokens());
  state.counters["tokens/s"] = tokens / Median(times.together);
  state.counters["threads_tokens/s"] = tokens / Median(times.alone);
  state.counters["ratio"] = Median(times.alone) / Median(times.together);
  state.counters["sent_bytes"] = static_cast<double>(times.bytes) /
                                 static_cast<double>(times.together.size());
  state.counters["planned_bytes"] =
      static_cast<double>(TrafficOfStep(config, kRanks, 0, 1).total());
  state.SetLabel(size.Label());
}

// Errors: EnvironmentError, with what is needed, if there is none.
std::unique_ptr<Device> CudaDevice() {
  RuntimeConfig runtime;
  runtime.device = "cuda";
  return MakeDevice(runtime);
}

// The paper's step.
Config PaperConfig(const Device& device, const Row& row, Precision precision) {
  const Shapes shapes = ShapesOn(device.identity().backend);
  Config config;
  config.model = shapes.model;
  config.training.precision = precision;
  config.training.balance_group_sequences = shapes.sequences;
  config.training.micro_batch_sequences = shapes.sequences;
  config.training.global_batch_sequences = shapes.groups * shapes.sequences;
  config.router.kind = row.kind;
  config.router.mean_active_experts = row.mean_active_experts;
  ValidateConfig(config);
  return config;
}

void TimeDeviceStep(benchmark::State& state, const Config& config,
                    const Row& row, Device& device, Recompute recompute) {
  Trainee trainee(config, row, Pool(), nullptr, device, recompute);
  const UpdateGradient first = trainee.Step();  // touches all memory
  double loss = 0, active = 0;
  for (const StepStats& group : first.groups) {
    loss += group.loss_sum;
    active += group.MeanActiveExperts();
  }
  for (auto _ : state) trainee.Step();
  const int64_t sequences = config.training.global_batch_sequences;
  const auto tokens =
      static_cast<double>(sequences * config.model.sequence_length);
  state.counters["active_experts"] =
      active / static_cast<double>(first.groups.size());
  state.counters["sequences"] = static_cast<double>(sequences);
  state.counters["loss"] = loss / tokens;
  state.counters["memory_bytes"] = static_cast<double>(trainee.MemoryBytes());
  state.counters["tokens/s"] =
      benchmark::Counter(tokens, benchmark::Counter::kIsIterationInvariantRate);
  state.SetLabel(EnumName(recompute));
}

// Uses the setting that recomputes least among those that fit.
// Errors: EnvironmentError if none fits. What fails later, on a device that is
// large enough, is an error of this benchmark, in its report.
void BM_DeviceStep(benchmark::State& state, const Row& row,
                   Precision precision) {
  const auto device = CudaDevice();
  const Config config = PaperConfig(*device, row, precision);
  const Recompute recompute =
      LeastRecompute(config, InitialAllocations(config, 0),
                     config.training.balance_group_sequences,
                     /*product_workspaces=*/0,
                     PlannableMemory(device->FreeMemory(), /*ranks=*/1))
          .value_or(Recompute::kLayer);
  RequireStepMemory(config, recompute, device->FreeMemory());
  try {
    TimeDeviceStep(state, config, row, *device, recompute);
  } catch (const EnvironmentError& error) {
    state.SkipWithError(error.what());
  }
}

StepProfile Measure(const BenchmarkSize& size, const Row& row, int threads) {
  ThreadPool pool(threads);
  Trainee trainee(size, row, pool);
  return ProfileStep(pool, [&] { trainee.Step(); });
}

void PrintProfile(const std::string& name) {
  std::string known;
  for (const BenchmarkSize& size : kBenchmarkSizes) {
    for (const Row& row : RowsOf(size)) {
      known += " " + NameOf(size, row);
      if (NameOf(size, row) != name) continue;
      const StepProfile all = Measure(size, row, kernels::benchmark_threads);
      const StepProfile one = all.threads == 1 ? all : Measure(size, row, 1);
      fmt::print("{}: {}\n{}", name, size.Label(),
                 StepProfileTable(all, one, size.tokens()));
      return;
    }
  }
  throw ConfigError(
      fmt::format("--profile={}: unknown name; choose one of{}", name, known));
}

void AddBenchmarks() {
  for (const BenchmarkSize& size : kBenchmarkSizes) {
    for (const Row& row : RowsOf(size)) {
      benchmark::RegisterBenchmark(NameOf(size, row).c_str(), BM_TrainingStep,
                                   size, row)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
      // Ranks that share a core would time their waiting.
      if (size.grid_groups % kRanks != 0 || row.exact ||
          kernels::benchmark_threads < kRanks) {
        continue;
      }
      benchmark::RegisterBenchmark(
          fmt::format("{}/ranks{}/{}", size.name, kRanks, row.name).c_str(),
          BM_Ranks, size, row)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
}

void AddDeviceBenchmarks() {
  (void)CudaDevice();  // without one nothing is listed
  constexpr std::pair<Row, Precision> kSteps[] = {
      {{"sparse1", RouterKind::kSparse, 1}, Precision::kBf16},
      {{"sparse2", RouterKind::kSparse, 2}, Precision::kBf16},
      {{"sparse4", RouterKind::kSparse, 4}, Precision::kBf16},
      {{"soft_learned2", RouterKind::kSoftLearned, 2}, Precision::kBf16},
      {{"sparse2", RouterKind::kSparse, 2}, Precision::kFp32}};
  for (const auto& [row, precision] : kSteps) {
    benchmark::RegisterBenchmark(
        fmt::format("step/{}/{}", row.name, EnumName(precision)).c_str(),
        BM_DeviceStep, row, precision)
        ->Iterations(1)
        ->Repetitions(1)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
}

const bool added = [] {
  kernels::add_benchmarks["cpu"].push_back(AddBenchmarks);
  kernels::add_benchmarks["cuda"].push_back(AddDeviceBenchmarks);
  kernels::print_profile = PrintProfile;
  return true;
}();

}  // namespace
}  // namespace softmoe::optimized
