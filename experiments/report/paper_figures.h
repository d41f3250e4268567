// SPDX-License-Identifier: Apache-2.0
//
// paper_figures.h - the paper's figures, drawn from the runs of a grid. The
// paper's own data were not published, so none of them are shown.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_PAPER_FIGURES_H_
#define SOFTMOE_EXPERIMENTS_REPORT_PAPER_FIGURES_H_

#include <vector>

#include "experiments/report/plot.h"
#include "experiments/run/run_outcome.h"

namespace softmoe::experiments {

// For each corpus, over the finished seeds of a row:
//
//   active experts in each layer, a plot for each of the three routers
//   loss and active experts against steps: Sparse MoE beside SoftMoE*, and
//   SoftMoE* beside SoftMoE
//   k_l of each layer against steps, a plot for each row that learns it
//
// The paper does not say which k its curves have. ASSUMED: the rows of its T4,
// with the grid's first reading of tau if it has several. Plots whose rows are
// not finished are left out, as are figures without any plot.
std::vector<Figure> PaperFigures(const GridOutcome& outcome);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_PAPER_FIGURES_H_
