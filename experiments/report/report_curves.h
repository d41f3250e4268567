// SPDX-License-Identifier: Apache-2.0
//
// report_curves.h - what happened during training, as line plots: SVG, drawn by
// gnuplot.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_REPORT_CURVES_H_
#define SOFTMOE_EXPERIMENTS_REPORT_REPORT_CURVES_H_

#include <string>
#include <vector>

#include "experiments/run/run_outcome.h"

namespace softmoe::experiments {

struct Series {
  std::string name;
  std::vector<double> x, y;  // of one length; pairs that are not finite are
                             // left out
};

struct Plot {
  std::string id;  // letters, digits and '_': prefix of the ids in the SVG
  std::string x_label, y_label;
  std::vector<Series> series;
  // Marks the points, for lines with only a few, at whole numbers of x.
  bool points = false;
};

// `series` averaged over blocks so that at most `most` points remain.
Series Thin(const Series& series, size_t most);

// The <svg> element to embed in an HTML page. Throws EnvironmentError if
// gnuplot is missing or fails.
std::string DrawSvg(const Plot& plot);

struct Curves {
  std::string title;    // "Training loss, foldoc"
  std::string caption;  // describes the plot, for screen readers, too
  Plot plot;
};

// For each corpus, over the runs with the first seed of the grid that finished
// for the row: training loss, active experts, learned allocation over the
// layers at the end and, for each row that learns it, every layer's during
// training. Plots without a line are left out. For the experiment `regime`, the
// first plot shows the difference between soft and sparse rows over the steps
// (regime_results.h), over all seeds.
std::vector<Curves> MakeCurves(const GridOutcome& outcome);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_REPORT_CURVES_H_
