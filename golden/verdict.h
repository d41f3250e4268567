// SPDX-License-Identifier: Apache-2.0
//
// verdict.h - judges measured tables against golden ones (design.md, ruling 2).
#ifndef SOFTMOE_GOLDEN_VERDICT_H_
#define SOFTMOE_GOLDEN_VERDICT_H_

#include <set>
#include <string>
#include <vector>

#include "core/errors.h"
#include "golden/comparator.h"
#include "golden/document.h"

namespace softmoe::golden {

struct CellVerdict {
  std::string table, row, column;
  Status status = Status::kInconclusive;
  std::string reason;                    // one sentence
  std::vector<std::string> assumptions;  // fields that the paper leaves open
  std::string golden_text;               // as printed
  double ours = 0;
  double difference = 0;  // ours - golden
  double half_width = 0;  // of the confidence interval of the difference
  double margin = 0;
  int64_t runs_needed = 0;  // INCONCLUSIVE: runs that would decide; 0 unknown
  std::vector<std::string> notes;
};

struct ClaimVerdict {
  std::string claim;
  Status status = Status::kInconclusive;
  std::string reason;
};

struct Verdicts {
  std::vector<std::string> fingerprint_differences;  // must-match, stated
  std::vector<std::string> assumptions;
  std::vector<CellVerdict> cells;
  std::vector<ClaimVerdict> claims;
  Status overall = Status::kInconclusive;

  // The code of design.md ruling 1; statuses in `allowed` count as PASS.
  ExitCode exit_code(const std::set<Status>& allowed = {}) const;
};

// Every cell and claim of `golden` that `results` has a row for. Rows are
// matched by id; `results` with other fingerprints are NOT_COMPARABLE, and the
// reason lists the fields.
Verdicts Judge(const Document& results, const Document& golden);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_H_
