// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature_judge.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/errors.h"
#include "golden/verdict/miniature_cases.h"
#include "golden/verdict/miniature_evidence.h"
#include "golden/verdict/miniature_noise.h"
#include "golden/verdict/miniature_reason.h"
#include "golden/verdict/statistics.h"

namespace softmoe::golden {
namespace {

void RequireInOrder(const MiniatureRun& run) {
  const auto name = [&] { return NameOfRun(run.corpus, run.row, run.seed); };
  for (size_t i = 0; i < run.at_tau.size(); ++i) {
    const double before = i == 0 ? 0 : run.at_tau[i - 1].factor;
    if (!(run.at_tau[i].factor > before)) {
      throw DataError(
          fmt::format("run {}: tau factors must ascend, but {:g} "
                      "follows {:g}",
                      name(), run.at_tau[i].factor, before));
    }
  }
  for (size_t i = 0; i < run.allocation.size(); ++i) {
    const AllocationPoint& point = run.allocation[i];
    const int64_t before = i == 0 ? -1 : run.allocation[i - 1].step;
    if (point.step <= before) {
      throw DataError(
          fmt::format("run {}: steps must ascend, but {} follows "
                      "{}",
                      name(), point.step, before));
    }
    const double rates = i == 0 ? 0 : run.allocation[i - 1].learning_rate_sum;
    if (!(point.learning_rate_sum >= rates)) {
      throw DataError(
          fmt::format("run {}: sums of learning rates must not fall, but {:g} "
                      "follows {:g}",
                      name(), point.learning_rate_sum, rates));
    }
    if (point.allocation.size() != run.allocation[0].allocation.size()) {
      throw DataError(fmt::format("run {}: {} layers at step {}, {} before",
                                  name(), point.allocation.size(), point.step,
                                  run.allocation[0].allocation.size()));
    }
  }
}

// Indexes `runs`, which must outlive the result. Throws DataError for a run
// that is not planned or occurs twice, and for steps, factors or layers out of
// order.
RunIndex IndexRuns(const MiniatureClaims& claims,
                   const std::vector<MiniatureRun>& runs) {
  RunIndex index;
  for (const MiniatureRun& run : runs) {
    const auto name = [&] { return NameOfRun(run.corpus, run.row, run.seed); };
    const std::vector<int64_t>* seeds =
        claims.PlannedSeeds(run.row, run.corpus);
    if (seeds == nullptr ||
        std::find(seeds->begin(), seeds->end(), run.seed) == seeds->end()) {
      throw DataError(
          fmt::format("run {} is not planned: runs that were added "
                      "later cannot be judged with the others",
                      name()));
    }
    if (!index[run.corpus][run.row].emplace(run.seed, &run).second) {
      throw DataError(
          fmt::format("run {} is there twice; leave one out", name()));
    }
    RequireInOrder(run);
  }
  return index;
}

// Throws DataError if a number of experts occurs twice or a speed is not valid.
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

constexpr double kPower = 0.8;

class MiniatureJudge {
 public:
  MiniatureJudge(const MiniatureClaims& claims, const MiniatureResults& results)
      : claims_(claims), results_(results) {}

  // `everything`: whether to include what TestMiniature leaves out.
  MiniatureVerdicts Run(bool everything) {
    RequireThroughput(results_.throughput);
    runs_ = IndexRuns(claims_, results_.runs);
    CountRuns();
    FindEqualSeeds();
    for (const MiniatureClaim& claim : claims_.claims) TestClaim(claim);
    DecideMeasures();
    for (MiniatureVerdict& claim : verdicts_.claims) DecideClaim(&claim);
    if (everything) Explain();
    return std::move(verdicts_);
  }

