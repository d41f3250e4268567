// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/mini_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "core/config/config_enums.h"
#include "core/config/router_traits.h"
#include "experiments/run/run_record.h"
#include "golden/verdict/miniature_report.h"
#include "trainer/run/schedules.h"

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

// The name of grids/mini.toml, which no other file may have, and also its
// scale.
constexpr char kMini[] = "mini";

// A step uses the k_l left by the updates before it.
std::vector<golden::AllocationPoint> AllocationOf(
    const trainer::RunResult& result) {
  std::vector<golden::AllocationPoint> points;
  for (const trainer::StepRecord& step : ThinnedSteps(result.steps)) {
    points.push_back({step.step - 1, step.allocation});
  }
  points.push_back({result.config.training.steps, result.allocation});
  double sum = 0;
  int64_t updates = 0;
  for (golden::AllocationPoint& point : points) {
    for (; updates < point.step; ++updates) {
      sum += trainer::LearningRate(result.config.training, updates);
    }
    point.learning_rate_sum = sum;
  }
  return points;
}

// The mean over the layers of the cap that the final k_l gives.
double MeanCapOf(const trainer::RunResult& result) {
  double sum = 0;
  for (const double k : result.allocation) {
    sum += static_cast<double>(MaxActive(result.config, k));
  }
  return sum / static_cast<double>(result.allocation.size());
}

// The reading of the balance loss; "" for a sparse row, which has only one.
std::string ReadingOf(const Config& config) {
  return TraitsOf(config).lapsum ? EnumName(config.router.load_balance) : "";
}

golden::TauPoint PointAt(double factor, const trainer::Validation& validation) {
  return {.factor = factor,
          .infer_ae = validation.active_experts,
          .loss = validation.loss};
}

// Includes the trained tau, whether or not the plan listed it.
std::vector<golden::TauPoint> TauPointsOf(const trainer::RunResult& result) {
  std::vector<golden::TauPoint> points;
  if (!result.final_evaluations) return points;
  for (const trainer::InferenceTau& at :
       result.final_evaluations->inference_tau) {
    points.push_back(PointAt(at.factor, at.validation));
  }
  const auto trained =
      std::ranges::lower_bound(points, 1.0, {}, &golden::TauPoint::factor);
  if (!points.empty() && (trained == points.end() || trained->factor != 1)) {
    points.insert(trained, PointAt(1, result.final_validation));
  }
  return points;
}

}  // namespace

bool IsMiniature(const Grid& grid) {
  return IsMain(grid) && grid.name == kMini && grid.scale == kMini &&
         SetsOnlyRuntime(grid);
}

golden::MiniatureRun MiniatureRunOf(const GridRun& run,
                                    const trainer::RunResult& result) {
  golden::MiniatureRun one;
  one.row = run.row.id;
  one.corpus = run.corpus.id;
  one.seed = run.seed;
  one.loss = result.final_validation.loss;
  one.infer_ae = result.final_validation.active_experts;
  one.mean_cap = MeanCapOf(result);
  one.load_balance = ReadingOf(result.config);
  one.train_ae = result.train_ae;
  one.load_variance = result.final_validation.relative_load_variance;
  if (TraitsOf(result.config).learned_budget) {
    one.allocation = AllocationOf(result);
  }
  one.at_tau = TauPointsOf(result);
  return one;
}

std::optional<golden::MiniatureRun> MiniatureRunOf(const RunOutcome& run) {
  if (run.state == RunState::kFinished) {
    return MiniatureRunOf(run.run, *run.result);
  }
  if (run.state != RunState::kFailed) return std::nullopt;
  golden::MiniatureRun diverged;
  diverged.row = run.run.row.id;
  diverged.corpus = run.run.corpus.id;
  diverged.seed = run.run.seed;
  diverged.loss = diverged.infer_ae = diverged.mean_cap = diverged.train_ae =
      diverged.load_variance = std::numeric_limits<double>::quiet_NaN();
  diverged.load_balance = ReadingOf(run.run.config);
  return diverged;
}

std::optional<MiniClaims> JudgeMiniClaims(const GridOutcome& outcome) {
  if (!IsMiniature(outcome.grid)) return std::nullopt;
  MiniClaims judged;
  judged.claims = golden::LoadMiniatureClaims();
  for (const RunOutcome& run : outcome.runs) {
    const std::optional<golden::MiniatureRun> ended = MiniatureRunOf(run);
    if (!ended) continue;
    const std::vector<int64_t>* seeds =
        judged.claims.PlannedSeeds(run.run.row.id, run.run.corpus.id);
    if (seeds == nullptr ||
        std::ranges::find(*seeds, run.run.seed) == seeds->end()) {
      judged.unplanned.push_back(run.run.id);
    } else {
      judged.results.runs.push_back(*ended);
    }
  }
  judged.results.throughput = outcome.throughput;
  const golden::EarlierClaims* recorded_under = nullptr;
  if (!outcome.margins_sha256.empty()) {
    recorded_under = golden::RecordedUnder(
        judged.claims, outcome.margins_sha256, "the record of these runs");
  }
  judged.verdicts =
      golden::JudgeMiniature(judged.claims, judged.results, recorded_under);
  return judged;
}

std::string ClaimsText(const MiniClaims& judged) {
  std::string text =
      golden::DescribeMiniature(judged.verdicts) + "\nEvery case:\n" +
      golden::MiniatureCaseTable(judged.verdicts).Text() +
      "\nEvery row, mean and deviation over seeds:\n" +
      golden::DescribeMiniatureRows(judged.claims, judged.results);
  if (!judged.unplanned.empty()) {
    text += fmt::format("\nNot planned, and not judged: {}\n",
                        fmt::join(judged.unplanned, ", "));
  }
  return text;
}

namespace {

const MiniatureCase& Deciding(const MiniatureMeasureVerdict& measure) {
  return measure.cases[measure.deciding];
}

// A column of ClaimsTable, and its number in the deciding case.
struct ClaimColumn {
  const char* id;
  const char* metric;
  std::function<double(const MiniatureMeasureVerdict&)> read;
};

const std::vector<ClaimColumn>& ClaimColumns() {
  static const std::vector<ClaimColumn> columns = {
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
  return columns;
}

Cell CellOf(const MiniatureMeasureVerdict& measure, const ClaimColumn& column) {
  const MiniatureCase& deciding = Deciding(measure);
  Cell cell;
  const bool reported = measure.status == golden::MiniatureStatus::kReported;
  if (!deciding.problem.empty() || reported) {
    cell.flags = {MiniatureStatusName(
        reported ? measure.status : golden::MiniatureStatus::kNotTestable)};
    return cell;
  }
  cell.value = cell.low = cell.high = column.read(measure);
  cell.text = fmt::format("{:.{}f}", cell.value, golden::kMeasuredDecimals);
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
  for (const ClaimColumn& column : ClaimColumns()) {
    row.cells.push_back(CellOf(measure, column));
  }
  return row;
}

}  // namespace

golden::Table ClaimsTable(const MiniClaims& judged) {
  golden::Table table;
  table.id = "claims_in_miniature";
  table.title = golden::MiniatureDisclaimer();
  table.caption =
      fmt::format("Margins {}, {}; {} of {} planned runs", judged.verdicts.hash,
                  golden::MiniatureMarginsFixed(judged.verdicts),
                  judged.verdicts.finished, judged.verdicts.planned);
  for (const ClaimColumn& claim_column : ClaimColumns()) {
    Column column;
    column.id = claim_column.id;
    column.unit = "that of the measure (1 for p)";
    column.metric = claim_column.metric;
    column.decimals = golden::kMeasuredDecimals;
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
