// SPDX-License-Identifier: Apache-2.0
//
// definition_reader.h - what the definitions that are fixed before any run
// (paper/miniature.toml, paper/regime.toml) are held to alike. Whatever does
// not fit is a DataError with FILE:LINE:COLUMN.
#ifndef SOFTMOE_GOLDEN_VERDICT_DEFINITION_READER_H_
#define SOFTMOE_GOLDEN_VERDICT_DEFINITION_READER_H_

#include <fmt/core.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/config/toml_reader.h"

namespace softmoe::golden {

inline const toml::table& RequiredTable(TomlReader* reader,
                                        const std::string& key) {
  const toml::table* table = reader->Table(key);
  if (table == nullptr) {
    reader->Fail(fmt::format("the table [{}] is missing", key));
  }
  return *table;
}

// A number in the open interval.
inline double NumberIn(TomlReader* reader, const std::string& key, double low,
                       double high) {
  const double value = reader->Number(key);
  if (!(value > low && value < high)) {
    reader->FailAt(key,
                   fmt::format("must be between {:g} and {:g}", low, high));
  }
  return value;
}

inline std::vector<int64_t> DistinctSeeds(TomlReader* reader,
                                          const std::string& key) {
  std::vector<int64_t> seeds = reader->Integers(key);
  if (seeds.size() < 2 ||
      std::set(seeds.begin(), seeds.end()).size() != seeds.size()) {
    reader->FailAt(key, "must be two or more, all different");
  }
  return seeds;
}

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_DEFINITION_READER_H_
