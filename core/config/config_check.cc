// SPDX-License-Identifier: Apache-2.0
#include "core/config/config_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <type_traits>

#include "core/config/config_fields.h"
#include "core/config/config_text.h"
#include "core/config/router_traits.h"

namespace softmoe {
namespace {

bool InRange(int64_t sequences) {
  return sequences >= 1 && sequences <= kMaxSequences;
}

}  // namespace

int64_t NearestDivisor(int64_t number, int64_t wanted, int64_t unit) {
  int64_t best = 0;
  const auto consider = [&](int64_t divisor) {
    if (divisor % unit != 0) return;
    // The larger of `a` and `wanted` over the smaller, in products.
    const auto above = [&](int64_t a, int64_t b) {
      return std::max(a, wanted) * std::min(b, wanted);
    };
    if (best == 0 || above(divisor, best) < above(best, divisor)) {
      best = divisor;
    }
  };
  for (int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    consider(d);
    consider(number / d);
  }
  return best;
}

void FollowBatchSizes(bool micro_batch_set, bool balance_group_set,
                      TrainingConfig* training) {
  const TrainingConfig defaults;
  const int64_t batch = training->global_batch_sequences;
  int64_t& micro = training->micro_batch_sequences;
  int64_t& group = training->balance_group_sequences;
  if (!micro_batch_set) micro = defaults.micro_batch_sequences;
  if (!balance_group_set) group = defaults.balance_group_sequences;
  if (!InRange(batch) || !InRange(micro) || !InRange(group)) return;
  if (!micro_batch_set) {
    // Groups that do not divide the batch are a separate error.
    const bool whole_groups = balance_group_set && batch % group == 0;
    micro = NearestDivisor(batch, micro, whole_groups ? group : 1);
  }
  if (!balance_group_set) {
    // If the micro-batch does not divide the batch, that complaint is enough.
    const bool divides = batch % micro == 0;
    group =
        NearestDivisor(divides ? micro : NearestDivisor(batch, micro), group);
  }
}

bool AllowedRange::Contains(double value) const {
  if (!std::isfinite(value)) return false;
  return (low_excluded ? value > low : value >= low) &&
         (high_excluded ? value < high : value <= high);
}

std::string AllowedRange::Describe() const {
  const bool below = std::isfinite(low), above = std::isfinite(high);
  if (below && above) {
    return fmt::format("in {}{}, {}{}", low_excluded ? "(" : "[", low, high,
                       high_excluded ? ")" : "]");
  }
  if (below) return fmt::format("{} {}", low_excluded ? ">" : ">=", low);
  return "a finite number";
}

namespace {

// Collects problems; `values` holds every key's text for the messages.
class Checker {
 public:
  void AddDefault(const std::string& key, std::string text) {
    defaults_[key] = std::move(text);
  }
  void AddValue(const std::string& key, std::string text) {
    values_[key] = std::move(text);
  }
  // "KEY = VALUE RULE; REMEDY"
  void Add(const std::string& key, const std::string& rule,
           const std::string& remedy) {
    if (Has(key)) return;  // one message for each key is enough
    problems_.push_back({key, fmt::format("{} = {} {}; {}", key,
                                          values_.at(key), rule, remedy)});
  }
  void AddOutOfRange(const std::string& key, const AllowedRange& range,
                     bool finite) {
    // "inf must be > 0" would puzzle a reader, since inf is.
    const bool one_sided = std::isfinite(range.low) && std::isinf(range.high);
    Add(key,
        "must be " + range.Describe() +
            (one_sided && !finite ? " and finite" : ""),
        "the default is " + defaults_.at(key));
  }
  bool Has(const std::string& key) const {
    return std::any_of(
        problems_.begin(), problems_.end(),
        [&](const ConfigProblem& problem) { return problem.key == key; });
  }
  bool HasAny(std::initializer_list<std::string> keys) const {
    return std::any_of(keys.begin(), keys.end(),
                       [&](const std::string& key) { return Has(key); });
  }
  std::vector<ConfigProblem> Take() { return std::move(problems_); }

