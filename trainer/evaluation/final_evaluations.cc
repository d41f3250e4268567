// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/final_evaluations.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "core/code_version.h"
#include "core/config/router_traits.h"
#include "core/errors.h"
#include "trainer/evaluation/loaded_model.h"
#include "trainer/evaluation/router_health.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/checkpoint.h"
#include "trainer/tasks/score_requests.h"
#include "trainer/tasks/task_scores.h"
#include "trainer/tokens/prepared_corpus.h"
#include "trainer/tokens/token_file.h"
#include "trainer/tokens/tokenizer.h"

namespace softmoe::trainer {
namespace {

const InferenceTau* FindFactor(const FinalEvaluations& evaluations,
                               double factor) {
  for (const InferenceTau& at : evaluations.inference_tau) {
    if (at.factor == factor) return &at;
  }
  return nullptr;
}

bool HasTask(const std::vector<TaskResult>& tasks, const std::string& name) {
  return std::ranges::find(tasks, name, &TaskResult::name) != tasks.end();
}

// The names of tasks for which `wanted(name)`, in the order of TaskSplits().
template <typename Wanted>
std::vector<std::string> TasksThat(const Wanted& wanted) {
  std::vector<std::string> names;
  for (const TaskSplit& split : TaskSplits()) {
    if (wanted(split.name)) names.push_back(split.name);
  }
  return names;
}

bool IsPlanned(const EvaluationPlan& plan, const std::string& task) {
  return std::ranges::find(plan.tasks, task) != plan.tasks.end();
}

TaskResult ResultOf(TaskAccuracy accuracy) {
  TaskResult result{.name = accuracy.name,
                    .sha256 = accuracy.sha256,
                    .measures = {},
                    .right = std::move(accuracy.right)};
  for (int m = 0; m < kNumTaskMeasures; ++m) {
    const auto measure = static_cast<TaskMeasure>(m);
    result.measures.push_back(
        {.correct = accuracy.correct[m],
         .accuracy = accuracy.Mean(measure),
         .standard_error = accuracy.StandardError(measure)});
  }
  return result;
}

std::vector<TaskResult> AskTasks(std::span<const TaskItems> tasks,
                                 optimized::Model& model, double tau,
                                 const Tokenizer& tokenizer,
                                 optimized::Communicator& communicator,
                                 const StopPoll& poll) {
  std::vector<ScoredTask> scored;
  for (const TaskItems& task : tasks) {
    scored.push_back(ScoreTask(
        task, model, {.temperature = 1, .tau = tau, .noise = false},
        [&](std::string_view text) { return tokenizer.Encode(text); },
        tokenizer.end_of_document(), communicator, poll));
  }
  std::vector<TaskResult> results;
  for (TaskAccuracy& accuracy : Accuracies(scored)) {
    // A part may have a single item, which has no standard error.
    if (accuracy.num_items < 2) continue;
    results.push_back(ResultOf(std::move(accuracy)));
  }
  return results;
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
  std::vector<std::string> tasks;
  for (const TaskSplit& split : TaskSplits()) {
    const std::string& name = split.name;
    if (!IsPlanned(plan, name)) continue;
    const auto answers = std::ranges::find(has.tasks, name, &TaskResult::name);
    const auto here = plan.items_here.find(name);
    if (answers == has.tasks.end() ||
        !std::ranges::all_of(has.inference_tau, [&](const auto& at) {
          return HasTask(at.tasks, name);
        })) {
      tasks.push_back(name);
    } else if (here != plan.items_here.end() &&
               here->second.sha256 != answers->sha256 &&
               here->second.count >= answers->right.size()) {
      tasks.push_back(name + " (other items)");
    }
  }
  if (!tasks.empty()) add(fmt::format("tasks {}", fmt::join(tasks, ", ")));
  return missing;
}

EvaluationPlan WithEarlierPlans(EvaluationPlan plan, const RunResult& result) {
  if (!result.final_evaluations) return plan;
  const FinalEvaluations& has = *result.final_evaluations;
  std::set<double> factors(plan.inference_tau_factors.begin(),
                           plan.inference_tau_factors.end());
  for (const InferenceTau& at : has.inference_tau) {
    factors.insert(at.factor);
    plan.active_histogram |= !at.validation.active_histogram.empty();
  }
  plan.inference_tau_factors.assign(factors.begin(), factors.end());
  plan.router_health |= !has.router_health.empty();
  plan.tasks = TasksThat([&](const std::string& name) {
    return IsPlanned(plan, name) || HasTask(has.tasks, name);
  });
  return plan;
}

std::map<std::string, ItemsOfTask> ItemsHere(
    const EvaluationPlan& plan, const std::filesystem::path& folder) {
  std::map<std::string, ItemsOfTask> items;
  for (const TaskSplit& split : TaskSplits()) {
    if (folder.empty() || !IsPlanned(plan, split.name)) continue;
    try {
      const TaskItems task = ReadTaskItems(FindInFolder(split, folder, ""));
      items[split.name] = {task.sha256, task.items.size()};
    } catch (const Error&) {
      // The items may not be needed.
    }
  }
  return items;
}

std::vector<TaskItems> ReadPlannedTasks(const EvaluationPlan& plan,
                                        const std::filesystem::path& folder) {
  const std::string again =
      "; adding evaluations to a finished run also asks its tasks again: to "
      "avoid that, leave the new ones out of [evaluations]";
  if (!plan.tasks.empty() && folder.empty()) {
    throw EnvironmentError(fmt::format(
        "the items of the tasks {} were not given: name their folder with "
        "--task-files, or leave them out of the grid's `tasks`{}",
        fmt::join(plan.tasks, ", "), again));
  }
  std::vector<TaskItems> tasks;
  for (const TaskSplit& split : TaskSplits()) {
    if (!IsPlanned(plan, split.name)) continue;
    tasks.push_back(ReadTaskItems(FindInFolder(
        split, folder, ", or leave it out of the grid's `tasks`" + again)));
    if (tasks.back().items.size() > 1) continue;
    throw DataError(fmt::format(
        "{}: a single item, whose accuracy has no standard error; take the "
        "whole split ({})",
        tasks.back().file.string(), split.origin));
  }
  return tasks;
}

void RequireNoFewerItems(std::span<const TaskItems> tasks,
                         const RunResult& result, const std::string& run) {
  if (!result.final_evaluations) return;
  const std::vector<TaskResult>& answered = result.final_evaluations->tasks;
  for (const TaskItems& task : tasks) {
    const auto there =
        std::ranges::find(answered, task.name, &TaskResult::name);
    if (there == answered.end() || there->right.size() <= task.items.size()) {
      continue;
    }
    throw ConfigError(
        fmt::format("{}: has answers to {} items of {}; asking the {} items of "
                    "{} would replace them, because adding evaluations to a "
                    "finished run also asks its tasks again; give the whole "
                    "file, or leave the new evaluations out of [evaluations]",
                    run, there->right.size(), task.name, task.items.size(),
                    task.file.string()));
  }
}

std::optional<FinalEvaluations> MeasureFinalModel(
    optimized::Model& model, const Dataset& data, double tau,
    const EvaluationPlan& plan, std::span<const TaskItems> tasks,
    const std::filesystem::path& tokens, const std::string& tokenizer_sha256,
    optimized::Communicator& communicator, const StopPoll& poll) {
  CheckEvaluationPlan(plan);
  SOFTMOE_CHECK(tasks.size() == plan.tasks.size())
      << tasks.size() << " tasks read of " << plan.tasks.size();
  const Config& config = model.config();
  std::vector<double> factors;
  if (TraitsOf(config).cutoff) factors = plan.inference_tau_factors;
  if (factors.empty() && !plan.router_health && tasks.empty()) return {};

  std::optional<Tokenizer> tokenizer;
  if (!tasks.empty()) {
    tokenizer.emplace(Tokenizer::FromCheckedFile(WithSuffix(tokens, ".model"),
                                                 tokenizer_sha256));
  }
  const auto ask = [&](double with_tau) -> std::vector<TaskResult> {
    if (tasks.empty()) return {};
    return AskTasks(tasks, model, with_tau, *tokenizer, communicator, poll);
  };
  RouterHealthTotals totals(config);
  const GroupObserver observe =
      [&](std::span<const optimized::StepStats> groups) {
        totals.Add(groups, LastRouting(model), communicator);
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
    at.tasks = ask(at.tau);
    if (factor == 1) result.tasks = at.tasks;
    result.inference_tau.push_back(std::move(at));
  }
  if (!observed) Validate(model, data, tau, 1.0, communicator, poll, observe);
  if (plan.router_health) result.router_health = totals.Get();
  if (result.tasks.empty()) result.tasks = ask(tau);
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
        "must not mix the two. {}",
        path.string(), PlaceText(result.identity), PlaceText(now),
        HowToGoOn(result.identity, now));
  }
  try {
    const Checkpoint checkpoint(path);
    const std::string other = WhyNotFinal(result, checkpoint);
    return other.empty() ? "" : train_again(other);
  } catch (const DataError& error) {
    return train_again(error.what());
  }
}

FinalEvaluations EvaluateFinishedRun(const std::filesystem::path& path,
                                     const std::filesystem::path& tokens,
                                     int64_t threads, optimized::Device& device,
                                     const EvaluationPlan& plan,
                                     std::span<const TaskItems> tasks,
                                     optimized::Communicator& communicator,
                                     const StopPoll& poll) {
  const Checkpoint checkpoint(path);
  const Config& config = checkpoint.identity().config;
  const Dataset data(config, tokens);
  LoadedModel loaded(checkpoint, config, threads, device);
  return MeasureFinalModel(
             *loaded.model, data, checkpoint.state().tau, plan, tasks, tokens,
             checkpoint.identity().tokens.tokenizer_sha256, communicator, poll)
      .value();
}

}  // namespace softmoe::trainer
