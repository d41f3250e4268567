// SPDX-License-Identifier: Apache-2.0
//
// regime.h - the runs of the experiment `regime` and the rules that judge them,
// fixed before the first judged run (paper/regime.toml; FORMAT.md, "The regime
// experiment").
#ifndef SOFTMOE_GOLDEN_VERDICT_REGIME_H_
#define SOFTMOE_GOLDEN_VERDICT_REGIME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "golden/document/decimal.h"

namespace softmoe::golden {

// One row of the experiment.
struct RegimeRow {
  std::string id;
  std::vector<int64_t> seeds;  // of its judged runs
  std::string role;            // "sparse", "primary", "secondary", "learned"
  // The pilots' target in active experts; sparse: k; 0: no pilots.
  double infer_ae_aim = 0;
  // Train-AE of the paper's rows; both 0: the paper has no such row.
  double paper_train_low = 0, paper_train_high = 0;
  std::string fixed;  // learned rows: the fixed-allocation row of the same tau
};

// Runs with a known answer, which the judge must get right.
struct RegimeControls {
  std::string relabelled;    // a sparse row that is called a soft one ...
  double relabelled_at = 0;  // ... at this many experts, fewer than its own
  std::string halved;        // a primary row
  std::vector<int64_t> first_half, second_half;  // its seeds
  double halves_level = 0;                       // of a two-sided test
  std::string left_out;  // a sparse row between two others
};

// The procedure that this program's judge follows (FORMAT.md, "The regime
// experiment"). Whatever changes a verdict on an existing record makes a new
// procedure; CHANGELOG.md lists fixes that made none.
inline constexpr int64_t kRegimeProcedure = 1;

// The contents of the file.
struct RegimeDefinitions {
  std::string corpus;
  double confidence = 0;       // of the intervals that decide verdicts
  double margin = 0;           // nat/token
  double infer_ae_within = 0;  // of the aim, mean over a row's pilots
  double train_ae_within =
      0;               // of the paper's interval, mean over a row's runs
  Interval exponents;  // where p of the smooth curve is sought
  std::vector<int64_t> pilot_seeds;  // never judged
  std::vector<int64_t> known_seeds;  // their sparse losses were known before
  RegimeControls controls;
  std::vector<RegimeRow> rows;

  const RegimeRow* Row(const std::string& id) const;  // nullptr if none
  std::vector<const RegimeRow*> RowsOf(const std::string& role) const;
  // Whether the run is planned: either judged, or a pilot that chooses tau.
  bool Judges(const std::string& row, int64_t seed) const;
  bool IsPilot(const std::string& row, int64_t seed) const;
  // SHA-256, 64 hex digits, of the file's content without remarks, as JSON
  // with sorted keys and all digits. Results with another hash were recorded
  // under other definitions.
  std::string Hash() const;
};

// Parses the text of such a file, which messages call `name`. Throws
// ConfigError if it is not TOML, and DataError with FILE:LINE:COLUMN if a key
// is missing, unknown or of another type, or if the procedure differs. The
// frozen hash replaces all other checks.
RegimeDefinitions ParseRegime(const std::string& text, const std::string& name);

// This program's golden/paper/regime.toml. Throws EnvironmentError if it is
// missing.
RegimeDefinitions LoadRegime();

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_REGIME_H_
