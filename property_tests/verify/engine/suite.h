// SPDX-License-Identifier: Apache-2.0
//
// suite.h - sums up many cases: counts, what ran, how tight the bounds are, and
// one exit code.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_SUITE_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_SUITE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "property_tests/verify/engine/check.h"

namespace softmoe::verify {

// The mean of one number per case over many cases, and a test of whether it is
// zero.
struct BiasStatistic {
  int64_t count = 0;
  double sum = 0, squares = 0;
  void Add(double x);
  double mean() const;
  double z() const;  // the mean over its standard error
};

// One output of one operation on one implementation.
struct OutputStatistics {
  int64_t compared = 0;  // cases
  int64_t trusted = 0;   // of these, on data that tells right from wrong
  int64_t missing = 0;   // optional, and left out
  int64_t elements = 0;
  double utilisation = 0;  // the largest error/bound
  std::string loosest_derivation;
  // Numbers of compared cases by -log10 of their utilisation, from 0 to 7 or
  // more: how tight the bound is over the suite.
  std::array<int64_t, 8> decades = {};
  UlpHistogram ulps = {};  // elements
  // The mean error/bound of each case, upwards and towards zero, and the mean
  // under truncation (check.h).
  BiasStatistic upwards, towards_zero, truncation;
  Convergence convergence = {};
};

struct Unit {
  std::string op, impl;
  auto operator<=>(const Unit&) const = default;
};

struct UnitStatistics {
  std::map<Status, int64_t> cases;
  std::map<std::string, int64_t> fills;  // cases that ran
  std::map<std::string, OutputStatistics> outputs;
  std::string unsupported;  // the reason of the last one
  int64_t decisions = 0, ambiguous = 0;
  double seconds = 0;

  int64_t ran() const;
  int64_t Count(Status status) const;
  int64_t elements() const;  // compared
};

// A failure, reported once and counted afterwards.
struct Failure {
  CaseResult first;     // as it was found
  CaseResult smallest;  // after shrinking
  int shrink_runs = 0;
  int64_t count = 1;
};

class Suite {
 public:
  void Add(const CaseResult& result);
  // Adds the shrunk form of a failure, which `Add` could not know. Failures
  // with one cause are merged: those of one operation, implementation and
  // output whose first hints (without any, reasons) differ only in numbers.
  void AddFailure(Failure failure);
  // Counts a failing case that was not shrunk among the failures of its cause.
  void CountFailure(const CaseResult& result);
  // Turns a case that was added with status `before` into a FAIL.
  void Overturn(const CaseResult& result, Status before);

  // A stop or an error: not everything that was asked for was run. `in_flight`
  // is the REPRO line of the case that was being computed, or "".
  struct Ending {
    Error why;
    std::string in_flight;
  };
  void EndEarly(const Error& why, const std::string& in_flight = "") {
    ended_early_ = Ending{why, in_flight};
  }
  const std::optional<Ending>& ended_early() const { return ended_early_; }
  bool stopped() const {
    return ended_early_ && ended_early_->why.code() == ExitCode::kStopped;
  }

  const std::map<Unit, UnitStatistics>& units() const { return units_; }
  const std::vector<Failure>& failures() const { return failures_; }
  int64_t cases() const;
  // The suite of one unit, without its failures.
  Suite Of(const Unit& unit) const;

  // Outputs that no case could judge.
  std::vector<std::string> Mistrusted() const;
  // Bounds that are never approached, and errors with a bias.
  std::vector<std::string> Warnings() const;
  // The verdict on the cases that were judged.
  ExitCode verdict() const;
  // The verdict or, if the suite ended early, the code of the reason; but a
  // FAIL counts for more than an error other than one of the harness itself.
  ExitCode exit_code() const;

 private:
  std::map<Unit, UnitStatistics> units_;
  std::vector<Failure> failures_;
  std::optional<Ending> ended_early_;
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_SUITE_H_
