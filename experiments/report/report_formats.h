// SPDX-License-Identifier: Apache-2.0
//
// report_formats.h - the report of a grid for other documents and programs: as
// Markdown, JSON, and a CSV file for each table.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_REPORT_FORMATS_H_
#define SOFTMOE_EXPERIMENTS_REPORT_REPORT_FORMATS_H_

#include <map>
#include <string>

#include "experiments/report/plot.h"
#include "experiments/report/report_page.h"

namespace softmoe::experiments {

enum class ReportFormat { kHtml, kMarkdown, kCsv, kJson };

// GitHub's Markdown; figures are links to the SVG files in plots/. A plot that
// was not drawn is named by the file of its points, and the page says why.
std::string MarkdownOf(const ReportPage& page, const Drawings& drawings);

// {"title", "subtitle", "tables": [{"id", "title", "caption", "header",
// "rows"}], "figures": [{"title", "caption", "rows", "corpora", "plots":
// [{"id", "x_label", "y_label", "series": [{"name", "x", "y", "low",
// "high"}]}]}]}. Cells are the texts of the page; points have all digits, and
// are null where they are not finite.
std::string JsonOf(const ReportPage& page);

// Header and rows of each table of the page, by its name in TablesOf.
std::map<std::string, std::string> CsvTablesOf(const ReportPage& page);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_REPORT_FORMATS_H_
