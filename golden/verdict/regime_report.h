// SPDX-License-Identifier: Apache-2.0
//
// regime_report.h - verdicts on the experiment `regime` as text for a terminal,
// as Markdown and as JSON. Equal verdicts give equal text.
#ifndef SOFTMOE_GOLDEN_VERDICT_REGIME_REPORT_H_
#define SOFTMOE_GOLDEN_VERDICT_REGIME_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "golden/verdict/regime_judge.h"

namespace softmoe::golden {

// The primary estimate in plain words, one paragraph.
std::string RegimeBottomLine(const RegimeVerdicts& verdicts);

// Missing runs; the bottom line; every estimate with both readings, its
// interval and verdict; rows with their active experts; reasons; controls; and
// what cannot be shown here at all.
std::string DescribeRegime(const RegimeVerdicts& verdicts);

// The same in Markdown, from the bottom line on, without the legend.
std::string RegimeMarkdown(const RegimeVerdicts& verdicts);

// The verdicts, with all digits, as one JSON object; unknown members are
// absent.
nlohmann::ordered_json RegimeJson(const RegimeVerdicts& verdicts);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_REGIME_REPORT_H_
