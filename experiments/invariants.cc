// SPDX-License-Identifier: Apache-2.0
#include "experiments/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "experiments/cost_model.h"
#include "experiments/row_summary.h"

namespace softmoe::experiments {
namespace {

using trainer::RunResult;
using trainer::StepRecord;
using trainer::Validation;

// What one run says of one invariant: how near it is to breaking it. Negative
// or NaN: broken.
struct Reading {
  double slack = 0;
  std::string words;  // "sum k_l = 6.000 (K = 6)"
};

constexpr double kBroken = -1;

std::vector<const RunOutcome*> Finished(const GridOutcome& outcome) {
  std::vector<const RunOutcome*> finished;
  for (const RunOutcome& run : outcome.runs) {
    if (run.state == RunState::kFinished) finished.push_back(&run);
  }
  return finished;
}

bool IsSoft(const GridRun& run) {
  return run.config.router.kind != RouterKind::kSparse;
}
bool IsLearned(const GridRun& run) {
  return run.config.router.kind == RouterKind::kSoftLearned;
}
bool IsSparse(const GridRun& run) { return !IsSoft(run); }
bool IsAny(const GridRun&) { return true; }

// What was neither asked for nor done says nothing and owes nothing.
bool Counts(const RunOutcome& run) {
  return run.selected || run.state == RunState::kFinished;
}

// Reads every finished run that `applies`, and keeps the one nearest to
// breaking the invariant. Nothing if no run of the grid could say anything.
std::optional<Invariant> OverRuns(
    const GridOutcome& outcome, const std::string& id, const std::string& text,
    const std::function<bool(const GridRun&)>& applies,
    const std::function<Reading(const RunResult&)>& read) {
  const bool concerns_grid = std::any_of(
      outcome.runs.begin(), outcome.runs.end(),
      [&](const RunOutcome& run) { return Counts(run) && applies(run.run); });
  if (!concerns_grid) return std::nullopt;
  Invariant invariant{id, text, false, "no finished run to check"};
  double least = std::numeric_limits<double>::infinity();
  bool seen = false;
  for (const RunOutcome* run : Finished(outcome)) {
    if (!applies(run->run)) continue;
    const Reading reading = read(*run->result);
    // A NaN is the worst, and stays it.
    if (!seen || std::isnan(reading.slack) || reading.slack < least) {
      least = reading.slack;
      invariant.detail = fmt::format("{}: {}", run->run.id, reading.words);
      if (std::isnan(least)) break;
    }
    seen = true;
  }
  invariant.holds = seen && least >= 0;
  return invariant;
}

Invariant RowsFinished(const GridOutcome& outcome) {
  Invariant invariant{"rows_finished", "every row asked for finished"};
  size_t asked = 0, finished = 0;
  std::string first;
  for (const RunOutcome& run : outcome.runs) {
    if (!run.selected) continue;
    ++asked;
    if (run.state == RunState::kFinished) {
      ++finished;
    } else if (first.empty()) {
      first = fmt::format(
          "; {} {}", run.run.id,
          run.state == RunState::kFailed ? "failed" : "is not finished");
    }
  }
  invariant.holds = asked > 0 && finished == asked;
  invariant.detail = fmt::format("{} of {}{}", finished, asked, first);
  return invariant;
}

// k_l = 1 + (K-L) softmax(eta)_l in double: each share has at most L + 4
// roundings behind it (exponential, sum, quotient, product), and so has their
// sum.
Reading AllocationSum(const RunResult& result) {
  const double layers = static_cast<double>(result.allocation.size());
  const double budget = result.config.router.mean_active_experts * layers;
  const double sum =
      std::accumulate(result.allocation.begin(), result.allocation.end(), 0.0);
  const double bound = 2 * (layers + 4) * 0x1p-53 * budget;
  return {bound - std::abs(sum - budget),
          fmt::format("sum k_l - K = {:.1e}, K = {:g}", sum - budget, budget)};
}

Reading AllocationFloor(const RunResult& result) {
  const double least =
      *std::min_element(result.allocation.begin(), result.allocation.end());
  const double most =
      *std::max_element(result.allocation.begin(), result.allocation.end());
  return {least - 1, fmt::format("k_l from {:.4f} to {:.4f}", least, most)};
}

// The largest number of active experts of any validation token.
int64_t MostActive(const Validation& validation) {
  int64_t most = 0;
  for (const std::vector<int64_t>& layer : validation.active_histogram) {
    for (size_t count = 0; count < layer.size(); ++count) {
      if (layer[count] > 0) most = std::max(most, static_cast<int64_t>(count));
    }
  }
  return most;
}

Reading Cap(const RunResult& result) {
  const int64_t most = std::max({result.most_active_in_a_token,
                                 MostActive(result.final_validation),
                                 MostActive(result.at_schedule_temperature)});
  return {static_cast<double>(result.max_active - most),
          fmt::format("at most {} of {} allowed", most, result.max_active)};
}

Reading SparseExactlyK(const RunResult& result) {
  const double k = result.config.router.mean_active_experts;
  const double train = result.train_active_experts;
  const double infer = result.final_validation.active_experts;
  const bool exact = train == k && infer == k;
  return {exact ? 0 : kBroken,
          fmt::format("{:.17g} in training, {:.17g} in validation, k = {:g}",
                      train, infer, k)};
}

// A weighted count, so that which runs are compared does not depend on order.
std::optional<Invariant> SparseActiveParameters(const GridOutcome& outcome) {
  Invariant invariant{"sparse_active_parameters",
                      "more experts in Sparse MoE activate more parameters"};
  std::vector<std::pair<double, double>> counts;  // k, parameters
  for (const RunOutcome& run : outcome.runs) {
    if (!IsSparse(run.run) || !Counts(run)) continue;
    const double k = run.run.config.router.mean_active_experts;
    const bool known =
        std::any_of(counts.begin(), counts.end(),
                    [&](const auto& entry) { return entry.first == k; });
    if (!known) counts.push_back({k, std::nan("")});
    if (run.state != RunState::kFinished) continue;
    for (auto& [experts, parameters] : counts) {
      if (experts != k) continue;
      parameters = ActiveParameters(
          run.run.config.model, run.result->final_validation.active_experts);
    }
  }
  if (counts.size() < 2) return std::nullopt;
  std::sort(counts.begin(), counts.end());
  invariant.holds = true;
  for (size_t i = 0; i < counts.size(); ++i) {
    invariant.detail += fmt::format(
        "{}{:g}: {}", i == 0 ? "" : ", ", counts[i].first,
        std::isnan(counts[i].second) ? "not measured"
                                     : fmt::format("{:.0f}", counts[i].second));
    // A NaN compares false.
    if (i > 0 && !(counts[i - 1].second < counts[i].second)) {
      invariant.holds = false;
    }
  }
  return invariant;
}

Reading FiniteLosses(const RunResult& result) {
  for (const StepRecord& step : result.steps) {
    for (const double value : {step.loss, step.load_balance_loss, step.z_loss,
                               step.gradient_norm, step.active_experts}) {
      if (!std::isfinite(value)) {
        return {kBroken, fmt::format("{} in step {}", value, step.step)};
      }
    }
  }
  for (const double loss :
       {result.final_validation.loss, result.at_schedule_temperature.loss}) {
    if (!std::isfinite(loss))
      return {kBroken, fmt::format("held-out {}", loss)};
  }
  return {0, fmt::format("{} steps and two validations", result.steps.size())};
}

Reading LossFalls(const RunResult& result) {
  const size_t n = result.steps.size();
  const size_t tenth = std::max<size_t>(1, n / 10);
  double first = 0, last = 0;
  for (size_t i = 0; i < tenth; ++i) {
    first += result.steps[i].loss / static_cast<double>(tenth);
    last += result.steps[n - 1 - i].loss / static_cast<double>(tenth);
  }
  const double fall = first - last;
  // Strictly less: no fall at all is none.
  return {fall > 0 ? fall : std::min(fall, kBroken),
          fmt::format("{:.4f} -> {:.4f} nat/token", first, last)};
}

Reading BelowUnigram(const RunResult& result) {
  const double loss = result.final_validation.loss;
  return {result.unigram_loss - kBelowUnigram - loss,
          fmt::format("{:.4f} against {:.4f} nat/token", loss,
                      result.unigram_loss)};
}

Reading CountsAddUp(const RunResult& result) {
  for (const Validation* validation :
       {&result.final_validation, &result.at_schedule_temperature}) {
    for (size_t l = 0; l < validation->active_histogram.size(); ++l) {
      int64_t tokens = 0, choices = 0;
      const std::vector<int64_t>& histogram = validation->active_histogram[l];
      for (size_t count = 0; count < histogram.size(); ++count) {
        tokens += histogram[count];
        choices += static_cast<int64_t>(count) * histogram[count];
      }
      const std::vector<int64_t>& experts = validation->tokens_per_expert[l];
      const int64_t chosen =
          std::accumulate(experts.begin(), experts.end(), int64_t{0});
      if (tokens != validation->num_tokens || choices != chosen) {
        return {kBroken,
                fmt::format("layer {}: {} of {} tokens, {} of {} choices", l,
                            tokens, validation->num_tokens, choices, chosen)};
      }
    }
  }
  return {0, fmt::format("{} tokens in every layer",
                         result.final_validation.num_tokens)};
}

}  // namespace

std::vector<Invariant> CheckInvariants(const GridOutcome& outcome) {
  std::vector<Invariant> invariants = {RowsFinished(outcome)};
  const auto add = [&](std::optional<Invariant> invariant) {
    if (invariant) invariants.push_back(*std::move(invariant));
  };
  add(OverRuns(outcome, "allocation_sum", "sum of k_l = K within rounding",
               IsLearned, AllocationSum));
  add(OverRuns(outcome, "allocation_floor", "k_l >= 1", IsSoft,
               AllocationFloor));
  add(OverRuns(outcome, "cap", "active experts per token <= cap", IsAny, Cap));
  add(OverRuns(outcome, "sparse_exactly_k",
               "Sparse MoE activates exactly k experts", IsSparse,
               SparseExactlyK));
  add(SparseActiveParameters(outcome));
  add(OverRuns(outcome, "finite_losses", "every loss is finite", IsAny,
               FiniteLosses));
  add(OverRuns(outcome, "loss_falls",
               "loss of the last tenth of the steps < of the first tenth",
               IsAny, LossFalls));
  add(OverRuns(
      outcome, "below_unigram",
      fmt::format("held-out loss at least {:g} nat below the unigram's",
                  kBelowUnigram),
      IsAny, BelowUnigram));
  add(OverRuns(outcome, "counts_add_up", "every token is counted once", IsAny,
               CountsAddUp));
  return invariants;
}

std::string DescribeInvariants(const std::vector<Invariant>& invariants) {
  size_t width = 0;
  for (const Invariant& invariant : invariants) {
    width = std::max(width, invariant.text.size());
  }
  std::string text;
  for (const Invariant& invariant : invariants) {
    text += fmt::format("{}  {:<{}}  {}\n", invariant.holds ? "PASS" : "FAIL",
                        invariant.text, width, invariant.detail);
  }
  return text;
}

bool AllHold(const std::vector<Invariant>& invariants) {
  return !invariants.empty() &&
         std::all_of(invariants.begin(), invariants.end(),
                     [](const Invariant& i) { return i.holds; });
}

}  // namespace softmoe::experiments
