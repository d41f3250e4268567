// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <vector>

#include "core/config/config.h"
#include "core/config/config_enums.h"
#include "core/parallel_for.h"
#include "optimized/device.h"
#include "optimized/model.h"
#include "optimized/optimizer.h"
#include "property_tests/gpu/stage_bodies.h"
#include "property_tests/testing/model_difference.h"
#include "property_tests/testing/small_training.h"

namespace softmoe::gpu {
namespace {

using optimized::Device;
using property_tests::SmallConfig;
using property_tests::SmallGroups;
using property_tests::SmallKind;
using property_tests::SmallKinds;
using property_tests::SmallParameters;
using property_tests::SmallRouting;
using property_tests::SmallTrainingConfig;
using property_tests::TrainingState;

std::string NameOfKind(const SmallKind& kind) {
  return fmt::format("{}, {}", RouterKindName(kind.router),
                     EnumName(kind.precision));
}

std::unique_ptr<Device> TheDevice() {
  RuntimeConfig runtime;
  runtime.device = "cuda";
  return optimized::MakeDevice(runtime);
}

// Only the initial parameters take long on the host.
ThreadPool& Pool() {
  static ThreadPool pool;
  return pool;
}

bool TellCheck(const StageContext& context, const std::string& name,
               double utilisation, const std::string& defects) {
  if (!defects.empty()) {
    std::fputs(("FAIL " + name + ": " + defects + "\n").c_str(), stderr);
  }
  context.tell({{"kind", "check"},
                {"name", name},
                {"passed", defects.empty()},
                {"utilisation", utilisation},
                {"text", defects}});
  return defects.empty();
}

std::string Differences(const TrainingState& is, const TrainingState& was) {
  std::string text =
      BitDifference("parameters", is.parameters, was.parameters) +
      BitDifference("first moments", is.first_moment, was.first_moment) +
      BitDifference("second moments", is.second_moment, was.second_moment);
  if (is.norms != was.norms) text += "norms of gradients; ";
  return text;
}

// Returns the defects in gradient, norm and new parameters of one update.
std::string UpdateDefects(Device& device, const Config& config) {
  const std::vector<float> start = SmallParameters(config);
  const auto model = optimized::MakeModel(config, 1, Pool(), device);
  const auto updater = model->MakeUpdater();
  model->WriteParameters(start, 0);
  const int64_t length = config.model.sequence_length;
  const optimized::UpdateGradient found =
      updater->ComputeGradient(SmallRouting(0), SmallGroups(config, 0));
  const std::vector<float> gradient = updater->ReadGradient();

  // With one group there is nothing to accumulate.
  SmallGroups groups(config, 0);
  std::vector<float> expected(gradient.size());
  (void)model->ForwardBackward(groups(0), SmallRouting(0),
                               1.0 / static_cast<double>(length), 1.0,
                               expected);
  std::string defects = BitDifference("gradient", gradient, expected);

  // Squares of floats are exact in double, and each of n additions rounds once.
  double squares = 0;
  for (const float g : gradient) squares += double{g} * double{g};
  const double bound = static_cast<double>(gradient.size()) *
                       std::numeric_limits<double>::epsilon();
  if (!(std::abs(found.norm / std::sqrt(squares) - 1) <= bound)) {
    defects +=
        fmt::format("norm: {} instead of {}; ", found.norm, std::sqrt(squares));
  }

  // Each element of AdamW takes a few IEEE operations, as on the CPU.
  updater->Apply(1e-2, 0);
  optimized::Optimizer optimizer(config.training, model->layout(), Pool());
  std::vector<float> parameters = start;
  optimizer.Update(1e-2, 0, found.norm, gradient, parameters);
  return defects +
         BitDifference("parameters", model->ReadParameters(), parameters) +
         BitDifference("first moments", updater->ReadFirstMoment(),
                       optimizer.first_moment()) +
         BitDifference("second moments", updater->ReadSecondMoment(),
                       optimizer.second_moment());
}

}  // namespace

std::string BitDifference(const std::string& what, std::span<const float> got,
                          std::span<const float> expected) {
  if (got.size() != expected.size()) {
    return fmt::format("{}: {} numbers instead of {}; ", what, got.size(),
                       expected.size());
  }
  int64_t count = 0, first = -1;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::bit_cast<uint32_t>(got[i]) ==
        std::bit_cast<uint32_t>(expected[i])) {
      continue;
    }
    if (count++ == 0) first = static_cast<int64_t>(i);
  }
  if (count == 0) return "";
  return fmt::format(
      "{}: {} of {} differ in bits, first [{}]: {} instead of {}; ", what,
      count, got.size(), first, got[first], expected[first]);
}

bool TellModel(const StageContext& context) {
  const auto device = TheDevice();
  // simulated_model_test runs three in the simulator.
  const uint64_t wanted = context.brief || IsSimulated() ? 1 : 3;
  bool all = true;
  for (const SmallKind& kind : SmallKinds()) {
    const Config config = SmallConfig(kind.router, kind.precision);
    uint64_t told = 0;
    for (uint64_t seed = 0; told < wanted; ++seed) {
      const auto difference = property_tests::CompareModels(
          property_tests::MakeModelCase(config, /*num_sequences=*/2, seed),
          [&](const Config& c, int64_t group_sequences) {
            return optimized::MakeModel(c, group_sequences, Pool(), *device);
          });
      // A case with a tensor too small to be informative is redrawn, but not
      // forever.
      const bool says_nothing = difference.ok() && !difference.trusted();
      if (says_nothing && seed < 2 * wanted) continue;
      std::string defects;
      if (!difference.ok() || says_nothing) defects = difference.Text();
      all = TellCheck(context,
                      fmt::format("model: {}, case {}", NameOfKind(kind), seed),
                      difference.utilisation, defects) &&
            all;
      ++told;
    }
  }
  return all;
}

bool TellUpdate(const StageContext& context) {
  const auto device = TheDevice();
  bool all = true;
  for (const SmallKind& kind : SmallKinds()) {
    Config config = SmallTrainingConfig(kind.router, kind.precision);
    config.training.global_batch_sequences = 1;
    config.training.clip_norm = 0;
    all = TellCheck(context, "update: " + NameOfKind(kind), 0,
                    UpdateDefects(*device, config)) &&
          all;
  }
  return all;
}

bool TellRepeat(const StageContext& context) {
  // simulated_model_test repeats more in the simulator.
  const int64_t updates = IsSimulated() ? 2 : 20;
  const auto device = TheDevice();
  bool all = true;
  for (const SmallKind& kind : SmallKinds()) {
    const Config config = SmallTrainingConfig(kind.router, kind.precision);
    const auto run = [&](bool interrupted) {
      return property_tests::TrainSmall(
          config,
          [&] { return optimized::MakeModel(config, 1, Pool(), *device); },
          updates, interrupted);
    };
    const TrainingState once = run(false);
    std::string defects;
    if (once.parameters == SmallParameters(config)) {
      defects = "no parameter changed; ";
    }
    defects += Differences(run(false), once);
    if (const std::string text = Differences(run(true), once); !text.empty()) {
      defects += "interrupted: " + text;
    }
    all = TellCheck(
              context,
              fmt::format("repeat: {}, {} updates", NameOfKind(kind), updates),
              0, defects) &&
          all;
  }
  return all;
}

}  // namespace softmoe::gpu
