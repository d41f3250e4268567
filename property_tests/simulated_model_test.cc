// SPDX-License-Identifier: Apache-2.0
//
// The model on the simulated device against the reference, by the tolerance of
// model_difference.h, and with the same bits in each schedule.
#include "optimized/simulated_model.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/queue.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/shim/simulator.h"
#include "property_tests/testing/model_difference.h"

namespace softmoe::property_tests {
namespace {

Config SmallConfig(RouterKind router) {
  Config config;
  config.model = {.num_layers = 2,
                  .d_model = 16,
                  .num_heads = 2,
                  .d_ffn = 12,
                  .num_experts = 5,
                  .vocab_size = 23,
                  .sequence_length = 9};
  config.router.kind = router;
  config.router.mean_active_experts =
      router == RouterKind::kSoftLearned ? 1.5 : 2.0;
  config.router.aux_loss_coeff = 0.01;
  config.router.z_loss_coeff = 0.001;
  return config;
}

std::unique_ptr<kernels::Queue> MakeQueue() {
  return kernels::isa_shim::MakeQueue(kernels::isa_shim::DeviceStream(),
                                      /*workspace=*/1 << 16);
}

class SimulatedModel : public ::testing::TestWithParam<RouterKind> {};

TEST_P(SimulatedModel, AgreesWithTheReference) {
  simt::SetSchedule(simt::Schedule::kAscending);
  const auto queue = MakeQueue();
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const ModelCase model_case =
        MakeModelCase(SmallConfig(GetParam()), /*num_sequences=*/2, seed);
    const ModelDifference difference = CompareModels(
        model_case, [&](const Config& config, int64_t group_sequences) {
          return optimized::backend_simulated::MakeModel(
              config, group_sequences, *queue);
        });
    EXPECT_TRUE(difference.ok()) << difference.Text();
    EXPECT_TRUE(difference.trusted()) << difference.Text();
  }
}

TEST_P(SimulatedModel, HasTheSameBitsInEachSchedule) {
  const ModelCase c =
      MakeModelCase(SmallConfig(GetParam()), /*num_sequences=*/2, 4);
  std::vector<std::vector<float>> gradients;
  for (const simt::Schedule schedule :
       {simt::Schedule::kAscending, simt::Schedule::kDescending,
        simt::Schedule::kRandom}) {
    simt::SetSchedule(schedule, 5);
    const auto queue = MakeQueue();
    const auto model = optimized::backend_simulated::MakeModel(
        c.config, c.num_sequences, *queue);
    model->WriteParameters(c.parameters, 0);
    gradients.emplace_back(c.parameters.size());
    (void)model->ForwardBackward(
        {c.num_sequences, c.inputs, c.targets, c.first_token},
        {c.temperature, c.tau, c.noise, c.step}, 0.1, 0.5, gradients.back());
    EXPECT_EQ(gradients.back(), gradients.front());
  }
}

// Parameters and moments after some updates.
struct State {
  std::vector<float> parameters, first, second;
  bool operator==(const State&) const = default;
};

// Twenty updates of two groups, with noise. `interrupted`: in the middle all
// goes to the host, and on with a new model.
State Train(const Config& config, bool interrupted) {
  constexpr int64_t kUpdates = 20;
  const auto queue = MakeQueue();
  const auto make = [&] {
    return optimized::backend_simulated::MakeModel(config, 1, *queue);
  };
  auto model = make();
  auto updater = model->MakeUpdater();
  model->WriteParameters(MakeModelCase(config, 1, 8).parameters, 0);
  for (int64_t update = 0; update < kUpdates; ++update) {
    if (interrupted && update == kUpdates / 2) {
      const State state = {model->ReadParameters(), updater->ReadFirstMoment(),
                           updater->ReadSecondMoment()};
      updater.reset();
      model = make();
      updater = model->MakeUpdater();
      model->WriteParameters(state.parameters, 0);
      updater->WriteMoments(state.first, state.second);
    }
    ModelCase batch;
    updater->ComputeGradient(
        {.temperature = 1.25, .tau = 1.25, .noise = true, .step = update},
        [&](int64_t group) {
          batch = MakeModelCase(config, 1,
                                static_cast<uint64_t>(2 * update + group));
          return optimized::Batch{.num_sequences = 1,
                                  .inputs = batch.inputs,
                                  .targets = batch.targets,
                                  .first_token = batch.first_token};
        });
    updater->Apply(1e-2, update);
  }
  return {model->ReadParameters(), updater->ReadFirstMoment(),
          updater->ReadSecondMoment()};
}

TEST_P(SimulatedModel, RepeatsUpdatesBitForBitAlsoInterrupted) {
  Config config = SmallConfig(GetParam());
  config.model.d_model = 8;
  config.model.sequence_length = 5;
  config.router.noise = NoiseKind::kInputJitter;
  config.router.noise_amplitude = 0.05;
  config.training.global_batch_sequences = 2;
  config.training.balance_group_sequences = 1;
  simt::SetSchedule(simt::Schedule::kAscending);
  const State once = Train(config, /*interrupted=*/false);
  EXPECT_NE(once.parameters, MakeModelCase(config, 1, 8).parameters);
  simt::SetSchedule(simt::Schedule::kRandom, 7);
  EXPECT_EQ(once, Train(config, /*interrupted=*/false));
  EXPECT_EQ(once, Train(config, /*interrupted=*/true));
}

INSTANTIATE_TEST_SUITE_P(Routers, SimulatedModel,
                         ::testing::Values(RouterKind::kSparse,
                                           RouterKind::kSoftFixed,
                                           RouterKind::kSoftLearned));

}  // namespace
}  // namespace softmoe::property_tests
