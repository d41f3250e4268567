// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <functional>

#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/temporary_folder.h"
#include "core/process/process.h"
#include "experiments/report/regime_results.h"
#include "experiments/report/row_summary.h"
#include "trainer/results/metrics.h"

namespace softmoe::experiments {

// ---- Drawing.

namespace {

// Okabe and Ito's colours, which colour-blind readers can tell apart.
constexpr const char* kColors[] = {"#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                   "#56B4E9", "#D55E00", "#000000", "#B8A800"};
constexpr size_t kNumColors = std::size(kColors);
constexpr const char* kTimeLimit = "60";  // seconds; it needs less than one

std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += '\'';  // doubled inside single quotes
    if (c >= ' ') quoted += c;
  }
  return quoted + "'";
}

std::string Script(const Plot& plot) {
  std::string text = fmt::format(
      "set encoding utf8\n"
      "set terminal svg size 900,420 dynamic enhanced font 'sans-serif,13' "
      "name '{}' background '#ffffff'\n"
      "set output 'plot.svg'\n"
      "set xlabel {} noenhanced\nset ylabel {} noenhanced\n"
      "set grid lc rgb '#dddddd'\nset border 3\nset tics nomirror\n"
      "set key outside right top noenhanced\n",
      plot.id, Quoted(plot.x_label), Quoted(plot.y_label));
  if (plot.points) text += "set xtics 1\n";
  std::string command;
  for (size_t s = 0; s < plot.series.size(); ++s) {
    const Series& series = plot.series[s];
    text += fmt::format("$data{} << EOD\n", s);
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) continue;
      text += fmt::format("{:.9g} {:.9g}\n", series.x[i], series.y[i]);
    }
    text += "EOD\n";
    command += fmt::format(
        "{}$data{} using 1:2 with {} lw 1.6 dt {} {}lc rgb '{}' title {}",
        s == 0 ? "plot " : ", ", s, plot.points ? "linespoints" : "lines",
        s < kNumColors ? "1" : "'-'", plot.points ? "pt 7 ps 0.6 " : "",
        kColors[s % kNumColors], Quoted(series.name));
  }
  return text + command + "\n";
}

}  // namespace

Series Thin(const Series& series, size_t most) {
  SOFTMOE_CHECK(series.x.size() == series.y.size() && most > 0);
  const size_t block = (series.x.size() + most - 1) / most;
  if (block <= 1) return series;
  Series thin;
  thin.name = series.name;
  for (size_t begin = 0; begin < series.x.size(); begin += block) {
    const size_t end = std::min(begin + block, series.x.size());
    double x = 0, y = 0;
    for (size_t i = begin; i < end; ++i) {
      x += series.x[i];
      y += series.y[i];
    }
    const double count = static_cast<double>(end - begin);
    thin.x.push_back(x / count);
    thin.y.push_back(y / count);
  }
  return thin;
}

std::string DrawSvg(const Plot& plot) {
  SOFTMOE_CHECK(!plot.series.empty()) << plot.id;
  if (!HaveProgram("gnuplot")) {
    throw EnvironmentError(
        "gnuplot is missing; install it: apt-get install gnuplot-nox");
  }
  const TemporaryFolder folder(std::filesystem::temp_directory_path() /
                               "softmoe-plot");
  WriteFileAtomically(folder.path() / "plot.gp", Script(plot));
  const ProgramResult result = RunProgram(
      // -d ignores the user's gnuplotrc.
      {"timeout", kTimeLimit, "gnuplot", "-d", "plot.gp"}, folder.path());
  if (result.exit_status != 0) {
    throw EnvironmentError(fmt::format(
        "gnuplot ended with {}: {}; install Debian's: apt-get install "
        "gnuplot-nox",
        result.exit_status, result.output));
  }
  const std::string svg = ReadWholeFile(folder.path() / "plot.svg");
  // Drops the XML declaration, which is not allowed inside HTML.
  const size_t begin = svg.find("<svg");
  if (begin == std::string::npos) {
    throw EnvironmentError("gnuplot drew no SVG; install a gnuplot that can");
  }
  return svg.substr(begin);
}

// ---- What is drawn.

namespace {

using trainer::Metric;
using trainer::RunResult;
using trainer::StepRecord;
namespace metrics = trainer::metrics;

constexpr size_t kMostPoints = 150;  // per curve; more would only blur it

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
                     TraitsOf(row.config()).learned_budget});
  }
  return lines;
}

