// SPDX-License-Identifier: Apache-2.0
//
// config_table.h - the resolved configuration as a table for people.
#ifndef SOFTMOE_TRAINER_IDENTITY_CONFIG_TABLE_H_
#define SOFTMOE_TRAINER_IDENTITY_CONFIG_TABLE_H_

#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"

namespace softmoe::trainer {

// ("section.key", value as TOML) of every key, in canonical order.
std::vector<std::pair<std::string, std::string>> ConfigRows(
    const Config& config);

// Aligned lines "section.key  value", those that differ from the default
// marked with '*', and the hash. Ends with a newline.
std::string ConfigTable(const Config& config);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_IDENTITY_CONFIG_TABLE_H_
