// SPDX-License-Identifier: Apache-2.0
#include "experiments/report_curves.h"

#include <fmt/format.h>

#include <functional>

#include "experiments/row_summary.h"

namespace softmoe::experiments {
namespace {

using trainer::RunResult;
using trainer::StepRecord;

constexpr size_t kMostPoints = 150;  // of a curve; more only blur

struct Line {
  std::string name;
  const RunResult* result;
  bool learned;
};

std::vector<Line> Lines(const GridOutcome& outcome, const std::string& corpus) {
  std::vector<Line> lines;
  for (const RowSummary& row : SummarizeRows(outcome)) {
    const std::vector<const RunOutcome*> finished = row.Finished();
    if (row.corpus->id != corpus || finished.empty()) continue;
    lines.push_back({row.row->id, &*finished.front()->result,
                     row.config().router.kind == RouterKind::kSoftLearned});
  }
  return lines;
}

Series OverSteps(const Line& line,
                 const std::function<double(const StepRecord&)>& read) {
  Series series;
  series.name = line.name;
  for (const StepRecord& step : line.result->steps) {
    series.x.push_back(static_cast<double>(step.step));
    series.y.push_back(read(step));
  }
  return Thin(series, kMostPoints);
}

// Layers count from 1, as people do.
Series OverLayers(const Line& line) {
  Series series;
  series.name = line.name;
  for (size_t l = 0; l < line.result->allocation.size(); ++l) {
    series.x.push_back(static_cast<double>(l + 1));
    series.y.push_back(line.result->allocation[l]);
  }
  return series;
}

// The paper's figure: how the budget moves between the layers of one row.
Curves LayersOverSteps(const Line& line, const std::string& corpus,
                       const std::string& id) {
  Curves curves{
      fmt::format("Learned allocation during training, {}, {}", line.name,
                  corpus),
      "k_l of every layer over the steps; they add up to the same K at every "
      "step.",
      {id, "step", "k_l", {}}};
  for (size_t l = 0; l < line.result->allocation.size(); ++l) {
    Series series = OverSteps(
        line, [l](const StepRecord& step) { return step.allocation[l]; });
    series.name = fmt::format("layer {}", l + 1);
    curves.plot.series.push_back(std::move(series));
  }
  return curves;
}

std::string Id(const char* what, size_t corpus) {
  return fmt::format("{}_{}", what, corpus);
}

}  // namespace

std::vector<Curves> MakeCurves(const GridOutcome& outcome) {
  std::vector<Curves> all;
  for (size_t c = 0; c < outcome.grid.corpora.size(); ++c) {
    const std::string& corpus = outcome.grid.corpora[c].id;
    const std::vector<Line> lines = Lines(outcome, corpus);
    Curves loss{"Training loss, " + corpus,
                "Cross-entropy of the training batches over the steps, each "
                "point the mean of several steps.",
                {Id("loss", c), "step", "nat/token", {}}};
    Curves active{"Active experts in training, " + corpus,
                  "Mean number of active experts per token and layer over the "
                  "steps. Sparse rows are constant.",
                  {Id("active", c), "step", "experts", {}}};
    Curves layers{"Learned allocation over the layers, " + corpus,
                  "k_l at the end of training for each layer; all rows begin "
                  "with the same k in every layer.",
                  {Id("layers", c), "layer", "k_l", {}, true}};
    std::vector<Curves> over_steps;
    for (const Line& line : lines) {
      loss.plot.series.push_back(
          OverSteps(line, [](const StepRecord& s) { return s.loss; }));
      active.plot.series.push_back(OverSteps(
          line, [](const StepRecord& s) { return s.active_experts; }));
      if (!line.learned) continue;
      layers.plot.series.push_back(OverLayers(line));
      over_steps.push_back(LayersOverSteps(
          line, corpus,
          fmt::format("{}_{}", Id("steps", c), over_steps.size())));
    }
    std::vector<Curves> drawn = {loss, active, layers};
    drawn.insert(drawn.end(), over_steps.begin(), over_steps.end());
    for (Curves& curves : drawn) {
      if (!curves.plot.series.empty()) all.push_back(std::move(curves));
    }
  }
  return all;
}

}  // namespace softmoe::experiments
