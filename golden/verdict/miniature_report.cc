// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "core/text/text_table.h"
#include "golden/verdict/miniature_reason.h"
#include "golden/verdict/statistics.h"

namespace softmoe::golden {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kWidth = 100;

// The row and corpus of a case.
std::string Place(const MiniatureCase& each) {
  return each.corpus.empty() ? each.label : each.corpus + ": " + each.label;
}

std::vector<std::string> EffectTexts(const MiniatureCase& each) {
  if (!each.problem.empty()) return {"-", "-", "-", "-"};
  return {fmt::format("{:+.3g}", each.estimate),
          fmt::format("{:+.3g}", each.interval.low),
          fmt::format("{:+.3g}", each.interval.high),
          fmt::format("{}", each.seeds)};
}

std::string SeedsNeeded(const MiniatureMeasureVerdict& measure) {
  if (measure.status != MiniatureStatus::kUndecided) return "-";
  return measure.seeds_needed ? fmt::format("{}", *measure.seeds_needed)
                              : "none would do";
}

std::string Reasons(const MiniatureVerdicts& verdicts) {
  std::string text;
  for (const MiniatureVerdict& claim : verdicts.claims) {
    for (const MiniatureMeasureVerdict& measure : claim.measures) {
      text += Wrap(fmt::format("{}, {}: {}.", measure.id, measure.text,
                               measure.reason),
                   kWidth, 2) +
              "\n";
    }
    text += Wrap(fmt::format("{} assumes: {}.", claim.id, claim.assumes),
                 kWidth, 2) +
            "\n";
  }
  return text;
}

// A claim's predecessor under the definitions that its runs were recorded
// under.
const EarlierVerdict* Before(const MiniatureVerdicts& verdicts,
                             const MiniatureVerdict& claim) {
  return verdicts.recorded_under ? verdicts.recorded_under->Before(claim.id)
                                 : nullptr;
}

// Why verdicts differ from those of the definitions that the runs were recorded
// under; "" if they are the same.
std::string Changes(const MiniatureVerdicts& verdicts, const char* bullet) {
  if (!verdicts.recorded_under) return "";
  const EarlierClaims& before = *verdicts.recorded_under;
  std::string text =
      Wrap(fmt::format("{}Every verdict came after the fact: the runs were "
                       "recorded under margins {} of procedure {} ({}), which "
                       "were replaced after {}.",
                       bullet, before.hash, before.procedure, before.frozen,
                       before.why),
           kWidth, 2) +
      "\n";
  for (const EarlierVerdict& verdict : before.verdicts) {
    text += Wrap(fmt::format("{}{} was {}, now {}: {}.", bullet, verdict.claim,
                             verdict.verdict, fmt::join(verdict.now, ", "),
                             verdict.why),
                 kWidth, 2) +
            "\n";
  }
  return text;
}

// 'gcide: "deviation" leaves out rows much noisier than the others: sparse-2',
// after `bullet`.
std::string LeftOut(const MiniatureResolution& each, const char* column,
                    const std::vector<std::string>& rows, const char* bullet) {
  if (rows.empty()) return "";
  return Wrap(fmt::format("{}{}: \"{}\" leaves out rows much noisier than the "
                          "others: {}",
                          bullet, each.corpus, column, fmt::join(rows, ", ")),
              kWidth, 2) +
         "\n";
}

std::string LeftOutRows(const MiniatureVerdicts& verdicts, const char* bullet) {
  std::string text;
  for (const MiniatureResolution& each : verdicts.resolution) {
    text += LeftOut(each, "deviation", each.plain_own, bullet) +
            LeftOut(each, "paired", each.paired_own, bullet);
  }
  return text;
}

// A row for each corpus, with the difference of losses that it can resolve.
TextTable ResolutionTable(const MiniatureVerdicts& verdicts) {
  TextTable table({"corpus", "rows", "seeds", "deviation", "paired",
                   "gain of pairing", "one test", "all measures"});
  for (const MiniatureResolution& each : verdicts.resolution) {
    table.Add({each.corpus, fmt::format("{}", each.rows),
               fmt::format("{}", each.seeds), fmt::format("{:.3g}", each.plain),
               fmt::format("{:.3g}", each.paired),
               fmt::format("{:.2f}", std::pow(each.plain / each.paired, 2)),
               fmt::format("{:.3g}", each.one_test),
               fmt::format("{:.3g}", each.family)});
  }
  return table;
}

std::string Resolution(const MiniatureVerdicts& verdicts) {
  if (verdicts.resolution.empty()) return "";
  return Wrap(
             "Deviation of a run's final loss over seeds (nat/token); the same "
             "with the effect common to all rows of a seed taken out "
             "(paired); how many unpaired seeds a paired one is worth (gain of "
             "pairing; below 1, pairing loses); and the difference between two "
             "rows that is found in 80 % of cases, by one test and among all "
             "measures:",
             kWidth, 0) +
         "\n" + ResolutionTable(verdicts).Text() + LeftOutRows(verdicts, "");
}

// "own deviation: a; rounding of caps alone: +0.45": what else a reader of a
// case must know.
std::string Remarks(const MiniatureCase& each) {
  if (!each.problem.empty()) return each.problem;
  std::vector<std::string> remarks;
  if (each.not_pooled) {
    remarks.push_back(fmt::format(
        "own deviation, for the rows scatter unequally (Bartlett, p = {:.2g})",
        each.bartlett));
  } else if (!each.own_deviation.empty()) {
    remarks.push_back(
        fmt::format("own deviation: {}", fmt::join(each.own_deviation, ", ")));
  }
  std::vector<std::string> others;
  for (const std::string& row : each.left_out) {
    if (std::ranges::find(each.own_deviation, row) ==
        each.own_deviation.end()) {
      others.push_back(row);
    }
  }
  if (!others.empty()) {
    remarks.push_back(
        fmt::format("left out of the pool: {}", fmt::join(others, ", ")));
  }
  if (each.cap_rise) {
    remarks.push_back(
        fmt::format("rounding of caps alone: {:+.2f}, {:.2f} of the effect",
                    *each.cap_rise, *each.cap_rise / each.estimate));
  }
  return fmt::format("{}", fmt::join(remarks, "; "));
}

// Whether a measure has a deciding case.
bool HasDeciding(const MiniatureMeasureVerdict& measure) {
  return measure.status != MiniatureStatus::kReported &&
         measure.cases[measure.deciding].problem.empty();
}

// Its deciding case and, if rounding of caps is part of the effect, that part.
std::string DecidingText(const MiniatureMeasureVerdict& measure) {
  const MiniatureCase& deciding = measure.cases[measure.deciding];
  std::string text = Place(deciding);
  if (deciding.cap_rise) {
    text += fmt::format("; rounding of caps alone gives {:+.2f}",
                        *deciding.cap_rise);
  }
  return text;
}

Json CaseJson(const MiniatureCase& each) {
  Json json;
  json["case"] = each.label;
  if (!each.corpus.empty()) json["corpus"] = each.corpus;
  json["seeds"] = each.seeds;
  if (!each.problem.empty()) {
    json["problem"] = each.problem;
    return json;
  }
  json["effect"] = each.estimate;
  json["standard_error"] = std::max(each.seed_error, each.least_error);
  json["degrees_of_freedom"] = each.freedom;
  json["interval"] = {each.interval.low, each.interval.high};
  json["resolves"] = each.resolves;
  json["p_shown"] = each.p_shown;
  json["p_contradicted"] = each.p_contradicted;
  if (each.own_freedom > 0) {
    json["own_standard_error"] = each.own_error;
    json["own_degrees_of_freedom"] = each.own_freedom;
  }
  json["bartlett"] = each.bartlett;
  json["pooled"] = !each.not_pooled;
  if (!each.left_out.empty()) json["left_out"] = each.left_out;
  if (each.cap_rise) json["cap_rise"] = *each.cap_rise;
  if (!each.own_deviation.empty()) json["own_deviation"] = each.own_deviation;
  return json;
}

Json MeasureJson(const MiniatureMeasureVerdict& measure) {
  Json json;
  json["measure"] = measure.id;
  json["text"] = measure.text;
  json["unit"] = measure.unit;
  json["margin"] = measure.margin;
  json["status"] = MiniatureStatusName(measure.status);
  json["reason"] = measure.reason;
  if (measure.status != MiniatureStatus::kReported) {
    json["could_be_shown"] = measure.could_be_shown;
    json["p"] = measure.p;
    if (measure.p_not_pooled) json["p_not_pooled"] = *measure.p_not_pooled;
    json["cases_needed"] = measure.cases_needed;
    json["deciding"] = measure.deciding;
  }
  if (measure.seeds_needed) json["seeds_needed"] = *measure.seeds_needed;
  for (const MiniatureCase& each : measure.cases) {
    json["cases"].push_back(CaseJson(each));
  }
  for (const MiniatureCase& each : measure.parts) {
    json["parts"].push_back(CaseJson(each));
  }
  return json;
}

struct RowColumn {
  const char* name;
  std::function<double(const MiniatureRun&)> read;
};

// "2.7134 (0.0051)", mean and deviation; "-" without values.
std::string MeanText(const std::vector<double>& values) {
  if (values.empty()) return "-";
  std::string text = fmt::format("{:.5g}", Mean(values));
  if (values.size() > 1) {
    const double variance =
        SquaresAroundMean(values) / (static_cast<double>(values.size()) - 1);
    text += fmt::format(" ({:.2g})", std::sqrt(variance));
  }
  return text;
}

}  // namespace