 private:
  std::map<std::string, std::string> defaults_;
  std::map<std::string, std::string> values_;
  std::vector<ConfigProblem> problems_;
};

template <typename T>
bool InRange(const T& field, const AllowedRange& range) {
  if constexpr (std::is_arithmetic_v<T>) {
    return range.Contains(static_cast<double>(field));
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    return !field || range.Contains(*field);
  } else {
    return true;
  }
}

template <typename T>
bool IsFinite(const T& field) {
  return InRange(field, AllowedRange{});
}

std::string Join(const std::string& section, const std::string& key) {
  return section + "." + key;
}

// Checks the ranges of single keys. `visit_all` is VisitConfig or VisitRuntime.
template <typename T, typename VisitAll>
Checker CheckRanges(const T& config, VisitAll visit_all) {
  Checker checker;
  const T defaults;
  visit_all(defaults, [&](const auto& section, const auto& key,
                          const auto& field, const AllowedRange&) {
    checker.AddDefault(Join(section, key), TomlText(field));
  });
  visit_all(config, [&](const auto& section, const auto& key, const auto& field,
                        const AllowedRange&) {
    checker.AddValue(Join(section, key), TomlText(field));
  });
  visit_all(config, [&](const auto& section, const auto& key, const auto& field,
                        const AllowedRange& range) {
    if (!InRange(field, range)) {
      checker.AddOutOfRange(Join(section, key), range, IsFinite(field));
    }
  });
  return checker;
}

void CheckModel(const ModelConfig& m, Checker* checker) {
  if (m.num_heads < 1 || m.d_model < 1) return;  // reported as ranges
  if (m.d_model % m.num_heads != 0) {
    checker->Add("model.num_heads",
                 fmt::format("must divide model.d_model = {}", m.d_model),
                 "change one of the two");
  } else if (m.head_dim() % 2 != 0) {
    checker->Add(
        "model.num_heads",
        fmt::format("gives heads of width {}, which RoPE needs to be even",
                    m.head_dim()),
        fmt::format("make model.d_model = {} a multiple of {}", m.d_model,
                    2 * m.num_heads));
  }
}

void CheckRouter(const Config& config, Checker* checker) {
  const RouterConfig& r = config.router;
  const RouterTraits traits = TraitsOf(config);
  const std::string k = "router.mean_active_experts";
  if (r.mean_active_experts > config.model.num_experts) {
    checker->Add(k,
                 fmt::format("must be in [1, {}] (model.num_experts)",
                             config.model.num_experts),
                 "activate fewer experts, or raise model.num_experts");
  }
  if (traits.exact_k &&
      r.mean_active_experts != std::floor(r.mean_active_experts)) {
    checker->Add(
        k,
        fmt::format("must be an integer for router.kind = \"{}\"", traits.name),
        "round it, or use a soft router");
  }
  if (r.noise == NoiseKind::kNone && r.noise_amplitude > 0) {
    checker->Add("router.noise_amplitude",
                 "has no effect with router.noise = \"none\"",
                 "set router.noise, or set the amplitude to 0");
  }
  if (r.noise != NoiseKind::kNone && r.noise_amplitude == 0) {
    checker->Add(
        "router.noise_amplitude",
        fmt::format("means no noise, but router.noise = {}", TomlText(r.noise)),
        "set the amplitude, or set router.noise to \"none\"");
  }
  if (r.noise == NoiseKind::kInputJitter && r.noise_amplitude >= 1) {
    checker->Add("router.noise_amplitude",
                 "must be in [0, 1) for router.noise = \"input_jitter\", "
                 "which multiplies by 1 +- amplitude",
                 "the paper's only value is 0.05");
  }
}

// Micro-batches consist of whole balance groups, and batches of whole
// micro-batches.
void CheckBatchSizes(const TrainingConfig& t, Checker* checker) {
  const std::string batch_key = "training.global_batch_sequences";
  const std::string micro_key = "training.micro_batch_sequences";
  const std::string group_key = "training.balance_group_sequences";
  if (checker->HasAny({batch_key, micro_key, group_key})) return;
  const int64_t batch = t.global_batch_sequences;
  const int64_t group = t.balance_group_sequences;
  int64_t micro = t.micro_batch_sequences;  // one that would do
  if (batch % micro != 0) {
    micro = NearestDivisor(batch, micro, batch % group == 0 ? group : 1);
    checker->Add(micro_key,
                 fmt::format("must divide {} = {}", batch_key, batch),
                 fmt::format("write {} = {}", micro_key, micro));
  }
  if (micro % group != 0) {
    checker->Add(
        group_key, fmt::format("must divide {} = {}", micro_key, micro),
        fmt::format("write {} = {}", group_key, NearestDivisor(micro, group)));
  }
}

void CheckTraining(const TrainingConfig& t, Checker* checker) {
  if (t.min_learning_rate > t.learning_rate) {
    checker->Add(
        "training.min_learning_rate",
        fmt::format("must be <= training.learning_rate = {}", t.learning_rate),
        "lower it");
  }
  CheckBatchSizes(t, checker);
}

// Checks that products of sizes, each of which is in range, fit into 63 bits.
void CheckProducts(const Config& config, Checker* checker) {
  constexpr double kMost = 0x1p62;
  const std::string steps_key = "training.steps";
  const std::string calibration_key = "router.calibration_batches";
  if (checker->HasAny({steps_key, calibration_key, "model.num_layers",
                       "model.num_experts", "model.sequence_length",
                       "training.global_batch_sequences",
                       "training.balance_group_sequences"})) {
    return;
  }
  const auto number = [](int64_t size) { return static_cast<double>(size); };
  const ModelConfig& m = config.model;
  const TrainingConfig& t = config.training;
  const double batch =
      number(t.global_batch_sequences) * number(m.sequence_length);
  const std::string of_tokens = fmt::format(
      "batches of training.global_batch_sequences = {} times "
      "model.sequence_length = {} tokens",
      t.global_batch_sequences, m.sequence_length);
  if (number(t.steps) * batch > kMost) {
    checker->Add(steps_key, of_tokens + " are more than can be counted",
                 "take fewer steps, or smaller batches");
  }
  if (!TraitsOf(config).cutoff || config.router.tau) return;
  // The bytes that all ranks, at most one for each balance group, take for the
  // soft weights.
  const double weights = number(config.router.calibration_batches) * batch *
                         number(m.num_layers) * number(m.num_experts);
  const double ranks =
      number(t.global_batch_sequences) / number(t.balance_group_sequences);
  if (weights * sizeof(float) * ranks > kMost) {
    checker->Add(calibration_key,
                 of_tokens + " have more soft weights than can be counted",
                 "calibrate on fewer or smaller batches, or set router.tau");
  }
}

// Checks that the rows that a pass gives its experts can be counted in 32 bits.
void CheckRows(const Config& config, Checker* checker) {
  const ModelConfig& m = config.model;
  const char* const group_key = "training.balance_group_sequences";
  if (checker->HasAny({group_key, "model.num_layers", "model.num_experts",
                       "model.sequence_length",
                       "router.mean_active_experts"})) {
    return;
  }
  const double k = config.router.mean_active_experts;
  // All that a learned budget has to spare may go to one layer.
  const int64_t cap =
      MaxActive(config, TraitsOf(config).learned_budget
                            ? 1 + (k - 1) * static_cast<double>(m.num_layers)
                            : k);
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  const int64_t most = kMost / (m.sequence_length * cap);
  if (config.training.balance_group_sequences <= most) return;
  checker->Add(group_key,
               fmt::format("gives a layer's experts more than 2^31 - 1 rows, "
                           "with model.sequence_length = {} and up to {} "
                           "experts for a token",
                           m.sequence_length, cap),
               fmt::format("write at most {}", most));
}

}  // namespace

std::vector<ConfigProblem> ConfigProblems(const Config& config) {
  Checker checker = CheckRanges(
      config, [](const auto& c, auto&& visit) { VisitConfig(c, visit); });
  CheckModel(config.model, &checker);
  CheckRouter(config, &checker);
  CheckTraining(config.training, &checker);
  CheckProducts(config, &checker);
  CheckRows(config, &checker);
  return checker.Take();
}

std::vector<ConfigProblem> RuntimeProblems(const RuntimeConfig& runtime) {
  Checker checker = CheckRanges(
      runtime, [](const auto& r, auto&& visit) { VisitRuntime(r, visit); });
  if (!runtime.isa.empty() && runtime.isa != "v3" && runtime.isa != "v4") {
    checker.Add("runtime.isa", "must be \"\", \"v3\" or \"v4\"",
                "\"\" takes the best that this machine has");
  }
  if (!runtime.device.empty() && runtime.device != "cpu" &&
      runtime.device != "cuda") {
    checker.Add("runtime.device", "must be \"\", \"cpu\" or \"cuda\"",
                "\"\" is the CPU");
  } else if (runtime.device == "cuda" && !runtime.isa.empty()) {
    checker.Add("runtime.isa", "is an instruction set of the CPU",
                "leave it out with runtime.device = \"cuda\"");
  }
  return checker.Take();
}

}  // namespace softmoe
