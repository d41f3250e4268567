// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/power.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "core/config/config_enums.h"
#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/files/paths.h"
#include "core/philox.h"
#include "core/text/text_table.h"
#include "experiments/report/mini_claims.h"
#include "experiments/report/report_tables.h"
#include "golden/verdict/miniature_judge.h"
#include "golden/verdict/regime_judge.h"
#include "golden/verdict/statistics.h"
#include "trainer/run/schedules.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;
using golden::Against;
using golden::Holds;
using golden::MiniatureClaims;
using golden::MiniatureMeasure;
using golden::MiniatureResults;
using golden::MiniatureRun;
using golden::Quantity;
using golden::RegimeDefinitions;
using golden::RegimeRow;

constexpr uint64_t kSeed = 20261124;

// True effects in nat/token: 0.05 is more than separates Sparse-2 from
// Sparse-4.
constexpr double kEffects[] = {0, 0.01, 0.02, 0.05};

// Used where no record has runs. Losses: close to a + b k^-p of the mini grid's
// sparse rows; deviations: those of its runs, losses after pairing by seed.
constexpr double kDefaultLoss = 3.557, kDefaultRise = 0.121, kDefaultP = 1.5;
constexpr double kDefaultLossDeviation = 0.011;
constexpr double kDefaultExpertsDeviation = 0.03;
constexpr double kDefaultLoadVariance = 0.05;
constexpr double kDefaultLoadDeviation = 0.1;  // of the logarithm
constexpr double kDefaultAllocationDeviation = 0.02;
constexpr double kDefaultSpeedDeviation = 0.02;  // of the logarithm
constexpr double kSeedDeviation =
    0.05;  // common to all rows, so pairing removes it

double DefaultLoss(double experts) {
  return kDefaultLoss + kDefaultRise * std::pow(experts, -kDefaultP);
}

using RowKey = std::pair<std::string, std::string>;  // corpus, row

