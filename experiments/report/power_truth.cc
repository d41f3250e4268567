// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/power_truth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>

#include "core/config/config_enums.h"
#include "core/config/router_traits.h"
#include "experiments/report/mini_claims.h"
#include "golden/verdict/statistics.h"
#include "trainer/run/schedules.h"

namespace softmoe::experiments {
namespace {

using golden::MiniatureRun;

// a + b k^-p, close to the mini grid's sparse rows.
constexpr double kDefaultLoss = 3.557, kDefaultRise = 0.121, kDefaultP = 1.5;

constexpr double kDefaultLoadVariance = 0.05;

// The active experts of a row without known runs. At a whole number, where
// budget groups and the sparse curve end, noise alone would decide what a soft
// row is compared with. It therefore lies in the middle of a group: the one
// just above its k or, if its cap is lower, the one that ends at the cap.
double DefaultActiveExperts(const Config& config) {
  const double k = config.router.mean_active_experts;
  if (!TraitsOf(config).lapsum) return k;
  const auto cap = static_cast<double>(MaxActive(config, k));
  return std::min(std::floor(k), cap - 1) + 0.5;
}

// Points of an allocation over the steps; the judge interpolates linearly.
constexpr int64_t kPoints = 20;

// Equal k_l that move a little towards the claimed pattern, so that there is
// movement.
std::vector<golden::AllocationPoint> DefaultAllocation(const Config& config) {
  const int64_t steps = config.training.steps;
  const auto layers = static_cast<double>(config.model.num_layers);
  std::vector<golden::AllocationPoint> points;
  double sum = 0;
  for (int64_t step = 0, p = 1; p <= kPoints; ++p) {
    for (; step < p * steps / kPoints; ++step) {
      sum += trainer::LearningRate(config.training, step);
    }
    golden::AllocationPoint& point = points.emplace_back();
    point.step = step;
    point.learning_rate_sum = sum;
    for (double l = 0; l < layers; ++l) {
      const double slope = 0.1 * ((l + 0.5) / layers - 0.5);
      point.allocation.push_back(
          config.router.mean_active_experts *
          (1 + slope * static_cast<double>(p) / kPoints));
    }
  }
  return points;
}

// The mean of the known runs at some of their points; all runs have the same
// steps.
std::vector<golden::AllocationPoint> MeanAllocation(
    const std::vector<MiniatureRun>& runs) {
  const std::vector<golden::AllocationPoint>& all = runs.front().allocation;
  const size_t stride = 1 + all.size() / kPoints;
  std::vector<golden::AllocationPoint> mean;
  std::vector<size_t> kept;
  for (size_t p = 0; p < all.size(); ++p) {
    if (p % stride != 0 && p + 1 != all.size()) continue;
    mean.push_back(all[p]);
    kept.push_back(p);
  }
  for (size_t p = 0; p < mean.size(); ++p) {
    for (size_t l = 0; l < mean[p].allocation.size(); ++l) {
      std::vector<double> values;
      for (const MiniatureRun& run : runs) {
        values.push_back(run.allocation.at(kept[p]).allocation.at(l));
      }
      mean[p].allocation[l] = golden::Mean(values);
    }
  }
  return mean;
}

}  // namespace

const Config& ConfigOf(const Grid& grid, const RowKey& row) {
  const auto found = std::ranges::find_if(grid.runs, [&](const GridRun& run) {
    return row == RowKey(run.corpus.id, run.row.id);
  });
  return found == grid.runs.end() ? grid.runs.front().config : found->config;
}

KnownRuns::KnownRuns(const std::vector<RunRecord>& records) {
  std::set<std::string> taken;
  std::vector<std::string> paths;
  for (const RunRecord& record : records) {
    paths.push_back(record.path.filename().string());
    for (const RecordedRun& run : record.runs) {
      if (!taken.insert(run.id).second) continue;
      const size_t first = run.id.find('/'), last = run.id.rfind('/');
      GridRun named;
      named.corpus.id = run.id.substr(0, first);
      named.row.id = run.id.substr(first + 1, last - first - 1);
      named.seed = run.result.config.training.seed;
      runs_[{named.corpus.id, named.row.id}].push_back(
          MiniatureRunOf(named, run.result));
    }
  }
  source_ =
      paths.empty() ? "no record" : fmt::format("{}", fmt::join(paths, ", "));
}

void KnownRuns::Keep(const std::function<bool(const MiniatureRun&)>& keep) {
  for (auto& [row, runs] : runs_) std::erase_if(runs, std::not_fn(keep));
}

const std::vector<MiniatureRun>& KnownRuns::Of(const RowKey& row) const {
  static const std::vector<MiniatureRun> none;
  const auto found = runs_.find(row);
  return found == runs_.end() ? none : found->second;
}

std::optional<double> KnownRuns::DeviationOf(std::vector<SeedValue> values,
                                             bool paired) {
  // Subtracts from each value its group's mean; returns the number of groups.
  const auto center = [&](auto SeedValue::*group) {
    std::map<int64_t, std::vector<SeedValue*>> groups;
    for (SeedValue& each : values) {
      groups[static_cast<int64_t>(each.*group)].push_back(&each);
    }
    for (const auto& [name, members] : groups) {
      double mean = 0;
      for (const SeedValue* each : members) mean += each->value;
      mean /= static_cast<double>(members.size());
      for (SeedValue* each : members) each->value -= mean;
    }
    return groups.size();
  };
  size_t fitted = center(&SeedValue::row);
  if (paired) {
    // Alternating converges to the least squares of both, whichever runs exist.
    constexpr int kTurns = 100;
    size_t seeds = 0;
    for (int turn = 0; turn < kTurns; ++turn) {
      seeds = center(&SeedValue::seed);
      center(&SeedValue::row);
    }
    fitted += seeds - 1;
  }
  if (values.size() <= fitted) return std::nullopt;
  double squares = 0;
  for (const SeedValue& each : values) squares += each.value * each.value;
  return std::sqrt(squares / static_cast<double>(values.size() - fitted));
}

double DeviationOr(double fallback, const std::optional<double>& known,
                   const std::string& what, std::vector<std::string>* texts) {
  texts->push_back(fmt::format("{} {:.3g}{}", what, known.value_or(fallback),
                               known ? "" : " (default)"));
  return known.value_or(fallback);
}

double DefaultLoss(double experts) {
  return kDefaultLoss + kDefaultRise * std::pow(experts, -kDefaultP);
}

RowTruth TruthOf(const std::vector<MiniatureRun>& known, const Config& config) {
  const RouterConfig& router = config.router;
  RowTruth truth;
  const RouterTraits traits = TraitsOf(config);
  truth.sparse = traits.exact_k;
  truth.infer_ae = truth.train_ae = DefaultActiveExperts(config);
  truth.loss = DefaultLoss(truth.infer_ae);
  truth.mean_cap =
      static_cast<double>(MaxActive(config, router.mean_active_experts));
  truth.log_load_variance = std::log(kDefaultLoadVariance);
  if (traits.lapsum) truth.load_balance = EnumName(router.load_balance);
  if (traits.learned_budget) truth.allocation = DefaultAllocation(config);
  if (known.empty()) return truth;
  const auto mean = [&](auto read) {
    std::vector<double> values;
    for (const MiniatureRun& run : known) values.push_back(read(run));
    return golden::Mean(values);
  };
  truth.loss = mean([](const auto& run) { return run.loss; });
  truth.infer_ae = mean([](const auto& run) { return run.infer_ae; });
  truth.train_ae = mean([](const auto& run) { return run.train_ae; });
  truth.mean_cap = mean([](const auto& run) { return run.mean_cap; });
  truth.log_load_variance =
      mean([](const auto& run) { return std::log(run.load_variance); });
  if (traits.learned_budget) truth.allocation = MeanAllocation(known);
  // Some runs may still lack evaluations at other tau.
  const auto& factors = known.front().at_tau;
  const bool complete = std::ranges::all_of(known, [&](const auto& run) {
    return std::ranges::equal(run.at_tau, factors, {},
                              &golden::TauPoint::factor,
                              &golden::TauPoint::factor);
  });
  for (size_t p = 0; complete && p < factors.size(); ++p) {
    golden::TauPoint& point = truth.at_tau.emplace_back();
    point.factor = factors[p].factor;
    point.infer_ae = mean([&](const auto& run) {
      return run.at_tau.at(p).infer_ae / run.infer_ae;
    });
    point.loss =
        mean([&](const auto& run) { return run.at_tau.at(p).loss - run.loss; });
  }
  return truth;
}

}  // namespace softmoe::experiments
