// SPDX-License-Identifier: Apache-2.0
//
// config_enums.h - the names of the configuration's enumerations, as TOML
// files and reports spell them.
#ifndef SOFTMOE_CORE_CONFIG_CONFIG_ENUMS_H_
#define SOFTMOE_CORE_CONFIG_CONFIG_ENUMS_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "core/config/router_traits.h"
#include "core/errors.h"

namespace softmoe {

template <typename E>
struct EnumNames;

template <>
struct EnumNames<RouterKind> {
  static constexpr auto kNames = [] {
    std::array<std::pair<RouterKind, const char*>, kNumRouterKinds> names;
    for (int i = 0; i < kNumRouterKinds; ++i) {
      const auto kind = static_cast<RouterKind>(i);
      names[i] = {kind, TraitsOf(kind).name};
    }
    return names;
  }();
};
template <>
struct EnumNames<Fallback> {
  static constexpr std::pair<Fallback, const char*> kNames[] = {
      {Fallback::kNone, "none"}, {Fallback::kTop1, "top1"}};
};
template <>
struct EnumNames<NoiseKind> {
  static constexpr std::pair<NoiseKind, const char*> kNames[] = {
      {NoiseKind::kNone, "none"},
      {NoiseKind::kInputJitter, "input_jitter"},
      {NoiseKind::kLogitGauss, "logit_gauss"}};
};
template <>
struct EnumNames<LoadBalanceKind> {
  static constexpr std::pair<LoadBalanceKind, const char*> kNames[] = {
      {LoadBalanceKind::kMegatron, "megatron"},
      {LoadBalanceKind::kSoft, "soft"}};
};
template <>
struct EnumNames<Precision> {
  static constexpr std::pair<Precision, const char*> kNames[] = {
      {Precision::kFp32, "fp32"}, {Precision::kBf16, "bf16"}};
};
template <>
struct EnumNames<Normalise> {
  static constexpr std::pair<Normalise, const char*> kNames[] = {
      {Normalise::kNone, "none"},
      {Normalise::kHfOpenWebText, "hf_openwebtext"}};
};
template <>
struct EnumNames<Recompute> {
  static constexpr std::pair<Recompute, const char*> kNames[] = {
      {Recompute::kNone, "none"},
      {Recompute::kExperts, "experts"},
      {Recompute::kLayer, "layer"}};
};

// The name of `value`.
template <typename E>
const char* EnumName(E value) {
  for (const auto& [candidate, name] : EnumNames<E>::kNames) {
    if (candidate == value) return name;
  }
  throw InternalError("an enumeration has a value without a name");
}

// Returns the value called `name`, or nullopt.
template <typename E>
std::optional<E> ParseEnum(std::string_view name) {
  for (const auto& [value, candidate] : EnumNames<E>::kNames) {
    if (name == candidate) return value;
  }
  return std::nullopt;
}

// Returns all names, in the order of declaration.
template <typename E>
std::vector<std::string> EnumChoices() {
  std::vector<std::string> choices;
  for (const auto& entry : EnumNames<E>::kNames) {
    choices.emplace_back(entry.second);
  }
  return choices;
}

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CONFIG_CONFIG_ENUMS_H_
