// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/score_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/text/text_table.h"

namespace softmoe::mutation {
namespace {

std::string Text(const Count& count) {
  if (count.total == 0) return "-";
  return fmt::format("{}/{}", count.killed, count.total);
}

std::vector<std::string> Areas(const Score& score) {
  std::vector<std::string> areas;
  for (const MutantResult& result : score.results()) {
    const std::string area = result.mutant.area();
    if (std::ranges::count(areas, area) == 0) areas.push_back(area);
  }
  return areas;
}

std::string Table(const Score& score) {
  std::vector<std::string> header = {"area"};
  for (const std::string& tier : Tiers()) header.push_back(tier);
  header.push_back("all");
  TextTable table(header);
  std::vector<std::string> areas = Areas(score);
  areas.push_back("");
  for (const std::string& area : areas) {
    std::vector<std::string> row = {area.empty() ? "all" : area};
    for (const std::string& tier : Tiers()) {
      row.push_back(Text(score.Of(area, tier)));
    }
    row.push_back(Text(score.Of(area, "")));
    table.Add(row);
  }
  return table.Text();
}

std::string Place(const MutantResult& result) {
  return fmt::format(
      "{} {} by {}: {}\n  REPRO ./bazelw run //:verify -- mutate --mutant {} "
      "--output\n",
      OutcomeName(result.outcome), result.mutant.id, result.mutant.suite,
      result.mutant.fault, result.mutant.id);
}

}  // namespace

std::string ResultLine(const MutantResult& result) {
  const bool expected = result.argued() && result.good();
  return fmt::format("{:<11} {}  ({}, {:.1f} s, reached {} times{})",
                     OutcomeName(result.outcome), result.mutant.id,
                     result.mutant.suite, result.seconds, result.hits,
                     expected ? ", argued equivalent" : "");
}

std::string ScoreText(const Score& score) {
  std::string text;
  for (const std::string& reason : score.void_reasons()) {
    text += "VOID: " + reason + "\n";
  }
  if (score.results().empty()) return text + "no mutant was run\n";
  text += Table(score);
  for (const MutantResult* bad : score.Bad()) {
    if (bad->argued()) text += "argued to be equivalent, but ";
    text += Place(*bad);
  }
  const Count total = score.Total();
  text += fmt::format(
      "mutation score {:.1f} % ({} of {} killed; {} more argued equivalent; {} "
      "planted in all, of which some count together) in {:.0f} s{}\n",
      total.total == 0 ? 0 : 100.0 * total.killed / total.total, total.killed,
      total.total, score.Argued(), score.results().size(), score.seconds(),
      score.void_reasons().empty() ? "" : "; VOID, see above");
  return text;
}

nlohmann::ordered_json ScoreJson(const Score& score) {
  nlohmann::ordered_json json;
  json["exit_code"] = static_cast<int>(score.exit_code());
  json["void"] = score.void_reasons();
  json["killed"] = score.Total().killed;
  json["total"] = score.Total().total;
  json["equivalent"] = score.Argued();
  json["seconds"] = score.seconds();
  json["mutants"] = nlohmann::ordered_json::array();
  for (const MutantResult& result : score.results()) {
    json["mutants"].push_back({{"id", result.mutant.id},
                               {"area", result.mutant.area()},
                               {"tier", result.tier},
                               {"suite", result.mutant.suite},
                               {"fault", result.mutant.fault},
                               {"outcome", OutcomeName(result.outcome)},
                               {"code", result.code},
                               {"hits", result.hits},
                               {"seconds", result.seconds}});
    if (result.argued()) {
      json["mutants"].back()["equivalent_because"] =
          result.mutant.equivalent_because;
    }
    if (!result.mutant.counts_with.empty()) {
      json["mutants"].back()["counts_with"] = result.mutant.counts_with;
    }
  }
  return json;
}

}  // namespace softmoe::mutation
