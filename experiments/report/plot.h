// SPDX-License-Identifier: Apache-2.0
//
// plot.h - plots of lines, bands and bars: SVG, drawn by gnuplot, and the
// points as CSV.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_PLOT_H_
#define SOFTMOE_EXPERIMENTS_REPORT_PLOT_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace softmoe::experiments {

struct Series {
  std::string name;
  std::vector<double> x, y;  // of equal length; drawings leave out pairs that
                             // are not finite
  // A band around y, of the same length, or empty.
  std::vector<double> low = {}, high = {};
};

struct Plot {
  std::string id;  // letters, digits and '_': prefix of the ids in the SVG
  std::string x_label, y_label;
  std::vector<Series> series;
  // Marks the points, for lines with only a few, at whole numbers of x.
  bool points = false;
  std::string title = {};  // for one of several plots of a figure
  // The series have an order, as layers do: colours go from dark to light.
  bool ordered = false;
  // Draws bars, one for each series at every whole x, not lines and bands.
  bool bars = false;
};

// Whether a series has a band.
bool HasDeviations(const Plot& plot);
// Whether the drawing shows bands, as it does for at most ten lines.
bool HasBands(const Plot& plot);

// `series` if it has at most `most` points, else averaged over blocks so that
// no more remain, without its band.
Series Thin(const Series& series, size_t most);

// All points: series, x, y and, where a series has a band, its low and high
// end. Numbers read back exactly.
std::string PlotCsv(const Plot& plot);

// The <svg> elements to embed in an HTML page, by Plot::id, all drawn by one
// gnuplot process. Throws EnvironmentError if gnuplot is missing or fails.
std::map<std::string, std::string> DrawSvgs(
    const std::vector<const Plot*>& plots);

// Plots that belong together, and the runs of the grid that they show.
struct Figure {
  std::string title;    // "Training loss, foldoc"
  std::string caption;  // describes the plots, also for screen readers
  std::vector<Plot> plots;
  std::vector<std::string> rows = {}, corpora = {};  // ids
};

// SVGs by Plot::id, or none and the reason why.
struct Drawings {
  std::map<std::string, std::string> svgs;
  std::string problem;
};

// Draws every plot of the figures.
Drawings DrawFigures(const std::vector<const Figure*>& figures);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_PLOT_H_
