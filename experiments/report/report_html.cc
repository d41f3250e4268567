// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_html.h"

#include <fmt/core.h>

#include <map>

#include "core/text/markup.h"

namespace softmoe::experiments {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --line: #d8d8d8; --soft: #5f5f5f;
  --good: #0a6b2d; --bad: #a81212; --open: #7a5b00; --code: #f4f4f4; }
@media (prefers-color-scheme: dark) { :root { --line: #444; --soft: #aaa;
  --good: #6fd58f; --bad: #ff8f8f; --open: #e5c35a; --code: #222; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; }
h2 { font-size: 1.25rem; margin-top: 2.4rem;
  border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
p, li { max-width: 46rem; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: .3rem 0 1rem; }
table { border-collapse: collapse; font-size: .8125rem;
  font-variant-numeric: tabular-nums; }
.caption { color: var(--soft); font-size: .875rem; margin: .3rem 0; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top; }
td { border-top: 1px solid var(--line); max-width: 40rem; }
.short { white-space: nowrap; } .long { min-width: 9rem; }
.more td { border-top: 0; padding-top: 0; }
th { font-weight: 600; vertical-align: bottom; }
.number { text-align: right; }
.pass { color: var(--good); } .fail { color: var(--bad); }
.open { color: var(--open); } .soft { color: var(--soft); }
.pass, .fail { font-weight: 600; }
.box { border: 1px solid var(--line); border-left: .3rem solid var(--open);
  padding: .4rem 1rem; border-radius: .3rem; max-width: 46rem; }
figure { margin: 1.4rem 0 .4rem; }
.plots { display: grid; gap: .6rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); }
.plots.thirds {
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); }
.plots > div { background: #fff; border-radius: .4rem; padding: .3rem;
  max-width: 44rem; }
figcaption { color: var(--soft); font-size: .875rem; max-width: 46rem;
  margin-top: .3rem; }
figcaption b { color: CanvasText; }
.plots svg { display: block; width: 100%; height: auto; }
pre { overflow-x: auto; font-size: .8rem; background: var(--code);
  padding: .5rem .7rem; border-radius: .3rem; }
summary { cursor: pointer; } details { margin: .3rem 0; }
details.small { font-size: .875rem; color: var(--soft); }
)";

constexpr size_t kShort = 24;  // letters of a cell that stays on one line

// Digits, plus whatever accompanies a measured number.
bool IsNumber(const std::string& text) {
  return text.find_first_not_of("0123456789.+-*eE%/ Mc<=\u00b1") ==
         std::string::npos;
}

// The colour of a text that begins with a verdict or says whose numbers follow.
std::string CssOf(const std::string& text) {
  static const std::map<std::string, std::string> kClasses = {
      {"PASS", "pass"},           {"FAIL", "fail"},
      {"FAILED", "fail"},         {"MISTRUSTED", "fail"},
      {"NOT_COMPARABLE", "open"}, {"INCONCLUSIVE", "open"},
      {"UNSUPPORTED", "open"},    {"paper", "soft"},
      {"not judged", "soft"}};
  const auto found = kClasses.find(text.substr(0, text.find_first_of(":;,")));
  return found == kClasses.end() ? "" : found->second;
}

std::string Tag(const std::string& name, const std::string& css,
                const std::string& content) {
  return fmt::format("<{}{}>{}</{}>", name,
                     css.empty() ? "" : fmt::format(" class=\"{}\"", css),
                     content, name);
}

std::string TableHtml(const EvaluationTable& table) {
  std::vector<bool> numbers(table.header.size(), !table.rows.empty());
  for (const auto& row : table.rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      numbers[c] = numbers[c] && IsNumber(row[c]);
    }
  }
  std::string html;
  if (!table.caption.empty()) {
    html += Tag("p", "caption", EscapeMarkup(table.caption)) + "\n";
  }
  html += fmt::format(
      "<div class=\"scroll\"><table aria-label=\"{}\">\n<thead><tr>",
      EscapeMarkup(table.title));
  for (size_t c = 0; c < table.header.size(); ++c) {
    html += fmt::format("<th scope=\"col\"{}>{}</th>",
                        numbers[c] ? " class=\"number\"" : "",
                        EscapeMarkup(table.header[c]));
  }
  html += "</tr></thead>\n<tbody>\n";
  bool first = true;
  for (const auto& row : table.rows) {
    std::string cells;
    for (size_t c = 0; c < row.size(); ++c) {
      std::string css = CssOf(row[c]);
      const auto add = [&](const char* name) {
        css += (css.empty() ? "" : " ") + std::string(name);
      };
      if (numbers[c]) add("number");
      const bool words = row[c].find(' ') != std::string::npos;
      if (words) add(row[c].size() <= kShort ? "short" : "long");
      cells += Tag("td", css, EscapeMarkup(row[c]));
    }
    const bool more = !first && !row.empty() && row.front().empty();
    html += Tag("tr", more ? "more" : "", cells) + "\n";
    first = false;
  }
  return html + "</tbody></table></div>\n";
}

