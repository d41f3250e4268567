// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_curves.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/temporary_folder.h"
#include "core/process/process.h"
#include "experiments/report/regime_results.h"
#include "experiments/report/report_csv.h"
#include "experiments/run/run_record.h"
#include "golden/verdict/statistics.h"
#include "trainer/results/metrics.h"

namespace softmoe::experiments {

// ---- Drawing.

namespace {

// Okabe and Ito's colours, which colour-blind readers can tell apart.
constexpr const char* kColors[] = {"#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                   "#56B4E9", "#D55E00", "#000000", "#B8A800"};
constexpr size_t kNumColors = std::size(kColors);
constexpr size_t kSecondsEach = 60;  // the limit; a plot needs less than one

// Per curve; more would only blur it. Those of a record are not blurred.
constexpr size_t kMostPoints = 150;
static_assert(kRecordedPoints <= kMostPoints);

std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += '\'';  // doubled inside single quotes
    if (c >= ' ') quoted += c;
  }
  return quoted + "'";
}

// Lines of the data that gnuplot reads, which leaves out what is not finite.
std::string Points(const Series& series) {
  std::string text;
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) continue;
    text += fmt::format("{:.9g} {:.9g}", series.x[i], series.y[i]);
    if (!series.low.empty()) {
      text += fmt::format(" {:.9g} {:.9g}", series.low[i], series.high[i]);
    }
    text += "\n";
  }
  return text;
}

// From dark to light, equally far apart to the eye (matplotlib's viridis
// without its yellow end).
constexpr const char* kShades[] = {"#440154", "#482576", "#414487", "#35608d",
                                   "#2a788e", "#21918c", "#22a884", "#43bf71",
                                   "#7ad151", "#bddf26"};
constexpr size_t kNumShades = std::size(kShades);

const char* ColorOf(const Plot& plot, size_t series) {
  if (!plot.ordered) return kColors[series % kNumColors];
  const size_t steps = std::max<size_t>(plot.series.size(), 2) - 1;
  return kShades[series * (kNumShades - 1) / steps];
}

// Pixels. The width suits a telephone, where the text is still legible. The key
// stands below, a line for each name or for four short ones; gnuplot's own
// layout would take its room from the plot.
constexpr int kPlotWidth = 560, kPlotHeight = 270, kTitleHeight = 46,
              kAxisHeight = 66, kKeyLine = 19;
constexpr size_t kShortName = 10, kKeyColumns = 4;

