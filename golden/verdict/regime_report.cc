// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/regime_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/text/text_table.h"
#include "golden/verdict/miniature_report.h"

namespace softmoe::golden {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

constexpr size_t kLineWidth = 100;
// p this near to an end of its range counts as being at the end.
constexpr double kAtEnd = 1e-6;

constexpr const char* kDisclaimer =
    "The experiment regime: soft routing against sparse routing at equal "
    "active experts, trained as the paper trains. No reproduction of the "
    "paper, whatever the verdict: another text, another size.";

constexpr const char* kLegend =
    "Differences of final validation loss in nat/token, mean over seeds with "
    "the two-sided interval of Student's t; below 0 is in favour of soft "
    "routing (C5: of learned allocation). Linear and smooth are the two "
    "readings of the sparse rows' curve; new_seeds leaves out those whose "
    "sparse losses were known when the rule was fixed. SUPERIOR: the upper end "
    "is below 0 in both; MATCHES: below the margin in both; INFERIOR: the "
    "lower end is above 0 in both; else UNDECIDED.";

constexpr const char* kRoutingOrStart =
    "whether it is the routing that makes the difference: the router of soft "
    "rows starts wider (golden/RESULTS.md)";
constexpr const char* kSmallEffects =
    "effects below 0.01 nat/token in single rows (one of 0.01 is found in "
    "about half of made-up records)";

// What these runs cannot show, whatever their numbers.
const Texts& StaysImpossible() {
  static const Texts kImpossible = {
      kRoutingOrStart,
      "C3 (experts move early): learning rates add up to too little",
      "C2 (late layers gain experts) at the paper's size",
      "C6 (HellaSwag): no accuracies at this size",
      kSmallEffects,
      "effects below 0.025 nat/token of noise in the scores (the quiet row)"};
  return kImpossible;
}

std::string ReadingText(const RegimeReading& reading) {
  return fmt::format("{:+.4f} [{:+.4f}, {:+.4f}]", reading.estimate,
                     reading.interval.low, reading.interval.high);
}

// "MATCHES, and worse", with the label that accompanies the number everywhere.
std::string StatusText(const RegimeEstimate& estimate) {
  std::string text = RegimeStatusName(estimate.leaning);
  if (estimate.worse && estimate.leaning == RegimeStatus::kMatches) {
    text += ", and worse";
  }
  if (estimate.status != estimate.leaning) {
    text =
        fmt::format("{} ({} so far)", RegimeStatusName(estimate.status), text);
  }
  return text;
}

std::string IdText(const RegimeEstimate& estimate) {
  return estimate.infer_ae_only.empty() ? estimate.id
                                        : estimate.id + " (Infer-AE only)";
}

TextTable EstimateTable(const RegimeVerdicts& verdicts) {
  TextTable table(
      {"estimate", "verdict", "linear", "smooth", "seeds", "exponent"});
  for (const RegimeEstimate& each : verdicts.estimates) {
    Texts row = {IdText(each), StatusText(each)};
    // C5 has no curve, hence one number.
    row.push_back(each.readings.empty() ? "-" : ReadingText(each.readings[0]));
    row.push_back(each.readings.size() < 2 ? "-"
                                           : ReadingText(each.readings[1]));
    row.push_back(fmt::format("{}", each.seeds.size()));
    row.push_back(
        each.readings.size() < 2 ? "-" : fmt::format("{:.2f}", each.exponent));
    table.Add(std::move(row));
  }
  return table;
}

std::string NumberText(double number) {
  return std::isfinite(number) ? fmt::format("{:.3f}", number) : "-";
}

TextTable RowTable(const RegimeVerdicts& verdicts) {
  TextTable table({"row", "role", "runs", "pilots", "aim", "pilots' AE",
                   "Infer-AE", "Train-AE", "paper's Train-AE", "remarks"});
  for (const RegimeRowRuns& row : verdicts.rows) {
    table.Add({row.id, row.role,
               fmt::format("{} of {}", row.judged, row.planned),
               row.aim > 0 ? fmt::format("{}", row.pilots) : "-",
               row.aim > 0 ? fmt::format("{:g}", row.aim) : "-",
               NumberText(row.pilot_ae), NumberText(row.infer_ae),
               NumberText(row.train_ae),
               row.paper_train_high > 0
                   ? fmt::format("{:g} to {:g}", row.paper_train_low,
                                 row.paper_train_high)
                   : "-",
               row.infer_ae_only ? "Infer-AE only" : ""});
  }
  return table;
}

// One text per control, without bullet.
Texts ControlTexts(const RegimeVerdicts& verdicts) {
  Texts texts;
  for (const RegimeControl& control : verdicts.controls) {
    if (!control.problem.empty()) {
      texts.push_back(fmt::format(
          "{}: {}, {}", control.text,
          verdicts.missing.empty() ? "cannot be said" : "not known yet",
          control.problem));
      continue;
    }
    Texts readings;
    for (const RegimeReading& reading : control.readings) {
      readings.push_back(ReadingText(reading));
    }
    const std::string numbers =
        fmt::format("{} nat/token at {:g} %", fmt::join(readings, " and "),
                    100 * control.confidence);
    if (control.id == "left_out") {
      texts.push_back(fmt::format("{}: {}: the curve's error, exponent {:.2f}",
                                  control.text, numbers, control.exponent));
    } else {
      texts.push_back(fmt::format("{}: {}: {}", control.text,
                                  control.failed ? "FAILED" : "as it must be",
                                  numbers));
    }
  }
  return texts;
}

Texts RemarkTexts(const RegimeVerdicts& verdicts) {
  Texts texts;
  const double low = verdicts.exponents.low, high = verdicts.exponents.high;
  for (const RegimeEstimate& each : verdicts.estimates) {
    if (!each.reason.empty()) {
      texts.push_back(fmt::format("{}: {}", each.id, each.reason));
    }
    if (each.exponent != 0 && (each.exponent < low * (1 + kAtEnd) ||
                               each.exponent > high * (1 - kAtEnd))) {
      texts.push_back(
          fmt::format("{}: the smooth curve's p is at an end of "
                      "its range, {:g} to {:g}: the sparse losses "
                      "do not fix it",
                      each.id, low, high));
    }
  }
  for (const RegimeRowRuns& row : verdicts.rows) {
    if (!row.infer_ae_only) continue;
    texts.push_back(fmt::format(
        "{} (Infer-AE only): its Train-AE is {:.2f}, and the paper's is {:g} "
        "to {:g}: what it shows, it shows at the paper's active experts at the "
        "end, not while training",
        row.id, row.train_ae, row.paper_train_low, row.paper_train_high));
  }
  const RegimeExperts& experts = verdicts.experts;
  if (!experts.problem.empty()) {
    texts.push_back("C5.experts: " + experts.problem);
  } else if (!experts.seeds.empty()) {
    const double rise = experts.rise.estimate, caps = experts.caps.estimate;
    const bool by_caps = caps > 0 && rise <= caps;
    texts.push_back(fmt::format(
        "C5.experts: learned rows have {:+.3f} [{:+.3f}, {:+.3f}] active "
        "experts more than fixed ones, mean over rows and {} seeds; their "
        "caps, which are rounded up layer by layer, {} by {:+.3f} "
        "[{:+.3f}, {:+.3f}]{}",
        rise, experts.rise.interval.low, experts.rise.interval.high,
        experts.seeds.size(), by_caps ? "are larger" : "differ", caps,
        experts.caps.interval.low, experts.caps.interval.high,
        by_caps ? ", so this is no sign that more experts are of use" : ""));
  }
  if (!verdicts.equal_seeds.empty()) {
    texts.push_back(fmt::format("equal bits under two seeds: {}",
                                fmt::join(verdicts.equal_seeds, ", ")));
  }
  return texts;
}

// What the leaning of the primary estimate means, as a clause.
std::string PrimaryClause(const RegimeEstimate& primary, double margin) {
  switch (primary.leaning) {
    case RegimeStatus::kSuperior:
      return "soft routing ends with a lower loss than sparse routing that "
             "activates as many experts";
    case RegimeStatus::kMatches:
      return fmt::format(
          "soft routing matches sparse routing that activates as many experts: "
          "it is less than {:g} nat/token behind, and {}",
          margin,
          primary.worse ? "it is worse by less than that"
                        : "is not shown to be ahead");
    case RegimeStatus::kInferior:
      return fmt::format(
          "soft routing ends with a higher loss than sparse routing that "
          "activates as many experts, and a lag of {:g} nat/token is not ruled "
          "out",
          margin);
    case RegimeStatus::kUndecided:
      return "these runs do not decide whether soft routing is better or worse "
             "than sparse routing that activates as many experts";
    case RegimeStatus::kNotTestable:
      return "whether soft routing is better than sparse routing cannot be "
             "tested, because " +
             primary.reason;
    case RegimeStatus::kMistrusted:
      return "these runs are no evidence, because " + primary.reason;
    case RegimeStatus::kInterim:
      break;
  }
  return "";
}

std::string Capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') {
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  }
  return text;
}