// The runs of the records by row, each run once.
class Known {
 public:
  explicit Known(const std::vector<RunRecord>& records) {
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

  const std::string& source() const { return source_; }

  // Empty if the row has none.
  const std::vector<MiniatureRun>& Of(const RowKey& row) const {
    static const std::vector<MiniatureRun> none;
    const auto found = runs_.find(row);
    return found == runs_.end() ? none : found->second;
  }

  // The standard deviation over seeds within the rows, pooled; `paired` removes
  // the effect of the seed, common to the rows, first. nullopt if no row has
  // two runs.
  template <typename Read>
  std::optional<double> Deviation(const std::vector<RowKey>& rows, bool paired,
                                  const Read& read) const {
    std::map<int64_t, std::vector<double>> by_seed;
    std::vector<std::pair<int64_t, double>> residuals;
    size_t used = 0, most = 2;
    for (const RowKey& row : rows) most = std::max(most, Of(row).size());
    for (const RowKey& row : rows) {
      const std::vector<MiniatureRun>& runs = Of(row);
      // Pairing uses only seeds that all rows have.
      if (runs.size() < (paired ? most : 2)) continue;
      ++used;
      std::vector<double> values;
      for (const MiniatureRun& run : runs) values.push_back(read(run));
      const double mean = golden::Mean(values);
      for (size_t i = 0; i < runs.size(); ++i) {
        residuals.emplace_back(runs[i].seed, values[i] - mean);
        by_seed[runs[i].seed].push_back(values[i] - mean);
      }
    }
    if (used == 0) return std::nullopt;
    const bool pairs = paired && used > 1;
    double squares = 0;
    for (const auto& [seed, residual] : residuals) {
      squares +=
          std::pow(residual - (pairs ? golden::Mean(by_seed[seed]) : 0.0), 2);
    }
    const double freedom =
        static_cast<double>(residuals.size() - used) -
        (pairs ? static_cast<double>(by_seed.size() - 1) : 0);
    if (freedom < 1) return std::nullopt;
    return std::sqrt(squares / freedom);
  }

 private:
  std::string source_;
  std::map<RowKey, std::vector<MiniatureRun>> runs_;
};

// The expected numbers of a row.
struct RowTruth {
  bool sparse = false;
  double loss = 0, infer_ae = 0, train_ae = 0, mean_cap = 0;
  double log_load_variance = 0;
  std::string load_balance;
  // Learned rows only: ascending by step, as MiniatureRun::allocation.
  std::vector<golden::AllocationPoint> allocation;
  // At other tau: share of the active experts, and loss minus the trained
  // tau's.
  std::vector<golden::TauPoint> at_tau;
};

struct Deviations {
  double loss = 0, experts = 0, load = 0, allocation = 0;
};

// Adds to `texts` which of the two it is.
double DeviationOr(double fallback, const std::optional<double>& known,
                   const std::string& what, std::vector<std::string>* texts) {
  texts->push_back(fmt::format("{} {:.3g}{}", what, known.value_or(fallback),
                               known ? "" : " (default)"));
  return known.value_or(fallback);
}

// This many points of an allocation over the steps suffice, since the judge
// interpolates linearly.
constexpr int64_t kPoints = 20;

// Equal k_l moved a little towards the pattern that is looked for, so that
// there is movement.
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

RowTruth TruthOf(const std::vector<MiniatureRun>& known, const Config& config) {
  const RouterConfig& router = config.router;
  RowTruth truth;
  const RouterTraits traits = TraitsOf(config);
  truth.sparse = traits.exact_k;
  truth.infer_ae = truth.train_ae = router.mean_active_experts;
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
  for (size_t p = 0; p < known.front().at_tau.size(); ++p) {
    golden::TauPoint& point = truth.at_tau.emplace_back();
    point.factor = known.front().at_tau[p].factor;
    point.infer_ae = mean([&](const auto& run) {
      return run.at_tau.at(p).infer_ae / run.infer_ae;
    });
    point.loss =
        mean([&](const auto& run) { return run.at_tau.at(p).loss - run.loss; });
  }
  return truth;
}

// The claims in miniature.
class MiniPower {
 public:
  MiniPower(const Grid& grid, const Known& known, int draws)
      : claims_(golden::LoadMiniatureClaims()), draws_(draws) {
    std::map<RowKey, const Config*> configs;
    for (const GridRun& run : grid.runs) {
      configs.emplace(RowKey(run.corpus.id, run.row.id), &run.config);
    }
    std::map<std::string, std::vector<RowKey>> corpora;
    for (const golden::PlannedRuns& planned : claims_.planned) {
      for (const std::string& row : planned.rows) {
        const RowKey key(planned.corpus, row);
        const auto config = configs.find(key);
        // With --seeds some rows have no run here, but the frozen plan is
        // unchanged.
        const Config& of_row = config != configs.end()
                                   ? *config->second
                                   : grid.runs.front().config;
        base_[key] = TruthOf(known.Of(key), of_row);
        corpora[planned.corpus].push_back(key);
      }
    }
    for (const auto& [corpus, rows] : corpora) {
      std::vector<std::string> texts;
      std::vector<RowKey> soft, learned;
      for (const RowKey& row : rows) {
        if (!base_.at(row).sparse) soft.push_back(row);
        if (!base_.at(row).allocation.empty()) learned.push_back(row);
      }
      Deviations& deviation = deviations_[corpus];
      deviation.loss = DeviationOr(kDefaultLossDeviation,
                                   PairedDeviation(known, corpus, rows),
                                   "loss (after pairing)", &texts);
      deviation.experts =
          DeviationOr(kDefaultExpertsDeviation,
                      known.Deviation(soft, false,
                                      [](const auto& r) { return r.infer_ae; }),
                      "active experts", &texts);
      deviation.load = DeviationOr(
          kDefaultLoadDeviation,
          known.Deviation(
              rows, false,
              [](const auto& r) { return std::log(r.load_variance); }),
          "log load variance", &texts);
      deviation.allocation = DeviationOr(
          kDefaultAllocationDeviation,
          known.Deviation(learned, false,
                          [](const auto& r) {
                            return r.allocation.back().allocation.back();
                          }),
          "k_l", &texts);
      basis_ += fmt::format("{}{}: {}", basis_.empty() ? "" : "; ", corpus,
                            fmt::join(texts, ", "));
    }
  }

