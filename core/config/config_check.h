// SPDX-License-Identifier: Apache-2.0
//
// config_check.h - everything that is wrong with a configuration, key by key,
// so that a loader can say where in the user's file each value came from.
#ifndef SOFTMOE_CORE_CONFIG_CONFIG_CHECK_H_
#define SOFTMOE_CORE_CONFIG_CONFIG_CHECK_H_

#include <string>
#include <vector>

#include "core/config/config.h"

namespace softmoe {

struct ConfigProblem {
  std::string key;      // "router.tau"
  std::string message;  // "router.tau = -1 must be > 0; the default is ..."
};

// All problems, in the order of the keys; empty for a valid configuration.
std::vector<ConfigProblem> ConfigProblems(const Config& config);
std::vector<ConfigProblem> RuntimeProblems(const RuntimeConfig& runtime);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CONFIG_CONFIG_CHECK_H_