std::string MissingText(const std::vector<std::string>& runs,
                        const char* separator) {
  constexpr size_t kMost = 6;
  const auto first = std::span(runs).first(std::min(kMost, runs.size()));
  std::string text = fmt::format("{}", fmt::join(first, separator));
  if (first.size() < runs.size()) {
    text += fmt::format(" and {} more", runs.size() - first.size());
  }
  return text;
}

const char* MiniatureDisclaimer() {
  return "Claims in miniature: rows of the mini grid against each other. No "
         "reproduction of the paper, whatever the verdicts: other text, other "
         "sizes.";
}

std::string MiniatureMarginsFixed(const MiniatureVerdicts& verdicts) {
  return fmt::format(
      "procedure {}, {} these runs", kMiniatureProcedure,
      verdicts.recorded_under ? "fixed after" : "not known to be fixed before");
}

const char* MiniatureMeasureLegend() {
  return "Effect, interval (two-sided, 95 %, for that case alone) and seeds "
         "are those of the case that decides; p counts both directions, before "
         "Holm's procedure over all measures. Resolves: how far from the "
         "margin an effect must lie for such a case alone to be decided, first "
         "in Holm's order, in 80 % of draws. CONTRADICTED: so many cases are "
         "reversed that too few can hold; where all must, one is enough. "
         "REPORTED: not judged.";
}

