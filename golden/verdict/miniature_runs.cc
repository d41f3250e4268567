// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/errors.h"

namespace softmoe::golden {

std::string NameOfRun(const std::string& corpus, const std::string& row,
                      int64_t seed) {
  return fmt::format("{}/{}/seed{}", corpus, row, seed);
}

namespace {

void RequireInOrder(const MiniatureRun& run, const std::string& name) {
  for (size_t i = 0; i < run.at_tau.size(); ++i) {
    const double before = i == 0 ? 0 : run.at_tau[i - 1].factor;
    if (!(run.at_tau[i].factor > before)) {
      throw DataError(
          fmt::format("run {}: tau factors must ascend, but {:g} "
                      "follows {:g}",
                      name, run.at_tau[i].factor, before));
    }
  }
  for (size_t i = 0; i < run.allocation.size(); ++i) {
    const AllocationPoint& point = run.allocation[i];
    const int64_t before = i == 0 ? -1 : run.allocation[i - 1].step;
    if (point.step <= before) {
      throw DataError(
          fmt::format("run {}: steps must ascend, but {} follows "
                      "{}",
                      name, point.step, before));
    }
    const double rates = i == 0 ? 0 : run.allocation[i - 1].learning_rate_sum;
    if (!(point.learning_rate_sum >= rates)) {
      throw DataError(
          fmt::format("run {}: sums of learning rates must not fall, but {:g} "
                      "follows {:g}",
                      name, point.learning_rate_sum, rates));
    }
    if (point.allocation.size() != run.allocation[0].allocation.size()) {
      throw DataError(fmt::format("run {}: {} layers at step {}, {} before",
                                  name, point.allocation.size(), point.step,
                                  run.allocation[0].allocation.size()));
    }
  }
}

}  // namespace

RunIndex IndexRuns(const MiniatureClaims& claims,
                   const std::vector<MiniatureRun>& runs) {
  RunIndex index;
  for (const MiniatureRun& run : runs) {
    const std::string name = NameOfRun(run.corpus, run.row, run.seed);
    const std::vector<int64_t>* seeds =
        claims.PlannedSeeds(run.row, run.corpus);
    if (seeds == nullptr ||
        std::find(seeds->begin(), seeds->end(), run.seed) == seeds->end()) {
      throw DataError(
          fmt::format("run {} is not planned: runs that were added "
                      "later cannot be judged with the others",
                      name));
    }
    if (!index[run.corpus][run.row].emplace(run.seed, &run).second) {
      throw DataError(
          fmt::format("run {} is there twice; leave one out", name));
    }
    RequireInOrder(run, name);
  }
  return index;
}

void RequireThroughput(const std::vector<ThroughputSamples>& throughput) {
  std::set<std::pair<std::string, double>> seen;
  for (const ThroughputSamples& samples : throughput) {
    if (!seen.insert({samples.router, samples.active_experts}).second) {
      throw DataError(
          fmt::format("throughput of '{}' at {:g} active experts is there "
                      "twice; leave one out",
                      samples.router, samples.active_experts));
    }
    for (const double speed : samples.tokens_per_second) {
      if (!(speed > 0) || !std::isfinite(speed)) {
        throw DataError(
            fmt::format("throughput at {:g} active experts: {:g} "
                        "tokens/s is not a speed",
                        samples.active_experts, speed));
      }
    }
  }
}

}  // namespace softmoe::golden
