// SPDX-License-Identifier: Apache-2.0
//
// verdict_judge.h - what cells and claims share while they are judged.
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
// `row` (field data.corpus; those that do not say it count as one corpus), and
// of `golden` where its values have deviations of their own; cells with the
// same value, runs and deviation in both count once.
PooledDeviation PoolColumn(const Document& results, const Document& golden,
                           const std::string& table, const std::string& column,
                           const Row& row);

// Is the golden's number what it is by construction, as the k active experts of
// top-k and what is worked out from them? Then equal runs are no surprise. The
// paper's exact cells, and those of runs whose own values never differed.
bool IsByConstruction(const Document& golden, const Cell& golden_cell);

// Runs of a measurement that agree to the last bit. Counts of few items often
// agree by chance: percentages are left out.
bool AreSuspicious(const Cell& ours, const Document& golden,
                   const Cell& golden_cell);

inline constexpr const char* kEqualRuns =
    "all runs gave the same bits: are the seeds different?";

// "router.tau, data.tokenizer_sha256".
std::vector<std::string> FieldNames(
    const std::vector<FieldDifference>& differences);
std::string JoinNames(const std::vector<std::string>& names);

// The indices of the fields `open` in `assumptions`, which has them all.
std::vector<size_t> IndicesOf(const std::vector<FieldDifference>& open,
                              const std::vector<SetUpDifference>& assumptions);

// Cells of `golden` against those of `results`, Holm over all FAIL included.
void JudgeCells(const Document& results, const Document& golden,
                Verdicts* verdicts);

// Claims of `golden` on the cells of `results`.
void JudgeClaims(const Document& results, const Document& golden,
                 Verdicts* verdicts);

}  // namespace softmoe::golden::internal

#endif  // SOFTMOE_GOLDEN_VERDICT_VERDICT_JUDGE_H_