  DesignPower Run() {
    DesignPower power;
    power.basis = basis_;
    for (const std::vector<Measure>& pass : Passes()) {
      for (const Measure& measure : pass) {
        power.measures.push_back({.claim = measure.claim,
                                  .id = measure.measure->id,
                                  .unit = measure.measure->unit,
                                  .target = "SHOWN",
                                  .at = {},
                                  .obstacle = ""});
      }
      MeasurePower* first =
          &power.measures[power.measures.size() - pass.size()];
      for (const double effect : kEffects) Simulate(pass, effect, first);
    }
    std::ranges::stable_sort(power.measures, {}, &MeasurePower::id);
    for (MeasurePower& measure : power.measures) {
      const bool reached =
          std::ranges::any_of(measure.at, [&](const PowerAt& at) {
            return at.verdicts.contains(measure.target);
          });
      if (!reached) {
        power.not_ready.push_back(
            fmt::format("{}: {} cannot be SHOWN at any of these effects: {}",
                        measure.claim, measure.id, measure.obstacle));
      }
    }
    return power;
  }

 private:
  // Pooled as the judge does, without rows that are much noisier than the
  // others.
  std::optional<double> PairedDeviation(const Known& known,
                                        const std::string& corpus,
                                        const std::vector<RowKey>& rows) const {
    MiniatureResults results;
    for (const RowKey& row : rows) {
      const std::vector<int64_t>& planned =
          *claims_.PlannedSeeds(row.second, corpus);
      for (const MiniatureRun& run : known.Of(row)) {
        if (std::ranges::count(planned, run.seed) == 0) continue;
        results.runs.push_back(run);
      }
    }
    const auto verdicts = golden::JudgeMiniature(claims_, results);
    for (const golden::MiniatureResolution& each : verdicts.resolution) {
      if (each.corpus == corpus) return each.paired;
    }
    return std::nullopt;
  }

  struct Measure {
    std::string claim;
    const MiniatureMeasure* measure;
  };
  using Truths = std::map<RowKey, RowTruth>;

  // Groups of measures whose truths can be set together: no two in a pass set
  // the same number of a row. Active experts also claim loss and load, since
  // they decide what these are compared with.
  std::vector<std::vector<Measure>> Passes() const {
    std::vector<std::vector<Measure>> passes;
    std::vector<std::set<std::string>> taken;
    for (const golden::MiniatureClaim& claim : claims_.claims) {
      for (const MiniatureMeasure& measure : claim.measures) {
        if (!measure.judged()) continue;
        std::set<std::string> sets;
        for (const std::string& row : measure.rows) {
          for (const std::string& number : NumbersSet(measure.quantity)) {
            sets.insert(row + " " + number);
          }
        }
        size_t pass = 0;
        while (pass < passes.size() &&
               std::ranges::any_of(sets, [&](const std::string& number) {
                 return taken[pass].contains(number);
               })) {
          ++pass;
        }
        if (pass == passes.size()) {
          passes.emplace_back();
          taken.emplace_back();
        }
        passes[pass].push_back({claim.id, &measure});
        taken[pass].insert(sets.begin(), sets.end());
      }
    }
    return passes;
  }

  static std::vector<std::string> NumbersSet(Quantity quantity) {
    switch (quantity) {
      case Quantity::kInferAe:
        return {"loss", "load"};
      case Quantity::kLogLoadVariance:
        return {"load"};
      case Quantity::kLateShare:
      case Quantity::kDepthOrder:
      case Quantity::kEarlyMovement:
        return {"allocation"};
      case Quantity::kHalvingCost:
        return {"halving"};
      case Quantity::kHellaswag:
        return {"hellaswag"};
      case Quantity::kLogThroughput:
        return {"throughput"};
      case Quantity::kLoss:
        return {"loss"};
    }
    return {};
  }

  // An effect in nat/token has the same value for shares and logarithms of
  // speed, and ten times that for active experts, logarithms of load variance
  // and shares of movement, which are noisier in proportion. It lies on the
  // claim's side of no difference; movement, which has no such zero, begins at
  // its margin.
  static double TruthAt(const MiniatureMeasure& measure, double effect) {
    const bool coarse = measure.quantity == Quantity::kInferAe ||
                        measure.quantity == Quantity::kLogLoadVariance ||
                        measure.quantity == Quantity::kEarlyMovement;
    const double step = coarse ? 10 * effect : effect;
    if (measure.quantity == Quantity::kEarlyMovement) {
      return std::min(measure.margin + step, 1.0);
    }
    return measure.holds == Holds::kBelow ? -step : step;
  }

