// SPDX-License-Identifier: Apache-2.0
//
// document_format.h - shared by the writer and the reader of documents: kind,
// version, and the names of enumerations in the file (FORMAT.md).
#ifndef SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_FORMAT_H_
#define SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_FORMAT_H_

#include <string>
#include <utility>
#include <vector>

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

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_FORMAT_H_
