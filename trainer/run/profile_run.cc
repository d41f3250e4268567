// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/profile_run.h"

#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/parallel_for.h"
#include "optimized/device.h"
#include "optimized/initialize.h"
#include "optimized/model.h"
#include "optimized/step_profile.h"
#include "trainer/run/calibration.h"
#include "trainer/run/train_step.h"
#include "trainer/tokens/dataset.h"

namespace softmoe::trainer {
namespace {

double TauOf(const Config& config, optimized::Model& model,
             const Dataset& data) {
  if (!TraitsOf(config).cutoff) return 0;
  if (config.router.tau) return *config.router.tau;
  return CalibrateTau(model, data, [] {}).tau;
}

optimized::StepProfile Measure(const Config& config, const Dataset& data,
                               Recompute recompute, int threads) {
  ThreadPool pool(threads);
  const auto model =
      optimized::MakeModel(config, config.training.balance_group_sequences,
                           pool, optimized::Cpu(), recompute);
  optimized::InitializeParameters(
      *model, static_cast<uint64_t>(config.training.seed), pool);
  const auto updater = model->MakeUpdater();
  TrainStep step(*model, *updater, data);
  const double tau = TauOf(config, *model, data);
  // Repeats the first step, so that tokens and schedules stay the same.
  return optimized::ProfileStep(pool, [&] { step.Run(0, tau); });
}

}  // namespace

std::string ProfileRun(const Config& config,
                       const std::filesystem::path& tokens,
                       const RuntimeConfig& runtime) {
  ValidateConfig(config);
  if (runtime.device == "cuda") {
    throw ConfigError(
        "a profile is one of the CPU: on a device operations are only "
        "enqueued, and their times would mean nothing; leave --device out");
  }
  optimized::CheckPrecision(config, runtime);
  (void)optimized::MakeDevice(runtime);  // selects the instruction set
  const Dataset data(config, tokens);
  const optimized::StepProfile all = Measure(config, data, runtime.recompute,
                                             static_cast<int>(runtime.threads));
  const optimized::StepProfile one =
      all.threads == 1 ? all : Measure(config, data, runtime.recompute, 1);
  return optimized::StepProfileTable(
      all, one,
      config.training.global_batch_sequences * config.model.sequence_length);
}

}  // namespace softmoe::trainer