  double SparseLoss(const Truths& truths, const std::string& corpus,
                    size_t k) const {
    return truths.at({corpus, claims_.sparse.at(k - 1)}).loss;
  }

  // The truth that the row's number is compared with; the row's own number if
  // there is none, which the judge reports, too.
  double Reference(const MiniatureMeasure& measure, const Truths& truths,
                   const RowKey& key, size_t place) const {
    const double experts = truths.at(key).infer_ae;
    const auto largest = static_cast<double>(claims_.sparse.size());
    const auto number = [&](const RowTruth& truth) {
      switch (measure.quantity) {
        case Quantity::kInferAe:
          return truth.infer_ae;
        case Quantity::kLogLoadVariance:
          return truth.log_load_variance;
        default:
          return truth.loss;
      }
    };
    switch (measure.against) {
      case Against::kZero:
      case Against::kNextActiveExperts:
        return 0;
      case Against::kRows:
        return number(truths.at({key.first, measure.against_rows.at(place)}));
      case Against::kHalfOfSparseRange:
        return (SparseLoss(truths, key.first, 1) -
                SparseLoss(truths, key.first, claims_.sparse.size())) /
               2;
      case Against::kBudgetGroup: {
        if (experts > largest) return number(truths.at(key));
        const auto group =
            static_cast<size_t>(std::max(1.0, std::ceil(experts)));
        return number(truths.at({key.first, claims_.sparse.at(group - 1)}));
      }
      case Against::kSparseCurve: {
        if (experts < 1 || experts > largest) return number(truths.at(key));
        const auto below =
            std::min(static_cast<size_t>(experts), claims_.sparse.size() - 1);
        const double part = experts - static_cast<double>(below);
        return (1 - part) * SparseLoss(truths, key.first, below) +
               part * SparseLoss(truths, key.first, below + 1);
      }
    }
    return 0;
  }

  static void SetLateShare(const MiniatureMeasure& measure, double truth,
                           RowTruth* row) {
    std::vector<double>& last = row->allocation.back().allocation;
    const auto layers = static_cast<double>(last.size());
    const double late = std::ceil(measure.share_of_layers * layers - 1e-6);
    const double budget = golden::Mean(last) * layers;
    const double share = std::min(late / layers + truth, 0.99);
    for (size_t l = 0; l < last.size(); ++l) {
      const bool is_late = static_cast<double>(l) >= layers - late;
      last[l] =
          budget * (is_late ? share / late : (1 - share) / (layers - late));
    }
  }

  static void SetEarlyMovement(const MiniatureMeasure& measure, double truth,
                               RowTruth* row) {
    const golden::AllocationPoint last = row->allocation.back();
    const double mean = golden::Mean(last.allocation);
    golden::AllocationPoint early = last;
    early.step = static_cast<int64_t>(
        std::llround(measure.share_of_steps * static_cast<double>(last.step)));
    golden::AllocationPoint before;
    for (const golden::AllocationPoint& after : row->allocation) {
      if (after.step < early.step) {
        before = after;
        continue;
      }
      const double part = static_cast<double>(early.step - before.step) /
                          static_cast<double>(after.step - before.step);
      early.learning_rate_sum =
          before.learning_rate_sum +
          part * (after.learning_rate_sum - before.learning_rate_sum);
      break;
    }
    for (double& k : early.allocation) k = mean + truth * (k - mean);
    row->allocation = {early, last};
  }

  // Does nothing if the row keeps more than half of its experts at all tau.
  static void SetHalvingCost(double truth, RowTruth* row) {
    for (size_t p = 1; p < row->at_tau.size(); ++p) {
      const golden::TauPoint &more = row->at_tau[p - 1],
                             &fewer = row->at_tau[p];
      if (fewer.factor <= 1 || fewer.infer_ae > 0.5) continue;
      const double part =
          (more.infer_ae - 0.5) / (more.infer_ae - fewer.infer_ae);
      const double cost = more.loss + part * (fewer.loss - more.loss);
      // The loss at the trained tau stays.
      const double shift = (truth - cost) / (more.factor > 1 ? 1 : part);
      for (golden::TauPoint& point : row->at_tau) {
        if (point.factor > 1) point.loss += shift;
      }
      return;
    }
  }