std::string ClaimStatusText(const MiniatureVerdicts& verdicts,
                            const MiniatureVerdict& claim) {
  std::string status = MiniatureStatusName(claim.status);
  if (claim.status != claim.leaning) {
    status += fmt::format(" ({} so far)", MiniatureStatusName(claim.leaning));
  }
  if (verdicts.recorded_under) status += ", after the fact";
  return status;
}

TextTable MiniatureDesignTable(const MiniatureVerdicts& verdicts) {
  TextTable table({"claim", "could it be shown", "why not"});
  for (const MiniatureVerdict& claim : verdicts.claims) {
    std::vector<std::string> reasons;
    for (const MiniatureMeasureVerdict& measure : claim.measures) {
      if (measure.status == MiniatureStatus::kReported ||
          measure.could_be_shown) {
        continue;
      }
      std::vector<std::string> problems = ProblemTexts(measure.cases);
      std::ranges::sort(problems);
      reasons.push_back(
          fmt::format("{}: {}", measure.id, fmt::join(problems, "; ")));
    }
    const char* could = reasons.empty()            ? "yes"
                        : verdicts.missing.empty() ? "no"
                                                   : "not yet";
    table.Add({claim.id, could, fmt::format("{}", fmt::join(reasons, "; "))});
  }
  return table;
}

TextTable MiniatureClaimTable(const MiniatureVerdicts& verdicts,
                              bool of_paper) {
  std::vector<std::string> header = {of_paper ? "claim" : "hypothesis",
                                     "verdict"};
  if (verdicts.recorded_under) {
    header.push_back(
        fmt::format("by procedure {}", verdicts.recorded_under->procedure));
  }
  header.push_back("what it says");
  TextTable table(std::move(header));
  for (const MiniatureVerdict& claim : verdicts.claims) {
    if (claim.of_paper != of_paper) continue;
    std::vector<std::string> row = {claim.id, ClaimStatusText(verdicts, claim)};
    if (verdicts.recorded_under) {
      const EarlierVerdict* before = Before(verdicts, claim);
      row.push_back(before == nullptr ? "-"
                                      : fmt::format("{}: {}", before->claim,
                                                    before->verdict));
    }
    row.push_back(claim.title);
    table.Add(std::move(row));
  }
  return table;
}

