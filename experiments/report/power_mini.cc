// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "core/errors.h"
#include "core/philox.h"
#include "experiments/report/power_truth.h"
#include "golden/verdict/miniature_evidence.h"
#include "golden/verdict/miniature_judge.h"
#include "golden/verdict/statistics.h"

namespace softmoe::experiments {
namespace {

using golden::Against;
using golden::Holds;
using golden::MiniatureClaims;
using golden::MiniatureMeasure;
using golden::MiniatureResults;
using golden::MiniatureRun;
using golden::Quantity;

// Deviation of the logarithm of a made-up benchmark's tokens per second.
constexpr double kSpeedDeviation = 0.02;

class MiniPower {
 public:
  MiniPower(const Grid& grid, const KnownRuns& known, int draws)
      : claims_(golden::LoadMiniatureClaims()), draws_(draws) {
    std::map<std::string, std::vector<RowKey>> corpora;
    for (const golden::PlannedRuns& planned : claims_.planned) {
      std::vector<RowKey>& used = corpora[planned.corpus];
      for (const std::string& row : planned.rows) {
        const RowKey key(planned.corpus, row);
        base_[key] = TruthOf(known.Of(key), ConfigOf(grid, key));
        // Rows that no measure uses say nothing about those that are judged.
        if (claims_.Uses(row)) used.push_back(key);
      }
    }
    const auto verdicts = golden::JudgeMiniature(claims_, PlannedRunsOf(known));
    for (const auto& [corpus, rows] : corpora) {
      std::vector<std::string> texts;
      std::vector<RowKey> soft, learned;
      for (const RowKey& row : rows) {
        if (!base_.at(row).sparse) soft.push_back(row);
        if (!base_.at(row).allocation.empty()) learned.push_back(row);
      }
      // The judge's own deviation of the loss, from the planned runs.
      const auto resolution = std::ranges::find(
          verdicts.resolution, corpus, &golden::MiniatureResolution::corpus);
      const auto plain = [&](const std::vector<RowKey>& of, auto read) {
        return known.Deviation(of, false, read);
      };
      Deviations& deviation = deviations_[corpus];
      deviation.loss = DeviationOr(kDefaultDeviations.loss,
                                   resolution == verdicts.resolution.end()
                                       ? std::nullopt
                                       : std::optional(resolution->paired),
                                   "loss (after pairing)", &texts);
      deviation.experts =
          DeviationOr(kDefaultDeviations.experts,
                      plain(soft, [](const auto& r) { return r.infer_ae; }),
                      "active experts", &texts);
      deviation.load = DeviationOr(
          kDefaultDeviations.load,
          plain(rows, [](const auto& r) { return std::log(r.load_variance); }),
          "log load variance", &texts);
      deviation.allocation =
          DeviationOr(kDefaultDeviations.allocation,
                      plain(learned,
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
    return power;
  }

 private:
  MiniatureResults PlannedRunsOf(const KnownRuns& known) const {
    MiniatureResults results;
    for (const auto& [key, truth] : base_) {
      const std::vector<int64_t>& planned =
          *claims_.PlannedSeeds(key.second, key.first);
      for (const MiniatureRun& run : known.Of(key)) {
        if (std::ranges::count(planned, run.seed) == 0) continue;
        results.runs.push_back(run);
      }
    }
    return results;
  }

  struct Measure {
    std::string claim;
    const MiniatureMeasure* measure;
  };
  using Truths = std::map<RowKey, RowTruth>;

  // Groups of measures whose truths can be set together: no two in a pass set
  // the same number of a row. Active experts also claim loss and load, whose
  // references they decide.
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

  // An effect in nat/token as the truth of a measure: the same number for
  // shares and logarithms of speed, ten times that for active experts,
  // logarithms of load variance and shares of movement, which are noisier in
  // proportion. It lies on the claim's side of no difference; movement, which
  // has no such zero, begins at its margin.
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

  // The truth that the row's number is compared with or, if there is none (the
  // judge reports that, too), the row's own number.
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
      // The loss at the trained tau must stay.
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
      // The noise grows with the steps, as movement does.
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

  // The made-up benchmark that a measure needs; it requires no training.
  void DrawThroughput(const MiniatureMeasure& measure, double truth,
                      Normals* normals, MiniatureResults* results) const {
    for (size_t i = 0; i < measure.active_experts.size(); ++i) {
      golden::ThroughputSamples samples{
          measure.active_experts[i], {}, measure.router};
      for (int64_t s = 0; s < measure.least_samples; ++s) {
        samples.tokens_per_second.push_back(
            std::exp(7 - static_cast<double>(i) * truth +
                     kSpeedDeviation * normals->Next()));
      }
      results->throughput.push_back(std::move(samples));
    }
  }

  MiniatureResults DrawResults(const std::vector<Measure>& pass,
                               const Truths& truths, double effect,
                               uint32_t draw) const {
    Normals normals(kPowerSeed, draw);
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
      const double truth = TruthAt(*pass[m].measure, effect);
      power[m].at.push_back(
          {truth, golden::PointsToClaim(*pass[m].measure, truth), {}});
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

}  // namespace

DesignPower PowerOfMiniature(const Grid& grid, const KnownRuns& known,
                             int draws) {
  return MiniPower(grid, known, draws).Run();
}

}  // namespace softmoe::experiments
