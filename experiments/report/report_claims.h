// SPDX-License-Identifier: Apache-2.0
//
// report_claims.h - the verdicts on the claims in miniature for a grid's
// report, as text, CSV, HTML, and a table of results.h5.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_REPORT_CLAIMS_H_
#define SOFTMOE_EXPERIMENTS_REPORT_REPORT_CLAIMS_H_

#include <string>

#include "experiments/report/mini_claims.h"
#include "golden/document/document.h"

namespace softmoe::experiments {

// The content of claims.txt and of the file beside a record: the verdicts, then
// every case, then mean and deviation of every row. Equal runs give equal
// bytes.
std::string ClaimsText(const MiniClaims& judged);

// One line for each case: claim, its verdict, measure, its verdict, corpus,
// case, effect, low and high end of the interval, unit, margin, seeds, p_shown,
// p_contradicted, decides (1: this case decides the measure), problem, assumes.
// Numbers read back exactly; those of a case that cannot be tested are empty.
std::string ClaimsCsv(const MiniClaims& judged);

std::string ClaimsHtml(const MiniClaims& judged);

// Table "claims_in_miniature": one row per measure, with effect, interval,
// margin and p of its deciding case; the rest are fields. No golden has this
// table.
golden::Table ClaimsTable(const MiniClaims& judged);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_REPORT_CLAIMS_H_