std::string RunsText(const RegimeVerdicts& verdicts) {
  return fmt::format("{} of {} planned runs", verdicts.finished,
                     verdicts.planned);
}

std::string Lines(const Texts& texts, const char* bullet) {
  std::string all;
  for (const std::string& text : texts) {
    all += Wrap(bullet + text + ".", kLineWidth, 2) + "\n";
  }
  return all;
}

Json ReadingJson(const RegimeReading& reading) {
  return {{"estimate", reading.estimate},
          {"standard_error", reading.error},
          {"interval", {reading.interval.low, reading.interval.high}}};
}

Json EstimateJson(const RegimeEstimate& estimate) {
  Json json = {{"estimate", estimate.id},
               {"text", estimate.text},
               {"rows", estimate.rows},
               {"status", RegimeStatusName(estimate.status)},
               {"leaning", RegimeStatusName(estimate.leaning)}};
  if (!estimate.reason.empty()) json["reason"] = estimate.reason;
  if (!estimate.infer_ae_only.empty()) {
    json["infer_ae_only"] = estimate.infer_ae_only;
  }
  json["seeds"] = estimate.seeds;
  if (estimate.readings.empty()) return json;
  json["worse"] = estimate.worse;
  if (estimate.readings.size() == 1) {
    json["difference"] = ReadingJson(estimate.readings[0]);
  } else {
    json["linear"] = ReadingJson(estimate.readings[0]);
    json["smooth"] = ReadingJson(estimate.readings[1]);
    json["exponent"] = estimate.exponent;
  }
  return json;
}

