// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature_throughput.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "golden/verdict/miniature_noise.h"
#include "golden/verdict/miniature_scatter.h"

namespace softmoe::golden {

std::vector<MiniatureCase> ThroughputCases(
    const MiniatureClaims& claims, const MiniatureMeasure& measure,
    const std::vector<ThroughputSamples>& throughput) {
  SeedValues values;
  auto name = [](double experts) { return fmt::format("AE {:g}", experts); };
  std::map<std::string, std::string> others;  // routers that were measured
  for (const ThroughputSamples& samples : throughput) {
    if (samples.router != measure.router) {
      others[name(samples.active_experts)] = samples.router;
      continue;
    }
    auto& logs = values[name(samples.active_experts)];
    for (const double speed : samples.tokens_per_second) {
      logs[static_cast<int64_t>(logs.size())] = std::log(speed);
    }
  }
  SeedValues measured;  // only the samples that the measure names
  for (const double experts : measure.active_experts) {
    const auto found = values.find(name(experts));
    if (found != values.end()) measured.insert(*found);
  }
  const RowNoise noise = PoolRows(measured, measure.noise, claims);
  std::vector<MiniatureCase> cases;
  for (size_t i = 0; i + 1 < measure.active_experts.size(); ++i) {
    MiniatureCase result;
    std::vector<Term> terms = {{name(measure.active_experts[i]), 1, 0},
                               {name(measure.active_experts[i + 1]), -1, 0}};
    result.label = terms[0].row + " - " + terms[1].row;
    result.seeds = std::numeric_limits<int64_t>::max();
    for (Term& term : terms) {
      const auto found = measured.find(term.row);
      if (found != measured.end()) term.count = found->second.size();
      const auto samples = static_cast<int64_t>(term.count);
      result.seeds = std::min(result.seeds, samples);
      if (throughput.empty()) {
        result.problem = "there is no benchmark";
      } else if (samples == 0 && others.contains(term.row)) {
        result.problem = fmt::format(
            "the benchmark at {} is of the {} router, not of the {} one",
            term.row, others.at(term.row), measure.router);
      } else if (samples < measure.least_samples) {
        result.problem = fmt::format("{} samples at {}, {} are needed", samples,
                                     term.row, measure.least_samples);
      }
      if (!result.problem.empty()) continue;
      for (const auto& [index, value] : found->second) {
        result.estimate += term.weight * value / static_cast<double>(samples);
      }
    }
    if (result.problem.empty()) {
      SetError(terms, {measured, noise, measure.noise}, {}, &result);
    }
    cases.push_back(std::move(result));
  }
  return cases;
}

}  // namespace softmoe::golden
