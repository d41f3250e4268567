// SPDX-License-Identifier: Apache-2.0
//
// plot.h - line plots as SVG, drawn by gnuplot.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_PLOT_H_
#define SOFTMOE_EXPERIMENTS_REPORT_PLOT_H_

#include <string>
#include <vector>

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

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_PLOT_H_
