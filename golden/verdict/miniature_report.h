// SPDX-License-Identifier: Apache-2.0
//
// miniature_report.h - verdicts on the claims in miniature, as text for a
// terminal and as JSON for programs.
#ifndef SOFTMOE_GOLDEN_VERDICT_MINIATURE_REPORT_H_
#define SOFTMOE_GOLDEN_VERDICT_MINIATURE_REPORT_H_

#include <string>
#include <vector>

#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"

namespace softmoe::golden {

// A table of texts; each row has as many as the header.
struct MiniatureTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

std::string TextOf(const MiniatureTable& table);      // for a terminal
std::string MarkdownOf(const MiniatureTable& table);  // for a document

// Whether each claim could have been shown, and why not; which reading of the
// runs can say before any of them is read for what it says.
MiniatureTable MiniatureDesignTable(const MiniatureVerdicts& verdicts);

// A row for each claim of the paper, or for each hypothesis of this project,
// with its verdict under earlier definitions, if there are any; for each
// measure, with the case that decides it; for
// each case of every measure; for each corpus, with the difference of losses
// that it can resolve.
MiniatureTable MiniatureClaimTable(const MiniatureVerdicts& verdicts,
                                   bool of_paper);
MiniatureTable MiniatureMeasureTable(const MiniatureVerdicts& verdicts);
MiniatureTable MiniatureCaseTable(const MiniatureVerdicts& verdicts);
MiniatureTable MiniatureResolutionTable(const MiniatureVerdicts& verdicts);

// What all of it is, and what it is not: a reproduction.
const char* MiniatureDisclaimer();

// When the margins were fixed, as seen from the runs that they judge.
std::string MiniatureMarginsFixed(const MiniatureVerdicts& verdicts);

// How the columns of MiniatureMeasureTable are to be read.
const char* MiniatureMeasureLegend();

// "INTERIM (SHOWN so far)"; "SHOWN, after the fact" by definitions that were
// made when the runs were known.
std::string ClaimStatusText(const MiniatureVerdicts& verdicts,
                            const MiniatureVerdict& claim);

// Whether each claim could have been shown; then one line for each claim and
// measure, with the case that decides it, its effect and interval; then
// reasons, assumptions, missing runs, and what
// difference each corpus can resolve. Equal verdicts give equal text.
std::string DescribeMiniature(const MiniatureVerdicts& verdicts);

// MiniatureCaseTable.
std::string DescribeMiniatureCases(const MiniatureVerdicts& verdicts);

// Mean and deviation over seeds of every planned row that has runs, including
// those that enter no claim, which are marked.
std::string DescribeMiniatureRows(const MiniatureClaims& claims,
                                  const MiniatureResults& results);

// For a document, in Markdown: how many runs are in, MiniatureDesignTable, a
// table of the claims' measures with the case that decides each, and MiniatureResolutionTable.
std::string MiniatureMarkdown(const MiniatureVerdicts& verdicts);

// Everything, with all digits, as one JSON object; unknown members are absent.
std::string MiniatureJson(const MiniatureVerdicts& verdicts);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_REPORT_H_