template <typename Read>
Series OverSteps(const Line& line, const Read& read) {
  Series series;
  series.name = line.name;
  for (const StepRecord& step : line.result->steps) {
    series.x.push_back(static_cast<double>(step.step));
    series.y.push_back(std::invoke(read, step));
  }
  return Thin(series, kMostPoints);
}

// Layers are numbered from 1 for readers.
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
      fmt::format("{} of every layer over the steps; they add up to the same K "
                  "at every step.",
                  metrics::kAllocation.title),
      {id, "step", metrics::kAllocation.title, {}}};
  for (size_t l = 0; l < line.result->allocation.size(); ++l) {
    Series series = OverSteps(
        line, [l](const StepRecord& step) { return step.allocation[l]; });
    series.name = fmt::format("layer {}", l + 1);
    curves.plot.series.push_back(std::move(series));
  }
  return curves;
}

// "Mean cross-entropy of ..., over the steps."
std::string OverTheSteps(const Metric& metric) {
  std::string text = metric.definition;
  text[0] =
      static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + ", over the steps.";
}

std::string Id(const char* what, size_t corpus) {
  return fmt::format("{}_{}", what, corpus);
}

// The experiment `regime` after the first tenth of training, where all curves
// fall too steeply for a difference to show: the primary estimate with its
// interval, by both readings, and the linear reading of its rows.
Curves Differences(const std::vector<DifferenceLine>& lines) {
  Curves curves{
      "Soft minus sparse training loss at equal active experts",
      "Training loss minus that of the sparse rows at the same step and seed, "
      "read at the active experts of that step; mean over seeds. It falls to 0 "
      "where soft routing catches up. The sparse curve is convex: straight "
      "lines favour soft routing. Until T has fallen to 1, soft rows train at "
      "another temperature than that of their validation.",
      {"differences", "step", metrics::kLoss.unit, {}}};
  const auto add = [&](const DifferenceLine& line, const std::string& name,
                       const auto& read) {
    Series series;
    series.name = name;
    for (const DifferencePoint& point : line.points) {
      if (10 * point.step < line.points.back().step) continue;
      series.x.push_back(static_cast<double>(point.step));
      series.y.push_back(read(point));
    }
    curves.plot.series.push_back(std::move(series));
  };
  const auto linear = [](const auto& p) { return p.linear.estimate; };
  for (const DifferenceLine& line : lines) {
    add(line, line.row, linear);
    if (&line != lines.data()) continue;
    add(line, line.row + ", low end",
        [](const auto& p) { return p.linear.interval.low; });
    add(line, line.row + ", high end",
        [](const auto& p) { return p.linear.interval.high; });
    add(line, line.row + ", smooth",
        [](const auto& p) { return p.smooth.estimate; });
  }
  return curves;
}

}  // namespace

std::vector<Curves> MakeCurves(const GridOutcome& outcome) {
  std::vector<Curves> all;
  for (size_t c = 0; c < outcome.grid.corpora.size(); ++c) {
    const std::string& corpus = outcome.grid.corpora[c].id;
    const std::vector<Line> lines = Lines(outcome, corpus);
    Curves loss{"Training loss, " + corpus,
                OverTheSteps(metrics::kLoss) +
                    " Each point is the mean of several steps.",
                {Id("loss", c), "step", metrics::kLoss.unit, {}}};
    Curves active{
        "Active experts in training, " + corpus,
        OverTheSteps(metrics::kActiveExperts) + " Sparse rows are constant.",
        {Id("active", c), "step", metrics::kActiveExperts.unit, {}}};
    Curves layers{
        "Learned allocation over the layers, " + corpus,
        fmt::format("{} at the end of training for each layer; all rows begin "
                    "with the same k in every layer.",
                    metrics::kAllocation.title),
        {Id("layers", c), "layer", metrics::kAllocation.title, {}, true}};
    std::vector<Curves> over_steps;
    for (const Line& line : lines) {
      loss.plot.series.push_back(OverSteps(line, &StepRecord::loss));
      active.plot.series.push_back(
          OverSteps(line, &StepRecord::active_experts));
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
  if (const auto lines = DifferencesOverSteps(outcome); !lines.empty()) {
    all.insert(all.begin(), Differences(lines));
  }
  return all;
}

}  // namespace softmoe::experiments
