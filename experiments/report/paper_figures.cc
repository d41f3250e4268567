// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/paper_figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <string>

#include "core/config/router_traits.h"
#include "experiments/report/report_curves.h"
#include "experiments/report/row_summary.h"
#include "trainer/results/metrics.h"

namespace softmoe::experiments {
namespace {

using trainer::StepRecord;
namespace metrics = trainer::metrics;

constexpr const char* kSparse = "sparse/k2";
constexpr const char* kFixed = "softmoe_star/k1.5/a2";
constexpr const char* kLearned = "softmoe/k1.5/a2";

std::string Name(const RowSummary& row) {
  return row.row->label + " (" + row.row->id + ")";
}

// The percentage of the tokens in layer `l`, from 0, with each number of active
// experts, up to the largest number in any run of the row.
Series ActiveInLayer(const RowSummary& row, size_t l) {
  const size_t most = MostActive(row);
  std::vector<Series> seeds;
  for (const RunOutcome* run : row.Finished()) {
    Series series;
    for (size_t n = 0; n <= most; ++n) {
      series.x.push_back(static_cast<double>(n));
      series.y.push_back(PercentActive(*run->result, l, n));
    }
    seeds.push_back(std::move(series));
  }
  return OverSeeds(fmt::format("layer {}", l + 1), seeds);
}

class CorpusFigures {
 public:
  CorpusFigures(const GridOutcome& outcome, size_t corpus)
      : corpus_(outcome.grid.corpora[corpus].id), number_(corpus) {
    const std::vector<RowSummary> judged = JudgedRows(outcome);
    pilots_ = PilotsLeftOut(judged, outcome);
    for (const RowSummary& row : judged) {
      if (row.corpus->id == corpus_ && !row.Finished().empty()) {
        rows_.push_back(row);
      }
    }
  }

  std::vector<Figure> Make() const {
    std::vector<Figure> all = {
        Distribution(), Pair("hard_soft", kSparse, kFixed),
        Pair("soft_learned", kFixed, kLearned), Allocation()};
    std::erase_if(all, [](const Figure& f) { return f.plots.empty(); });
    for (Figure& figure : all) {
      figure.caption += pilots_ + SeedsCaption(figure.plots);
    }
    return all;
  }

 private:
  // nullptr if no row that stands for the paper's is finished.
  const RowSummary* Find(const char* paper_row) const {
    const auto found = std::ranges::find_if(rows_, [&](const RowSummary& row) {
      return row.row->paper_row == paper_row;
    });
    return found == rows_.end() ? nullptr : &*found;
  }

  Figure NewFigure(const std::string& title, const std::string& caption) const {
    return {title + ", " + corpus_, caption, {}, {}, {corpus_}};
  }

  std::string Id(const std::string& what) const {
    return fmt::format("{}_{}", what, number_);
  }

  Figure Distribution() const {
    Figure figure = NewFigure(
        "Active experts in each layer",
        "Percent of the held-out tokens of each layer with each number of "
        "active experts; final parameters, T = 1, noise off. Sparse MoE fixes "
        "the number; with soft routing it depends on the token; a learned "
        "allocation moves it between layers. ");
    for (const char* paper_row : {kSparse, kFixed, kLearned}) {
      const RowSummary* row = Find(paper_row);
      if (row == nullptr) continue;
      Plot plot{Id(fmt::format("distribution{}", figure.plots.size())),
                "active experts",
                "percent of tokens",
                {}};
      plot.title = Name(*row);
      plot.ordered = plot.bars = true;
      const auto layers = static_cast<size_t>(row->config().model.num_layers);
      for (size_t l = 0; l < layers; ++l) {
        plot.series.push_back(ActiveInLayer(*row, l));
      }
      figure.plots.push_back(std::move(plot));
      figure.rows.push_back(row->row->id);
    }
    return figure;
  }

  // Loss and active experts of two rows; no plots unless both are finished.
  Figure Pair(const std::string& what, const char* first,
              const char* second) const {
    const RowSummary* rows[] = {Find(first), Find(second)};
    if (rows[0] == nullptr || rows[1] == nullptr) return {};
    Figure figure = NewFigure(
        fmt::format("{} and {} during training", rows[0]->row->label,
                    rows[1]->row->label),
        std::string("Training loss, and active experts for each token and "
                    "layer. ") +
            kPointsOfSteps + " ");
    Plot loss{Id(what + "_loss"), "step", metrics::kLoss.unit, {}};
    Plot active{Id(what + "_active"), "step", metrics::kActiveExperts.unit, {}};
    loss.title = "training loss";
    active.title = "active experts";
    for (const RowSummary* row : rows) {
      loss.series.push_back(
          OverSteps(Name(*row), *row, std::mem_fn(&StepRecord::loss)));
      active.series.push_back(OverSteps(
          Name(*row), *row, std::mem_fn(&StepRecord::active_experts)));
      figure.rows.push_back(row->row->id);
    }
    figure.plots = {std::move(loss), std::move(active)};
    return figure;
  }

  Figure Allocation() const {
    Figure figure = NewFigure(
        "Learned allocation during training",
        fmt::format("{} of each layer, at each step that of the model before "
                    "its update; they add up to the same K at every step. ",
                    metrics::kAllocation.title));
    for (const RowSummary& row : rows_) {
      if (!TraitsOf(row.config()).learned_budget) continue;
      Plot plot{Id(fmt::format("allocation{}", figure.plots.size())),
                "step",
                metrics::kAllocation.title,
                {}};
      plot.title = Name(row);
      plot.ordered = true;
      const auto layers = static_cast<size_t>(row.config().model.num_layers);
      for (size_t l = 0; l < layers; ++l) {
        plot.series.push_back(OverSteps(
            fmt::format("layer {}", l + 1), row,
            [l](const StepRecord& step) { return step.allocation[l]; }));
      }
      figure.plots.push_back(std::move(plot));
      figure.rows.push_back(row.row->id);
    }
    return figure;
  }

  std::string corpus_;
  size_t number_;
  std::string pilots_;  // PilotsLeftOut, for the captions
  std::vector<RowSummary> rows_;
};

}  // namespace

std::vector<Figure> PaperFigures(const GridOutcome& outcome) {
  std::vector<Figure> all;
  for (size_t c = 0; c < outcome.grid.corpora.size(); ++c) {
    for (Figure& figure : CorpusFigures(outcome, c).Make()) {
      all.push_back(std::move(figure));
    }
  }
  return all;
}

}  // namespace softmoe::experiments
