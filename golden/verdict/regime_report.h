// SPDX-License-Identifier: Apache-2.0
//
// regime_report.h - verdicts on the experiment `regime`, as text for a terminal
// and for a document, and as JSON for programs. Equal verdicts give equal text.
#ifndef SOFTMOE_GOLDEN_VERDICT_REGIME_REPORT_H_
#define SOFTMOE_GOLDEN_VERDICT_REGIME_REPORT_H_

#include <string>

#include "golden/verdict/regime_judge.h"

namespace softmoe::golden {

// What the primary estimate says, in plain words, one paragraph.
std::string RegimeBottomLine(const RegimeVerdicts& verdicts);

// The bottom line; every estimate with both readings, its interval and verdict;
// rows with their active experts; controls; reasons; missing runs; and what
// stays impossible to show here.
std::string DescribeRegime(const RegimeVerdicts& verdicts);

// The same in Markdown, for a document.
std::string RegimeMarkdown(const RegimeVerdicts& verdicts);

// Everything, with all digits, as one JSON object; unknown members are absent.
std::string RegimeJson(const RegimeVerdicts& verdicts);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_REGIME_REPORT_H_
