// SPDX-License-Identifier: Apache-2.0
//
// fault.h - a fault at its place in a source, its fate, and what many fates say
// about the tests; the same for chosen faults and for drawn ones.
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
  std::string id;  // "AREA.what_is_wrong"; drawn: "sSEED.NUMBER"
  std::string file;
  Span span;
  Syntax syntax = Syntax::kExpression;
  std::string kind, instead;  // of the change

  Edit edit() const { return {id, span, syntax, instead}; }
};

enum class Fate {
  kDoesNotCompile,  // alone, either plain or behind its switch
  kBreaksTheBuild,  // although it compiles alone
  kNotReached,      // no test evaluates its place, whatever tests report
  kSurvived,        // evaluated, and all tests pass
  kFailed,          // a test failed
  kCrashed,         // a signal ended the test's program
  kTimedOut,        // the program had to be ended
  kOtherError,      // the program ended with a code of no failed test
};
const char* FateName(Fate fate);  // "DOES_NOT_COMPILE", ..., "KILLED"
// Throws DataError if no fate has this name.
Fate FateOf(const std::string& name);
// Whether any test shows the fault. (For a chosen fault only kFailed counts,
// since it must make its suite fail.)
bool IsKilled(Fate fate);
// Whether the fault was built and therefore counts.
bool IsBuilt(Fate fate);

// Judges one run by its exit code and hits alone; a suite's output is never
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
  int64_t suites = 0;  // run with this fault
  double seconds = 0;
  // Survivors only: the object code is identical, so the fault is equivalent.
  bool equal_objects = false;
};

// The fault as a line of a list.
nlohmann::ordered_json FaultJson(const MeasuredFault& measured);

// Faults by what became of them.
struct Score {
  int64_t total = 0;              // can be killed: all but the equivalent ones
  int64_t killed = 0;             // of these
  std::map<Fate, int64_t> fates;  // of these
  int64_t equal_objects = 0;      // equivalent by identical objects
  int64_t argued = 0;             // equivalent by argument

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
