// SPDX-License-Identifier: Apache-2.0
//
// decimal.h - printed numbers as exact decimals, and what prints as a given
// number: an interval of values and, for percentages, the possible counts (the
// GRIM test; FORMAT.md, "Cells").
#ifndef SOFTMOE_GOLDEN_DOCUMENT_DECIMAL_H_
#define SOFTMOE_GOLDEN_DOCUMENT_DECIMAL_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "golden/document/document.h"

namespace softmoe::golden {

// units * 10^-decimals, exact. Every operation is exact or throws InternalError
// if its result does not fit into 18 digits.
class Decimal {
 public:
  Decimal() = default;
  // decimals in [0, 18].
  Decimal(int64_t units, int decimals);

  // Parses "-12.50": an optional minus, then at most 18 digits with at most one
  // point, between two of them. Returns nullopt for any other text.
  static std::optional<Decimal> Parse(std::string_view text);

  int64_t units() const { return units_; }
  int decimals() const { return decimals_; }
  double ToDouble() const;  // the nearest double
  std::string Text() const;

  Decimal operator+(const Decimal& other) const;
  Decimal operator-(const Decimal& other) const;
  Decimal operator*(const Decimal& other) const;
  // Compares by value: 1.5 == 1.50.
  std::strong_ordering operator<=>(const Decimal& other) const;
  bool operator==(const Decimal& other) const {
    return (*this <=> other) == std::strong_ordering::equal;
  }

  // Rounds to `decimals` digits; kNearest rounds halves up (towards +infinity),
  // kTruncate rounds towards zero. kUnknown is an InternalError where digits
  // are dropped.
  Decimal Round(int decimals, Rounding rule) const;
  // numerator / denominator, rounded to `decimals` digits; numerator >= 0,
  // denominator > 0, decimals in [0, 12].
  static Decimal Quotient(int64_t numerator, int64_t denominator, int decimals,
                          Rounding rule);

 private:
  int64_t units_ = 0;
  int decimals_ = 0;
};

struct Interval {
  double low = 0;
  double high = 0;
  bool operator==(const Interval&) const = default;
};

// Returns the closed interval of values that print as `text` (at most 17
// digits) under `rule`; for kUnknown, the union over both rules. With u one
// unit of the last digit of a value v >= 0: [v - u/2, v + u/2] for nearest,
// [v, v + u] for truncated, or [-u, u] if v = 0.
Interval PrintedInterval(const Decimal& text, Rounding rule);

// All counts c in [0, total] for which 100 c / total prints as `percent` with
// its decimals under `rule` (kUnknown: under either rule), ascending; empty if
// no count does. Rounds in integer arithmetic, halves up. `total` must be in
// [1, 1e9], otherwise InternalError; `percent` may have at most 12 decimals.
std::vector<int64_t> CountsThatPrint(const Decimal& percent, int64_t total,
                                     Rounding rule);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_DOCUMENT_DECIMAL_H_
