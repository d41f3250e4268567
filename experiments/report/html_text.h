// SPDX-License-Identifier: Apache-2.0
//
// html_text.h - pieces of an HTML page; every text is escaped.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_HTML_TEXT_H_
#define SOFTMOE_EXPERIMENTS_REPORT_HTML_TEXT_H_

#include <string>
#include <vector>

namespace softmoe::experiments {

struct HtmlCell {
  std::string text;
  std::string css_class = {};  // "pass", "fail", ...
};

// A table with caption and header. Columns whose cells are all numbers or empty
// are right-aligned.
std::string HtmlTable(const std::string& caption,
                      const std::vector<std::string>& header,
                      const std::vector<std::vector<HtmlCell>>& rows);

// <details> with a summary line; `content` is already HTML.
std::string Details(const std::string& summary, const std::string& content);

// A whole page; `body` is already HTML. The page is self-contained: inline
// style, no script, nothing loaded from elsewhere.
std::string HtmlPage(const std::string& title, const std::string& body);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_HTML_TEXT_H_
