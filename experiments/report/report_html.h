// SPDX-License-Identifier: Apache-2.0
//
// report_html.h - the report of a grid as one self-contained page, in which
// every text is escaped.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_REPORT_HTML_H_
#define SOFTMOE_EXPERIMENTS_REPORT_REPORT_HTML_H_

#include <string>

#include "experiments/report/plot.h"
#include "experiments/report/report_page.h"

namespace softmoe::experiments {

// Inline style, no script, nothing loaded from elsewhere. Columns whose cells
// are all numbers or empty are right-aligned; a cell that begins with a verdict
// has its colour; a row whose first cell is empty continues the row above.
// Without drawings the figures have only captions, and the page says why.
std::string HtmlOf(const ReportPage& page, const Drawings& drawings);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_REPORT_HTML_H_
