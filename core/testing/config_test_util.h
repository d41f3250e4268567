// SPDX-License-Identifier: Apache-2.0
//
// config_test_util.h - a small configuration, random valid ones, the fields of
// one as text, and every kind of router.
#ifndef SOFTMOE_CORE_TESTING_CONFIG_TEST_UTIL_H_
#define SOFTMOE_CORE_TESTING_CONFIG_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "core/config/config.h"
#include "core/config/router_traits.h"

namespace softmoe {

// Every kind of router, for tests that go through them all.
inline constexpr std::array<RouterKind, kNumRouterKinds> kRouterKinds = [] {
  std::array<RouterKind, kNumRouterKinds> kinds{};
  for (int i = 0; i < kNumRouterKinds; ++i) {
    kinds[static_cast<size_t>(i)] = static_cast<RouterKind>(i);
  }
  return kinds;
}();

// The kind's name, for INSTANTIATE_TEST_SUITE_P.
std::string NameOfRouter(const ::testing::TestParamInfo<RouterKind>& info);

// Returns a configuration with three layers, sizes that only small powers of 2
// divide, and initial weights so large that the layers are not nearly linear;
// on average 1.5 experts per token, or 2 if each token must have the same
// number. The rest has its defaults.
Config SmallConfig(RouterKind kind);

// Draws a valid configuration from `seed`: every field takes many values (whole
// numbers near the lower end), with decimals that need 17 digits and text that
// needs escapes.
Config RandomConfig(uint64_t seed);

// Maps "section.key" to the value, with doubles in hexadecimal, hence exact.
std::map<std::string, std::string> ExactFields(const Config& config);

// Returns `config` with another value of the field `key` and nothing else
// changed, which may break relations between keys.
Config WithOtherValue(const Config& config, const std::string& key);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TESTING_CONFIG_TEST_UTIL_H_
