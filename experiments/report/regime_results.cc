// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/regime_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "experiments/report/mini_claims.h"
#include "experiments/run/run_record.h"
#include "golden/verdict/regime_report.h"

namespace softmoe::experiments {
namespace {

using golden::RegimeDefinitions;
using golden::RegimeRow;
using golden::RegimeTable;
using trainer::StepRecord;
using Rows = std::vector<const RegimeRow*>;

// The thinned steps of judged runs, by row and seed.
class Steps {
 public:
  Steps(const RegimeDefinitions& regime, const GridOutcome& outcome)
      : regime_(regime) {
    for (const RegimeRow* row : regime.RowsOf("sparse")) {
      k_.push_back(row->infer_ae_aim);
    }
    for (const RunOutcome& run : outcome.runs) {
      if (run.state != RunState::kFinished ||
          run.run.corpus.id != regime.corpus ||
          !regime.Judges(run.run.row.id, run.run.seed)) {
        continue;
      }
      steps_[{run.run.row.id, run.run.seed}] = ThinnedSteps(run.result->steps);
    }
  }

  DifferenceLine LineOf(const std::string& name, const Rows& rows) const {
    DifferenceLine line{.row = name, .seeds = {}, .points = {}};
    Rows all = regime_.RowsOf("sparse");
    all.insert(all.end(), rows.begin(), rows.end());
    for (const int64_t seed : rows.front()->seeds) {
      // Points are compared step by step.
      const auto first = steps_.find(
          {all.front()->id, line.seeds.empty() ? seed : line.seeds.front()});
      if (std::ranges::all_of(all, [&](const RegimeRow* row) {
            const auto there = steps_.find({row->id, seed});
            return first != steps_.end() && there != steps_.end() &&
                   std::ranges::equal(there->second, first->second, {},
                                      &StepRecord::step, &StepRecord::step);
          })) {
        line.seeds.push_back(seed);
      }
    }
    if (line.seeds.size() < 2) return line;
    const size_t num_points = Of(*all.front(), line.seeds.front()).size();
    for (size_t i = 0; i < num_points; ++i) AddPoint(rows, i, line);
    return line;
  }

 private:
  const std::vector<StepRecord>& Of(const RegimeRow& row, int64_t seed) const {
    return steps_.at({row.id, seed});
  }

  void AddPoint(const Rows& rows, size_t i, DifferenceLine& line) const {
    RegimeTable table{k_, {}, {}, {}};
    DifferencePoint point;
    for (const int64_t seed : line.seeds) {
      std::vector<double>& sparse = table.sparse.emplace_back();
      for (const RegimeRow* row : regime_.RowsOf("sparse")) {
        sparse.push_back(Of(*row, seed)[i].loss);
      }
      std::vector<double>& loss = table.loss.emplace_back();
      std::vector<double>& active = table.active.emplace_back();
      for (const RegimeRow* row : rows) {
        const StepRecord& step = Of(*row, seed)[i];
        point.step = step.step;
        loss.push_back(step.loss);
        active.push_back(step.active_experts);
        if (active.back() < k_.front() || active.back() > k_.back()) return;
        point.active += active.back() /
                        static_cast<double>(rows.size() * line.seeds.size());
      }
    }
    const golden::RegimeDistances distances =
        golden::DistancesFromCurve(table, regime_.exponents);
    point.linear = golden::ReadingOf(distances.linear, regime_.confidence);
    point.smooth = golden::ReadingOf(distances.smooth, regime_.confidence);
    line.points.push_back(point);
  }

  const RegimeDefinitions& regime_;
  std::vector<double> k_;
  std::map<std::pair<std::string, int64_t>, std::vector<StepRecord>> steps_;
};

}  // namespace

std::optional<RegimeResults> JudgeRegimeRuns(const GridOutcome& outcome) {
  if (!IsRegime(outcome.grid)) return std::nullopt;
  const RegimeDefinitions regime = golden::LoadRegime();
  RegimeResults judged;
  for (const RunOutcome& run : outcome.runs) {
    const std::optional<golden::MiniatureRun> ended = MiniatureRunOf(run);
    if (!ended) continue;
    const std::string& row = run.run.row.id;
    if (regime.Judges(row, run.run.seed) || regime.IsPilot(row, run.run.seed)) {
      judged.runs.push_back(*ended);
    } else {
      judged.unplanned.push_back(run.run.id);
    }
  }
  judged.verdicts = golden::JudgeRegime(regime, judged.runs);
  return judged;
}

std::string RegimeText(const RegimeResults& judged) {
  std::string text = golden::DescribeRegime(judged.verdicts);
  if (!judged.unplanned.empty()) {
    text += fmt::format("\nNot planned, and not judged: {}\n",
                        fmt::join(judged.unplanned, ", "));
  }
  return text;
}

std::vector<DifferenceLine> DifferencesOverSteps(const GridOutcome& outcome) {
  std::vector<DifferenceLine> lines;
  if (!IsRegime(outcome.grid)) return lines;
  const RegimeDefinitions regime = golden::LoadRegime();
  const Steps steps(regime, outcome);
  lines.push_back(steps.LineOf("primary", regime.RowsOf("primary")));
  for (const RegimeRow& row : regime.rows) {
    if (row.role != "sparse") lines.push_back(steps.LineOf(row.id, {&row}));
  }
  std::erase_if(lines,
                [](const DifferenceLine& line) { return line.points.empty(); });
  return lines;
}

}  // namespace softmoe::experiments
