// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/csv_text.h"

#include <fmt/format.h>

namespace softmoe::experiments {

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string CsvNumber(double value) { return fmt::format("{}", value); }

}  // namespace softmoe::experiments
