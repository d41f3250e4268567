// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/final_evaluations.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "core/code_version.h"
#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/parallel_for.h"
#include "trainer/evaluation/router_health.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/checkpoint.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::trainer {
namespace {

const InferenceTau* FindFactor(const FinalEvaluations& evaluations,
                               double factor) {
  for (const InferenceTau& at : evaluations.inference_tau) {
    if (at.factor == factor) return &at;
  }
  return nullptr;
}

// `plan` plus what earlier plans asked of `result`.
EvaluationPlan WithEarlierPlans(EvaluationPlan plan, const RunResult& result) {
  if (!result.final_evaluations) return plan;
  std::set<double> factors(plan.inference_tau_factors.begin(),
                           plan.inference_tau_factors.end());
  for (const InferenceTau& at : result.final_evaluations->inference_tau) {
    factors.insert(at.factor);
    plan.active_histogram |= !at.validation.active_histogram.empty();
  }
  plan.inference_tau_factors.assign(factors.begin(), factors.end());
  plan.router_health |= !result.final_evaluations->router_health.empty();
  return plan;
}

}  // namespace

std::string MissingEvaluations(const EvaluationPlan& plan,
                               const RunResult& result) {
  const FinalEvaluations none;
  const FinalEvaluations& has =
      result.final_evaluations ? *result.final_evaluations : none;
  std::string factors, histograms;
  if (TraitsOf(result.config).cutoff) {
    for (const double factor : plan.inference_tau_factors) {
      const InferenceTau* at = FindFactor(has, factor);
      const std::string name = fmt::format(" x{:g}", factor);
      if (at == nullptr) {
        factors += (factors.empty() ? "" : ",") + name;
      } else if (plan.active_histogram &&
                 at->validation.active_histogram.empty()) {
        histograms += (histograms.empty() ? "" : ",") + name;
      }
    }
  }
  std::string missing;
  const auto add = [&](const std::string& what) {
    missing += (missing.empty() ? "" : "; ") + what;
  };
  if (!factors.empty()) add("inference tau" + factors);
  if (!histograms.empty()) {
    add("histograms of active experts at inference tau" + histograms);
  }
  if (plan.router_health && has.router_health.empty()) add("router health");
  return missing;
}

std::optional<FinalEvaluations> MeasureFinalModel(
    optimized::Model& model, const Dataset& data, double tau,
    const EvaluationPlan& plan, optimized::Communicator& communicator,
    const StopPoll& poll) {
  CheckEvaluationPlan(plan);
  const Config& config = model.config();
  std::vector<double> factors;
  if (TraitsOf(config).cutoff) factors = plan.inference_tau_factors;
  if (factors.empty() && !plan.router_health) return {};

  RouterHealthTotals totals(config);
  const GroupObserver observe =
      [&](std::span<const optimized::StepStats> groups) {
        std::vector<optimized::RoutingView> layers;
        for (int64_t l = 0; l < config.model.num_layers; ++l) {
          layers.push_back(model.LastRouting(l));
        }
        totals.Add(groups, layers, communicator);
      };
  FinalEvaluations result;
  result.code_version = CodeVersion();
  bool observed = !plan.router_health;
  for (const double factor : factors) {
    InferenceTau at{.factor = factor, .tau = factor * tau, .validation = {}};
    // At factor 1 one pass serves both.
    const bool observing = !observed && factor == 1;
    at.validation = Validate(model, data, at.tau, 1.0, communicator, poll,
                             observing ? observe : GroupObserver());
    observed |= observing;
    if (!plan.active_histogram) at.validation.active_histogram.clear();
    result.inference_tau.push_back(std::move(at));
  }
  if (!observed) Validate(model, data, tau, 1.0, communicator, poll, observe);
  if (plan.router_health) result.router_health = totals.Get();
  return result;
}

std::string EvaluationObstacle(const RunResult& result,
                               const std::filesystem::path& path,
                               const optimized::DeviceIdentity& here) {
  const auto train_again = [&](const std::string& reason) {
    return fmt::format(
        "{}: {}; delete the result beside it to have the same command train "
        "the run again, or leave these evaluations out",
        path.string(), reason);
  };
  if (!std::filesystem::exists(path)) {
    return train_again("the checkpoint is gone");
  }
  RunIdentity now = result.identity;
  SetPlace(here, now);
  if (!SamePlace(result.identity, now)) {
    return fmt::format(
        "{}: the run was trained with {}, this process uses {}, and a result "
        "holds numbers of one. {}",
        path.string(), PlaceText(result.identity), PlaceText(now),
        HowToGoOn(result.identity, now));
  }
  try {
    const Checkpoint checkpoint(path);
    if (!CompareIdentities(result.identity, checkpoint.identity()).empty()) {
      return train_again("the checkpoint is of another run than the result");
    }
    if (checkpoint.state().step != result.config.training.steps) {
      return train_again(fmt::format("the checkpoint is of step {} of {}",
                                     checkpoint.state().step,
                                     result.config.training.steps));
    }
  } catch (const DataError& error) {
    return train_again(error.what());
  }
  return "";
}

FinalEvaluations EvaluateFinishedRun(const RunResult& result,
                                     const std::filesystem::path& path,
                                     const std::filesystem::path& tokens,
                                     int64_t threads, optimized::Device& device,
                                     const EvaluationPlan& plan,
                                     optimized::Communicator& communicator,
                                     const StopPoll& poll) {
  const Checkpoint checkpoint(path);
  const Config& config = checkpoint.identity().config;
  ThreadPool pool(static_cast<int>(threads));
  const Dataset data(config, tokens);
  optimized::Model model(config, config.training.balance_group_sequences, pool,
                         device);
  model.WriteParameters(checkpoint.ReadParameters(model.layout().total));
  return MeasureFinalModel(model, data, checkpoint.state().tau,
                           WithEarlierPlans(plan, result), communicator, poll)
      .value();
}

}  // namespace softmoe::trainer
