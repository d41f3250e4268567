// SPDX-License-Identifier: Apache-2.0
//
// ascii.h - a text as a number, and in lower case, whatever the locale.
#ifndef SOFTMOE_CORE_TEXT_ASCII_H_
#define SOFTMOE_CORE_TEXT_ASCII_H_

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace softmoe {

// Returns the number that the whole text is, as std::from_chars reads it: no
// spaces, no '+', no "0x"; nullopt if it is anything else, or out of T's range.
// `base`, for whole numbers only, is 10 by default.
template <typename T, typename... Base>
std::optional<T> ParseNumber(std::string_view text, Base... base) {
  T number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base...);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// Returns the text with a to z for A to Z and all other bytes unchanged.
inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return lower;
}

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TEXT_ASCII_H_
