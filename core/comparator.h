// SPDX-License-Identifier: Apache-2.0
//
// comparator.h - the one place where computed numbers meet expected ones.
//
//   pass  <=>  every |got_i - expected_i| <= bound_i
//
// written so that a NaN anywhere fails: in got, in expected or in the bound.
// The bound comes from the reference's error analysis, element by element,
// never from what the caller would like (DESIGN.md, "Verification"). Data on
// which agreement means nothing is MISTRUSTED, not passed.
#ifndef SOFTMOE_CORE_COMPARATOR_H_
#define SOFTMOE_CORE_COMPARATOR_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace softmoe {

enum class Status {
  kPass,
  kFail,
  kMistrusted,     // the data cannot tell right from wrong
  kInconclusive,   // the evidence does not decide
  kNotComparable,  // shapes or definitions differ, nothing was compared
  kUnsupported,    // the implementation does not offer this case
};
const char* StatusName(Status status);  // "PASS", "FAIL", ...

// What the caller expects of data that would otherwise be MISTRUSTED.
struct Expectations {
  bool may_be_constant = false;  // all expected values equal, or all zero
  bool may_be_tiny = false;      // most values are no larger than their bounds
  // Infinities are equal if both are the same infinity; NaN never passes.
  bool may_be_infinite = false;
  // Significand bits of the format that `got` is stored in, for the histogram
  // of ulps (float: 24, bf16: 8); 0 means those of the element type of `got`.
  int digits = 0;
};

// Bins of the histogram: errors of at most 1/2 ulp of the expected value
// (correctly rounded), 1, 2, 4, 16, 256 ulps, and more; NaN and infinite values
// count as more.
inline constexpr std::array<double, 6> kUlpSteps = {0.5, 1, 2, 4, 16, 256};
using UlpHistogram = std::array<int64_t, kUlpSteps.size() + 1>;

struct Comparison {
  Status status = Status::kFail;
  std::string reason;          // one sentence; empty for a plain pass
  int64_t count = 0;           // elements compared
  int64_t failures = 0;        // elements over their bound
  int64_t first_failure = -1;  // flat index
  int64_t worst = -1;          // flat index of the largest utilisation
  double utilisation = 0;      // max of error/bound; above 1 is a failure
  double worst_got = 0, worst_expected = 0, worst_bound = 0;
  double relative_l2 = 0;  // |got - expected|_2 / |expected|_2
  // Mean of error/bound divided by its standard error. The rounding errors of a
  // correct implementation scatter around 0.
  double bias_z = 0;
  UlpHistogram ulps = {};  // elements counted by their error

  bool ok() const { return status == Status::kPass; }
  // "FAIL: 3 of 4096 elements over their bound, first at [17], worst ..."
  std::string Text() const;
};

// Compares element by element. Sizes that differ are NOT_COMPARABLE; size 0, or
// a bound that is negative or not finite, is a FAIL.
Comparison Compare(std::span<const double> got,
                   std::span<const double> expected,
                   std::span<const double> bound,
                   const Expectations& expectations = {});
Comparison Compare(std::span<const float> got, std::span<const double> expected,
                   std::span<const double> bound,
                   const Expectations& expectations = {});

}  // namespace softmoe

#endif  // SOFTMOE_CORE_COMPARATOR_H_
