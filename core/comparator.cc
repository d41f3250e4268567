// SPDX-License-Identifier: Apache-2.0
#include "core/comparator.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace softmoe {
namespace {

// If more than this share of the elements is smaller than its own bounds, zeros
// would pass as well.
constexpr double kTinyShare = 0.5;

Comparison NotCompared(size_t got, size_t expected, size_t bound) {
  Comparison result;
  result.status = Status::kNotComparable;
  result.reason =
      fmt::format("{} values computed, {} expected, {} bounds: sizes differ",
                  got, expected, bound);
  return result;
}

Comparison NothingToCompare() {
  Comparison result;
  result.status = Status::kFail;
  result.reason = "no elements: an empty comparison proves nothing";
  return result;
}

struct Sums {
  double squared_error = 0, squared_expected = 0;
  double scaled = 0, scaled_squared = 0;  // sums of error/bound
  int64_t scaled_count = 0;
  int64_t tiny = 0;
  bool constant = true;
};

// Returns error/bound, or infinity if an element fails that has no such ratio.
double Utilisation(double got, double expected, double bound,
                   const Expectations& expectations) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (!(bound >= 0) || std::isinf(bound)) return kNever;
  if (std::isinf(expected)) {
    return expectations.may_be_infinite && got == expected ? 0 : kNever;
  }
  const double error = std::fabs(got - expected);
  if (!(error <= bound)) {  // true for NaN as well
    return std::isnan(error) || bound == 0 ? kNever : error / bound;
  }
  return bound == 0 ? 0 : error / bound;
}

// The histogram bin of an element. Zero and subnormal numbers have the ulp of
// the smallest normal one.
size_t UlpStep(double got, double expected, int digits) {
  const int smallest = digits == std::numeric_limits<double>::digits
                           ? std::numeric_limits<double>::min_exponent
                           : std::numeric_limits<float>::min_exponent;
  const double error = std::fabs(got - expected);
  int exponent = smallest;  // |expected| in [2^(exponent - 1), 2^exponent)
  if (expected != 0) std::frexp(expected, &exponent);
  const double ulp = std::ldexp(1, std::max(exponent, smallest) - digits);
  size_t step = 0;
  while (step < kUlpSteps.size() && !(error <= kUlpSteps[step] * ulp)) ++step;
  return step;
}

void Judge(const Sums& sums, const Expectations& expectations,
           Comparison& result) {
  if (result.failures > 0) {
    result.status = Status::kFail;
    result.reason = fmt::format(
        "{} of {} elements over their bound, first at [{}], worst at [{}]: "
        "got {:.9g}, expected {:.9g}, bound {:.3g}, utilisation {:.3g}",
        result.failures, result.count, result.first_failure, result.worst,
        result.worst_got, result.worst_expected, result.worst_bound,
        result.utilisation);
  } else if (sums.constant && result.count > 1 &&
             !expectations.may_be_constant) {
    result.status = Status::kMistrusted;
    result.reason = fmt::format("all {} expected values equal {:.9g}",
                                result.count, result.worst_expected);
  } else if (sums.tiny > kTinyShare * result.count &&
             !expectations.may_be_tiny) {
    result.status = Status::kMistrusted;
    result.reason =
        fmt::format("{} of {} expected values are smaller than their bound",
                    sums.tiny, result.count);
  } else {
    result.status = Status::kPass;
  }
}

template <typename T>
Comparison CompareValues(std::span<const T> got,
                         std::span<const double> expected,
                         std::span<const double> bound,
                         const Expectations& expectations) {
  if (got.size() != expected.size() || got.size() != bound.size()) {
    return NotCompared(got.size(), expected.size(), bound.size());
  }
  if (got.empty()) return NothingToCompare();

  Comparison result;
  result.count = static_cast<int64_t>(got.size());
  const int digits = expectations.digits > 0 ? expectations.digits
                                             : std::numeric_limits<T>::digits;
  Sums sums;
  for (int64_t i = 0; i < result.count; ++i) {
    const double value = static_cast<double>(got[i]);
    const double utilisation =
        Utilisation(value, expected[i], bound[i], expectations);
    if (result.worst < 0 || utilisation > result.utilisation) {
      result.worst = i;
      result.utilisation = utilisation;
      result.worst_got = value;
      result.worst_expected = expected[i];
      result.worst_bound = bound[i];
    }
    if (!(utilisation <= 1)) {
      if (result.failures++ == 0) result.first_failure = i;
    }
    ++result.ulps[UlpStep(value, expected[i], digits)];
    sums.constant = sums.constant && expected[i] == expected[0];
    if (!std::isfinite(expected[i])) continue;
    sums.tiny += !(bound[i] < std::fabs(expected[i])) && bound[i] > 0;
    const double error = value - expected[i];
    sums.squared_error += error * error;
    sums.squared_expected += expected[i] * expected[i];
    if (bound[i] > 0) {
      const double scaled = error / bound[i];
      sums.scaled += scaled;
      sums.scaled_squared += scaled * scaled;
      ++sums.scaled_count;
    }
  }
  if (sums.squared_expected > 0) {
    result.relative_l2 = std::sqrt(sums.squared_error / sums.squared_expected);
  }
  if (sums.scaled_count > 1) {
    const double n = static_cast<double>(sums.scaled_count);
    const double mean = sums.scaled / n;
    const double variance = (sums.scaled_squared - n * mean * mean) / (n - 1);
    if (variance > 0) {
      result.bias_z = mean / std::sqrt(variance / n);
    }
  }
  Judge(sums, expectations, result);
  return result;
}

}  // namespace

const char* StatusName(Status status) {
  switch (status) {
    case Status::kPass:
      return "PASS";
    case Status::kFail:
      return "FAIL";
    case Status::kMistrusted:
      return "MISTRUSTED";
    case Status::kInconclusive:
      return "INCONCLUSIVE";
    case Status::kNotComparable:
      return "NOT_COMPARABLE";
    case Status::kUnsupported:
      return "UNSUPPORTED";
  }
  return "UNKNOWN";
}

std::string Comparison::Text() const {
  std::string text = StatusName(status);
  if (!reason.empty()) return text + ": " + reason;
  return text +
         fmt::format(": {} elements, utilisation {:.3g}", count, utilisation);
}

Comparison Compare(std::span<const double> got,
                   std::span<const double> expected,
                   std::span<const double> bound,
                   const Expectations& expectations) {
  return CompareValues<double>(got, expected, bound, expectations);
}

Comparison Compare(std::span<const float> got, std::span<const double> expected,
                   std::span<const double> bound,
                   const Expectations& expectations) {
  return CompareValues<float>(got, expected, bound, expectations);
}

}  // namespace softmoe
