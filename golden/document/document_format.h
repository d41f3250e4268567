// SPDX-License-Identifier: Apache-2.0
//
// document_format.h - shared by the writer and the readers of documents: kind,
// version, and the names of enumerations, in the file (FORMAT.md) and in the
// TOML sources of goldens.
#ifndef SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_FORMAT_H_
#define SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_FORMAT_H_

#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config_enums.h"
#include "core/config/toml_reader.h"
#include "core/hdf5/hdf5_envelope.h"
#include "core/text/suggestion.h"
#include "golden/document/document.h"

namespace softmoe {

template <>
struct EnumNames<golden::Origin> {
  static constexpr std::pair<golden::Origin, const char*> kNames[] = {
      {golden::Origin::kPaper, "paper"},
      {golden::Origin::kOurRun, "our_run"},
      {golden::Origin::kOtherImplementation, "other_impl"}};
};
template <>
struct EnumNames<golden::FieldClass> {
  static constexpr std::pair<golden::FieldClass, const char*> kNames[] = {
      {golden::FieldClass::kMustMatch, "must_match"},
      {golden::FieldClass::kReport, "report"},
      {golden::FieldClass::kIgnore, "ignore"}};
};
template <>
struct EnumNames<golden::Known> {
  static constexpr std::pair<golden::Known, const char*> kNames[] = {
      {golden::Known::kStated, "stated"},
      {golden::Known::kAssumed, "assumed"},
      {golden::Known::kUnknown, "unknown"}};
};
template <>
struct EnumNames<golden::Lane> {
  static constexpr std::pair<golden::Lane, const char*> kNames[] = {
      {golden::Lane::kExact, "exact"},
      {golden::Lane::kBound, "bound"},
      {golden::Lane::kStatistical, "statistical"},
      {golden::Lane::kReportOnly, "report"}};
};
template <>
struct EnumNames<golden::Direction> {
  static constexpr std::pair<golden::Direction, const char*> kNames[] = {
      {golden::Direction::kLowerIsBetter, "lower"},
      {golden::Direction::kHigherIsBetter, "higher"},
      {golden::Direction::kNone, "none"}};
};
template <>
struct EnumNames<golden::Quantifier> {
  static constexpr std::pair<golden::Quantifier, const char*> kNames[] = {
      {golden::Quantifier::kEvery, "every"},
      {golden::Quantifier::kMost, "most"}};
};
template <>
struct EnumNames<golden::Rounding> {
  static constexpr std::pair<golden::Rounding, const char*> kNames[] = {
      {golden::Rounding::kNearest, "nearest"},
      {golden::Rounding::kTruncate, "truncate"},
      {golden::Rounding::kUnknown, "unknown"}};
};

}  // namespace softmoe

namespace softmoe::golden {

inline constexpr int64_t kSchemaVersion = 1;
inline constexpr const char* kSchemaName = "softmoe-golden";

inline Hdf5Kind GoldenKind() {
  return {"golden", static_cast<uint32_t>(kSchemaVersion)};
}

// The choices for the user: "'lower', 'higher' or 'none'".
template <typename E>
std::string Choices() {
  return Listed(EnumChoices<E>(), "or");
}

// The value that the text of `key` names. Throws DataError with the position
// and the choices.
template <typename E>
E ReadEnum(TomlReader* reader, const std::string& key) {
  const std::string name = reader->Text(key);
  const std::optional<E> value = ParseEnum<E>(name);
  if (!value) {
    reader->FailAt(
        key, fmt::format("is '{}', but {} is needed", name, Choices<E>()));
  }
  return *value;
}

// Does the same for a key that may be absent: then returns `otherwise`.
template <typename E>
E ReadEnum(TomlReader* reader, const std::string& key, E otherwise) {
  return reader->Has(key) ? ReadEnum<E>(reader, key) : otherwise;
}

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_FORMAT_H_