  void SetTruth(const MiniatureMeasure& measure, double effect,
                Truths* truths) const {
    for (const std::string& corpus : measure.corpora) {
      for (size_t place = 0; place < measure.rows.size(); ++place) {
        const auto found = truths->find({corpus, measure.rows[place]});
        if (found == truths->end()) continue;
        RowTruth& row = found->second;
        const double truth = TruthAt(measure, effect) +
                             Reference(measure, *truths, found->first, place);
        switch (measure.quantity) {
          case Quantity::kLoss:
            row.loss = truth;
            break;
          case Quantity::kInferAe:
            row.mean_cap += std::max(truth - row.infer_ae, 0.0);
            row.infer_ae = truth;
            break;
          case Quantity::kLogLoadVariance:
            row.log_load_variance = truth;
            break;
          case Quantity::kLateShare:
            if (!row.allocation.empty()) SetLateShare(measure, truth, &row);
            break;
          case Quantity::kEarlyMovement:
            if (!row.allocation.empty()) SetEarlyMovement(measure, truth, &row);
            break;
          case Quantity::kHalvingCost:
            SetHalvingCost(truth, &row);
            break;
          case Quantity::kHellaswag:      // no run has it
          case Quantity::kDepthOrder:     // reported, not judged
          case Quantity::kLogThroughput:  // no row has it
            break;
        }
      }
    }
  }

  MiniatureRun Draw(const RowKey& key, const RowTruth& truth, int64_t seed,
                    double seed_effect, Normals* normals) const {
    const Deviations& deviation = deviations_.at(key.first);
    MiniatureRun run;
    run.corpus = key.first;
    run.row = key.second;
    run.seed = seed;
    run.loss = truth.loss + seed_effect + deviation.loss * normals->Next();
    run.infer_ae = truth.infer_ae;
    if (!truth.sparse) {
      run.infer_ae = std::min(
          run.infer_ae + deviation.experts * normals->Next(), truth.mean_cap);
    }
    run.train_ae = truth.train_ae;
    run.mean_cap = truth.mean_cap;
    run.load_balance = truth.load_balance;
    run.load_variance =
        std::exp(truth.log_load_variance + deviation.load * normals->Next());
    run.allocation = truth.allocation;
    if (!run.allocation.empty()) {
      // Grows with the steps, as movement does.
      const auto steps = static_cast<double>(run.allocation.back().step);
      for (size_t l = 0; l < run.allocation.back().allocation.size(); ++l) {
        const double noise = deviation.allocation * normals->Next();
        for (golden::AllocationPoint& point : run.allocation) {
          point.allocation[l] +=
              static_cast<double>(point.step) / steps * noise;
        }
      }
    }
    for (const golden::TauPoint& point : truth.at_tau) {
      const bool trained = point.factor == 1;
      run.at_tau.push_back(
          {point.factor, trained ? run.infer_ae : point.infer_ae * run.infer_ae,
           run.loss +
               (trained ? 0 : point.loss + deviation.loss * normals->Next())});
    }
    return run;
  }

  // A made-up benchmark, as the measure needs it: no training is required.
  void DrawThroughput(const MiniatureMeasure& measure, double truth,
                      Normals* normals, MiniatureResults* results) const {
    for (size_t i = 0; i < measure.active_experts.size(); ++i) {
      golden::ThroughputSamples samples{
          measure.active_experts[i], {}, measure.router};
      for (int64_t s = 0; s < measure.least_samples; ++s) {
        samples.tokens_per_second.push_back(
            std::exp(7 - static_cast<double>(i) * truth +
                     kDefaultSpeedDeviation * normals->Next()));
      }
      results->throughput.push_back(std::move(samples));
    }
  }

  MiniatureResults DrawResults(const std::vector<Measure>& pass,
                               const Truths& truths, double effect,
                               uint32_t draw) const {
    Normals normals(kSeed, draw);
    MiniatureResults results;
    std::map<std::pair<std::string, int64_t>, double> seeds;
    for (const golden::PlannedRuns& planned : claims_.planned) {
      for (const std::string& row : planned.rows) {
        const RowKey key(planned.corpus, row);
        for (const int64_t seed : planned.seeds) {
          const auto [common, is_new] =
              seeds.try_emplace({planned.corpus, seed}, 0);
          if (is_new) common->second = kSeedDeviation * normals.Next();
          results.runs.push_back(
              Draw(key, truths.at(key), seed, common->second, &normals));
        }
      }
    }
    for (const Measure& each : pass) {
      if (each.measure->quantity != Quantity::kLogThroughput) continue;
      DrawThroughput(*each.measure, TruthAt(*each.measure, effect), &normals,
                     &results);
    }
    return results;
  }

