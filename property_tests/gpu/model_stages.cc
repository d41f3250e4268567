// SPDX-License-Identifier: Apache-2.0
#include "property_tests/gpu/model_stages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <vector>

#include "core/config/config.h"
#include "core/config/config_enums.h"
#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/philox.h"
#include "optimized/device.h"
#include "optimized/model.h"
#include "optimized/optimizer.h"
#include "optimized/updater.h"
#include "property_tests/gpu/device_stages.h"
#include "property_tests/gpu/paper_shapes.h"
#include "property_tests/testing/model_difference.h"

namespace softmoe::gpu {
namespace {

using optimized::Device;
using property_tests::MakeModelCase;
using property_tests::ModelCase;

struct Kind {
  RouterKind router;
  Precision precision;

  std::string Name() const {
    return fmt::format("{}, {}", RouterKindName(router), EnumName(precision));
  }
};
constexpr Kind kKinds[] = {{RouterKind::kSparse, Precision::kFp32},
                           {RouterKind::kSoftFixed, Precision::kFp32},
                           {RouterKind::kSoftLearned, Precision::kFp32},
                           {RouterKind::kSparse, Precision::kBf16},
                           {RouterKind::kSoftFixed, Precision::kBf16},
                           {RouterKind::kSoftLearned, Precision::kBf16}};

std::unique_ptr<Device> TheDevice() {
  RuntimeConfig runtime;
  runtime.device = "cuda";
  return optimized::MakeDevice(runtime);
}

// Only initial parameters take the host long.
ThreadPool& Pool() {
  static ThreadPool pool;
  return pool;
}

// Two balance groups of one sequence, with all that a model may have.
Config SmallConfig(Kind kind) {
  Config config;
  config.model = {.num_layers = 2,
                  .d_model = 16,
                  .num_heads = 2,
                  .d_ffn = 24,
                  .num_experts = 5,
                  .vocab_size = 24,
                  .sequence_length = 9};
  config.router.kind = kind.router;
  config.router.mean_active_experts =
      kind.router == RouterKind::kSoftLearned ? 1.5 : 2.0;
  config.router.aux_loss_coeff = 0.01;
  config.router.z_loss_coeff = 0.001;
  config.router.noise = NoiseKind::kInputJitter;
  config.router.noise_amplitude = 0.05;
  config.training.global_batch_sequences = 2;
  config.training.balance_group_sequences = 1;
  config.training.precision = kind.precision;
  return config;
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

// "3 of 100 differ in bits, first [17]: 0.5 instead of 0.25", or "".
std::string BitDifference(const std::string& what,
                          const std::vector<float>& got,
                          const std::vector<float>& expected) {
  if (got.size() != expected.size()) return what + " has another size; ";
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

optimized::RoutingState RoutingOf(int64_t update) {
  return {.temperature = 1.25, .tau = 1.25, .noise = true, .step = update};
}

// A batch of one sequence for each group, another one for each update.
class Groups {
 public:
  Groups(const Config& config, int64_t update)
      : config_(config), update_(update) {}

  optimized::Batch operator()(int64_t group) {
    batch_ =
        MakeModelCase(config_, 1, static_cast<uint64_t>(2 * update_ + group));
    return {.num_sequences = 1,
            .inputs = batch_.inputs,
            .targets = batch_.targets,
            .first_token = batch_.first_token};
  }

 private:
  const Config& config_;
  int64_t update_;
  ModelCase batch_;
};

// What a run of updates leaves.
struct State {
  std::vector<float> parameters, first, second;
  std::vector<double> norms;
};

class Training {
 public:
  Training(Device& device, const Config& config)
      : config_(config),
        model_(device.MakeModel(config, 1, Pool(), Recompute::kNone)),
        updater_(model_->MakeUpdater()) {
    model_->WriteParameters(MakeModelCase(config, 1, 8).parameters, 0);
  }

  void Go(int64_t begin, int64_t end) {
    for (int64_t update = begin; update < end; ++update) {
      state_.norms.push_back(
          updater_->ComputeGradient(RoutingOf(update), Groups(config_, update))
              .norm);
      updater_->Apply(1e-2, update);
    }
  }
  State Read() {
    state_.parameters = model_->ReadParameters();
    state_.first = updater_->ReadFirstMoment();
    state_.second = updater_->ReadSecondMoment();
    return state_;
  }
  void Write(const State& state) {
    state_ = state;
    model_->WriteParameters(state.parameters, 0);
    updater_->WriteMoments(state.first, state.second);
  }

 private:
  const Config& config_;
  std::unique_ptr<optimized::ModelInterface> model_;
  std::unique_ptr<optimized::UpdaterInterface> updater_;
  State state_;
};

std::string Differences(const State& got, const State& expected) {
  std::string text =
      BitDifference("parameters", got.parameters, expected.parameters) +
      BitDifference("first moments", got.first, expected.first) +
      BitDifference("second moments", got.second, expected.second);
  if (got.norms != expected.norms) text += "norms of gradients; ";
  return text;
}

// Gradient, norm and new parameters of one update.
std::string UpdateDefects(Device& device, const Config& config) {
  const ModelCase start = MakeModelCase(config, 1, 8);
  const auto model = device.MakeModel(config, 1, Pool(), Recompute::kNone);
  const auto updater = model->MakeUpdater();
  model->WriteParameters(start.parameters, 0);
  const int64_t length = config.model.sequence_length;
  const optimized::UpdateGradient found =
      updater->ComputeGradient(RoutingOf(0), Groups(config, 0));
  const std::vector<float> gradient = updater->ReadGradient();

  // With one group there is nothing to add up.
  Groups groups(config, 0);
  std::vector<float> expected(gradient.size());
  (void)model->ForwardBackward(groups(0), RoutingOf(0),
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

  // Each element of AdamW is a few IEEE operations, on the CPU too.
  updater->Apply(1e-2, 0);
  optimized::Optimizer optimizer(config.training, model->layout(), Pool());
  std::vector<float> parameters = start.parameters;
  optimizer.Update(1e-2, 0, found.norm, gradient, parameters);
  const auto copy = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  return defects +
         BitDifference("parameters", model->ReadParameters(), parameters) +
         BitDifference("first moments", updater->ReadFirstMoment(),
                       copy(optimizer.first_moment())) +
         BitDifference("second moments", updater->ReadSecondMoment(),
                       copy(optimizer.second_moment()));
}

// The paper's step of a sparse model.
Config StepConfig(int active, Precision precision) {
  Config config;
  config.training.precision = precision;
  config.router.mean_active_experts = active;
  if (IsSimulated()) {
    config.model = SmallShapes().model;
    config.training.global_batch_sequences = 4;
    config.training.micro_batch_sequences = 2;
    config.training.balance_group_sequences = 2;
    config.router.mean_active_experts =
        std::min<double>(active, static_cast<double>(config.model.num_experts));
  }
  return config;
}

// Calls `use` with a model of the setting that keeps most and fits.
template <typename Use>
void WithModelThatFits(const Config& config, Device& device, const Use& use) {
  std::string too_little;
  for (const Recompute recompute :
       {Recompute::kNone, Recompute::kExperts, Recompute::kLayer}) {
    try {
      optimized::Model model(config, config.training.balance_group_sequences,
                             Pool(), device, recompute);
      optimized::Updater updater(model);
      return use(model, updater, recompute);
    } catch (const EnvironmentError& error) {
      too_little = error.what();
    }
  }
  throw EnvironmentError(too_little);
}

}  // namespace

bool TellModel(const StageContext& context) {
  const auto device = TheDevice();
  const uint64_t wanted = context.brief ? 1 : 3;
  bool all = true;
  for (const Kind& kind : kKinds) {
    Config config = SmallConfig(kind);
    config.router.noise = NoiseKind::kNone;
    uint64_t told = 0;
    for (uint64_t seed = 0; told < wanted; ++seed) {
      const auto difference = property_tests::CompareModels(
          MakeModelCase(config, /*num_sequences=*/2, seed),
          [&](const Config& c, int64_t group_sequences) {
            return device->MakeModel(c, group_sequences, Pool(),
                                     Recompute::kNone);
          });
      // A case in which a tensor happens to be too small to say anything is
      // drawn again, but not for ever.
      const bool says_nothing = difference.ok() && !difference.trusted();
      if (says_nothing && seed < 2 * wanted) continue;
      std::string defects;
      if (!difference.ok() || says_nothing) defects = difference.Text();
      all = TellCheck(context,
                      fmt::format("model: {}, case {}", kind.Name(), seed),
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
  for (const Kind& kind : kKinds) {
    Config config = SmallConfig(kind);
    config.training.global_batch_sequences = 1;
    config.training.clip_norm = 0;
    all = TellCheck(context, "update: " + kind.Name(), 0,
                    UpdateDefects(*device, config)) &&
          all;
  }
  return all;
}

bool TellRepeat(const StageContext& context) {
  constexpr int64_t kUpdates = 20;
  const auto device = TheDevice();
  bool all = true;
  for (const Kind& kind : kKinds) {
    const Config config = SmallConfig(kind);
    const auto run = [&](int64_t interruption) {
      auto training = std::make_unique<Training>(*device, config);
      training->Go(0, interruption);
      if (interruption < kUpdates) {
        const State state = training->Read();
        training.reset();
        training = std::make_unique<Training>(*device, config);
        training->Write(state);
        training->Go(interruption, kUpdates);
      }
      return training->Read();
    };
    const State once = run(kUpdates);
    std::string defects;
    if (once.parameters == MakeModelCase(config, 1, 8).parameters) {
      defects = "no parameter changed; ";
    }
    defects += Differences(run(kUpdates), once);
    if (const std::string text = Differences(run(kUpdates / 2), once);
        !text.empty()) {
      defects += "interrupted: " + text;
    }
    all =
        TellCheck(context,
                  fmt::format("repeat: {}, {} updates", kind.Name(), kUpdates),
                  0, defects) &&
        all;
  }
  return all;
}

bool TellStep(int active, Precision precision, const StageContext& context) {
  const Config config = StepConfig(active, precision);
  ValidateConfig(config);
  const auto device = TheDevice();
  const int64_t sequences = config.training.global_batch_sequences;
  const int64_t group = config.training.balance_group_sequences;
  const int64_t length = config.model.sequence_length;
  const auto tokens = static_cast<double>(sequences * length);
  const RandomKey key{3, RandomStream::kTestData, 0, 0};
  std::vector<int32_t> text;
  for (int64_t t = 0; t <= group * length; ++t) {
    text.push_back(
        static_cast<int32_t>(PhiloxWords(key, static_cast<uint64_t>(t))[0] %
                             static_cast<uint32_t>(config.model.vocab_size)));
  }
  const auto count = static_cast<size_t>(group * length);
  const optimized::GroupBatch batch = [&](int64_t number) {
    const std::span<const int32_t> ids = text;
    return optimized::Batch{.num_sequences = group,
                            .inputs = ids.first(count),
                            .targets = ids.subspan(1),
                            .first_token = number * group * length};
  };

  bool finite = true;
  WithModelThatFits(
      config, *device,
      [&](optimized::Model& model, optimized::Updater& updater,
          Recompute recompute) {
        using Clock = std::chrono::steady_clock;
        model.InitializeParameters(1);
        // From one gradient to the next: the host waits for each, and what was
        // queued before, the update, is done then.
        std::vector<double> losses, seconds;
        auto last = Clock::now();
        int64_t wanted = 2;
        for (int64_t step = 0; step < wanted; ++step) {
          const optimized::UpdateGradient gradient =
              updater.ComputeGradient({.step = step}, batch);
          const auto now = Clock::now();
          const std::chrono::duration<double> passed = now - last;
          last = now;
          if (step > 0) {
            seconds.push_back(passed.count());
          } else if (!IsSimulated()) {  // it took memory; how many more?
            wanted = 1 + static_cast<int64_t>(std::clamp(
                             0.5 * context.seconds / passed.count(), 1.0, 2.0));
          }
          double loss = 0;
          for (const auto& part : gradient.groups) loss += part.loss_sum;
          losses.push_back(loss / tokens);
          updater.Apply(1e-4, step);
        }
        std::ranges::sort(seconds);
        finite = std::ranges::all_of(
            losses, [](double loss) { return std::isfinite(loss); });
        Line line = {{"kind", "step"},
                     {"active_experts", config.router.mean_active_experts},
                     {"precision", EnumName(precision)},
                     {"sequences", sequences},
                     {"recompute", EnumName(recompute)},
                     {"loss", losses.front()},
                     {"memory_bytes", model.MemoryBytes()}};
        if (!IsSimulated()) {
          const double median = seconds[seconds.size() / 2];
          line["seconds"] = median;
          line["tokens_per_second"] = tokens / median;
        }
        context.tell(line);
      });
  return finite;
}

}  // namespace softmoe::gpu