// Draws the plot as ID.svg. Bytes are the same whatever was drawn before.
std::string Script(const Plot& plot) {
  const size_t lines = plot.series.size();
  const bool short_names = std::ranges::all_of(
      plot.series,
      [](const Series& series) { return series.name.size() <= kShortName; });
  const size_t columns = short_names ? kKeyColumns : 1;
  const int key = kKeyLine * static_cast<int>((lines + columns - 1) / columns);
  const int height = kTitleHeight + kPlotHeight + kAxisHeight + key;
  std::string text = fmt::format(
      "reset session\nset encoding utf8\n"
      "set terminal svg size {},{} dynamic enhanced font 'sans-serif,13' "
      "name '{}' background '#ffffff'\n"
      "set output '{}.svg'\n"
      "set tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\n"
      "set lmargin at screen 0.14\nset rmargin at screen 0.97\n"
      "set xlabel {} noenhanced\nset ylabel {} noenhanced\n"
      "set grid lc rgb '#dddddd'\nset border 3\nset tics nomirror\n"
      "set key at screen 0.5, screen 0 bottom center horizontal noenhanced "
      "Left reverse maxcols {} samplen 1.5\n",
      kPlotWidth, height, plot.id, plot.id,
      1 - static_cast<double>(kTitleHeight) / height,
      static_cast<double>(kAxisHeight + key) / height, Quoted(plot.x_label),
      Quoted(plot.y_label), columns);
  if (!plot.title.empty()) {
    text += fmt::format("set title {} noenhanced\n", Quoted(plot.title));
  }
  if (plot.points || plot.bars) text += "set xtics 1\n";
  const double width = 0.85 / static_cast<double>(lines);
  if (plot.bars) {
    text += fmt::format(
        "set xrange [-0.5:{}]\nset yrange [0:*]\nset style fill solid\n"
        "set boxwidth {:.4f}\n",
        plot.series.front().x.back() + 0.5, width);
  }
  std::string bands, curves;
  for (size_t s = 0; s < lines; ++s) {
    const Series& series = plot.series[s];
    const char* color = ColorOf(plot, s);
    text += fmt::format("$data{} << EOD\n{}EOD\n", s, Points(series));
    if (!curves.empty()) curves += ", ";
    if (plot.bars) {
      const double middle = static_cast<double>(lines - 1) / 2;
      curves += fmt::format(
          "$data{} using ($1 + {:.4f}):2 with boxes lc rgb '{}' title {}", s,
          width * (static_cast<double>(s) - middle), color,
          Quoted(series.name));
      continue;
    }
    if (!series.low.empty() && lines <= kMostBands) {
      bands += fmt::format(
          "$data{} using 1:3:4 with filledcurves fs transparent solid 0.18 "
          "noborder lc rgb '{}' notitle, ",
          s, color);
    }
    curves += fmt::format(
        "$data{} using 1:2 with {} lw 1.6 dt {} {}lc rgb '{}' title {}", s,
        plot.points ? "linespoints" : "lines",
        plot.ordered || s < kNumColors ? "1" : "'-'",
        plot.points ? "pt 7 ps 0.4 " : "", color, Quoted(series.name));
  }
  // gnuplot begins an SVG with the colour with which the one before ended. A
  // title resets it, so one with a title follows that nobody sees.
  return text + "plot " + bands + curves +
         "\nset output '/dev/null'\nset title 'end'\nplot [0:1] x\n";
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

std::string PlotCsv(const Plot& plot) {
  std::string text =
      CsvLine({"series", plot.x_label, plot.y_label, "low", "high"});
  for (const Series& series : plot.series) {
    for (size_t i = 0; i < series.x.size(); ++i) {
      const auto end = [&](const std::vector<double>& band) {
        return band.empty() ? "" : fmt::format("{}", band[i]);
      };
      text += CsvLine({series.name, fmt::format("{}", series.x[i]),
                       fmt::format("{}", series.y[i]), end(series.low),
                       end(series.high)});
    }
  }
  return text;
}

std::map<std::string, std::string> DrawSvgs(
    const std::vector<const Plot*>& plots) {
  if (plots.empty()) return {};
  std::string script;
  for (const Plot* plot : plots) {
    SOFTMOE_CHECK(!plot->series.empty()) << plot->id;
    script += Script(*plot);
  }
  if (!HaveProgram("gnuplot")) {
    throw EnvironmentError(
        "gnuplot is missing; install it: apt-get install gnuplot-nox");
  }
  const TemporaryFolder folder(std::filesystem::temp_directory_path() /
                               "softmoe-plots");
  WriteFileAtomically(folder.path() / "plots.gp", script);
  const ProgramResult result =
      RunProgram({"timeout", std::to_string(kSecondsEach * plots.size()),
                  // -d ignores the user's gnuplotrc.
                  "gnuplot", "-d", "plots.gp"},
                 folder.path());
  if (result.exit_status != 0) {
    throw EnvironmentError(fmt::format(
        "gnuplot ended with {}: {}; install Debian's: apt-get install "
        "gnuplot-nox",
        result.exit_status, result.output));
  }
  std::map<std::string, std::string> svgs;
  for (const Plot* plot : plots) {
    const std::string svg = ReadWholeFile(folder.path() / (plot->id + ".svg"));
    // Drops the XML declaration, which is not allowed inside HTML.
    const size_t begin = svg.find("<svg");
    if (begin == std::string::npos) {
      throw EnvironmentError("gnuplot drew no SVG; install a gnuplot that can");
    }
    svgs[plot->id] = svg.substr(begin);
  }
  return svgs;
}

Drawings DrawFigures(const std::vector<const Figure*>& figures) {
  std::vector<const Plot*> plots;
  for (const Figure* figure : figures) {
    for (const Plot& plot : figure->plots) plots.push_back(&plot);
  }
  try {
    return {DrawSvgs(plots), ""};
  } catch (const EnvironmentError& error) {
    return {{}, error.what()};
  }
}

// ---- What is drawn.

namespace {

using trainer::Metric;
using trainer::StepRecord;
namespace metrics = trainer::metrics;

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

std::vector<Figure> MakeCurves(const GridOutcome& outcome) {
  std::vector<Figure> all;
  const std::vector<RowSummary> rows = SummarizeRows(outcome);
  for (size_t c = 0; c < outcome.grid.corpora.size(); ++c) {
    const std::string& corpus = outcome.grid.corpora[c].id;
    const auto id = [&](const char* what) {
      return fmt::format("{}_{}", what, c);
    };
    Figure training{
        "Training, " + corpus,
        "Training loss: " + OverTheSteps(metrics::kLoss) +
            "Active experts: " + OverTheSteps(metrics::kActiveExperts) +
            "Sparse rows are constant. Mean over the finished seeds. " +
            kPointsOfSteps,
        {{id("loss"), "step", metrics::kLoss.unit, {}},
         {id("active"), "step", metrics::kActiveExperts.unit, {}}}};
    training.plots[0].title = "training loss";
    training.plots[1].title = "active experts";
    Figure layers{
        "Learned allocation over the layers, " + corpus,
        fmt::format("{} at the end of training for each layer, mean over the "
                    "finished seeds with a band of one standard deviation; all "
                    "rows begin with the same k in every layer.",
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
      all.push_back(std::move(*figure));
    }
  }
  if (const auto lines = DifferencesOverSteps(outcome); !lines.empty()) {
    all.insert(all.begin(), Differences(lines));
  }
  return all;
}

}  // namespace softmoe::experiments