std::string FigureHtml(const Figure& figure, const Drawings& drawings) {
  std::string plots, points;
  for (const Plot& plot : figure.plots) {
    const auto drawn = drawings.svgs.find(plot.id);
    if (drawn != drawings.svgs.end()) {
      plots += "<div>" + drawn->second + "</div>\n";
    }
    points += (points.empty() ? "" : ", ") + plot.id + ".csv";
  }
  return fmt::format(
      "<figure role=\"img\" aria-label=\"{}\">\n<div class=\"plots{}\">\n{}"
      "</div>\n<figcaption><b>{}.</b> {} Points: plots/{}.</figcaption>\n"
      "</figure>\n",
      EscapeMarkup(figure.title + ". " + figure.caption),
      figure.plots.size() % 3 == 0 ? " thirds" : "", plots,
      EscapeMarkup(figure.title), EscapeMarkup(figure.caption), points);
}

std::string Html(const ReportItem& item, const std::string& part,
                 const Drawings& drawings) {
  std::string html;
  std::string css;
  if (const auto* paragraph = std::get_if<Paragraph>(&item.content)) {
    html = Tag("p", "", EscapeMarkup(paragraph->text)) + "\n";
    if (paragraph->warning) html = "<div class=\"box\">" + html + "</div>\n";
  } else if (const auto* list = std::get_if<TextList>(&item.content)) {
    for (const std::string& text : list->items) {
      html += Tag("li", "", EscapeMarkup(text)) + "\n";
    }
    html = "<ul>\n" + html + "</ul>\n";
  } else if (const auto* verbatim = std::get_if<Verbatim>(&item.content)) {
    html = Tag("pre", "", EscapeMarkup(verbatim->text)) + "\n";
    css = "small";
  } else if (const auto* table = std::get_if<EvaluationTable>(&item.content)) {
    html = TableHtml(*table);
    if (table->title != part && table->title != item.folded) {
      html = Tag("h3", "", EscapeMarkup(table->title)) + "\n" + html;
    }
  } else {
    html = FigureHtml(std::get<Figure>(item.content), drawings);
  }
  if (item.folded.empty()) return html;
  return Tag("details", css,
             Tag("summary", "", EscapeMarkup(item.folded)) + "\n" + html) +
         "\n";
}

}  // namespace

std::string HtmlOf(const ReportPage& page, const Drawings& drawings) {
  std::string body = Tag("h1", "", EscapeMarkup(page.title)) + "\n" +
                     Tag("p", "soft", EscapeMarkup(page.subtitle)) + "\n";
  if (!drawings.problem.empty()) {
    body +=
        Tag("p", "open", EscapeMarkup("No plots: " + drawings.problem)) + "\n";
  }
  for (const ReportPart& part : page.parts) {
    if (!part.title.empty()) {
      body += Tag("h2", "", EscapeMarkup(part.title)) + "\n";
    }
    for (const ReportItem& item : part.items) {
      body += Html(item, part.title, drawings);
    }
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n"
      "<title>SoftMoE {}</title>\n<style>{}</style>\n</head>\n<body>\n{}"
      "</body>\n</html>\n",
      EscapeMarkup(page.title), kStyle, body);
}

}  // namespace softmoe::experiments
