// SPDX-License-Identifier: Apache-2.0
//
// fault.h - a fault at its place in a source, what became of it, and what many
// of them say about the tests: the same for faults that somebody chose and for
// drawn ones.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_FAULT_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_FAULT_H_

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "golden/document/decimal.h"
#include "property_tests/mutation/rewrite.h"
#include "property_tests/mutation/suites.h"

namespace softmoe::mutation {

struct PlacedFault {
  std::string id;  // "AREA.what_is_wrong", or "sSEED.NUMBER" of a drawn one
  std::string file;
  Span span;
  Syntax syntax = Syntax::kExpression;
  std::string kind, instead;  // of the change

  Edit edit() const { return {id, span, syntax, instead}; }
};

enum class Fate {
  kDoesNotCompile,  // alone, as it is or behind its switch
  kBreaksTheBuild,  // with all others
  kNotReached,      // no test evaluates its place, whatever it reports
  kSurvived,        // evaluated, and all pass
  kFailed,          // a test failed,
  kCrashed,         // its program was ended by a signal,
  kTimedOut,        // or had to be,
  kOtherError,      // or ended with a code that is not that of a failed test
};
const char* FateName(Fate fate);  // "DOES_NOT_COMPILE", ..., "KILLED"
// Throws DataError if no fate has this name.
Fate FateOf(const std::string& name);
// Whether any test shows it. (A chosen fault must make its suite fail: there
// only kFailed counts.)
bool IsKilled(Fate fate);
// Whether it was built, and so counts.
bool IsBuilt(Fate fate);

// What one run says, by exit code and hits alone; what a suite prints is never
// read.
Fate JudgeRun(const Suite& suite, const SuiteRun& run);

struct MeasuredFault {
  PlacedFault fault;
  int line = 0;          // of the original
  std::string original;  // its text
  Fate fate = Fate::kNotReached;
  std::string suite;   // that killed it
  int signal = 0;      // that ended the suite's program
  std::string reason;  // a compiler's
  int64_t suites = 0;  // that were run with it
  double seconds = 0;
  // Survivors only: object code is identical, so the fault is equivalent.
  bool equal_objects = false;
};

// The fault as a line of a list.
nlohmann::ordered_json FaultJson(const MeasuredFault& measured);

// Faults by what became of them.
struct Score {
  int64_t total = 0;   // that can be killed: without the equivalent ones
  int64_t killed = 0;  // of these
  std::map<Fate, int64_t> fates;  // of these
  int64_t equal_objects = 0;      // equivalent: compilers make the same of them
  int64_t argued = 0;             // equivalent, as somebody argues

  void Add(Fate fate, bool is_killed);
  double rate() const;  // of `total`; 0 if there are none
  // The 95 % interval of the rate (Clopper-Pearson).
  golden::Interval interval() const;
  // "5 of 7 killed: 71.4 % [29.0, 96.3]", with `where` after "killed".
  std::string Text(const std::string& where = "") const;
};

// A table of the scores of `what`, with a last row for all of them.
std::string ScoreTable(const std::string& what,
                       const std::map<std::string, Score>& scores,
                       const Score& all);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_FAULT_H_
