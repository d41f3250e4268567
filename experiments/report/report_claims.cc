// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_claims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <utility>
#include <vector>

#include "core/text/markup.h"
#include "experiments/report/csv_text.h"
#include "experiments/report/html_text.h"
#include "golden/verdict/miniature_report.h"

namespace softmoe::experiments {
namespace {

using golden::Cell;
using golden::Column;
using golden::FieldClass;
using golden::Known;
using golden::MiniatureCase;
using golden::MiniatureMeasureVerdict;
using golden::MiniatureStatusName;
using golden::MiniatureVerdict;

constexpr int kDecimals = 6;

const MiniatureCase& Deciding(const MiniatureMeasureVerdict& measure) {
  return measure.cases[measure.deciding];
}

std::string HtmlOf(const std::string& caption,
                   const golden::MiniatureTable& table) {
  std::vector<std::vector<HtmlCell>> rows;
  for (const std::vector<std::string>& texts : table.rows) {
    std::vector<HtmlCell>& row = rows.emplace_back();
    for (const std::string& text : texts) row.push_back({text});
  }
  return HtmlTable(caption, table.header, rows);
}

// The text of one column for the deciding case.
struct Effect {
  const char* id;
  const char* metric;
  std::function<double(const MiniatureMeasureVerdict&)> read;
};

const std::vector<Effect>& Effects() {
  static const std::vector<Effect> effects = {
      {"effect", "difference of the case that decides the measure",
       [](const auto& m) { return Deciding(m).estimate; }},
      {"interval_low", "two-sided interval of the effect: its low end",
       [](const auto& m) { return Deciding(m).interval.low; }},
      {"interval_high", "two-sided interval of the effect: its high end",
       [](const auto& m) { return Deciding(m).interval.high; }},
      {"margin", "what the effect is held against, fixed beforehand",
       [](const auto& m) { return m.margin; }},
      {"p", "p-value of the measure in either direction, before Holm",
       [](const auto& m) { return m.p; }}};
  return effects;
}

Cell CellOf(const MiniatureMeasureVerdict& measure, const Effect& effect) {
  const MiniatureCase& deciding = Deciding(measure);
  Cell cell;
  const bool reported = measure.status == golden::MiniatureStatus::kReported;
  if (!deciding.problem.empty() || reported) {
    cell.flags = {MiniatureStatusName(
        reported ? measure.status : golden::MiniatureStatus::kNotTestable)};
    return cell;
  }
  cell.value = cell.low = cell.high = effect.read(measure);
  cell.text = fmt::format("{:.{}f}", cell.value, kDecimals);
  cell.runs = deciding.seeds;
  return cell;
}

golden::Row RowOf(const golden::MiniatureVerdicts& verdicts,
                  const MiniatureVerdict& claim,
                  const MiniatureMeasureVerdict& measure) {
  golden::Row row;
  row.id = measure.id;
  row.labels = {claim.title, measure.text};
  const auto add = [&](const char* name, const std::string& value) {
    row.fields.push_back({name, value, FieldClass::kIgnore,
                          value.empty() ? Known::kUnknown : Known::kStated});
  };
  const MiniatureCase& deciding = Deciding(measure);
  add("claim", claim.id);
  add("claim.verdict", golden::ClaimStatusText(verdicts, claim));
  add("claim.assumes", claim.assumes);
  add("verdict", MiniatureStatusName(measure.status));
  add("reason", measure.reason);
  add("unit", measure.unit);
  add("case", deciding.label);
  add("corpus", deciding.corpus);
  for (const Effect& effect : Effects()) {
    row.cells.push_back(CellOf(measure, effect));
  }
  return row;
}

}  // namespace

std::string ClaimsText(const MiniClaims& judged) {
  std::string text =
      golden::DescribeMiniature(judged.verdicts) + "\nEvery case:\n" +
      golden::DescribeMiniatureCases(judged.verdicts) +
      "\nEvery row, mean and deviation over seeds:\n" +
      golden::DescribeMiniatureRows(judged.claims, judged.results);
  if (!judged.unplanned.empty()) {
    text += fmt::format("\nNot planned, and not judged: {}\n",
                        fmt::join(judged.unplanned, ", "));
  }
  return text;
}

std::string ClaimsCsv(const MiniClaims& judged) {
  std::string text =
      "claim,claim_verdict,measure,measure_verdict,corpus,case,effect,"
      "interval_low,interval_high,unit,margin,seeds,p_shown,p_contradicted,"
      "decides,problem,cap_rise,assumes\n";
  for (const MiniatureVerdict& claim : judged.verdicts.claims) {
    for (const MiniatureMeasureVerdict& measure : claim.measures) {
      const size_t num_cases = measure.cases.size();
      for (size_t c = 0; c < num_cases + measure.parts.size(); ++c) {
        const bool is_part = c >= num_cases;
        const MiniatureCase& each =
            is_part ? measure.parts[c - num_cases] : measure.cases[c];
        const bool tested = each.problem.empty();
        const bool decides =
            tested && c == measure.deciding &&
            measure.status != golden::MiniatureStatus::kReported;
        const auto number = [&](double value) {
          return tested ? CsvNumber(value) : "";
        };
        const std::vector<std::string> fields = {
            claim.id,
            golden::ClaimStatusText(judged.verdicts, claim),
            measure.id,
            is_part ? "part" : MiniatureStatusName(measure.status),
            each.corpus,
            each.label,
            number(each.estimate),
            number(each.interval.low),
            number(each.interval.high),
            measure.unit,
            CsvNumber(measure.margin),
            std::to_string(each.seeds),
            number(each.p_shown),
            number(each.p_contradicted),
            decides ? "1" : "0",
            each.problem,
            tested && each.cap_rise ? CsvNumber(*each.cap_rise) : "",
            claim.assumes};
        std::vector<std::string> quoted;
        for (const std::string& field : fields) {
          quoted.push_back(CsvField(field));
        }
        text += fmt::format("{}\n", fmt::join(quoted, ","));
      }
    }
  }
  return text;
}

std::string ClaimsHtml(const MiniClaims& judged) {
  const golden::MiniatureVerdicts& verdicts = judged.verdicts;
  return fmt::format(
      "<h2>Claims in miniature</h2>\n<p>{}</p>\n{}{}{}{}{}",
      EscapeMarkup(fmt::format(
          "{} {} of {} planned runs are in{}. Margins, {}: {}.",
          golden::MiniatureDisclaimer(), verdicts.finished, verdicts.planned,
          verdicts.missing.empty() ? "" : ", so that every verdict is INTERIM",
          golden::MiniatureMarginsFixed(verdicts), verdicts.hash)),
      HtmlOf("Could it have been shown?",
             golden::MiniatureDesignTable(verdicts)),
      HtmlOf("The paper's claims, in a form without scale.",
             golden::MiniatureClaimTable(verdicts, /*of_paper=*/true)) +
          HtmlOf("Hypotheses of this project.",
                 golden::MiniatureClaimTable(verdicts, /*of_paper=*/false)),
      HtmlOf(golden::MiniatureMeasureLegend(),
             golden::MiniatureMeasureTable(verdicts)),
      Details("Every case", HtmlOf("Of every measure.",
                                   golden::MiniatureCaseTable(verdicts))),
      Details("Reasons, assumptions, and what the grid can resolve",
              "<pre>" + EscapeMarkup(ClaimsText(judged)) + "</pre>\n"));
}

golden::Table ClaimsTable(const MiniClaims& judged) {
  golden::Table table;
  table.id = "claims_in_miniature";
  table.title = golden::MiniatureDisclaimer();
  table.caption =
      fmt::format("Margins {}, {}; {} of {} planned runs", judged.verdicts.hash,
                  golden::MiniatureMarginsFixed(judged.verdicts),
                  judged.verdicts.finished, judged.verdicts.planned);
  for (const Effect& effect : Effects()) {
    Column column;
    column.id = effect.id;
    column.unit = "that of the measure (1 for p)";
    column.metric = effect.metric;
    column.decimals = kDecimals;
    table.columns.push_back(std::move(column));
  }
  for (const MiniatureVerdict& claim : judged.verdicts.claims) {
    for (const MiniatureMeasureVerdict& measure : claim.measures) {
      table.rows.push_back(RowOf(judged.verdicts, claim, measure));
    }
  }
  return table;
}

}  // namespace softmoe::experiments
