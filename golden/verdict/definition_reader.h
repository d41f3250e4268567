// SPDX-License-Identifier: Apache-2.0
//
// definition_reader.h - shared by the readers of the definitions that are fixed
// before any run (paper/miniature.toml, paper/regime.toml).
#ifndef SOFTMOE_GOLDEN_VERDICT_DEFINITION_READER_H_
#define SOFTMOE_GOLDEN_VERDICT_DEFINITION_READER_H_

#include <fmt/core.h>

#include <string>

#include "core/config/toml_reader.h"

namespace softmoe::golden {

// Throws DataError with FILE:LINE:COLUMN if there is none.
inline const toml::table& RequiredTable(TomlReader* reader,
                                        const std::string& key) {
  const toml::table* table = reader->Table(key);
  if (table == nullptr) {
    reader->Fail(fmt::format("the table [{}] is missing", key));
  }
  return *table;
}

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_DEFINITION_READER_H_
