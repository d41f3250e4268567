// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/invariants.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "core/config/config.h"
#include "core/config/router_traits.h"
#include "experiments/grids/cost_model.h"
#include "experiments/report/row_summary.h"

namespace softmoe::experiments {
namespace {

using trainer::RunResult;
using trainer::StepRecord;
using trainer::Validation;

// How near a run is to breaking an invariant; negative or NaN: broken.
struct Reading {
  double slack = 0;
  std::string words;  // "sum k_l = 6.000 (K = 6)"
};

constexpr double kBroken = -1;

// Whether the result has everything the invariants read: one entry per layer
// throughout.
bool IsComplete(const RunResult& result) {
  const auto layers = static_cast<size_t>(result.config.model.num_layers);
  const auto full = [&](const auto& list) { return list.size() == layers; };
  const auto counted = [&](const Validation& v) {
    return full(v.active_histogram) && full(v.tokens_per_expert);
  };
  return !result.steps.empty() && full(result.allocation) &&
         counted(result.final_validation) &&
         counted(result.at_schedule_temperature) &&
         std::all_of(result.steps.begin(), result.steps.end(),
                     [&](const StepRecord& step) {
                       return full(step.allocation) &&
                              full(step.layer_active_experts);
                     });
}

// A record keeps some of the steps alone, the last one among them.
bool HasEveryStep(const RunResult& result) {
  return static_cast<int64_t>(result.steps.size()) == result.steps.back().step;
}

std::vector<const RunOutcome*> Finished(const GridOutcome& outcome) {
  std::vector<const RunOutcome*> finished;
  for (const RunOutcome& run : outcome.runs) {
    if (run.state == RunState::kFinished) finished.push_back(&run);
  }
  return finished;
}

// Ignores a run that was neither requested nor finished.
bool IsCounted(const RunOutcome& run) {
  return run.selected || run.state == RunState::kFinished;
}

// Reads every finished run with `trait`, and keeps the one nearest to breaking
// the invariant; nullopt if the invariant concerns no run of the grid.
std::optional<Invariant> OverRuns(
    const GridOutcome& outcome, const std::string& id, const std::string& text,
    bool RouterTraits::*trait,
    const std::function<Reading(const RunResult&)>& read) {
  const bool concerns_grid = std::any_of(
      outcome.runs.begin(), outcome.runs.end(), [&](const RunOutcome& run) {
        return IsCounted(run) && HasTrait(run.run.config, trait);
      });
  if (!concerns_grid) return std::nullopt;
  Invariant invariant{id, text, false, "no finished run to check"};
  double least = std::numeric_limits<double>::infinity();
  bool seen = false;
  for (const RunOutcome* run : Finished(outcome)) {
    if (!HasTrait(run->run.config, trait)) continue;
    const Reading reading =
        IsComplete(*run->result)
            ? read(*run->result)
            : Reading{kBroken, "its result lacks steps or layers"};
    // NaN counts as the worst, and stays the worst.
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

// Calls visit(where, allocation) for every step and for the end of training.
template <typename Visit>
void ForEachAllocation(const RunResult& result, Visit visit) {
  for (const StepRecord& step : result.steps) {
    visit(fmt::format("step {}", step.step), step.allocation);
  }
  visit(std::string("the end"), result.allocation);
}

// k_l = 1 + (K-L) s_l with shares s_l = e_l / sum(e) in double, u = 2^-53. The
// e_l cancel: the shares add up to 1 within (L-1) u from their sum and u from
// each quotient. Product and sum with 1 add 2u, summation here (L-1) u: in
// total (2L + 1) u K, and terms of u^2, for which the bound leaves room.
Reading AllocationSum(const RunResult& result) {
  const auto layers = static_cast<double>(result.allocation.size());
  const double budget = result.config.router.mean_active_experts * layers;
  const double bound = 2 * (layers + 4) * 0x1p-53 * budget;
  double worst = -1;
  std::string where;
  ForEachAllocation(
      result, [&](const std::string& when, const std::vector<double>& k) {
        const double error =
            std::abs(std::accumulate(k.begin(), k.end(), 0.0) - budget);
        // NaN counts as the worst, and stays the worst.
        if (std::isnan(worst) || error <= worst) return;
        worst = error;
        where = when;
      });
  return {bound - worst, fmt::format("|sum k_l - K| = {:.1e} at {}, K = {:g}",
                                     worst, where, budget)};
}

Reading AllocationFloor(const RunResult& result) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  ForEachAllocation(result,
                    [&](const std::string&, const std::vector<double>& k) {
                      for (const double value : k) {
                        // NaN counts as the least, and stays the least.
                        if (!std::isnan(least) && !(value >= least)) {
                          least = value;
                        }
                        most = std::max(most, value);
                      }
                    });
  return {least - 1, fmt::format("k_l from {:.4f} to {:.4f}", least, most)};
}

Reading Cap(const RunResult& result) {
  int64_t largest = 0;
  ForEachAllocation(
      result, [&](const std::string&, const std::vector<double>& k) {
        for (const double value : k) {
          largest = std::max(largest, MaxActive(result.config, value));
        }
      });
  // Between the steps of a record k_l may have been larger.
  if (!HasEveryStep(result)) {
    largest = std::max(largest, result.max_active);
  }
  Reading reading{static_cast<double>(largest - result.most_active_in_a_token),
                  fmt::format("at most {} of {} allowed over the run",
                              result.most_active_in_a_token, largest)};
  if (result.max_active > largest) {
    return {kBroken,
            fmt::format("the caps went up to {}, but only {} are allowed",
                        result.max_active, largest)};
  }
  for (const StepRecord& step : result.steps) {
    for (size_t l = 0; l < step.allocation.size(); ++l) {
      const int64_t cap = MaxActive(result.config, step.allocation[l]);
      // A quotient of whole numbers, which rounding cannot push past one.
      const double mean = step.layer_active_experts[l];
      if (!(mean <= static_cast<double>(cap))) {
        return {kBroken,
                fmt::format("a mean of {} of {} allowed in step {}, layer {}",
                            mean, cap, step.step, l + 1)};
      }
    }
  }
  for (const Validation* v :
       {&result.final_validation, &result.at_schedule_temperature}) {
    for (size_t l = 0; l < result.allocation.size(); ++l) {
      const int64_t cap = MaxActive(result.config, result.allocation[l]);
      const auto most =
          static_cast<int64_t>(MostActive(v->active_histogram[l]));
      const auto slack = static_cast<double>(cap - most);
      if (slack >= reading.slack) continue;
      reading = {slack,
                 fmt::format("at most {} of {} allowed in validation, layer {}",
                             most, cap, l + 1)};
    }
  }
  return reading;
}

Reading SparseExactlyK(const RunResult& result) {
  const double k = result.config.router.mean_active_experts;
  const double train = result.train_ae;
  const double infer = result.final_validation.active_experts;
  if (train != k || infer != k) {
    return {kBroken,
            fmt::format("{:.17g} in training, {:.17g} in validation, k = {:g}",
                        train, infer, k)};
  }
  for (const StepRecord& step : result.steps) {
    if (step.active_experts != k) {
      return {kBroken, fmt::format("{:.17g} in step {}, k = {:g}",
                                   step.active_experts, step.step, k)};
    }
  }
  // A mean of k can hide tokens with more and tokens with fewer experts.
  for (const Validation* v :
       {&result.final_validation, &result.at_schedule_temperature}) {
    for (size_t l = 0; l < v->active_histogram.size(); ++l) {
      const std::vector<int64_t>& histogram = v->active_histogram[l];
      const int64_t tokens =
          std::accumulate(histogram.begin(), histogram.end(), int64_t{0});
      const auto bin = static_cast<size_t>(k);
      const int64_t exact = bin < histogram.size() ? histogram[bin] : 0;
      if (exact != tokens) {
        return {kBroken,
                fmt::format(
                    "only {} of {} validation tokens in layer {} have k = {:g}",
                    exact, tokens, l + 1, k)};
      }
    }
  }
  return {0, fmt::format("{:g} for every token in training and validation", k)};
}

// Compares every run with every run that has fewer experts, among models of the
// same sizes, which may differ between rows and corpora.
std::optional<Invariant> SparseActiveParameters(const GridOutcome& outcome) {
  struct Range {
    double low = std::nan(""), high = std::nan("");
  };
  // Keyed by the parameters with no and with one expert, then by k.
  std::map<std::pair<double, double>, std::map<double, Range>> models;
  for (const RunOutcome& run : outcome.runs) {
    if (!TraitsOf(run.run.config).exact_k || !IsCounted(run)) continue;
    const ModelConfig& model = run.run.config.model;
    Range& range =
        models[{ActiveParameters(model, 0), ActiveParameters(model, 1)}]
              [run.run.config.router.mean_active_experts];
    if (run.state != RunState::kFinished) continue;
    const double count =
        ActiveParameters(model, run.result->final_validation.active_experts);
    // fmin and fmax ignore a NaN, so the first count replaces it.
    range.low = std::fmin(range.low, count);
    range.high = std::fmax(range.high, count);
  }
  std::erase_if(models,
                [](const auto& model) { return model.second.size() < 2; });
  if (models.empty()) return std::nullopt;
  Invariant invariant{"sparse_active_parameters",
                      "more experts in Sparse MoE activate more parameters",
                      true};
  for (const auto& [sizes, parameters] : models) {
    if (!invariant.detail.empty()) invariant.detail += "; ";
    const Range* fewer = nullptr;
    for (const auto& [k, range] : parameters) {
      const bool measured =
          std::isfinite(range.low) && std::isfinite(range.high);
      invariant.detail += fmt::format(
          "{}{:g}: {}", fewer == nullptr ? "" : ", ", k,
          measured ? fmt::format("{:.0f}", range.low) : "not measured");
      // NaN compares false.
      if (!measured || (fewer != nullptr && !(fewer->high < range.low))) {
        invariant.holds = false;
      }
      fewer = &range;
    }
  }
  return invariant;
}

// "1000 steps", or "149 of 1000 steps, those recorded,"
std::string StepsRead(const RunResult& result) {
  const int64_t steps = result.steps.back().step;
  if (HasEveryStep(result)) return fmt::format("{} steps", steps);
  return fmt::format("{} of {} steps, those recorded,", result.steps.size(),
                     steps);
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
    if (!std::isfinite(loss)) {
      return {kBroken, fmt::format("held-out {}", loss)};
    }
  }
  return {0, StepsRead(result) + " and two validations"};
}

Reading LossFalls(const RunResult& result) {
  const int64_t n = result.steps.back().step;
  const int64_t tenth = std::max<int64_t>(1, n / 10);
  const double first = MeanOverSteps(result, &StepRecord::loss, 0, tenth);
  const double last = MeanOverSteps(result, &StepRecord::loss, n - tenth, n);
  const double fall = first - last;
  // Strictly less: an unchanged loss has not fallen.
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
        return {
            kBroken,
            fmt::format("layer {}: {} of {} tokens, {} of {} choices", l + 1,
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
               &RouterTraits::learned_budget, AllocationSum));
  add(OverRuns(outcome, "allocation_floor", "k_l >= 1", &RouterTraits::lapsum,
               AllocationFloor));
  add(OverRuns(outcome, "cap", "active experts per token <= cap", nullptr,
               Cap));
  add(OverRuns(outcome, "sparse_exactly_k",
               "Sparse MoE activates exactly k experts", &RouterTraits::exact_k,
               SparseExactlyK));
  add(SparseActiveParameters(outcome));
  add(OverRuns(outcome, "finite_losses", "every loss is finite", nullptr,
               FiniteLosses));
  add(OverRuns(outcome, "loss_falls",
               "loss of the last tenth of the steps < of the first tenth",
               nullptr, LossFalls));
  add(OverRuns(
      outcome, "below_unigram",
      fmt::format("held-out loss at least {:g} nat below the unigram's",
                  kBelowUnigram),
      nullptr, BelowUnigram));
  add(OverRuns(outcome, "counts_add_up", "every token is counted once", nullptr,
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
