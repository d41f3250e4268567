// SPDX-License-Identifier: Apache-2.0
#include "core/config/config_text.h"

#include <fmt/core.h>

#include <cmath>

namespace softmoe {

std::string TomlText(int64_t value) { return fmt::format("{}", value); }

std::string TomlText(double value) {
  if (std::isnan(value)) return "nan";
  std::string text = fmt::format("{}", value);  // the shortest round trip
  // Without a point or exponent TOML would read an integer.
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string TomlText(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      text += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      text += c;
    }
  }
  return text + "\"";
}

std::string TomlText(const std::optional<double>& tau) {
  return tau ? TomlText(*tau) : TomlText(std::string("calibrated"));
}

}  // namespace softmoe
