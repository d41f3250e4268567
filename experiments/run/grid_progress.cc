// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/grid_progress.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "core/errors.h"
#include "experiments/grids/cost_model.h"
#include "experiments/plan/grid_estimate.h"
#include "golden/document/document.h"
#include "trainer/results/metrics.h"
#include "trainer/results/progress_line.h"

namespace softmoe::experiments {
namespace {

// The first steps include page faults: with fewer steps there is no time
// estimate.
constexpr int64_t kStepsBeforeAnEstimate = 5;

// The parts of the id in which the runs of this grid differ.
std::string ShortName(const GridOutcome& outcome, const GridRun& run) {
  const bool one_corpus = outcome.grid.corpora.size() == 1;
  const bool one_seed = outcome.grid.seeds.size() == 1;
  return (one_corpus ? "" : run.corpus.id + "/") + run.row.id +
         (one_seed ? "" : fmt::format("/seed{}", run.seed));
}

// `count` values in memory shared with processes forked later.
template <typename T>
std::shared_ptr<T[]> SharedMemory(size_t count) {
  const size_t bytes = std::max<size_t>(1, count * sizeof(T));
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw EnvironmentError(
        fmt::format("no memory to share: {}", std::strerror(errno)));
  }
  T* values = static_cast<T*>(memory);
  for (size_t i = 0; i < count; ++i) new (values + i) T();
  return {values, [bytes](T* all) { munmap(all, bytes); }};
}

}  // namespace

GridProgress::GridProgress(const GridOutcome& outcome,
                           const std::vector<size_t>& selected,
                           const ProgressOptions& options)
    : output_("grid", 0, 0, options),
      clock_(options.clock ? options.clock : &SteadySeconds),
      steps_(SharedMemory<Steps>(selected.size())) {
  static_assert(std::atomic<int64_t>::is_always_lock_free,
                "a lock would not work between processes");
  const golden::Document paper = ReadPaper();
  for (size_t position = 0; position < selected.size(); ++position) {
    const RunOutcome& there = outcome.runs[selected[position]];
    const Config& config = there.run.config;
    Run run;
    run.name = ShortName(outcome, there.run);
    run.config = config;
    run.log_every = std::max<int64_t>(1, there.run.runtime.log_every);
    const RunCost cost = EstimateCost(
        config, AssumedActiveExperts(there.run, paper).active_experts,
        outcome.grid.cluster);
    run.flops_per_step = cost.train_flops / static_cast<double>(cost.steps);
    if (there.state == RunState::kFinished) {
      run.finished_before = true;
      steps_[position].first = steps_[position].done = config.training.steps;
    }
    runs_.push_back(std::move(run));
  }
}

void GridProgress::Note(const std::string& line) { output_.Note(line); }

void GridProgress::Begin(size_t position) {
  current_ = position;
  runs_[position].begun = true;
  runs_[position].start = clock_();
  seconds_per_step_ = 0;
  if (!begun_) start_ = runs_[position].start;
  begun_ = true;
  output_.Show(Place(position) + ", " + Share(), false);
}

void GridProgress::Step(const trainer::StepRecord& record) {
  const Run& run = runs_[current_];
  Steps& steps = steps_[current_];
  const bool first = steps.done == 0;
  // The first step of this session shows where an earlier session stopped.
  if (first) steps.first = record.step - 1;
  steps.done = record.step;
  seconds_per_step_ = seconds_per_step_ == 0
                          ? record.seconds
                          : 0.9 * seconds_per_step_ + 0.1 * record.seconds;
  const bool in_logs = first || record.step % run.log_every == 0 ||
                       record.step == run.config.training.steps;
  output_.Show(
      fmt::format("{}, {} | {}", Place(current_), Share(),
                  trainer::ProgressLine(run.config, record, seconds_per_step_)),
      in_logs);
}

void GridProgress::Evaluating() {
  output_.Show(
      fmt::format("{}, {} | trained, being measured", Place(current_), Share()),
      false);
}

void GridProgress::End(size_t position, const RunOutcome& outcome) {
  const Run& run = runs_[position];
  Steps& steps = steps_[position];
  const int64_t all = run.config.training.steps;
  if (outcome.state == RunState::kFailed) {
    // A failed run has no work left; the time of its own steps stays spent.
    const int64_t own = steps.done - steps.first;
    steps.done = all;
    steps.first = all - own;
    output_.Note(
        fmt::format("{} FAILED: {}", Place(position), outcome.problem));
    return;
  }
  const trainer::RunResult& result = *outcome.result;
  const auto& validation = result.final_validation;
  namespace metrics = trainer::metrics;
  // Without a step in this session, only validation was left to do.
  if (steps.done == 0) steps.first = all;
  steps.done = all;
  const std::string when = run.finished_before ? "earlier"
                           : run.begun ? FormatDuration(clock_() - run.start)
                                       : "by another process";
  output_.Note(fmt::format(
      "{} finished: {} ({}), {}{}, {}", Place(position),
      Titled(metrics::kValLoss, validation.loss),
      Titled(metrics::kUnigramLoss, result.unigram_loss),
      Titled(metrics::kInferAe, validation.active_experts),
      result.tau_calibrated ? ", " + Titled(metrics::kTau, result.tau) : "",
      when));
}

double GridProgress::done() const {
  double done = 0, total = 0;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    done += run.flops_per_step * static_cast<double>(steps_[i].done);
    total +=
        run.flops_per_step * static_cast<double>(run.config.training.steps);
  }
  return total > 0 ? done / total : 1;
}

double GridProgress::seconds_left() const {
  double here = 0, left = 0;  // FLOPs
  int64_t steps = 0;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    const int64_t done = steps_[i].done, own = done - steps_[i].first;
    steps += own;
    here += run.flops_per_step * static_cast<double>(own);
    left += run.flops_per_step *
            static_cast<double>(run.config.training.steps - done);
  }
  if (steps < kStepsBeforeAnEstimate) {
    return std::numeric_limits<double>::infinity();
  }
  return (clock_() - start_) / here * left;
}

std::string GridProgress::Place(size_t position) const {
  return fmt::format("row {}/{} {}", position + 1, runs_.size(),
                     runs_[position].name);
}

std::string GridProgress::Share() const {
  const double left = seconds_left();
  return fmt::format(
      "grid {:.0f}%{}", std::floor(100 * done()),
      std::isfinite(left) ? ", " + FormatDuration(left) + " left" : "");
}

}  // namespace softmoe::experiments
