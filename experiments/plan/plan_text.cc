// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/plan_text.h"

#include <fmt/core.h>

#include <cmath>

#include "core/text/text_table.h"

namespace softmoe::experiments {

std::string Thousands(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t after = digits.size() - i;
    if (i > 0 && after % 3 == 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

std::string Scientific(double number) {
  std::string text = fmt::format("{:.2e}", number);
  const size_t plus = text.find('+');
  if (plus != std::string::npos) text.erase(plus, 1);
  return text;
}

std::string Count(int64_t number, const std::string& noun,
                  const std::string& plural) {
  const std::string many = plural.empty() ? noun + "s" : plural;
  return Thousands(number) + " " + (number == 1 ? noun : many);
}

std::string Amount(double number) {
  if (!(std::abs(number) < 100)) return Thousands(std::llround(number));
  if (std::abs(number) >= 10) return fmt::format("{:.0f}", number);
  return fmt::format("{:.2g}", number);
}

std::string Paragraph(const std::string& text, size_t first) {
  constexpr size_t kWidth = 98;
  return std::string(first, ' ') + Wrap(text, kWidth - first, first + 2) + "\n";
}

}  // namespace softmoe::experiments
