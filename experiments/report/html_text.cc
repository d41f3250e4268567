// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/html_text.h"

#include <fmt/format.h>

#include "core/text/markup.h"

namespace softmoe::experiments {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --line: #d8d8d8; --soft: #666; --good: #0a6b2d;
  --bad: #a81212; --open: #7a5b00; --card: #fff; }
@media (prefers-color-scheme: dark) { :root { --line: #444; --soft: #aaa;
  --good: #6fd58f; --bad: #ff8f8f; --open: #e5c35a; --card: #fff; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; }
h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
p, li { max-width: 46rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .6rem 0 1.2rem; font-size: .9rem;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
th, td { padding: .25rem .7rem .25rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; } .number { text-align: right; }
.pass { color: var(--good); font-weight: 600; }
.fail { color: var(--bad); font-weight: 600; }
.open, .note { color: var(--open); } .soft { color: var(--soft); }
.box { border: 1px solid var(--line); border-left: .3rem solid var(--open);
  padding: .4rem 1rem; border-radius: .3rem; }
figure { background: var(--card); border-radius: .4rem; margin: .6rem 0;
  padding: .4rem; } figcaption { color: #444; font-size: .9rem; }
figure svg { max-width: 100%; height: auto; }
pre { overflow-x: auto; font-size: .8rem; } summary { cursor: pointer; }
)";

// Digits, plus whatever accompanies a measured number.
bool IsNumber(const std::string& text) {
  return text.find_first_not_of("0123456789.+-eE%/ Mc<=") == std::string::npos;
}

}  // namespace

std::string HtmlTable(const std::string& caption,
                      const std::vector<std::string>& header,
                      const std::vector<std::vector<HtmlCell>>& rows) {
  std::vector<bool> numbers(header.size(), !rows.empty());
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      numbers[c] = numbers[c] && IsNumber(row[c].text);
    }
  }
  std::string html = fmt::format(
      "<div class=\"scroll\"><table>\n<caption>{}</caption>\n<thead><tr>",
      EscapeMarkup(caption));
  for (size_t c = 0; c < header.size(); ++c) {
    html += fmt::format("<th scope=\"col\"{}>{}</th>",
                        numbers[c] ? " class=\"number\"" : "",
                        EscapeMarkup(header[c]));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    html += "<tr>";
    for (size_t c = 0; c < row.size(); ++c) {
      std::string css = row[c].css_class;
      if (numbers[c]) css += css.empty() ? "number" : " number";
      html += fmt::format(
          "<td{}>{}</td>",
          css.empty() ? "" : fmt::format(" class=\"{}\"", EscapeMarkup(css)),
          EscapeMarkup(row[c].text));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string Details(const std::string& summary, const std::string& content) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n",
                     EscapeMarkup(summary), content);
}

std::string HtmlPage(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}</body>\n"
      "</html>\n",
      EscapeMarkup(title), kStyle, body);
}

}  // namespace softmoe::experiments