TextTable MiniatureMeasureTable(const MiniatureVerdicts& verdicts) {
  TextTable table(
      {"measure",
       fmt::format("{}{}", verdicts.missing.empty() ? "verdict" : "so far",
                   verdicts.recorded_under ? ", after the fact" : ""),
       "effect", "from", "to", "unit", "margin", "resolves", "seeds", "p",
       "seeds needed", "deciding case"});
  for (const MiniatureVerdict& claim : verdicts.claims) {
    for (const MiniatureMeasureVerdict& measure : claim.measures) {
      const MiniatureCase& deciding = measure.cases[measure.deciding];
      const std::vector<std::string> effect = EffectTexts(deciding);
      const bool tested = HasDeciding(measure);
      const bool judged = measure.status != MiniatureStatus::kReported;
      auto if_tested = [&](const std::string& text) {
        return tested ? text : "-";
      };
      table.Add({measure.id, MiniatureStatusName(measure.status),
                 if_tested(effect[0]), if_tested(effect[1]),
                 if_tested(effect[2]), measure.unit,
                 fmt::format("{:.3g}", measure.margin),
                 if_tested(fmt::format("{:.3g}", deciding.resolves)),
                 if_tested(effect[3]),
                 judged ? fmt::format("{:.2g}", measure.p) : "-",
                 SeedsNeeded(measure), if_tested(DecidingText(measure))});
    }
  }
  return table;
}

TextTable MiniatureCaseTable(const MiniatureVerdicts& verdicts) {
  TextTable table({"measure", "corpus", "case", "effect", "from", "to", "seeds",
                   "p holds", "p reversed", "remarks"});
  auto add = [&](const std::string& id, const MiniatureCase& each) {
    const std::vector<std::string> effect = EffectTexts(each);
    const bool tested = each.problem.empty();
    table.Add({id, each.corpus, each.label, effect[0], effect[1], effect[2],
               effect[3], tested ? fmt::format("{:.2g}", each.p_shown) : "-",
               tested ? fmt::format("{:.2g}", each.p_contradicted) : "-",
               Remarks(each)});
  };
  for (const MiniatureVerdict& claim : verdicts.claims) {
    for (const MiniatureMeasureVerdict& measure : claim.measures) {
      for (const MiniatureCase& each : measure.cases) add(measure.id, each);
      for (const MiniatureCase& each : measure.parts) {
        add(measure.id + " (part)", each);
      }
    }
  }
  return table;
}

std::string DescribeMiniature(const MiniatureVerdicts& verdicts) {
  std::string text = Wrap(MiniatureDisclaimer(), kWidth, 0) + "\n";
  text += fmt::format("margins  {}, {}\n", verdicts.hash,
                      MiniatureMarginsFixed(verdicts));
  text += fmt::format("runs     {} of {} planned\n", verdicts.finished,
                      verdicts.planned);
  if (!verdicts.missing.empty()) {
    text += Wrap("missing: " + MissingText(verdicts.missing, " "), kWidth, 2) +
            "\n";
  }
  if (!verdicts.equal_seeds.empty()) {
    text += Wrap(fmt::format("equal bits under two seeds: {}",
                             fmt::join(verdicts.equal_seeds, ", ")),
                 kWidth, 2) +
            "\n";
  }
  text += "\n";
  text += MiniatureDesignTable(verdicts).Text() + "\n";
  text += MiniatureClaimTable(verdicts, /*of_paper=*/true).Text() + "\n";
  const TextTable hypotheses =
      MiniatureClaimTable(verdicts, /*of_paper=*/false);
  if (hypotheses.num_rows() > 0) {
    text +=
        "Hypotheses of this project, which are no sentences of the "
        "paper:\n" +
        hypotheses.Text() + "\n";
  }
  const std::string changes = Changes(verdicts, "");
  if (!changes.empty()) text += changes + "\n";
  text += MiniatureMeasureTable(verdicts).Text() + "\n";
  text += Wrap(MiniatureMeasureLegend(), kWidth, 0) + "\n\n";
  text += Reasons(verdicts);
  const std::string resolution = Resolution(verdicts);
  if (!resolution.empty()) text += "\n" + resolution;
  return text;
}

