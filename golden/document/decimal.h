// SPDX-License-Identifier: Apache-2.0
//
// decimal.h - printed numbers as what they are: exact decimals, and the
// interval of values that print so (FORMAT.md, "Cells").
#ifndef SOFTMOE_GOLDEN_DOCUMENT_DECIMAL_H_
#define SOFTMOE_GOLDEN_DOCUMENT_DECIMAL_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "golden/document/document.h"

namespace softmoe::golden {

// units * 10^-decimals, exact. Every operation is exact or, where its result
// does not fit into 18 digits, throws InternalError.
class Decimal {
 public:
  Decimal() = default;
  // decimals in [0, 18].
  Decimal(int64_t units, int decimals);

  // "-12.50": digits with at most one point and at most 18 of them, optional
  // minus. Nothing for any other text.
  static std::optional<Decimal> Parse(std::string_view text);

  int64_t units() const { return units_; }
  int decimals() const { return decimals_; }
  double ToDouble() const;  // the nearest double
  std::string Text() const;

  Decimal operator+(const Decimal& other) const;
  Decimal operator-(const Decimal& other) const;
  Decimal operator*(const Decimal& other) const;
  // By value: 1.5 == 1.50.
  std::strong_ordering operator<=>(const Decimal& other) const;
  bool operator==(const Decimal& other) const {
    return (*this <=> other) == std::strong_ordering::equal;
  }

  // To `decimals` digits; kNearest rounds halves up (towards +infinity),
  // kTruncate towards zero. kUnknown is an InternalError.
  Decimal Round(int decimals, Rounding rule) const;
  // numerator / denominator to `decimals` digits; numerator >= 0,
  // denominator > 0.
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

// The values that print as `text`, of at most 17 digits, under `rule`, closed;
// for kUnknown both rules' union. With u one unit of the last digit of a value
// v >= 0: [v - u/2, v + u/2] for nearest, [v, v + u] for truncated.
Interval PrintedInterval(const Decimal& text, Rounding rule);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_DOCUMENT_DECIMAL_H_
