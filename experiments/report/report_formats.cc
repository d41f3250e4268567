// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_formats.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "core/files/json_lines.h"
#include "core/text/text_table.h"
#include "experiments/report/report_csv.h"

namespace softmoe::experiments {
namespace {

using Json = nlohmann::ordered_json;

// Escapes text outside of code, so that nothing in it is markup.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string("\\`*_[]<>#|").find(c) != std::string::npos) {
      escaped += '\\';
    }
    escaped += c;
  }
  return escaped;
}

std::string TableMarkdown(const EvaluationTable& table) {
  const auto escaped = [](std::vector<std::string> row) {
    for (std::string& text : row) text = Escaped(text);
    return row;
  };
  TextTable lines(escaped(table.header));
  for (const auto& row : table.rows) lines.Add(escaped(row));
  return lines.Markdown();
}

std::string FigureMarkdown(const Figure& figure, const Drawings& drawings) {
  std::string images, points;
  for (const Plot& plot : figure.plots) {
    if (drawings.svgs.contains(plot.id)) {
      images +=
          fmt::format("![{}](plots/{}.svg)\n", Escaped(plot.title), plot.id);
    } else {
      points += fmt::format("{}plots/{}.csv", points.empty() ? "" : ", ",
                            Escaped(plot.id));
    }
  }
  if (!images.empty()) images += "\n";
  if (!points.empty()) points = " Points: " + points + ".";
  return fmt::format("{}**{}.** {}{}\n", images, Escaped(figure.title),
                     Escaped(figure.caption), points);
}

std::string Markdown(const ReportItem& item, const std::string& part,
                     const Drawings& drawings) {
  if (const auto* paragraph = std::get_if<Paragraph>(&item.content)) {
    return (paragraph->warning ? "> " : "") + Escaped(paragraph->text) + "\n";
  }
  if (const auto* list = std::get_if<TextList>(&item.content)) {
    std::string text;
    for (const std::string& line : list->items) {
      text += "- " + Escaped(line) + "\n";
    }
    return text;
  }
  if (const auto* verbatim = std::get_if<Verbatim>(&item.content)) {
    return (item.folded.empty() ? "" : Escaped(item.folded) + ":\n\n") +
           "```\n" + verbatim->text + "\n```\n";
  }
  if (const auto* table = std::get_if<EvaluationTable>(&item.content)) {
    std::string text;
    if (table->title != part) text += "### " + Escaped(table->title) + "\n\n";
    if (!table->caption.empty()) text += Escaped(table->caption) + "\n\n";
    return text + TableMarkdown(*table);
  }
  return FigureMarkdown(std::get<Figure>(item.content), drawings);
}

}  // namespace

std::string MarkdownOf(const ReportPage& page, const Drawings& drawings) {
  std::string text = fmt::format("# {}\n\n{}\n\n", Escaped(page.title),
                                 Escaped(page.subtitle));
  if (!drawings.problem.empty()) {
    text += Escaped("No plots: " + drawings.problem) + "\n\n";
  }
  for (const ReportPart& part : page.parts) {
    if (!part.title.empty()) text += "## " + Escaped(part.title) + "\n\n";
    for (const ReportItem& item : part.items) {
      text += Markdown(item, part.title, drawings) + "\n";
    }
  }
  return text;
}

std::string JsonOf(const ReportPage& page) {
  Json tables = Json::array();
  for (const auto& [id, table] : TablesOf(page)) {
    tables.push_back({{"id", id},
                      {"title", table->title},
                      {"caption", table->caption},
                      {"header", table->header},
                      {"rows", table->rows}});
  }
  Json figures = Json::array();
  for (const Figure* figure : FiguresOf(page)) {
    Json plots = Json::array();
    for (const Plot& plot : figure->plots) {
      Json all = Json::array();
      for (const Series& series : plot.series) {
        all.push_back({{"name", series.name},
                       {"x", series.x},
                       {"y", series.y},
                       {"low", series.low},
                       {"high", series.high}});
      }
      plots.push_back({{"id", plot.id},
                       {"x_label", plot.x_label},
                       {"y_label", plot.y_label},
                       {"series", std::move(all)}});
    }
    figures.push_back({{"title", figure->title},
                       {"caption", figure->caption},
                       {"rows", figure->rows},
                       {"corpora", figure->corpora},
                       {"plots", std::move(plots)}});
  }
  const Json json = {{"title", page.title},
                     {"subtitle", page.subtitle},
                     {"tables", std::move(tables)},
                     {"figures", std::move(figures)}};
  return JsonText(json, 1) + "\n";
}

std::map<std::string, std::string> CsvTablesOf(const ReportPage& page) {
  std::map<std::string, std::string> files;
  for (const auto& [id, table] : TablesOf(page)) {
    std::string& text = files[id] = CsvLine(table->header);
    for (const auto& row : table->rows) text += CsvLine(row);
  }
  return files;
}

}  // namespace softmoe::experiments
