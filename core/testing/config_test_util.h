// SPDX-License-Identifier: Apache-2.0
//
// config_test_util.h - a small configuration, random valid ones, and the fields
// of one as text.
#ifndef SOFTMOE_CORE_TESTING_CONFIG_TEST_UTIL_H_
#define SOFTMOE_CORE_TESTING_CONFIG_TEST_UTIL_H_

#include <cstdint>
#include <map>
#include <string>

#include "core/config/config.h"

namespace softmoe {

// Three layers, sizes that no power of 2 divides for long, and initial weights
// so large that the layers are not nearly linear; on average 1.5 experts per
// token, or 2 where each must have as many. All else is as by default.
Config SmallConfig(RouterKind kind);

// A valid configuration drawn from `seed`: every field takes values all over
// its range, with decimals that need 17 digits and text that needs escapes.
Config RandomConfig(uint64_t seed);

// "section.key" -> the value, doubles as hexadecimal (so exactly).
std::map<std::string, std::string> ExactFields(const Config& config);

// `config` with another value of the field `key` and nothing else changed, so
// that it may break relations between keys.
Config WithOtherValue(const Config& config, const std::string& key);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TESTING_CONFIG_TEST_UTIL_H_
