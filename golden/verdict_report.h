// SPDX-License-Identifier: Apache-2.0
//
// verdict_report.h - verdicts as text for a terminal and as JSON for programs.
#ifndef SOFTMOE_GOLDEN_VERDICT_REPORT_H_
#define SOFTMOE_GOLDEN_VERDICT_REPORT_H_

#include <set>
#include <string>

#include "golden/comparator.h"
#include "golden/verdict.h"

namespace softmoe::golden {

// Differences of set-up, assumptions, one line for each cell and claim, and
// the overall verdict with its exit code; `allowed` is named in it.
std::string DescribeVerdicts(const Verdicts& verdicts,
                             const std::set<Status>& allowed);

// The same as one JSON object, with all digits. A cell without a value of ours
// has neither "ours" nor "difference"; recorded cells have the status RECORDED.
std::string VerdictsJson(const Verdicts& verdicts,
                         const std::set<Status>& allowed);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_REPORT_H_
