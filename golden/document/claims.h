// SPDX-License-Identifier: Apache-2.0
//
// claims.h - evaluates a claim on the intervals of printed numbers.
#ifndef SOFTMOE_GOLDEN_DOCUMENT_CLAIMS_H_
#define SOFTMOE_GOLDEN_DOCUMENT_CLAIMS_H_

#include <optional>
#include <string>
#include <vector>

#include "golden/document/decimal.h"
#include "golden/document/document.h"

namespace softmoe::golden {

// One side of a claim in one document.
struct ClaimSide {
  const Row* row = nullptr;        // nullptr: a number, or no such row here
  const Column* column = nullptr;  // nullptr: the same, or no such column
  const Cell* cell = nullptr;      // nullptr: the same, or no such cell
  double number = 0;
  bool is_number = false;

  // True for a cell with a value, and for a number.
  bool has_value() const {
    return is_number || (cell != nullptr && !cell->empty());
  }
  Interval interval() const;
};

// Resolves "ROW:COLUMN" of the claim's table in `document`, or a number.
ClaimSide FindSide(const Document& document, const Claim& claim,
                   const std::string& side);

// Returns what the printed intervals of `document` say about `claim`: "HOLDS"
// or "REFUTED" if it is true or false for all values within them, "NO_DATA" if
// a cell is empty or absent, else "NOT_RESOLVED_BY_PAPER". For ">~" the
// comparable width is kResolvedErrors binomial standard errors of the
// difference, 0 if the numbers are not percentages of counted items.
std::string PublishedVerdict(const Document& document, const Claim& claim);

// Combines the published verdicts on the pairs of a claim of which most must
// hold: "HOLDS" if more than half of the pairs hold, "REFUTED" if so many are
// refuted that more than half cannot, "NO_DATA" if no pair has data, else
// "NOT_RESOLVED_BY_PAPER".
std::string PublishedOfMost(const std::vector<std::string>& pairs);

// Returns how far below the right side the left one may lie and still count as
// comparable, by the numbers of `document`: what PublishedVerdict allows for
// ">~", 0 for all other operators.
double ComparableWidth(const Document& document, const Claim& claim);

// A difference counts as resolved above this many standard errors.
inline constexpr double kResolvedErrors = 1.96;

// How well a claim's published numbers support it beyond their rounding. The
// paper trained every configuration once.
struct PublishedEvidence {
  std::string as_printed;  // PublishedVerdict
  // The verdict if percentages of counted items also have binomial noise of
  // kResolvedErrors standard errors of the difference. Equal to as_printed for
  // other numbers.
  std::string resolved;
  double difference = 0;  // left - right as printed; 0 without data
  // The binomial noise, in the column's unit; nullopt for other numbers.
  std::optional<double> sampling;
  // For statistical columns without items: the deviation of one run over seeds
  // above which the verdict as printed would not be resolved. Empty if there is
  // no verdict, or if both sides are exact.
  std::optional<double> deviation;
};

PublishedEvidence EvidenceOf(const Document& document, const Claim& claim);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_DOCUMENT_CLAIMS_H_
