// SPDX-License-Identifier: Apache-2.0
//
// report_curves.h - what happened during training, as line plots with bands
// over seeds: SVG, drawn by gnuplot, and the points as CSV.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_REPORT_CURVES_H_
#define SOFTMOE_EXPERIMENTS_REPORT_REPORT_CURVES_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "experiments/report/row_summary.h"
#include "experiments/run/run_outcome.h"
#include "trainer/results/run_result.h"

namespace softmoe::experiments {

struct Series {
  std::string name;
  std::vector<double> x, y;  // of equal length; pairs that are not finite are
                             // left out
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
  // A bar for each series at every x, a whole number, instead of lines; without
  // bands.
  bool bars = false;
};

// `series` averaged over blocks so that at most `most` points remain; without
// its band.
Series Thin(const Series& series, size_t most);

// The mean of several seeds' curves at each point and, from two on, a band of
// one standard deviation (n - 1) to either side. Seeds with other x than the
// first are left out. At least one.
Series OverSeeds(const std::string& name, const std::vector<Series>& seeds);

// One number of every step of the row's finished runs over their seeds, each
// seed thinned before: by means or, if any of the runs is recorded, to the
// steps that a record has. At least one run is finished.
Series OverSteps(const std::string& name, const RowSummary& row,
                 const std::function<double(const trainer::StepRecord&)>& read);

// What its points are, for captions.
inline constexpr char kPointsOfSteps[] =
    "Each point is the mean of several steps, or one step where a run of the "
    "row is recorded.";

// The points as they are drawn: series, x, y and, where a series has a band,
// its low and high end. Numbers read back exactly.
std::string PlotCsv(const Plot& plot);

// The <svg> elements to embed in an HTML page, by id, all drawn by one gnuplot.
// Bands are drawn where there are at most kMostBands lines. Throws
// EnvironmentError if gnuplot is missing or fails.
std::map<std::string, std::string> DrawSvgs(
    const std::vector<const Plot*>& plots);
inline constexpr size_t kMostBands = 10;

// Plots that belong together, and the runs of the grid that they show.
struct Figure {
  std::string title;    // "Training loss, foldoc"
  std::string caption;  // describes the plots, for screen readers, too
  std::vector<Plot> plots;
  std::vector<std::string> rows = {}, corpora = {};  // ids
};

// SVG by Plot::id; or none, and why.
struct Drawings {
  std::map<std::string, std::string> svgs;
  std::string problem;
};

// Draws every plot of the figures.
Drawings DrawFigures(const std::vector<const Figure*>& figures);

// The mean over the finished seeds of every row: for each corpus, training loss
// and active experts, and the learned allocation over the layers at the end.
// Figures without a line are left out. For the experiment `regime`, the first
// one shows the difference between soft and sparse rows over the steps
// (regime_results.h).
std::vector<Figure> MakeCurves(const GridOutcome& outcome);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_REPORT_CURVES_H_