 private:
  void Explain() {
    verdicts_.hash = claims_.Hash();
    for (size_t c = 0; c < claims_.claims.size(); ++c) {
      for (size_t m = 0; m < claims_.claims[c].measures.size(); ++m) {
        const MiniatureMeasure& measure = claims_.claims[c].measures[m];
        MiniatureMeasureVerdict& verdict = verdicts_.claims[c].measures[m];
        if (!measure.judged()) TestCases(measure, std::nullopt, &verdict.cases);
        TestCases(measure, std::nullopt, &verdict.parts);
        for (MiniatureCase& each : verdict.cases) AddPrecision(&each);
        for (MiniatureCase& each : verdict.parts) AddPrecision(&each);
        AddNotPooled(measure, &verdict);
        if (verdict.status == MiniatureStatus::kUndecided) {
          verdict.seeds_needed = SeedsNeeded(
              measure, verdict.cases, verdict.cases_needed, LevelOfOne());
        }
        verdict.reason = ReasonOf(measure, verdict, verdicts_.equal_seeds);
      }
    }
    AddResolution();
  }

  void CountRuns() {
    for (const PlannedRuns& planned : claims_.planned) {
      for (const std::string& row : planned.rows) {
        for (const int64_t seed : planned.seeds) {
          ++verdicts_.planned;
          const auto& rows = runs_[planned.corpus];
          const auto found = rows.find(row);
          if (found != rows.end() && found->second.contains(seed)) {
            ++verdicts_.finished;
          } else {
            verdicts_.missing.push_back(NameOfRun(planned.corpus, row, seed));
          }
        }
      }
    }
  }

  void FindEqualSeeds() {
    for (const auto& [corpus, rows] : runs_) {
      for (const auto& [row, runs] : rows) {
        for (const std::string& seeds : EqualSeeds(runs)) {
          verdicts_.equal_seeds.push_back(
              fmt::format("{}/{}: {}", corpus, row, seeds));
          equal_.insert({corpus, row});
        }
      }
    }
  }

  bool HasEqualSeeds(const MiniatureMeasure& measure) const {
    return std::ranges::any_of(equal_, [&](const auto& corpus_and_row) {
      const auto& [corpus, row] = corpus_and_row;
      return std::ranges::find(measure.corpora, corpus) !=
                 measure.corpora.end() &&
             measure.Uses(row);
    });
  }

  void TestClaim(const MiniatureClaim& claim) {
    MiniatureVerdict verdict;
    verdict.id = claim.id;
    verdict.title = claim.title;
    verdict.of_paper = claim.of_paper;
    verdict.assumes = claim.assumes;
    for (const MiniatureMeasure& measure : claim.measures) {
      verdict.measures.push_back(TestMeasure(measure));
    }
    verdicts_.claims.push_back(std::move(verdict));
  }

  MiniatureMeasureVerdict TestMeasure(const MiniatureMeasure& measure) {
    MiniatureMeasureVerdict verdict;
    verdict.id = measure.id;
    verdict.text = measure.text;
    verdict.unit = measure.unit;
    verdict.margin = measure.margin;
    MeasureCases made = MakeCases(claims_, measure, runs_, results_.throughput);
    verdict.cases = std::move(made.cases);
    verdict.parts = std::move(made.parts);
    const auto num_cases = static_cast<int64_t>(verdict.cases.size());
    verdict.cases_needed = CasesNeeded(measure.of_cases, num_cases);
    for (auto* cases : {&verdict.cases, &verdict.parts}) {
      for (MiniatureCase& each : *cases) {
        if (!each.problem.empty()) continue;
        if (each.seed_error == 0 && each.least_error == 0) {
          each.problem = "all of its runs agree to the last bit";
        }
      }
    }
    if (!measure.judged()) {
      verdict.status = MiniatureStatus::kReported;
      return verdict;
    }
    TestCases(measure, std::nullopt, &verdict.cases);
    verdict.could_be_shown =
        std::ranges::count(verdict.cases, "", &MiniatureCase::problem) >=
        verdict.cases_needed;
    const MeasureTest test = Combine(verdict.cases, verdict.cases_needed);
    verdict.p = test.p;
    verdict.leans_to_shown = test.leans_to_shown;
    verdict.deciding = test.deciding;
    if (HasEqualSeeds(measure)) verdict.status = MiniatureStatus::kMistrusted;
    return verdict;
  }

