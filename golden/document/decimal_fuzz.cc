// SPDX-License-Identifier: Apache-2.0
//
// Parses arbitrary bytes as a decimal number and computes the interval of
// values that print that way.
#include "core/fuzzing/fuzz_support.h"
#include "golden/document/decimal.h"

namespace softmoe::fuzz {

void FuzzOne(std::string_view input) {
  const std::string text(input);
  const auto number = golden::Decimal::Parse(text);
  if (!number) return;
  const std::string printed = number->Text();
  const auto again = golden::Decimal::Parse(printed);
  Require(again && *again == *number && again->decimals() == number->decimals(),
          text + " prints as " + printed);
  if (printed.size() > 17) return;  // digits and point
  for (const auto rule :
       {golden::Rounding::kNearest, golden::Rounding::kTruncate,
        golden::Rounding::kUnknown}) {
    const golden::Interval interval = golden::PrintedInterval(*number, rule);
    Require(interval.low <= number->ToDouble() &&
                number->ToDouble() <= interval.high,
            text + " is outside its interval");
  }
}

std::vector<std::string> Seeds() {
  return {"2.84",
          "-0.50",
          "999999999999999999",
          "0.000000000000000001",
          ".5",
          "5.",
          "-",
          "",
          "12,5",
          "107.74",
          "1e3",
          "0012.50"};
}

}  // namespace softmoe::fuzz
