// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "property_tests/mutation/for_all.h"

namespace softmoe::mutation {
namespace {

class Measurement {
 public:
  explicit Measurement(const MeasureOptions& options) : options_(options) {}

  Score Run() {
    const auto start = std::chrono::steady_clock::now();
    std::vector<Mutant> canaries, others;
    for (const Mutant& mutant : options_.mutants) {
      (mutant.area() == kCanaryArea ? canaries : others).push_back(mutant);
    }
    if (canaries.size() < 2) score_.Void("no canary among the mutants");
    RunWithoutMutants();
    if (score_.void_reasons().empty()) RunMutants(canaries);
    if (score_.void_reasons().empty()) RunMutants(others);
    score_.set_seconds(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count());
    return std::move(score_);
  }

 private:
  void RunWithoutMutants() {
    std::vector<const Suite*> needed;
    for (const Suite& suite : options_.suites) {
      const bool used = std::ranges::any_of(
          options_.mutants,
          [&](const Mutant& mutant) { return mutant.suite == suite.name; });
      if (used) needed.push_back(&suite);
    }
    ForAll(needed.size(), options_.jobs, options_.stop, [&](size_t i) {
      const Suite& suite = *needed[i];
      const SuiteRun run = options_.run(suite, "", options_.first_timeout);
      const std::lock_guard lock(mutex_);
      clean_seconds_[suite.name] = run.seconds;
      if (run.end != SuiteRun::End::kExited || run.code != 0) {
        score_.Void(fmt::format(
            "{} fails without any mutant ({} {})", suite.name,
            run.end == SuiteRun::End::kExited ? "exit code" : "signal",
            run.code));
      }
      options_.on_clean_run(suite, run);
    });
  }

  void RunMutants(const std::vector<Mutant>& mutants) {
    std::vector<std::optional<MutantResult>> results(mutants.size());
    ForAll(mutants.size(), options_.jobs, options_.stop, [&](size_t i) {
      const Mutant& mutant = mutants[i];
      const Suite& suite = FindSuite(options_.suites, mutant.suite);
      const double timeout =
          std::max(options_.min_timeout, 10 * CleanSeconds(suite.name));
      const SuiteRun run = options_.run(suite, mutant.id, timeout);
      const std::lock_guard lock(mutex_);
      results[i] = MutantResult{mutant,   suite.tier,  JudgeRun(suite, run),
                                run.hits, run.seconds, run.code};
      options_.on_result(*results[i], run);
    });
    for (std::optional<MutantResult>& result : results) {
      if (result) score_.Add(*std::move(result));
    }
  }

  double CleanSeconds(const std::string& suite) {
    const std::lock_guard lock(mutex_);
    return clean_seconds_[suite];
  }

  const MeasureOptions& options_;
  std::mutex mutex_;
  std::map<std::string, double> clean_seconds_;
  Score score_;
};

}  // namespace

Score Measure(const MeasureOptions& options) {
  return Measurement(options).Run();
}

}  // namespace softmoe::mutation
