// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/fault.h"

#include <array>

#include "core/errors.h"
#include "property_tests/mutation/run_suite.h"

namespace softmoe::mutation {
namespace {

// By their values.
constexpr std::array<const char*, 8> kNames = {
    "DOES_NOT_COMPILE", "BREAKS_THE_BUILD", "NOT_REACHED", "SURVIVED",
    "KILLED",           "CRASHED",          "TIMED_OUT",   "OTHER_ERROR"};

}  // namespace

const char* FateName(Fate fate) { return kNames.at(static_cast<size_t>(fate)); }

Fate FateOf(const std::string& name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Fate>(i);
  }
  throw DataError("no fault has the outcome '" + name + "'");
}

bool IsKilled(Fate fate) { return fate >= Fate::kFailed; }

bool IsBuilt(Fate fate) { return fate >= Fate::kNotReached; }

Fate JudgeRun(const Suite& suite, const SuiteRun& run) {
  if (run.hits == 0) return Fate::kNotReached;
  if (run.end == SuiteRun::End::kTimedOut) return Fate::kTimedOut;
  // (A script tells of a signal by a code above 128.)
  if (run.end == SuiteRun::End::kSignalled || run.code > 128) {
    return Fate::kCrashed;
  }
  if (run.code == 0) return Fate::kSurvived;
  return suite.failing_exit == kAnyFailingExit || run.code == suite.failing_exit
             ? Fate::kFailed
             : Fate::kOtherError;
}

nlohmann::ordered_json FaultJson(const MeasuredFault& measured) {
  const PlacedFault& fault = measured.fault;
  const bool is_statement = fault.syntax == Syntax::kStatement;
  nlohmann::ordered_json json = {
      {"id", fault.id},
      {"file", fault.file},
      {"line", measured.line},
      {"begin", fault.span.begin},
      {"end", fault.span.end},
      {"change", fault.kind},
      {is_statement ? "statement" : "expression", measured.original},
      {"instead", fault.instead},
      {"outcome", FateName(measured.fate)}};
  if (!measured.suite.empty()) json["suite"] = measured.suite;
  if (!measured.reason.empty()) json["reason"] = measured.reason;
  if (IsBuilt(measured.fate)) {
    json["suites"] = measured.suites;
    json["seconds"] = measured.seconds;
  }
  if (measured.equal_objects) json["equal_objects"] = true;
  return json;
}

}  // namespace softmoe::mutation
