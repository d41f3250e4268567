// SPDX-License-Identifier: Apache-2.0
//
// verdict_judge.h - shared by the judging of cells and of claims.
#ifndef SOFTMOE_GOLDEN_VERDICT_VERDICT_JUDGE_H_
#define SOFTMOE_GOLDEN_VERDICT_VERDICT_JUDGE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "golden/document/document.h"
#include "golden/document/fingerprint.h"
#include "golden/verdict/equivalence.h"
#include "golden/verdict/verdict.h"

namespace softmoe::golden::internal {

// Seed noise of a column, pooled over the rows of `results` with the corpus of
// `row` (field data.corpus; rows that do not say it count as one corpus), and
// of `golden` if its values have deviations; cells with the same value, runs
// and deviation in both count once.
PooledDeviation PoolColumn(const Document& results, const Document& golden,
                           const std::string& table, const std::string& column,
                           const Row& row);

// Whether the golden's number is fixed by construction, such as top-k's k
// active experts and numbers computed from them; equal runs are then expected.
// True for the paper's exact cells, and for goldens of runs whose own values
// never differed.
bool IsByConstruction(const Document& golden, const Cell& golden_cell);

// Whether the runs of a measurement agree to the last bit: of percentages, in
// every answer, if that is known. Counts alone often agree by chance.
bool AreSuspicious(const Cell& ours, const Document& golden,
                   const Cell& golden_cell);

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
// over every FAIL.
void JudgeCells(const Document& results, const Document& golden,
                Verdicts* verdicts);

// Judges claims of `golden` on the cells of `results`.
void JudgeClaims(const Document& results, const Document& golden,
                 Verdicts* verdicts);

}  // namespace softmoe::golden::internal

#endif  // SOFTMOE_GOLDEN_VERDICT_VERDICT_JUDGE_H_
