// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/temporary_folder.h"
#include "core/process/process.h"

namespace softmoe::experiments {
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

}  // namespace softmoe::experiments
