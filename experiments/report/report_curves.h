// SPDX-License-Identifier: Apache-2.0
//
// report_curves.h - what happened during training, as figures of line plots
// with bands over seeds.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_REPORT_CURVES_H_
#define SOFTMOE_EXPERIMENTS_REPORT_REPORT_CURVES_H_

#include <functional>
#include <string>
#include <vector>

#include "experiments/report/plot.h"
#include "experiments/report/row_summary.h"
#include "experiments/run/run_outcome.h"
#include "trainer/results/run_result.h"

namespace softmoe::experiments {

// The mean of several seeds' curves at each point and, for two or more seeds, a
// band of one standard deviation (n - 1) to either side. Seeds whose x differ
// from the first's are left out. `seeds` must not be empty.
Series OverSeeds(const std::string& name, const std::vector<Series>& seeds);

// One number of each step, over the seeds of the row's finished runs. Each seed
// is thinned first: by means or, if any of the runs is recorded, to the steps
// that a record has. Requires at least one finished run.
Series OverSteps(const std::string& name, const RowSummary& row,
                 const std::function<double(const trainer::StepRecord&)>& read);

// The end of a caption: how the lines of `plots` combine the seeds, and where
// the standard deviation is shown.
std::string SeedsCaption(const std::vector<Plot>& plots);

// For captions: what the points of OverSteps are.
inline constexpr char kPointsOfSteps[] =
    "Each point is the mean of several steps, or one step where a run of the "
    "row is recorded.";

// The mean over the finished seeds of every row: for each corpus, training loss
// and active experts, and the learned allocation over the layers at the end.
// Figures without any line are left out. For the experiment `regime`, the first
// figure shows the difference between soft and sparse rows over the steps
// (regime_results.h).
std::vector<Figure> MakeCurves(const GridOutcome& outcome);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_REPORT_CURVES_H_
