// SPDX-License-Identifier: Apache-2.0
//
// miniature_report.h - the verdicts on the claims in miniature as text,
// Markdown and JSON.
#ifndef SOFTMOE_GOLDEN_VERDICT_MINIATURE_REPORT_H_
#define SOFTMOE_GOLDEN_VERDICT_MINIATURE_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/text/text_table.h"
#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"

namespace softmoe::golden {

// Whether each claim could have been shown, and if not why: what a reader can
// know about the runs before reading their results.
TextTable MiniatureDesignTable(const MiniatureVerdicts& verdicts);

// A row for each claim of the paper, or for each hypothesis of this project,
// with its verdict under earlier definitions, if there are any; for each
// measure, with the case that decides it; for each case of every measure.
TextTable MiniatureClaimTable(const MiniatureVerdicts& verdicts, bool of_paper);
TextTable MiniatureMeasureTable(const MiniatureVerdicts& verdicts);
TextTable MiniatureCaseTable(const MiniatureVerdicts& verdicts);

// "gcide/sparse-1/seed1234, gcide/sparse-2/seed1234 and 3 more": the first six.
std::string MissingText(const std::vector<std::string>& runs,
                        const char* separator);

// States what the verdicts are and what they are not: a reproduction.
const char* MiniatureDisclaimer();

// When the margins were fixed, relative to the runs that they judge; never
// "before": a run knows nothing about margins, and a record's hash is only as
// old as the record.
std::string MiniatureMarginsFixed(const MiniatureVerdicts& verdicts);

// Explains how to read the columns of MiniatureMeasureTable.
const char* MiniatureMeasureLegend();

// "INTERIM (SHOWN so far)"; "SHOWN, after the fact" under definitions made when
// the runs were known.
std::string ClaimStatusText(const MiniatureVerdicts& verdicts,
                            const MiniatureVerdict& claim);

// Missing runs; whether each claim could have been shown; then one line for
// each claim and measure, with the case that decides it, its effect and
// interval; then reasons, assumptions, and what difference each corpus can
// resolve. Equal verdicts give equal text.
std::string DescribeMiniature(const MiniatureVerdicts& verdicts);

// Mean and deviation over seeds of every planned row that has runs; rows that
// enter no claim are included and marked.
std::string DescribeMiniatureRows(const MiniatureClaims& claims,
                                  const MiniatureResults& results);

// For a document, in Markdown: how many runs are in, all the tables above but
// that of cases, how to read them, and what difference each corpus can resolve.
std::string MiniatureMarkdown(const MiniatureVerdicts& verdicts);

// The verdicts, with all digits, as one JSON object; unknown members are
// absent.
nlohmann::ordered_json MiniatureJson(const MiniatureVerdicts& verdicts);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_REPORT_H_