  // The level that Holm's procedure requires of the smallest p.
  double LevelOfOne() const {
    return claims_.level / static_cast<double>(claims_.num_measures());
  }

  void AddPrecision(MiniatureCase* each) {
    if (!each->problem.empty()) return;
    const double error = std::max(each->seed_error, each->least_error);
    const double half = Quantile(each->freedom) * error;
    each->interval = {each->estimate - half, each->estimate + half};
    each->resolves =
        DetectableEffect(error, each->freedom, LevelOfOne(), kPower);
  }

  // p as if nothing were pooled, if all deviations for that are known.
  static void AddNotPooled(const MiniatureMeasure& measure,
                           MiniatureMeasureVerdict* verdict) {
    std::vector<MiniatureCase> cases = verdict->cases;
    bool known = measure.judged() && verdict->could_be_shown;
    for (MiniatureCase& each : cases) {
      if (!each.problem.empty()) continue;
      known = known && each.own_freedom > 0 && each.own_error > 0;
      each.seed_error = each.own_error;
      each.freedom = each.own_freedom;
    }
    if (!known) return;
    TestCases(measure, std::nullopt, &cases);
    verdict->p_not_pooled = Combine(cases, verdict->cases_needed).p;
  }

  // Cached: few distinct degrees of freedom occur, many times each.
  double Quantile(double freedom) {
    const auto found = quantiles_.find(freedom);
    if (found != quantiles_.end()) return found->second;
    return quantiles_[freedom] =
               StudentQuantile((1 + claims_.confidence) / 2, freedom);
  }

  void DecideMeasures() {
    std::vector<MiniatureMeasureVerdict*> measures;
    std::vector<double> p_values;
    for (MiniatureVerdict& claim : verdicts_.claims) {
      for (MiniatureMeasureVerdict& measure : claim.measures) {
        if (measure.status == MiniatureStatus::kReported) continue;
        measures.push_back(&measure);
        const bool trusted = measure.status != MiniatureStatus::kMistrusted;
        p_values.push_back(trusted ? measure.p : 1);
      }
    }
    const std::vector<bool> decided = HolmRejections(p_values, claims_.level);
    for (size_t i = 0; i < measures.size(); ++i) {
      MiniatureMeasureVerdict& measure = *measures[i];
      if (measure.status == MiniatureStatus::kMistrusted) continue;
      if (decided[i]) {
        measure.status = measure.leans_to_shown
                             ? MiniatureStatus::kShown
                             : MiniatureStatus::kContradicted;
      } else if (!measure.could_be_shown) {
        measure.status = MiniatureStatus::kNotTestable;
      } else {
        measure.status = MiniatureStatus::kUndecided;
      }
    }
  }

  void DecideClaim(MiniatureVerdict* claim) const {
    auto any = [&](MiniatureStatus status) {
      return std::any_of(claim->measures.begin(), claim->measures.end(),
                         [&](const MiniatureMeasureVerdict& measure) {
                           return measure.status == status;
                         });
    };
    claim->leaning = MiniatureStatus::kShown;
    for (const MiniatureStatus status :
         {MiniatureStatus::kMistrusted, MiniatureStatus::kContradicted,
          MiniatureStatus::kNotTestable, MiniatureStatus::kUndecided}) {
      if (any(status)) {
        claim->leaning = status;
        break;
      }
    }
    claim->status =
        verdicts_.missing.empty() ? claim->leaning : MiniatureStatus::kInterim;
  }

