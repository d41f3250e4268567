// SPDX-License-Identifier: Apache-2.0
//
// Updates of a model on the simulated device under sanitizers, in fp32 and in
// bf16, without GoogleTest, so that all of the program is instrumented
// (bazel/shim.bzl): two updates of two groups each, from generated parameters
// and tokens, with the same bits in two schedules, and by two ranks in threads:
// on one device that they share, and over NCCL on one each.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "core/parallel_for.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/queue.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/shim/simulator.h"
#include "kernels/simt/shim/variant.h"
#include "optimized/communicator/in_process.h"
#include "optimized/initialize.h"
#include "optimized/simulated_model.h"

namespace softmoe::optimized {
namespace {

constexpr int64_t kGroups = 2, kUpdates = 2;

Config SmallConfig(RouterKind router, Precision precision) {
  Config config;
  config.model = {.num_layers = 2,
                  .d_model = 16,
                  .num_heads = 2,
                  .d_ffn = 16,
                  .num_experts = 4,
                  .vocab_size = 24,
                  .sequence_length = 6,
                  .init_std = 0.2};
  config.router.kind = router;
  config.router.mean_active_experts = 2;
  config.router.noise = NoiseKind::kInputJitter;
  config.router.noise_amplitude = 0.05;
  config.training.global_batch_sequences = kGroups;
  config.training.balance_group_sequences = 1;
  config.training.precision = precision;
  return config;
}

// Parameters and moments.
struct State {
  std::vector<float> parameters, first, second;
  bool operator==(const State&) const = default;
};

// Trains on `stream`, alone or as a rank of `communicator`.
State TrainOn(CUstream_st* stream, const Config& config, Recompute recompute,
              Communicator* communicator,
              CarrierKind carrier = CarrierKind::kHost) {
  const auto queue =
      kernels::isa_shim::MakeQueue(stream, /*workspace=*/1 << 16);
  const auto model = config.training.precision == Precision::kFp32
                         ? backend_simulated::MakeBackendModel(
                               config, 1, *queue, recompute, communicator)
                         : backend_simulated_bf16::MakeBackendModel(
                               config, 1, *queue, recompute, communicator);
  ThreadPool pool(1);
  InitializeParameters(*model, /*seed=*/1, pool);
  const auto updater = communicator == nullptr
                           ? model->MakeUpdater()
                           : model->MakeUpdater(*communicator, carrier);
  const int64_t length = config.model.sequence_length;
  std::vector<int32_t> inputs(static_cast<size_t>(length)), targets(inputs);
  for (int64_t update = 0; update < kUpdates; ++update) {
    (void)updater->ComputeGradient(
        {.temperature = 1.25, .tau = 1.0, .noise = true, .step = update},
        [&](int64_t group) {
          for (int64_t t = 0; t < length; ++t) {
            inputs[t] = static_cast<int32_t>((7 * t + 5 * group + update) % 24);
            targets[t] = (inputs[t] + 3) % 24;
          }
          return Batch{.num_sequences = 1,
                       .inputs = inputs,
                       .targets = targets,
                       .first_token = group * length};
        });
    updater->Apply(1e-2, update);
  }
  return {model->ReadParameters(), updater->ReadFirstMoment(),
          updater->ReadSecondMoment()};
}

State Train(const Config& config, Recompute recompute) {
  return TrainOn(kernels::isa_shim::DeviceStream(), config, recompute, nullptr);
}

State TrainOnTwoRanks(const Config& config, CarrierKind carrier) {
  const bool own_devices = carrier == CarrierKind::kNccl;
  simt::SetDeviceLimits({.devices = own_devices ? 2 : 1});
  State state;
  RunInProcessRanks(2, [&](Communicator& communicator) {
    kernels::isa_shim::UseDevice(own_devices ? communicator.rank() : 0);
    CUstream_st* const stream = kernels::isa_shim::MakeStream();
    State own =
        TrainOn(stream, config, Recompute::kNone, &communicator, carrier);
    kernels::isa_shim::FreeStream(stream);
    if (communicator.rank() == 1) state = std::move(own);
  });
  return state;
}

// Returns 0 if all cases have the same bits, else 1.
int Main() {
  int wrong = 0;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const Config config = SmallConfig(RouterKind::kSoftLearned, precision);
    simt::SetSchedule(simt::Schedule::kAscending);
    const State once = Train(config, Recompute::kNone);
    simt::SetSchedule(simt::Schedule::kRandom, 3);
    if (Train(config, Recompute::kLayer) != once) {
      std::printf("other bits in the other schedule\n");
      ++wrong;
    }
    // MSan does not see what the C++ library does for threads.
    if (simt::kVariant == simt::kMsan) continue;
    for (const CarrierKind carrier : {CarrierKind::kHost, CarrierKind::kNccl}) {
      if (TrainOnTwoRanks(config, carrier) == once) continue;
      std::printf("other bits of two ranks%s\n",
                  carrier == CarrierKind::kNccl ? " over NCCL" : "");
      ++wrong;
    }
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace softmoe::optimized

int main() { return softmoe::simt::ExitStatus(softmoe::optimized::Main); }
