// SPDX-License-Identifier: Apache-2.0
#include "core/testing/config_test_util.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <type_traits>

#include "core/config/config_enums.h"
#include "core/config/config_fields.h"
#include "core/testing/random_test_util.h"

namespace softmoe {
namespace {

double DrawReal(Draws& draws, const AllowedRange& range) {
  const double low = range.low;  // every real key has a finite lower end
  if (range.high < 1e12) {
    return low + (range.high - low) * draws.Uniform();
  }
  // All magnitudes, from 1e-12 to 1e12 above the lower end.
  return low + std::pow(10, 24 * draws.Uniform() - 12);
}

std::string DrawText(Draws& draws) {
  static const char* const kPieces[] = {"a", "Z", "0", "\"", "\\", " ",
                                        "'", "#", "=", "\t", "\n", "é"};
  std::string text;
  for (int64_t n = draws.Integer(0, 8); n > 0; --n) {
    text += kPieces[draws.Integer(0, std::size(kPieces) - 1)];
  }
  return text;
}

template <typename T>
void Draw(Draws& draws, const AllowedRange& range, T& field) {
  if constexpr (std::is_enum_v<T>) {
    constexpr auto& kNames = EnumNames<T>::kNames;
    field = kNames[draws.Integer(0, std::size(kNames) - 1)].first;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    const double high = std::min(range.high, range.low + 1000);
    field = draws.Integer(static_cast<int64_t>(range.low),
                          static_cast<int64_t>(high));
  } else if constexpr (std::is_same_v<T, std::string>) {
    field = DrawText(draws);
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    field.reset();
    if (draws.Integer(0, 1) == 1) field = DrawReal(draws, range);
  } else {
    field = DrawReal(draws, range);
  }
}

template <typename T>
std::string ExactText(const T& field) {
  if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<int>(field));
  } else if constexpr (std::is_same_v<T, double>) {
    return fmt::format("{:a}", field);
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    return field ? fmt::format("{:a}", *field) : "empty";
  } else {
    return fmt::format("{}", field);
  }
}

}  // namespace

std::string NameOfRouter(const ::testing::TestParamInfo<RouterKind>& info) {
  return RouterKindName(info.param);
}

Config SmallConfig(RouterKind kind) {
  Config config;
  config.model = {.num_layers = 3,
                  .d_model = 24,
                  .num_heads = 2,
                  .d_ffn = 20,
                  .num_experts = 5,
                  .vocab_size = 61,
                  .sequence_length = 19,
                  .init_std = 0.2};
  config.router.kind = kind;
  config.router.mean_active_experts = TraitsOf(config).exact_k ? 2 : 1.5;
  return config;
}

Config RandomConfig(uint64_t seed) {
  Draws draws(seed);
  Config config;
  VisitConfig(config,
              [&](const char*, const char*, auto& field,
                  const AllowedRange& range) { Draw(draws, range, field); });
  // The relations between keys.
  ModelConfig& m = config.model;
  m.num_heads = draws.Integer(1, 40);
  m.d_model = m.num_heads * 2 * draws.Integer(1, 100);
  RouterConfig& r = config.router;
  r.mean_active_experts =
      1 + static_cast<double>(m.num_experts - 1) * draws.Uniform();
  if (TraitsOf(config).exact_k) {
    r.mean_active_experts = std::floor(r.mean_active_experts);
  }
  if (r.noise == NoiseKind::kNone) r.noise_amplitude = 0;
  if (r.noise == NoiseKind::kInputJitter) r.noise_amplitude = draws.Uniform();
  TrainingConfig& t = config.training;
  t.min_learning_rate = t.learning_rate * draws.Uniform();
  t.balance_group_sequences = draws.Integer(1, 20);
  t.micro_batch_sequences = t.balance_group_sequences * draws.Integer(1, 20);
  t.global_batch_sequences = t.micro_batch_sequences * draws.Integer(1, 20);
  return config;
}

std::map<std::string, std::string> ExactFields(const Config& config) {
  std::map<std::string, std::string> fields;
  VisitConfig(config, [&](const std::string& section, const char* key,
                          const auto& field, const AllowedRange&) {
    fields[section + "." + key] = ExactText(field);
  });
  return fields;
}

Config WithOtherValue(const Config& config, const std::string& key) {
  Config other = config;
  VisitConfig(other, [&](const std::string& section, const char* name,
                         auto& field, const AllowedRange& range) {
    if (section + "." + name != key) return;
    const std::string before = ExactText(field);
    Draws draws(1);
    while (ExactText(field) == before) Draw(draws, range, field);
  });
  return other;
}

}  // namespace softmoe