  static const golden::MiniatureMeasureVerdict& VerdictOn(
      const golden::MiniatureVerdicts& verdicts, const std::string& id) {
    for (const golden::MiniatureVerdict& claim : verdicts.claims) {
      for (const golden::MiniatureMeasureVerdict& measure : claim.measures) {
        if (measure.id == id) return measure;
      }
    }
    throw InternalError("no measure " + id);
  }

  // `power` points to the first measure of the pass.
  void Simulate(const std::vector<Measure>& pass, double effect,
                MeasurePower* power) {
    Truths truths = base_;
    for (const Measure& each : pass) SetTruth(*each.measure, effect, &truths);
    for (size_t m = 0; m < pass.size(); ++m) {
      power[m].at.push_back({TruthAt(*pass[m].measure, effect), {}});
    }
    for (int draw = 0; draw < draws_; ++draw) {
      const golden::MiniatureVerdicts verdicts = golden::TestMiniature(
          claims_,
          DrawResults(pass, truths, effect, static_cast<uint32_t>(draw)));
      for (size_t m = 0; m < pass.size(); ++m) {
        const auto& verdict = VerdictOn(verdicts, power[m].id);
        ++power[m].at.back().verdicts[golden::MiniatureStatusName(
            verdict.status)];
      }
    }
    if (effect != std::end(kEffects)[-1]) return;
    const golden::MiniatureVerdicts verdicts =
        golden::JudgeMiniature(claims_, DrawResults(pass, truths, effect, 0));
    for (size_t m = 0; m < pass.size(); ++m) {
      const auto& verdict = VerdictOn(verdicts, power[m].id);
      const std::string& problem =
          verdict.reason.empty() && !verdict.cases.empty()
              ? verdict.cases[verdict.deciding].problem
              : verdict.reason;
      power[m].obstacle =
          verdict.status == golden::MiniatureStatus::kNotTestable
              ? problem
              : fmt::format(
                    "at {:+g} it is still {} ({})", power[m].at.back().truth,
                    golden::MiniatureStatusName(verdict.status), problem);
    }
  }

  const MiniatureClaims claims_;
  const int draws_;
  std::map<RowKey, RowTruth> base_;
  std::map<std::string, Deviations> deviations_;  // by corpus
  std::string basis_;
};

// The regime experiment: soft rows lie one effect below the smooth sparse
// curve.
class RegimePower {
 public:
  RegimePower(const Grid& grid, const Known& known, int draws)
      : regime_(golden::LoadRegime()), draws_(draws) {
    std::vector<std::string> texts;
    std::vector<RowKey> sparse, soft, all;
    std::map<std::string, const Config*> configs;
    for (const GridRun& run : grid.runs) {
      configs.emplace(run.row.id, &run.config);
    }
    for (const RegimeRow& row : regime_.rows) {
      const RowKey key(regime_.corpus, row.id);
      (row.role == "sparse" ? sparse : soft).push_back(key);
      all.push_back(key);
      const auto config = configs.find(row.id);
      const Config& of_row =
          config != configs.end() ? *config->second : grid.runs.front().config;
      RowTruth truth = TruthOf(known.Of(key), of_row);
      truth.sparse = row.role == "sparse";
      if (truth.sparse) truth.infer_ae = truth.train_ae = row.infer_ae_aim;
      if (known.Of(key).empty()) {
        truth.infer_ae = truth.train_ae = AimOf(row, of_row, configs);
        if (row.paper_train_high > 0) {
          truth.train_ae = (row.paper_train_low + row.paper_train_high) / 2;
        }
        if (truth.sparse) truth.loss = DefaultLoss(truth.infer_ae);
      }
      base_[row.id] = truth;
      if (truth.sparse) {
        k_.push_back(row.infer_ae_aim);
        losses_.push_back(truth.loss);
      }
    }
    exponent_ = golden::SmoothExponent(k_, losses_, regime_.exponents);
    loss_ = DeviationOr(
        kDefaultLossDeviation,
        known.Deviation(all, true, [](const auto& r) { return r.loss; }),
        "loss (after pairing)", &texts);
    experts_ = DeviationOr(
        kDefaultExpertsDeviation,
        known.Deviation(soft, false, [](const auto& r) { return r.infer_ae; }),
        "active experts", &texts);
    basis_ = fmt::format("{}: {}; sparse curve through {:.4f}", regime_.corpus,
                         fmt::join(texts, ", "), fmt::join(losses_, ", "));
  }

