// SPDX-License-Identifier: Apache-2.0
//
// config_text.h - values of the configuration as TOML text.
#ifndef SOFTMOE_CORE_CONFIG_CONFIG_TEXT_H_
#define SOFTMOE_CORE_CONFIG_CONFIG_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "core/config/config_enums.h"

namespace softmoe {

// The text that TOML reads back as the same value.
std::string TomlText(int64_t value);
std::string TomlText(double value);  // shortest, always with '.' or 'e'
std::string TomlText(const std::string& value);          // quoted and escaped
std::string TomlText(const std::optional<double>& tau);  // or "calibrated"
template <typename E>
requires std::is_enum_v<E> std::string TomlText(E value) {
  return TomlText(std::string(EnumName(value)));
}

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CONFIG_CONFIG_TEXT_H_
