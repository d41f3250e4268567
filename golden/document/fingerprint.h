// SPDX-License-Identifier: Apache-2.0
//
// fingerprint.h - whether two rows may be compared (FORMAT.md, "Fields").
#ifndef SOFTMOE_GOLDEN_DOCUMENT_FINGERPRINT_H_
#define SOFTMOE_GOLDEN_DOCUMENT_FINGERPRINT_H_

#include <string>
#include <vector>

#include "golden/document/document.h"

namespace softmoe::golden {

// The fields of the document, overridden by those of the row.
std::vector<Field> FieldsOf(const Document& document, const Row& row);

// The value of field `name`; "" if there is none.
std::string FieldValue(const Document& document, const Row& row,
                       const std::string& name);

// A text of a configuration without TOML's quotes around it.
std::string WithoutQuotes(const std::string& text);

// Compares as numbers if both are numbers ("1e-3" and "0.001"), else as texts.
// Ignores quotes around a text, and the value to which tau was calibrated
// ("calibrated: 1.067", "calibrated x 0.5: 0.5335"): the setting is that it was
// calibrated, and the factor.
bool SameValue(const std::string& a, const std::string& b);

// Whether the key of a configuration changes no result (DESIGN.md, rulings 6
// and 8), though it is in the hash.
bool ChangesNoResult(const std::string& name);

// A field that differs, is assumed, or is only reported.
struct FieldDifference {
  std::string name;
  std::string golden;  // "" if the golden does not know
  std::string ours;    // "" if the results do not say
  // The golden states that there is one, but not which; the results have none.
  bool departs = false;
  bool operator==(const FieldDifference&) const = default;
};

struct FingerprintComparison {
  std::vector<FieldDifference> differences;  // must match, stated: forbids
  std::vector<FieldDifference> open;         // must match, not stated: assumed
  std::vector<FieldDifference> reported;     // of class report
  bool comparable() const { return differences.empty(); }
};

// Compares the fields of both sides. The golden says what must match; for a
// field that it lacks, the results do. If the golden is a run of ours, such a
// field is a difference unless it has the default of a key that was added
// later; for any other golden it is assumed unless it has the key's default
// (FORMAT.md, "Fields"). Ignores fields that ChangesNoResult accepts, whatever
// a document says.
FingerprintComparison CompareFingerprints(const std::vector<Field>& ours,
                                          const std::vector<Field>& golden,
                                          Origin golden_origin);

// "640 in the golden, 64 here".
std::string DescribeDifference(const FieldDifference& difference);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_DOCUMENT_FINGERPRINT_H_
