// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_curves.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>

#include "core/config/router_traits.h"
#include "core/errors.h"
#include "experiments/report/regime_results.h"
#include "experiments/run/run_record.h"
#include "golden/verdict/statistics.h"
#include "trainer/results/metrics.h"

namespace softmoe::experiments {
namespace {

using trainer::Metric;
using trainer::StepRecord;
namespace metrics = trainer::metrics;

// Points per curve; more would only blur it. Recorded steps are not averaged.
constexpr size_t kMostPoints = 150;
static_assert(kRecordedPoints <= kMostPoints);

// Layers are numbered from 1 for readers.
Series OverLayers(const RowSummary& row) {
  std::vector<Series> seeds;
  for (const RunOutcome* run : row.Finished()) {
    Series series;
    for (size_t l = 0; l < run->result->allocation.size(); ++l) {
      series.x.push_back(static_cast<double>(l + 1));
      series.y.push_back(run->result->allocation[l]);
    }
    seeds.push_back(std::move(series));
  }
  return OverSeeds(row.row->id, seeds);
}

// "mean cross-entropy of ..., over the steps. "
std::string OverTheSteps(const Metric& metric) {
  return std::string(metric.definition) + ", over the steps. ";
}

// The experiment `regime` after the first tenth of training, where all curves
// fall too steeply for a difference to show: the primary estimate with its
// interval, by both readings, and the linear reading of its rows.
Figure Differences(const std::vector<DifferenceLine>& lines) {
  Figure figure{
      "Soft minus sparse training loss at equal active experts",
      "Training loss minus that of the sparse rows at the same step and seed, "
      "read at the active experts of that step; mean over seeds; the band is "
      "the interval of the first line. It falls to 0 "
      "where soft routing catches up. The sparse curve is convex: straight "
      "lines favour soft routing. Until T has fallen to 1, soft rows train at "
      "another temperature than that of their validation.",
      {{"differences", "step", metrics::kLoss.unit, {}}}};
  const auto add = [&](const DifferenceLine& line, const std::string& name,
                       const auto& reading, bool band) {
    Series series;
    series.name = name;
    for (const DifferencePoint& point : line.points) {
      if (10 * point.step < line.points.back().step) continue;
      series.x.push_back(static_cast<double>(point.step));
      series.y.push_back(reading(point).estimate);
      if (!band) continue;
      series.low.push_back(reading(point).interval.low);
      series.high.push_back(reading(point).interval.high);
    }
    figure.plots.front().series.push_back(std::move(series));
  };
  const auto linear = [](const DifferencePoint& p) { return p.linear; };
  const auto smooth = [](const DifferencePoint& p) { return p.smooth; };
  for (const DifferenceLine& line : lines) {
    const bool primary = &line == lines.data();
    add(line, line.row, linear, primary);
    if (primary) add(line, line.row + ", smooth", smooth, false);
  }
  return figure;
}

}  // namespace

Series OverSeeds(const std::string& name, const std::vector<Series>& seeds) {
  SOFTMOE_CHECK(!seeds.empty()) << name;
  Series over;
  over.name = name;
  over.x = seeds.front().x;
  std::vector<const Series*> alike;
  for (const Series& seed : seeds) {
    if (seed.x == over.x) alike.push_back(&seed);
  }
  const double n = static_cast<double>(alike.size());
  for (size_t i = 0; i < over.x.size(); ++i) {
    std::vector<double> values;
    for (const Series* seed : alike) values.push_back(seed->y[i]);
    const double mean = golden::Mean(values);
    over.y.push_back(mean);
    if (alike.size() < 2) continue;
    const double deviation =
        std::sqrt(golden::SquaresAroundMean(values) / (n - 1));
    over.low.push_back(mean - deviation);
    over.high.push_back(mean + deviation);
  }
  return over;
}

Series OverSteps(
    const std::string& name, const RowSummary& row,
    const std::function<double(const trainer::StepRecord&)>& read) {
  const std::vector<const RunOutcome*> runs = row.Finished();
  const bool recorded = std::ranges::any_of(
      runs, [](const RunOutcome* run) { return run->recorded; });
  std::vector<Series> seeds;
  for (const RunOutcome* run : runs) {
    const std::vector<trainer::StepRecord>& all = run->result->steps;
    std::vector<trainer::StepRecord> thinned;
    if (recorded) thinned = ThinnedSteps(all);
    Series series;
    for (const trainer::StepRecord& step : recorded ? thinned : all) {
      series.x.push_back(static_cast<double>(step.step));
      series.y.push_back(read(step));
    }
    seeds.push_back(Thin(series, kMostPoints));
  }
  return OverSeeds(name, seeds);
}

std::string SeedsCaption(const std::vector<Plot>& plots) {
  const char* deviations = "";
  if (std::ranges::any_of(plots, HasBands)) {
    deviations = "; bands: one standard deviation";
  } else if (std::ranges::any_of(plots, HasDeviations)) {
    deviations = "; their standard deviation is with the points";
  }
  return fmt::format("Mean over the finished seeds{}.", deviations);
}

std::vector<Figure> MakeCurves(const GridOutcome& outcome) {
  std::vector<Figure> all;
  const std::vector<RowSummary> rows = JudgedRows(outcome);
  const std::string pilots = PilotsLeftOut(rows, outcome);
  for (size_t c = 0; c < outcome.grid.corpora.size(); ++c) {
    const std::string& corpus = outcome.grid.corpora[c].id;
    const auto id = [&](const char* what) {
      return fmt::format("{}_{}", what, c);
    };
    Figure training{
        "Training, " + corpus,
        "Training loss: " + OverTheSteps(metrics::kLoss) +
            "Active experts: " + OverTheSteps(metrics::kActiveExperts) +
            "Sparse rows are constant. " + kPointsOfSteps + " ",
        {{id("loss"), "step", metrics::kLoss.unit, {}},
         {id("active"), "step", metrics::kActiveExperts.unit, {}}}};
    training.plots[0].title = "training loss";
    training.plots[1].title = "active experts";
    Figure layers{
        "Learned allocation over the layers, " + corpus,
        fmt::format("{} at the end of training for each layer; all rows begin "
                    "with the same k in every layer. ",
                    metrics::kAllocation.title),
        {{id("layers"), "layer", metrics::kAllocation.title, {}, true}}};
    for (const RowSummary& row : rows) {
      if (row.corpus->id != corpus || row.Finished().empty()) continue;
      const std::string& name = row.row->id;
      training.rows.push_back(name);
      training.plots[0].series.push_back(
          OverSteps(name, row, std::mem_fn(&StepRecord::loss)));
      training.plots[1].series.push_back(
          OverSteps(name, row, std::mem_fn(&StepRecord::active_experts)));
      if (!TraitsOf(row.config()).learned_budget) continue;
      layers.rows.push_back(name);
      layers.plots[0].series.push_back(OverLayers(row));
    }
    for (Figure* figure : {&training, &layers}) {
      if (figure->rows.empty()) continue;
      figure->corpora = {corpus};
      figure->caption += pilots + SeedsCaption(figure->plots);
      all.push_back(std::move(*figure));
    }
  }
  if (const auto lines = DifferencesOverSteps(outcome); !lines.empty()) {
    all.insert(all.begin(), Differences(lines));
  }
  return all;
}

}  // namespace softmoe::experiments
