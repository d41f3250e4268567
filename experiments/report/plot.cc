// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/temporary_folder.h"
#include "core/process/process.h"
#include "experiments/report/report_csv.h"

namespace softmoe::experiments {
namespace {

// Okabe and Ito's colours, which colour-blind readers can tell apart.
constexpr const char* kColors[] = {"#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                   "#56B4E9", "#D55E00", "#000000", "#B8A800"};
constexpr size_t kNumColors = std::size(kColors);
// Lines beyond the number of colours get the next dash.
constexpr const char* kDashes[] = {"1", "'-'", "'.'", "'-.'", "'_'"};
constexpr size_t kSecondsEach = 60;  // the limit; a plot needs less than one
constexpr size_t kMostBands = 10;    // lines, in a plot with bands

std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += '\'';  // doubled inside single quotes
    // All bytes of a character that is not ASCII lie above ' '.
    if (static_cast<unsigned char>(c) >= ' ') quoted += c;
  }
  return quoted + "'";
}

// The data lines for gnuplot; points that are not finite are left out.
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

// In pixels. At this width the text is still legible on a telephone. The key
// stands below the plot, one line for each name or for four short ones;
// gnuplot's own layout would take its room from the plot.
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
  const bool has_bands = HasBands(plot);
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
    if (has_bands && !series.low.empty()) {
      bands += fmt::format(
          "$data{} using 1:3:4 with filledcurves fs transparent solid 0.18 "
          "noborder lc rgb '{}' notitle, ",
          s, color);
    }
    curves += fmt::format(
        "$data{} using 1:2 with {} lw 1.6 dt {} {}lc rgb '{}' title {}", s,
        plot.points ? "linespoints" : "lines",
        plot.ordered ? "1" : kDashes[s / kNumColors % std::size(kDashes)],
        plot.points ? "pt 7 ps 0.4 " : "", color, Quoted(series.name));
  }
  // gnuplot begins an SVG with the last colour of the one before. A title
  // resets it, so an unseen plot with a title follows.
  return text + "plot " + bands + curves +
         "\nset output '/dev/null'\nset title 'end'\nplot [0:1] x\n";
}

}  // namespace

bool HasBands(const Plot& plot) {
  return !plot.bars && plot.series.size() <= kMostBands && HasDeviations(plot);
}

bool HasDeviations(const Plot& plot) {
  return std::ranges::any_of(
      plot.series, [](const Series& series) { return !series.low.empty(); });
}

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
  const TemporaryFolder folder(TemporaryParent() / "softmoe-plots");
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

}  // namespace softmoe::experiments
