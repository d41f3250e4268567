// SPDX-License-Identifier: Apache-2.0
#include "trainer/identity/config_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/config/config_fields.h"
#include "core/config/config_text.h"

namespace softmoe::trainer {

std::vector<std::pair<std::string, std::string>> ConfigRows(
    const Config& config) {
  std::vector<std::pair<std::string, std::string>> rows;
  VisitConfig(config, [&](const auto& section, const auto& key,
                          const auto& field, const AllowedRange&) {
    rows.emplace_back(fmt::format("{}.{}", section, key), TomlText(field));
  });
  return rows;
}

std::string ConfigTable(const Config& config) {
  const auto rows = ConfigRows(config);
  const auto defaults = ConfigRows(Config());
  size_t width = 0;
  for (const auto& [key, value] : rows) width = std::max(width, key.size());
  std::string table;
  for (size_t i = 0; i < rows.size(); ++i) {
    table += fmt::format("{} {:<{}}  {}\n", rows[i] == defaults[i] ? ' ' : '*',
                         rows[i].first, width, rows[i].second);
  }
  table += fmt::format("  {:<{}}  {}   (* differs from the default)\n",
                       "config hash", width, ConfigHash(config));
  return table;
}

}  // namespace softmoe::trainer
