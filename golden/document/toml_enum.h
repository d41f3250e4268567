// SPDX-License-Identifier: Apache-2.0
//
// toml_enum.h - enumerations in the TOML sources of goldens, by their names in
// document_format.h.
#ifndef SOFTMOE_GOLDEN_DOCUMENT_TOML_ENUM_H_
#define SOFTMOE_GOLDEN_DOCUMENT_TOML_ENUM_H_

#include <fmt/format.h>

#include <string>

#include "core/config/toml_reader.h"
#include "golden/document/document_format.h"

namespace softmoe::golden {

// The value that the text of `key` names. Throws DataError with the position
// and the choices.
template <typename E>
E ReadEnum(TomlReader* reader, const std::string& key) {
  E value;
  const std::string name = reader->Text(key);
  if (!ParseName(name, &value)) {
    reader->FailAt(
        key, fmt::format("is '{}', but {} is needed", name, Choices<E>()));
  }
  return value;
}

// The same for a key that may be absent.
template <typename E>
E ReadEnum(TomlReader* reader, const std::string& key, E otherwise) {
  return reader->Has(key) ? ReadEnum<E>(reader, key) : otherwise;
}

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_DOCUMENT_TOML_ENUM_H_
