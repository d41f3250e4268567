// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/philox.h"
#include "experiments/report/power_truth.h"
#include "golden/verdict/regime_judge.h"

namespace softmoe::experiments {
namespace {

using golden::MiniatureRun;
using golden::RegimeDefinitions;
using golden::RegimeRow;

class RegimePower {
 public:
  RegimePower(const Grid& grid, KnownRuns known, int draws)
      : regime_(golden::LoadRegime()), draws_(draws) {
    known.Keep([&](const MiniatureRun& run) {
      return regime_.Judges(run.row, run.seed);
    });
    std::vector<std::string> texts;
    std::vector<RowKey> sparse, soft, all;
    for (const RegimeRow& row : regime_.rows) {
      const RowKey key(regime_.corpus, row.id);
      (row.role == "sparse" ? sparse : soft).push_back(key);
      all.push_back(key);
      RowTruth truth = TruthOf(known.Of(key), ConfigOf(grid, key));
      truth.sparse = row.role == "sparse";
      if (truth.sparse) truth.infer_ae = truth.train_ae = row.infer_ae_aim;
      if (known.Of(key).empty()) {
        truth.infer_ae = truth.train_ae = AimOf(row, grid);
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
        kDefaultDeviations.loss,
        known.Deviation(all, true, [](const auto& r) { return r.loss; }),
        "loss (after pairing)", &texts);
    experts_ = DeviationOr(
        kDefaultDeviations.experts,
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
    return power;
  }

 private:
  // A row without an aim takes that of the primary row with the same k, else k.
  double AimOf(const RegimeRow& row, const Grid& grid) const {
    if (row.infer_ae_aim > 0) return row.infer_ae_aim;
    const auto k_of = [&](const RegimeRow& of) {
      const Config& config = ConfigOf(grid, {regime_.corpus, of.id});
      return config.router.mean_active_experts;
    };
    for (const RegimeRow* other : regime_.RowsOf("primary")) {
      if (k_of(*other) == k_of(row)) return other->infer_ae_aim;
    }
    return k_of(row);
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
      // With `of_learned`, a learned row lies on the curve at the active
      // experts of its fixed row, and every other row at its own.
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
    Normals normals(kPowerSeed, draw);
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

  // `effect` is the difference between all soft rows and the sparse curve or,
  // with `of_learned`, between learned and fixed rows. At Train-AE the curve is
  // lower, so the true difference is not `effect`; it is not shown.
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
               .obstacle = "",
               // The questions that the experiment is designed for.
               .asked = each.id == "primary" || each.id == "C1b" ||
                        each.id == "C5.loss"});
          found = measures->end() - 1;
        }
        if (draw == 0) {
          const double margin = found->target == "MATCHES" ? regime_.margin : 0;
          found->at.push_back({-effect, -effect < margin, {}});
        }
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

}  // namespace

DesignPower PowerOfRegime(const Grid& grid, KnownRuns known, int draws) {
  return RegimePower(grid, std::move(known), draws).Run();
}

}  // namespace softmoe::experiments
