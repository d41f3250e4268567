// SPDX-License-Identifier: Apache-2.0
//
// verdict.h - judges measured tables against golden ones (DESIGN.md, ruling 2).
#ifndef SOFTMOE_GOLDEN_VERDICT_VERDICT_H_
#define SOFTMOE_GOLDEN_VERDICT_VERDICT_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/comparator.h"
#include "core/errors.h"
#include "golden/document/document.h"
#include "golden/document/fingerprint.h"

namespace softmoe::golden {

// The more severe of two; `a` if they are equally severe. The order is that of
// FORMAT.md, "Verdicts": FAIL, MISTRUSTED, NOT_COMPARABLE, INCONCLUSIVE and
// UNSUPPORTED, PASS.
Status Worse(Status a, Status b);
// The exit codes are 1, 7, 3, 4, 4 and 0, in that order (DESIGN.md, ruling 1).
ExitCode ExitCodeOf(Status status);

// A field of the set-up that differs, is assumed, or is only reported, and the
// golden's rows concerned: "main_results/owt/sparse/k1", at least one.
struct SetUpDifference {
  FieldDifference field;
  std::vector<std::string> rows;
};

// The verdict on one cell of the golden. Numbers are in the column's unit.
struct CellVerdict {
  std::string table, row, column;  // ids
  Status status = Status::kInconclusive;
  std::string reason;                // one sentence; "" for a plain pass
  std::vector<size_t> assumptions;   // of row and column: indices in Verdicts
  std::string golden_text;           // as printed
  std::optional<double> ours;        // nullopt: the results have no value
  std::optional<double> difference;  // ours - golden
  // Half the width of the difference's confidence interval, without rounding; 0
  // if there is no noise, or it is unknown.
  double half_width = 0;
  double margin = 0;  // 0: none applies
  // If INCONCLUSIVE: the number of our runs that would decide (FAIL whatever
  // the other cells are); 2 if the noise is unknown; 0 if no number would.
  int64_t runs_needed = 0;
  std::vector<std::string> notes;  // ids of the golden's notes on the cell
};

// What our own runs say about one of the pairs of which most must hold; a pair
// has no verdict of its own.
struct ClaimCase {
  std::string claim;  // its id: "ID.3"
  std::string reason;
};

// Our own runs' verdict on one claim.
struct ClaimVerdict {
  std::string claim;  // id; if most of its pairs must hold, the id they share
  Status status = Status::kInconclusive;
  std::string reason;
  std::vector<size_t> assumptions = {};  // its rows' and columns'
  std::vector<ClaimCase> cases = {};     // if most pairs must hold: the pairs
};

// The full result of Judge, in the golden's order.
struct Verdicts {
  // Fields that must match and that the golden states.
  std::vector<SetUpDifference> fingerprint_differences;
  // A1, A2, ...: fields that must match, and definitions of columns, that the
  // golden leaves open; verdicts depend on them.
  std::vector<SetUpDifference> assumptions;
  std::vector<SetUpDifference> reported;  // fields that are only reported
  // Sentences about tables and rows that only one side has, about the noise of
  // accuracies, and about a golden of our own.
  std::vector<std::string> remarks;
  std::vector<CellVerdict> cells;
  // Columns in lane "report" are shown but never judged; status is meaningless.
  std::vector<CellVerdict> recorded;
  std::vector<ClaimVerdict> claims;

  // The most severe status; those in `allowed` count as PASS. NOT_COMPARABLE if
  // results and golden have nothing in common, INCONCLUSIVE if only recorded
  // cells.
  Status overall(const std::set<Status>& allowed = {}) const;
  // The exit code of that status (DESIGN.md, ruling 1).
  ExitCode exit_code(const std::set<Status>& allowed = {}) const {
    return ExitCodeOf(overall(allowed));
  }
};

// Judges every cell and claim of `golden` for which `results` has a row. Rows
// are matched by id; rows with other fingerprints are NOT_COMPARABLE, and the
// reason lists the fields; so are columns in other units or with other
// definitions. A cell that only the golden has is UNSUPPORTED, which counts as
// INCONCLUSIVE; so are rows that only the golden has, unless it is the paper,
// since no grid has all of its rows. Holm's procedure corrects FAILs and claims
// for their number. If most pairs of a claim must hold, only the claim counts.
// Measurements whose runs all gave the same bits are MISTRUSTED: they are
// evidence for neither side. Losses per token are judged in the paper's tokens
// by cells, and by claims that compare them with a number or with a row in
// tokens of another size. A verdict reached while the golden leaves fields or
// definitions open names its assumptions; a strict claim (< or >) is then
// INCONCLUSIVE. FirstProblem must accept both documents.
Verdicts Judge(const Document& results, const Document& golden);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_VERDICT_H_