  void AddResolution() {
    const MiniatureMeasure* loss = nullptr;
    for (const MiniatureClaim& claim : claims_.claims) {
      for (const MiniatureMeasure& measure : claim.measures) {
        if (loss == nullptr && measure.quantity == Quantity::kLoss) {
          loss = &measure;
        }
      }
    }
    if (loss == nullptr) return;
    for (const std::string& corpus : loss->corpora) {
      SeedValues losses;
      for (const std::string& row : loss->pooled) {
        for (const auto& [seed, run] : runs_[corpus][row]) {
          if (std::isfinite(run->loss)) losses[row][seed] = run->loss;
        }
      }
      MiniatureResolution resolution;
      resolution.corpus = corpus;
      resolution.seeds = std::numeric_limits<int64_t>::max();
      for (const auto& [row, seeds] : losses) {
        ++resolution.rows;
        resolution.seeds =
            std::min(resolution.seeds, static_cast<int64_t>(seeds.size()));
      }
      auto pool = [&](Noise noise) { return PoolRows(losses, noise, claims_); };
      const RowNoise of_pairs = pool(Noise::kPaired);
      const PooledDeviation& paired = of_pairs.pooled;
      if (!paired.known() || resolution.seeds < 2) continue;
      const RowNoise of_rows = pool(Noise::kPlain);
      // If rows scatter unequally there is no single deviation to report.
      if (of_pairs.unequal || of_rows.unequal) continue;
      resolution.plain_own = of_rows.left_out;
      resolution.paired_own = of_pairs.left_out;
      resolution.plain = of_rows.pooled.deviation;
      resolution.paired = paired.deviation;
      resolution.paired_freedom = paired.freedom;
      resolution.one_test =
          DetectableDifference(paired.deviation, paired.freedom,
                               resolution.seeds, claims_.level, kPower);
      resolution.family =
          DetectableDifference(paired.deviation, paired.freedom,
                               resolution.seeds, LevelOfOne(), kPower);
      verdicts_.resolution.push_back(std::move(resolution));
    }
  }

  const MiniatureClaims& claims_;
  const MiniatureResults& results_;
  RunIndex runs_;
  std::set<std::pair<std::string, std::string>> equal_;  // corpus, row
  std::map<double, double> quantiles_;
  MiniatureVerdicts verdicts_;
};

}  // namespace

std::string NameOfRun(const std::string& corpus, const std::string& row,
                      int64_t seed) {
  return fmt::format("{}/{}/seed{}", corpus, row, seed);
}

std::vector<std::string> EqualSeeds(const SeedRuns& runs) {
  std::vector<std::string> equal;
  std::map<uint64_t, int64_t> seen;
  for (const auto& [seed, run] : runs) {
    if (std::isnan(run->loss)) continue;
    const auto [first, is_new] =
        seen.emplace(std::bit_cast<uint64_t>(run->loss), seed);
    if (!is_new) equal.push_back(fmt::format("{} and {}", first->second, seed));
  }
  return equal;
}

MiniatureVerdicts JudgeMiniature(const MiniatureClaims& claims,
                                 const MiniatureResults& results,
                                 const EarlierClaims* recorded_under) {
  MiniatureVerdicts verdicts = MiniatureJudge(claims, results).Run(true);
  if (recorded_under != nullptr) verdicts.recorded_under = *recorded_under;
  return verdicts;
}

MiniatureVerdicts TestMiniature(const MiniatureClaims& claims,
                                const MiniatureResults& results) {
  return MiniatureJudge(claims, results).Run(false);
}

const EarlierClaims* RecordedUnder(const MiniatureClaims& claims,
                                   const std::string& recorded_hash,
                                   const std::string& where) {
  if (claims.Hash() == recorded_hash) return nullptr;
  const auto found =
      std::ranges::find(claims.history, recorded_hash, &EarlierClaims::hash);
  if (found != claims.history.end()) return &*found;
  throw DataError(fmt::format(
      "{} was recorded under other margins (hash {}; this program has {}, and "
      "no such earlier one): margins must be fixed before the runs; judge it "
      "with the version that recorded it",
      where, recorded_hash, claims.Hash()));
}

}  // namespace softmoe::golden
