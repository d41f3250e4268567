// SPDX-License-Identifier: Apache-2.0
//
// verdict_judge.h - shared by the judging of cells (verdict_cells.cc) and of
// claims (verdict_claims.cc).
#ifndef SOFTMOE_GOLDEN_VERDICT_VERDICT_JUDGE_H_
#define SOFTMOE_GOLDEN_VERDICT_VERDICT_JUDGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "golden/document/document.h"
#include "golden/document/fingerprint.h"
#include "golden/verdict/equivalence.h"
#include "golden/verdict/verdict.h"

namespace softmoe::golden::internal {

// Seed noise is pooled over the rows with the same value of this field.
inline constexpr char kCorpusField[] = "data.corpus";

// Whether two cells are one piece of evidence, not two.
bool AreTheSameRuns(const Cell& one, const Cell& other);

// Seed noise of a column, pooled over the rows of `results` with the corpus of
// `row` (field data.corpus; rows that do not say it count as one corpus), and
// of `golden` if its values have deviations; cells with the same value, runs
// and deviation in both count once, and so do the trainings of rows whose
// fields, except those of class ignore, differ in eval.tau alone. For losses
// per token, the noise is per token of `row`, to which the other rows' is
// converted; tokens of unknown size count as the paper's, as they do when they
// are judged.
PooledDeviation PoolColumn(const Document& results, const Document& golden,
                           const std::string& table, const std::string& column,
                           const Row& row);

// Whether the runs of a measurement agree to the last bit; for percentages, in
// every answer, if that is known: counts alone often agree by chance. False
// where equal runs are expected: for settings, for what is computed from them
// (DERIVED), and where a golden of runs has equal runs, too.
bool AreSuspicious(const Cell& ours, const Document& golden,
                   const Cell& golden_cell);

// Bytes per token on both sides, where the golden's losses are per token of the
// paper's (FORMAT.md, "A loss per token depends on ...").
struct TokenSizes {
  FieldDifference field;  // the golden's, and ours: "" if there is none
  bool known = false;     // whether ours is one number above 0
  // Converts a loss of ours to one per token of the paper's; 1 if it is judged
  // as it is.
  double factor = 1;
  bool converts() const { return factor != 1; }
};

// The sizes for `row` of the results, judged by `golden_row`; nullopt if the
// column is not a loss per token, or the golden is not the paper or says no
// size. Throws DataError for a golden whose tokens hold no text.
std::optional<TokenSizes> TokenSizesOf(const Document& results,
                                       const Document& golden,
                                       const std::string& table,
                                       const Column& column,
                                       const Row& golden_row, const Row& row);

// Whether losses are converted between tokens with these sizes, or with these
// factors to the paper's.
bool DifferInSize(double size, double other);

// The cell with all its numbers except the printed one multiplied.
Cell Scaled(const Cell& cell, double factor);

// "4.40 bytes per token in the golden, 4.488 here: ...", for a verdict on
// `ours`, before any conversion.
std::string DescribeTokens(const TokenSizes& tokens, const Cell& ours);

// Adds the row `place` to a difference, which is a new one or one that other
// rows have, too; returns its index.
size_t AddDifference(const FieldDifference& field, const std::string& place,
                     std::vector<SetUpDifference>* differences);

// Why a column's unit or definition forbids a verdict, `column` being the
// golden's; "" if neither does.
std::string ColumnsDiffer(const Document& golden, const Column& column,
                          const Column& ours);

// The items that a percentage counts.
struct Items {
  int64_t total = 0;   // 0: not a percentage of items
  std::string sha256;  // field eval.SPLIT.sha256; "" if it is not known
};

Items ItemsOf(const Document& document, const Row& row, const Cell& cell,
              const std::string& column);

// Why two percentages, `one` of them `there` and the other `here`, are not of
// the same items; "" if they may be.
std::string ItemsDiffer(const Items& one, const std::string& there,
                        const Items& other, const std::string& here);

// If our column's definition differs from one that the paper leaves open
// (ruling 18), adds this for the row `place` to `assumptions` and returns its
// index; else returns none.
std::vector<size_t> AssumedDefinition(
    const Document& golden, const Column& column, const Column& ours,
    const std::string& place, std::vector<SetUpDifference>* assumptions);

inline constexpr const char* kEqualRuns =
    "all runs gave the same bits: are the seeds different?";

// "router.tau, data.tokenizer_sha256".
std::vector<std::string> FieldNames(
    const std::vector<FieldDifference>& differences);
std::string JoinNames(const std::vector<std::string>& names);

// The indices of the fields `open` in `assumptions`, which must contain them
// all.
std::vector<size_t> IndicesOf(const std::vector<FieldDifference>& open,
                              const std::vector<SetUpDifference>& assumptions);

// Judges cells of `golden` against those of `results`, with Holm's procedure
// over the statistical ones.
void JudgeCells(const Document& results, const Document& golden,
                Verdicts* verdicts);

// Judges claims of `golden` on the cells of `results`.
void JudgeClaims(const Document& results, const Document& golden,
                 Verdicts* verdicts);

}  // namespace softmoe::golden::internal

#endif  // SOFTMOE_GOLDEN_VERDICT_VERDICT_JUDGE_H_
