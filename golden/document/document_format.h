// SPDX-License-Identifier: Apache-2.0
//
// document_format.h - shared by the writer and the readers of documents: kind,
// version, and the names of enumerations, in the file (FORMAT.md) and in the
// TOML sources of goldens.
#ifndef SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_FORMAT_H_
#define SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_FORMAT_H_

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "core/config/toml_reader.h"
#include "core/hdf5/hdf5_envelope.h"
#include "golden/document/document.h"

namespace softmoe::golden {

inline constexpr int64_t kSchemaVersion = 1;
inline constexpr const char* kSchemaName = "softmoe-golden";

inline Hdf5Kind GoldenKind() {
  return {"golden", static_cast<uint32_t>(kSchemaVersion)};
}

template <typename E>
using NamedValues = std::vector<std::pair<E, std::string>>;

// Names of the enumeration's values, in order of declaration.
template <typename E>
const NamedValues<E>& Names();
template <>
const NamedValues<Origin>& Names();
template <>
const NamedValues<FieldClass>& Names();
template <>
const NamedValues<Known>& Names();
template <>
const NamedValues<Lane>& Names();
template <>
const NamedValues<Direction>& Names();
template <>
const NamedValues<Rounding>& Names();

template <typename E>
std::string NameOf(E value) {
  for (const auto& [candidate, name] : Names<E>()) {
    if (candidate == value) return name;
  }
  return "";  // FirstProblem reports it
}

// Sets `value` to the one called `name`; false if there is none.
template <typename E>
bool ParseName(const std::string& name, E* value) {
  for (const auto& [candidate, candidate_name] : Names<E>()) {
    if (candidate_name == name) {
      *value = candidate;
      return true;
    }
  }
  return false;
}

// The choices for the user: "'lower', 'higher' or 'none'".
template <typename E>
std::string Choices() {
  std::string text;
  const NamedValues<E>& names = Names<E>();
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : " or ";
    text += "'" + names[i].second + "'";
  }
  return text;
}

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

// Does the same for a key that may be absent.
template <typename E>
E ReadEnum(TomlReader* reader, const std::string& key, E otherwise) {
  return reader->Has(key) ? ReadEnum<E>(reader, key) : otherwise;
}

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_FORMAT_H_