std::string DescribeMiniatureRows(const MiniatureClaims& claims,
                                  const MiniatureResults& results) {
  const std::vector<RowColumn> columns = {
      {"loss", [](const MiniatureRun& run) { return run.loss; }},
      {"infer-AE", [](const MiniatureRun& run) { return run.infer_ae; }},
      {"train-AE", [](const MiniatureRun& run) { return run.train_ae; }},
      {"load variance",
       [](const MiniatureRun& run) { return run.load_variance; }}};
  std::vector<std::string> header = {"corpus", "row", "seeds"};
  for (const RowColumn& column : columns) {
    header.push_back(std::string(column.name) + " (deviation)");
  }
  header.push_back("remarks");
  TextTable table(header);
  for (const PlannedRuns& planned : claims.planned) {
    for (const std::string& row : planned.rows) {
      std::vector<std::vector<double>> values(columns.size());
      size_t seeds = 0, without = 0;
      for (const MiniatureRun& run : results.runs) {
        if (run.row != row || run.corpus != planned.corpus) continue;
        ++seeds;
        if (!std::isfinite(run.loss)) ++without;
        for (size_t c = 0; c < columns.size(); ++c) {
          const double value = columns[c].read(run);
          if (std::isfinite(value)) values[c].push_back(value);
        }
      }
      if (seeds == 0) continue;
      std::vector<std::string> line = {planned.corpus, row,
                                       fmt::format("{}", seeds)};
      for (const auto& column : values) line.push_back(MeanText(column));
      std::vector<std::string> remarks;
      if (!claims.Uses(row)) remarks.push_back("not judged");
      if (without > 0) {
        remarks.push_back(fmt::format("{} gave no number", without));
      }
      line.push_back(fmt::format("{}", fmt::join(remarks, "; ")));
      table.Add(line);
    }
  }
  return table.Text();
}

std::string MiniatureMarkdown(const MiniatureVerdicts& verdicts) {
  std::string text = fmt::format("{} of {} planned runs.\n", verdicts.finished,
                                 verdicts.planned);
  const auto add = [&](const TextTable& table) {
    if (table.num_rows() > 0) text += "\n" + table.Markdown();
  };
  add(MiniatureDesignTable(verdicts));
  add(MiniatureClaimTable(verdicts, /*of_paper=*/true));
  add(MiniatureClaimTable(verdicts, /*of_paper=*/false));
  add(MiniatureMeasureTable(verdicts));
  text += "\n" + Wrap(MiniatureMeasureLegend(), kWidth, 0) + "\n";
  add(ResolutionTable(verdicts));
  const std::string remarks =
      LeftOutRows(verdicts, "- ") + Changes(verdicts, "- ");
  if (!remarks.empty()) text += "\n" + remarks;
  return text;
}

Json MiniatureJson(const MiniatureVerdicts& verdicts) {
  Json json;
  json["hash"] = verdicts.hash;
  if (verdicts.recorded_under) {
    json["recorded_under"] = verdicts.recorded_under->hash;
  }
  json["planned"] = verdicts.planned;
  json["finished"] = verdicts.finished;
  json["missing"] = verdicts.missing;
  json["equal_seeds"] = verdicts.equal_seeds;
  for (const MiniatureVerdict& claim : verdicts.claims) {
    Json each;
    each["claim"] = claim.id;
    each["title"] = claim.title;
    each["of_paper"] = claim.of_paper;
    if (const EarlierVerdict* before = Before(verdicts, claim)) {
      each["before"] = {{"claim", before->claim},
                        {"status", before->verdict},
                        {"why", before->why}};
    }
    each["status"] = MiniatureStatusName(claim.status);
    each["leaning"] = MiniatureStatusName(claim.leaning);
    each["assumes"] = claim.assumes;
    for (const MiniatureMeasureVerdict& measure : claim.measures) {
      each["measures"].push_back(MeasureJson(measure));
    }
    json["claims"].push_back(std::move(each));
  }
  for (const MiniatureResolution& each : verdicts.resolution) {
    Json resolution;
    resolution["corpus"] = each.corpus;
    resolution["rows"] = each.rows;
    resolution["seeds"] = each.seeds;
    resolution["deviation"] = each.plain;
    resolution["paired_deviation"] = each.paired;
    resolution["degrees_of_freedom"] = each.paired_freedom;
    if (!each.plain_own.empty()) resolution["own_deviation"] = each.plain_own;
    if (!each.paired_own.empty()) {
      resolution["own_paired_deviation"] = each.paired_own;
    }
    resolution["difference_of_one_test"] = each.one_test;
    resolution["difference_among_all"] = each.family;
    json["resolution"].push_back(std::move(resolution));
  }
  return json;
}

}  // namespace softmoe::golden
