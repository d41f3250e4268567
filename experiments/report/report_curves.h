// SPDX-License-Identifier: Apache-2.0
//
// report_curves.h - what happened during training, as plots.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_REPORT_CURVES_H_
#define SOFTMOE_EXPERIMENTS_REPORT_REPORT_CURVES_H_

#include <string>
#include <vector>

#include "experiments/report/plot.h"
#include "experiments/run/run_outcome.h"

namespace softmoe::experiments {

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