  DesignPower Run() const {
    DesignPower power;
    power.basis = basis_;
    for (const bool of_learned : {false, true}) {
      for (const double effect : kEffects) {
        Simulate(effect, of_learned, &power.measures);
      }
    }
    for (const MeasurePower& measure : power.measures) {
      const bool reached =
          std::ranges::any_of(measure.at, [&](const PowerAt& at) {
            return at.verdicts.contains(measure.target) ||
                   at.verdicts.contains("SUPERIOR");
          });
      // Only the questions that the experiment is designed for.
      const bool asked = measure.id == "primary" || measure.id == "C1b" ||
                         measure.id == "C5.loss";
      if (!reached && asked) {
        power.not_ready.push_back(
            fmt::format("{} cannot be {} at any of these effects: {}",
                        measure.id, measure.target, measure.obstacle));
      }
    }
    return power;
  }

 private:
  // A row without an aim has the aim of the primary row with its k.
  double AimOf(const RegimeRow& row, const Config& config,
               const std::map<std::string, const Config*>& configs) const {
    if (row.infer_ae_aim > 0) return row.infer_ae_aim;
    for (const RegimeRow* other : regime_.RowsOf("primary")) {
      const auto found = configs.find(other->id);
      if (found != configs.end() && found->second->router.mean_active_experts ==
                                        config.router.mean_active_experts) {
        return other->infer_ae_aim;
      }
    }
    return config.router.mean_active_experts;
  }

  MiniatureRun Draw(const RegimeRow& row, int64_t seed, double effect,
                    bool of_learned, double seed_effect,
                    Normals* normals) const {
    const RowTruth& truth = base_.at(row.id);
    MiniatureRun run;
    run.corpus = regime_.corpus;
    run.row = row.id;
    run.seed = seed;
    run.infer_ae = truth.infer_ae;
    run.train_ae = truth.train_ae;
    run.mean_cap = truth.mean_cap;
    double loss = truth.loss;
    if (!truth.sparse) {
      run.infer_ae += experts_ * normals->Next();
      // With `of_learned`, a learned row lies on the curve at its fixed row's
      // experts, every other row at its own.
      const double at = of_learned && row.role == "learned"
                            ? base_.at(row.fixed).infer_ae
                            : run.infer_ae;
      loss = golden::ReadSmoothCurve(k_, losses_, exponent_, at);
      if (!of_learned || row.role == "learned") loss -= effect;
    }
    run.loss = loss + seed_effect + loss_ * normals->Next();
    return run;
  }

  std::vector<MiniatureRun> DrawRuns(double effect, bool of_learned,
                                     uint32_t draw) const {
    Normals normals(kSeed, draw);
    std::map<int64_t, double> seeds;
    std::vector<MiniatureRun> runs;
    for (const RegimeRow& row : regime_.rows) {
      std::vector<int64_t> own = row.seeds;
      for (const int64_t seed : regime_.pilot_seeds) {
        if (regime_.IsPilot(row.id, seed)) own.push_back(seed);
      }
      for (const int64_t seed : own) {
        const auto [common, is_new] = seeds.try_emplace(seed, 0);
        if (is_new) common->second = kSeedDeviation * normals.Next();
        runs.push_back(
            Draw(row, seed, effect, of_learned, common->second, &normals));
      }
    }
    return runs;
  }

