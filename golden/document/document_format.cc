// SPDX-License-Identifier: Apache-2.0
#include "golden/document/document_format.h"

namespace softmoe::golden {

template <>
const NamedValues<Origin>& Names() {
  static const NamedValues<Origin> kNames = {
      {Origin::kPaper, "paper"},
      {Origin::kOurRun, "our_run"},
      {Origin::kOtherImplementation, "other_impl"}};
  return kNames;
}

template <>
const NamedValues<FieldClass>& Names() {
  static const NamedValues<FieldClass> kNames = {
      {FieldClass::kMustMatch, "must_match"},
      {FieldClass::kReport, "report"},
      {FieldClass::kIgnore, "ignore"}};
  return kNames;
}

template <>
const NamedValues<Known>& Names() {
  static const NamedValues<Known> kNames = {{Known::kStated, "stated"},
                                            {Known::kAssumed, "assumed"},
                                            {Known::kUnknown, "unknown"}};
  return kNames;
}

template <>
const NamedValues<Lane>& Names() {
  static const NamedValues<Lane> kNames = {{Lane::kExact, "exact"},
                                           {Lane::kBound, "bound"},
                                           {Lane::kStatistical, "statistical"},
                                           {Lane::kReportOnly, "report"}};
  return kNames;
}

template <>
const NamedValues<Direction>& Names() {
  static const NamedValues<Direction> kNames = {
      {Direction::kLowerIsBetter, "lower"},
      {Direction::kHigherIsBetter, "higher"},
      {Direction::kNone, "none"}};
  return kNames;
}

template <>
const NamedValues<Rounding>& Names() {
  static const NamedValues<Rounding> kNames = {
      {Rounding::kNearest, "nearest"},
      {Rounding::kTruncate, "truncate"},
      {Rounding::kUnknown, "unknown"}};
  return kNames;
}

}  // namespace softmoe::golden
