// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/power.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/text/text_table.h"
#include "experiments/report/mini_claims.h"
#include "experiments/report/power_truth.h"
#include "experiments/report/report_tables.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

std::string Percent(int count, int draws) {
  return count == 0 ? "-"
                    : fmt::format("{:.0f}%",
                                  100.0 * count / static_cast<double>(draws));
}

std::vector<std::string> NotReady(const std::vector<MeasurePower>& measures,
                                  int draws) {
  std::vector<std::string> lines;
  for (const MeasurePower& measure : measures) {
    int most = 0;
    for (const PowerAt& at : measure.at) {
      if (!at.holds) continue;  // a false alarm is no evidence of power
      int reached = 0;
      for (const auto& [name, count] : at.verdicts) {
        // SUPERIOR is more than MATCHES.
        if (name == measure.target || name == "SUPERIOR") reached += count;
      }
      most = std::max(most, reached);
    }
    if (!measure.asked || 2 * most >= draws) continue;
    const std::string name =
        measure.claim + (measure.claim.empty() ? "" : ": ") + measure.id;
    lines.push_back(
        most > 0 || measure.obstacle.empty()
            ? fmt::format("{} is {} in at most {} of {} records of each of "
                          "these effects, fewer than half",
                          name, measure.target, most, draws)
            : fmt::format("{} cannot be {} at any of these effects: {}", name,
                          measure.target, measure.obstacle));
  }
  return lines;
}

}  // namespace

DesignPower PowerOf(const Grid& grid, const std::vector<RunRecord>& records,
                    int draws) {
  if (!IsMiniature(grid) && !IsRegime(grid)) return {};
  const KnownRuns known(records);
  DesignPower power = IsRegime(grid) ? PowerOfRegime(grid, known, draws)
                                     : PowerOfMiniature(grid, known, draws);
  power.not_ready = NotReady(power.measures, draws);
  power.basis = fmt::format("of {}: {}", known.source(), power.basis);
  return power;
}

std::string DescribePower(const DesignPower& power, int draws) {
  if (power.measures.empty()) return "";
  std::vector<std::string> names;  // verdicts, the hoped-for one first
  for (const MeasurePower& measure : power.measures) {
    if (names.empty()) names.push_back(measure.target);
    for (const PowerAt& at : measure.at) {
      for (const auto& [name, count] : at.verdicts) {
        if (std::ranges::find(names, name) == names.end()) {
          names.push_back(name);
        }
      }
    }
  }
  std::vector<std::string> header = {"measure", "true difference", "unit"};
  header.insert(header.end(), names.begin(), names.end());
  TextTable table(header);
  for (const MeasurePower& measure : power.measures) {
    for (const PowerAt& at : measure.at) {
      std::vector<std::string> row = {
          &at == measure.at.data() ? measure.id : "",
          fmt::format("{:+g}", at.truth == 0 ? 0 : at.truth), measure.unit};
      for (const std::string& name : names) {
        const auto count = at.verdicts.find(name);
        row.push_back(
            Percent(count == at.verdicts.end() ? 0 : count->second, draws));
      }
      table.Add(std::move(row));
    }
  }
  std::string text = "\nPower: what these runs can show\n";
  text += Wrap(fmt::format("Probability of each verdict if this is the true "
                           "difference, from {} made-up records each, judged "
                           "by the real judge: the runs that the frozen "
                           "definitions plan, with means and deviations {}. "
                           "Everything else keeps its known value.",
                           draws, power.basis),
               kReportWidth, 2) +
          "\n\n" + table.Text() + "\n";
  if (power.not_ready.empty()) {
    return text + "READY: every claim of this design can be shown.\n";
  }
  for (const std::string& claim : power.not_ready) {
    text += Wrap("NOT READY " + claim, kReportWidth, 2) + "\n";
  }
  return text +
         Wrap(
             "This design cannot show what it is meant to show; change it, or "
             "plan it as an exploration with --exploratory.",
             kReportWidth, 2) +
         "\n";
}

std::vector<RunRecord> KnownRecords(const fs::path& from) {
  if (!from.empty()) return {ReadRunRecord(from)};
  std::vector<RunRecord> records;
  // The newest record of a run comes first.
  for (const char* name : {"golden/runs/regime.h5", "golden/runs/mini.h5"}) {
    try {
      records.push_back(ReadRunRecord(RunfilePath(name)));
    } catch (const EnvironmentError&) {
      // The program lacks this record.
    }
  }
  return records;
}

}  // namespace softmoe::experiments