  // The effect is that of all soft rows against the sparse curve or, with
  // `of_learned`, that of learned rows against fixed ones. At Train-AE, where
  // the curve is lower, the true difference is not `effect`, and is not shown.
  void Simulate(double effect, bool of_learned,
                std::vector<MeasurePower>* measures) const {
    for (int draw = 0; draw < draws_; ++draw) {
      const golden::RegimeVerdicts verdicts = golden::JudgeRegime(
          regime_, DrawRuns(effect, of_learned, static_cast<uint32_t>(draw)));
      for (const golden::RegimeEstimate& each : verdicts.estimates) {
        if (each.id.ends_with(".train_ae") ||
            each.id.starts_with("C5") != of_learned) {
          continue;
        }
        auto found = std::ranges::find(*measures, each.id, &MeasurePower::id);
        if (found == measures->end()) {
          // C1b says that soft rows match sparse ones or outperform them.
          measures->push_back(
              {.claim = "",
               .id = each.id,
               .unit = "nat/token",
               .target = each.id == "C1b" ? "MATCHES" : "SUPERIOR",
               .at = {},
               .obstacle = ""});
          found = measures->end() - 1;
        }
        if (draw == 0) found->at.push_back({-effect, {}});
        ++found->at.back().verdicts[golden::RegimeStatusName(each.status)];
        if (!each.reason.empty()) found->obstacle = each.reason;
      }
    }
  }

  const RegimeDefinitions regime_;
  const int draws_;
  std::map<std::string, RowTruth> base_;
  std::vector<double> k_, losses_;
  double exponent_ = 0, loss_ = 0, experts_ = 0;
  std::string basis_;
};

std::string Percent(int count, int draws) {
  return count == 0 ? "-"
                    : fmt::format("{:.0f}%",
                                  100.0 * count / static_cast<double>(draws));
}

}  // namespace

DesignPower PowerOf(const Grid& grid, const std::vector<RunRecord>& records,
                    int draws) {
  if (!IsMiniature(grid) && !IsRegime(grid)) return {};
  const Known known(records);
  DesignPower power = IsRegime(grid) ? RegimePower(grid, known, draws).Run()
                                     : MiniPower(grid, known, draws).Run();
  power.basis = fmt::format("of {}: {}", known.source(), power.basis);
  return power;
}

std::string DescribePower(const DesignPower& power, int draws) {
  if (power.measures.empty()) return "";
  std::vector<std::string> names;  // verdicts, the hoped-for one first
  for (const MeasurePower& measure : power.measures) {
    if (names.empty()) names.push_back(measure.target);
    for (const PowerAt& at : measure.at) {
      for (const auto& [name, count] : at.verdicts) {
        if (std::ranges::find(names, name) == names.end()) {
          names.push_back(name);
        }
      }
    }
  }
  std::vector<std::string> header = {"measure", "true difference", "unit"};
  header.insert(header.end(), names.begin(), names.end());
  TextTable table(header);
  for (const MeasurePower& measure : power.measures) {
    for (const PowerAt& at : measure.at) {
      std::vector<std::string> row = {
          &at == measure.at.data() ? measure.id : "",
          fmt::format("{:+g}", at.truth == 0 ? 0 : at.truth), measure.unit};
      for (const std::string& name : names) {
        const auto count = at.verdicts.find(name);
        row.push_back(
            Percent(count == at.verdicts.end() ? 0 : count->second, draws));
      }
      table.Add(std::move(row));
    }
  }
  std::string text = "\nPower: what these runs can show\n";
  text +=
      Wrap(
          fmt::format(
              "Probability of each verdict where this is the true "
              "difference, by {} made-up records each, which the judge "
              "himself judges: the runs that the frozen definitions plan, "
              "with means and deviations {}. What is not varied stays as it is "
              "known.",
              draws, power.basis),
          kReportWidth, 2) +
      "\n\n" + table.Text() + "\n";
  if (power.not_ready.empty()) {
    return text + "READY: every claim of this design can be shown.\n";
  }
  for (const std::string& claim : power.not_ready) {
    text += Wrap("NOT READY " + claim, kReportWidth, 2) + "\n";
  }
  return text +
         Wrap(
             "This design cannot show what it is for: mend it, or plan it as "
             "an exploration with --exploratory.",
             kReportWidth, 2) +
         "\n";
}

std::vector<RunRecord> KnownRecords(const fs::path& from) {
  if (!from.empty()) return {ReadRunRecord(from)};
  std::vector<RunRecord> records;
  // The newest record of a run comes first.
  for (const char* name : {"golden/runs/regime.h5", "golden/runs/mini.h5"}) {
    try {
      records.push_back(ReadRunRecord(RunfilePath(name)));
    } catch (const EnvironmentError&) {
      // The program lacks this record.
    }
  }
  return records;
}

}  // namespace softmoe::experiments