Json RowJson(const RegimeRowRuns& row) {
  Json json = {{"row", row.id},
               {"role", row.role},
               {"planned", row.planned},
               {"judged", row.judged},
               {"pilots", row.pilots}};
  if (row.aim > 0) json["aim"] = row.aim;
  if (std::isfinite(row.pilot_ae)) json["pilot_ae"] = row.pilot_ae;
  if (std::isfinite(row.infer_ae)) json["infer_ae"] = row.infer_ae;
  if (std::isfinite(row.train_ae)) json["train_ae"] = row.train_ae;
  if (!row.problem.empty()) json["problem"] = row.problem;
  json["infer_ae_only"] = row.infer_ae_only;
  return json;
}

Json ControlJson(const RegimeControl& control) {
  Json json = {{"control", control.id}, {"text", control.text}};
  if (!control.problem.empty()) {
    json["problem"] = control.problem;
    return json;
  }
  json["failed"] = control.failed;
  json["confidence"] = control.confidence;
  for (const RegimeReading& reading : control.readings) {
    json["readings"].push_back(ReadingJson(reading));
  }
  if (control.exponent != 0) json["exponent"] = control.exponent;
  return json;
}

}  // namespace

std::string RegimeBottomLine(const RegimeVerdicts& verdicts) {
  const RegimeEstimate& primary = verdicts.estimates.front();
  std::string clause = PrimaryClause(primary, verdicts.margin);
  if (verdicts.missing.empty()) {
    clause = Capital(clause);
  } else {
    clause = fmt::format("INTERIM, {}: so far {}", RunsText(verdicts), clause);
  }
  if (!primary.readings.empty()) {
    clause += fmt::format(
        ". Mean over {} rows and {} seeds, {:g} % intervals, nat/token: {} "
        "against straight lines between the sparse rows, {} against a smooth "
        "curve through them",
        primary.rows.size(), primary.seeds.size(), 100 * verdicts.confidence,
        ReadingText(primary.readings[0]), ReadingText(primary.readings[1]));
  }
  if (!primary.infer_ae_only.empty()) {
    clause += fmt::format(
        ". Infer-AE only: while training, {} {} other numbers of active "
        "experts than the paper's",
        fmt::join(primary.infer_ae_only, " and "),
        primary.infer_ae_only.size() == 1 ? "has" : "have");
  }
  return clause + ".";
}

