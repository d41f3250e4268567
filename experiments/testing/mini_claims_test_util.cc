// SPDX-License-Identifier: Apache-2.0
#include "experiments/testing/mini_claims_test_util.h"

#include <filesystem>
#include <map>
#include <string>

#include "core/files/paths.h"
#include "experiments/grids/experiment.h"
#include "experiments/run/run_folder.h"
#include "experiments/testing/report_test_util.h"

namespace softmoe::experiments {
namespace {

using golden::AllocationPoint;
using golden::MiniatureRun;
using trainer::RunResult;

// k_l after `updates`, linear between the points of a run that begins with
// equal k_l.
std::vector<double> AllocationAfter(int64_t updates, const MiniatureRun& run) {
  const std::vector<double>& last = run.allocation.back().allocation;
  double mean = 0;
  for (const double k : last) mean += k / static_cast<double>(last.size());
  AllocationPoint before{0, std::vector<double>(last.size(), mean)};
  for (const AllocationPoint& after : run.allocation) {
    if (updates <= after.step) {
      const double part = static_cast<double>(updates - before.step) /
                          static_cast<double>(after.step - before.step);
      std::vector<double> between = before.allocation;
      for (size_t l = 0; l < between.size(); ++l) {
        between[l] += part * (after.allocation[l] - between[l]);
      }
      return between;
    }
    before = after;
  }
  return last;
}

RunResult ResultOf(const GridRun& run, const MiniatureRun& made_up) {
  RunResult result = ExampleResult(run);
  trainer::Validation& final = result.final_validation;
  final.loss = made_up.loss;
  final.active_experts = made_up.infer_ae;
  final.relative_load_variance = made_up.load_variance;
  result.train_ae = made_up.train_ae;
  // Uses learning rates at which C3 can be tested, and both readings of the
  // balance loss.
  result.config.training.learning_rate *= 8;
  result.config.router.load_balance = made_up.load_balance == "megatron"
                                          ? LoadBalanceKind::kMegatron
                                          : LoadBalanceKind::kSoft;
  const trainer::StepRecord step = result.steps.front();
  result.steps.clear();
  for (int64_t s = 1; s <= run.config.training.steps; ++s) {
    trainer::StepRecord& record = result.steps.emplace_back(step);
    record.step = s;
    if (!made_up.allocation.empty()) {
      record.allocation = AllocationAfter(s - 1, made_up);
    }
  }
  if (!made_up.allocation.empty()) {
    result.allocation = made_up.allocation.back().allocation;
  }
  if (!made_up.at_tau.empty()) result.final_evaluations.emplace();
  for (const golden::TauPoint& point : made_up.at_tau) {
    trainer::InferenceTau at{.factor = point.factor,
                             .tau = point.factor * result.tau,
                             .validation = final};
    at.validation.loss = point.loss;
    at.validation.active_experts = point.infer_ae;
    result.final_evaluations->inference_tau.push_back(std::move(at));
  }
  return result;
}

}  // namespace

GridOutcome MadeUpMini(const golden::RunChange& change) {
  std::map<std::string, MiniatureRun> made_up;
  for (MiniatureRun& run :
       golden::MadeUpResults(golden::FrozenClaims(), change).runs) {
    const std::string id =
        run.corpus + "/" + run.row + "/seed" + std::to_string(run.seed);
    made_up[id] = std::move(run);
  }
  GridOutcome outcome;
  outcome.grid = LoadExperiment(ExperimentNames().front(),
                                RunfilePath("experiments/grids/mini.toml"), {});
  std::map<std::string, trainer::PreparedCorpus> corpora;
  for (const GridRun& run : outcome.grid.runs) {
    RunOutcome finished;
    finished.run = run;
    finished.state = RunState::kFinished;
    finished.result = ResultOf(run, made_up.at(run.id));
    trainer::PreparedCorpus& corpus = corpora[run.corpus.id];
    corpus.corpus = run.config.data.corpus;
    corpus.prefix = CorpusRecord(run, "");
    corpus.tokens = finished.result->identity.tokens;
    outcome.runs.push_back(std::move(finished));
  }
  for (auto& [id, corpus] : corpora) {
    outcome.corpora.push_back(std::move(corpus));
  }
  return outcome;
}

}  // namespace softmoe::experiments
