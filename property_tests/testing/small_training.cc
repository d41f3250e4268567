// SPDX-License-Identifier: Apache-2.0
#include "property_tests/testing/small_training.h"

#include "core/config/config_enums.h"

namespace softmoe::property_tests {

Config SmallConfig(RouterKind router, Precision precision) {
  const bool bf16 = precision == Precision::kBf16;
  Config config;
  config.model = {.num_layers = 2,
                  .d_model = 16,
                  .num_heads = 2,
                  .d_ffn = bf16 ? 16 : 12,
                  .num_experts = 5,
                  .vocab_size = bf16 ? 24 : 23,
                  .sequence_length = 9};
  config.training.precision = precision;
  config.router.kind = router;
  config.router.mean_active_experts =
      router == RouterKind::kSoftLearned ? 1.5 : 2.0;
  config.router.aux_loss_coeff = 0.01;
  config.router.z_loss_coeff = 0.001;
  return config;
}

Config SmallTrainingConfig(RouterKind router, Precision precision) {
  Config config = SmallConfig(router, precision);
  if (precision == Precision::kFp32) config.model.d_model = 8;
  config.model.sequence_length = 5;
  config.router.noise = NoiseKind::kInputJitter;
  config.router.noise_amplitude = 0.05;
  config.training.global_batch_sequences = kSmallGroups;
  config.training.balance_group_sequences = 1;
  return config;
}

std::vector<SmallKind> SmallKinds() {
  std::vector<SmallKind> kinds;
  for (const auto& precision : EnumNames<Precision>::kNames) {
    for (const auto& router : EnumNames<RouterKind>::kNames) {
      kinds.push_back({router.first, precision.first});
    }
  }
  return kinds;
}

optimized::RoutingState SmallRouting(int64_t update) {
  return {.temperature = 1.25, .tau = 1.25, .noise = true, .step = update};
}

std::vector<float> SmallParameters(const Config& config) {
  return MakeModelCase(config, /*num_sequences=*/1, /*seed=*/8).parameters;
}

optimized::Batch SmallGroups::operator()(int64_t group) {
  batch_ = MakeModelCase(config_, /*num_sequences=*/1,
                         static_cast<uint64_t>(kSmallGroups * update_ + group));
  return {.num_sequences = 1,
          .inputs = batch_.inputs,
          .targets = batch_.targets,
          .first_token = batch_.first_token};
}

TrainingState TrainSmall(
    const Config& config,
    const std::function<std::unique_ptr<optimized::Model>()>& make,
    int64_t updates, bool interrupted,
    const std::function<void(const optimized::Model&)>& after_each) {
  auto model = make();
  auto updater = model->MakeUpdater();
  std::vector<double> norms;
  const auto state = [&] {
    return TrainingState{model->ReadParameters(), updater->ReadFirstMoment(),
                         updater->ReadSecondMoment(), norms};
  };
  model->WriteParameters(SmallParameters(config), 0);
  for (int64_t update = 0; update < updates; ++update) {
    if (interrupted && update == updates / 2) {
      const TrainingState half = state();
      updater.reset();
      model = make();
      updater = model->MakeUpdater();
      model->WriteParameters(half.parameters, 0);
      updater->WriteMoments(half.first_moment, half.second_moment);
    }
    norms.push_back(
        updater
            ->ComputeGradient(SmallRouting(update), SmallGroups(config, update))
            .norm);
    updater->Apply(1e-2, update);
    after_each(*model);
  }
  return state();
}

}  // namespace softmoe::property_tests