std::string DescribeRegime(const RegimeVerdicts& verdicts) {
  std::string text = Wrap(kDisclaimer, kLineWidth, 0) + "\n";
  text += fmt::format("definitions  {}\nruns         {}\n", verdicts.hash,
                      RunsText(verdicts));
  if (!verdicts.missing.empty()) {
    text +=
        Wrap("missing: " + MissingText(verdicts.missing, ", "), kLineWidth, 2) +
        "\n";
  }
  text += "\n" +
          Wrap("Bottom line: " + RegimeBottomLine(verdicts), kLineWidth, 0) +
          "\n";
  text += "\n" + EstimateTable(verdicts).Text() + "\n" +
          Wrap(kLegend, kLineWidth, 0) + "\n\n" + RowTable(verdicts).Text();
  const std::string remarks = Lines(RemarkTexts(verdicts), "");
  if (!remarks.empty()) text += "\n" + remarks;
  text += "\nControls, whose answer is known:\n" +
          Lines(ControlTexts(verdicts), "");
  text += "\nCannot be shown here:\n" + Lines(StaysImpossible(), "");
  return text;
}

std::string RegimeMarkdown(const RegimeVerdicts& verdicts) {
  std::string text = fmt::format("{}.\n\n**{}**\n\n{}\n{}\n",
                                 RunsText(verdicts), RegimeBottomLine(verdicts),
                                 EstimateTable(verdicts).Markdown(),
                                 RowTable(verdicts).Markdown());
  const std::string remarks = Lines(RemarkTexts(verdicts), "- ");
  if (!remarks.empty()) text += remarks + "\n";
  text += "Controls, whose answer is known:\n\n" +
          Lines(ControlTexts(verdicts), "- ");
  text += "\nCannot be shown here:\n\n" + Lines(StaysImpossible(), "- ");
  return text;
}

Json RegimeJson(const RegimeVerdicts& verdicts) {
  Json json = {{"hash", verdicts.hash},
               {"planned", verdicts.planned},
               {"finished", verdicts.finished},
               {"missing", verdicts.missing},
               {"equal_seeds", verdicts.equal_seeds},
               {"bottom_line", RegimeBottomLine(verdicts)},
               {"confidence", verdicts.confidence},
               {"margin", verdicts.margin}};
  for (const RegimeEstimate& each : verdicts.estimates) {
    json["estimates"].push_back(EstimateJson(each));
  }
  for (const RegimeRowRuns& row : verdicts.rows) {
    json["rows"].push_back(RowJson(row));
  }
  for (const RegimeControl& control : verdicts.controls) {
    json["controls"].push_back(ControlJson(control));
  }
  const RegimeExperts& experts = verdicts.experts;
  if (!experts.problem.empty()) {
    json["experts"]["problem"] = experts.problem;
  } else if (!experts.seeds.empty()) {
    json["experts"] = {{"seeds", experts.seeds},
                       {"rise", ReadingJson(experts.rise)},
                       {"rise_of_caps", ReadingJson(experts.caps)}};
  }
  for (const std::string& each : StaysImpossible()) {
    json["stays_impossible"].push_back(each);
  }
  return json;
}

}  // namespace softmoe::golden
