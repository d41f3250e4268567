// SPDX-License-Identifier: Apache-2.0
#include "experiments/grid_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "experiments/cost_model.h"
#include "trainer/metrics.h"
#include "trainer/progress_line.h"

namespace softmoe::experiments {
namespace {

// The first steps fault their memory in: no time is told from fewer.
constexpr int64_t kStepsBeforeAnEstimate = 5;

// What tells the runs of this grid apart.
std::string ShortName(const GridOutcome& outcome, const GridRun& run) {
  const bool one_corpus = outcome.grid.corpora.size() == 1;
  const bool one_seed = outcome.grid.seeds.size() == 1;
  return (one_corpus ? "" : run.corpus.id + "/") + run.row.id +
         (one_seed ? "" : fmt::format("/seed{}", run.seed));
}

}  // namespace

GridProgress::GridProgress(const GridOutcome& outcome,
                           const std::vector<size_t>& selected,
                           ProgressOptions options)
    : output_("grid", 0, 0, options),
      clock_(options.clock ? options.clock : &SteadySeconds) {
  for (size_t index : selected) {
    const RunOutcome& there = outcome.runs[index];
    const Config& config = there.run.config;
    Run run;
    run.name = ShortName(outcome, there.run);
    run.config = config;
    run.log_every = std::max<int64_t>(1, there.run.runtime.log_every);
    const RunCost cost = EstimateCost(config, config.router.mean_active_experts,
                                      outcome.grid.cluster);
    run.flops_per_step = cost.train_flops / static_cast<double>(cost.steps);
    if (there.state == RunState::kFinished) {
      run.finished_before = true;
      run.first_step = run.step = config.training.steps;
    }
    runs_.push_back(std::move(run));
  }
}

void GridProgress::Note(const std::string& line) { output_.Note(line); }

void GridProgress::Begin(size_t position) {
  current_ = position;
  run_start_ = clock_();
  seconds_per_step_ = 0;
  if (!begun_) start_ = run_start_;
  begun_ = true;
  output_.Show(Place() + ", " + Share(), false);
}

void GridProgress::Step(const trainer::StepRecord& record) {
  Run& run = runs_[current_];
  // The first step of this session tells where an earlier one had stopped.
  if (run.step == 0) run.first_step = record.step - 1;
  const bool first = run.step == 0;
  run.step = record.step;
  seconds_per_step_ = seconds_per_step_ == 0
                          ? record.seconds
                          : 0.9 * seconds_per_step_ + 0.1 * record.seconds;
  const bool in_logs = first || record.step % run.log_every == 0 ||
                       record.step == run.config.training.steps;
  output_.Show(
      fmt::format("{}, {} | {}", Place(), Share(),
                  trainer::ProgressLine(run.config, record, seconds_per_step_)),
      in_logs);
}

void GridProgress::Evaluating() {
  output_.Show(
      fmt::format("{}, {} | trained, being measured", Place(), Share()), false);
}

void GridProgress::End(const RunOutcome& outcome) {
  Run& run = runs_[current_];
  if (outcome.state == RunState::kFailed) {
    // What it will not do any more is no work left.
    run.step = run.first_step = run.config.training.steps;
    output_.Note(fmt::format("{} FAILED: {}", Place(), outcome.problem));
    return;
  }
  const trainer::RunResult& result = *outcome.result;
  const auto& validation = result.final_validation;
  namespace metrics = trainer::metrics;
  // Without a step in this session there was nothing but a validation to do.
  if (run.step == 0) run.first_step = run.config.training.steps;
  run.step = run.config.training.steps;
  output_.Note(fmt::format(
      "{} finished: {} ({}), {}{}, {}", Place(),
      Titled(metrics::kValLoss, validation.loss),
      Titled(metrics::kUnigramLoss, result.unigram_loss),
      Titled(metrics::kInferAe, validation.active_experts),
      result.tau_calibrated ? ", " + Titled(metrics::kTau, result.tau) : "",
      run.finished_before ? "earlier" : FormatDuration(clock_() - run_start_)));
}

double GridProgress::done() const {
  double done = 0, total = 0;
  for (const Run& run : runs_) {
    done += run.flops_per_step * static_cast<double>(run.step);
    total +=
        run.flops_per_step * static_cast<double>(run.config.training.steps);
  }
  return total > 0 ? done / total : 1;
}

double GridProgress::seconds_left() const {
  double here = 0, left = 0;  // FLOPs
  int64_t steps = 0;
  for (const Run& run : runs_) {
    steps += run.step - run.first_step;
    here += run.flops_per_step * static_cast<double>(run.step - run.first_step);
    left += run.flops_per_step *
            static_cast<double>(run.config.training.steps - run.step);
  }
  if (steps < kStepsBeforeAnEstimate) {
    return std::numeric_limits<double>::infinity();
  }
  return (clock_() - start_) / here * left;
}

std::string GridProgress::Place() const {
  return fmt::format("row {}/{} {}", current_ + 1, runs_.size(),
                     runs_[current_].name);
}

std::string GridProgress::Share() const {
  const double left = seconds_left();
  return fmt::format(
      "grid {:.0f}%{}", std::floor(100 * done()),
      std::isfinite(left) ? ", " + FormatDuration(left) + " left" : "");
}

}  // namespace softmoe::experiments
