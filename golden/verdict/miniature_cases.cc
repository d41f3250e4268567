// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "golden/verdict/miniature_noise.h"
#include "golden/verdict/miniature_quantity.h"
#include "golden/verdict/statistics.h"

namespace softmoe::golden {
namespace {

using Values = std::vector<double>;

double Sum(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double Mean(const Values& values) {
  return Sum(values) / static_cast<double>(values.size());
}

// Sparse rows by k = 1, 2, ...: their mean losses, joined by straight lines.
class SparseCurve {
 public:
  explicit SparseCurve(Values losses) : losses_(std::move(losses)) {}

  double largest() const { return static_cast<double>(losses_.size()); }

  // Weights of the rows at `active_experts`, which is clamped to the ends of
  // the curve.
  Values Weights(double active_experts) const {
    const double k = std::clamp(active_experts, 1.0, largest()) - 1;
    const auto below = std::min(static_cast<size_t>(k), losses_.size() - 2);
    const double part = k - static_cast<double>(below);
    Values weights(losses_.size());
    weights[below] = 1 - part;
    weights[below + 1] = part;
    return weights;
  }

  double At(double active_experts) const {
    const Values weights = Weights(active_experts);
    return std::inner_product(weights.begin(), weights.end(), losses_.begin(),
                              0.0);
  }

 private:
  Values losses_;
};

// Stores ErrorOf in the case.
void SetError(const std::vector<Term>& terms, const RowNoise& noise,
              MiniatureCase* result) {
  if (!noise.pooled.known()) {
    result->problem = "no two rows with two seeds in common: unknown noise";
    return;
  }
  const SumError error = ErrorOf(terms, noise);
  result->seed_error = error.error;
  result->freedom = error.freedom;
  result->own_deviation = error.own;
}

// The cases of one measure on one corpus.
class CorpusCases {
 public:
  // All arguments must outlive this object.
  CorpusCases(const MiniatureClaims& claims, const MiniatureMeasure& measure,
              const std::map<std::string, SeedRuns>& runs,
              const std::string& corpus)
      : claims_(claims), measure_(measure), runs_(runs), corpus_(corpus) {}

  std::vector<MiniatureCase> Make() {
    if (measure_.against != Against::kSparseCurve) {
      noise_ = NoiseOf(ValuesOf(measure_.pooled, measure_), measure_.noise);
    }
    std::vector<MiniatureCase> cases;
    for (size_t r = 0; r < measure_.rows.size(); ++r) {
      const std::string& row = measure_.rows[r];
      MiniatureCase result;
      result.corpus = corpus_;
      result.label = row;
      result.problem = TaskProblem();
      if (result.problem.empty()) result.problem = ProblemOf(row, measure_);
      if (result.problem.empty()) result.problem = MovementProblem(row);
      if (result.problem.empty()) {
        switch (measure_.against) {
          case Against::kZero:
            Compare({{row, 1, 0}}, &result);
            break;
          case Against::kRows:
            AgainstRow(row, measure_.against_rows[r], &result);
            break;
          case Against::kBudgetGroup:
            AgainstGroup(row, &result);
            break;
          case Against::kSparseCurve:
            AgainstCurve(row, &result);
            break;
          case Against::kHalfOfSparseRange:
            AgainstRange(row, &result);
            break;
          case Against::kNextActiveExperts:
            break;  // has no rows
        }
      }
      cases.push_back(std::move(result));
    }
    return cases;
  }

 private:
  const SeedRuns& RunsOf(const std::string& row) const {
    static const SeedRuns kNone;
    const auto found = runs_.find(row);
    return found == runs_.end() ? kNone : found->second;
  }

  // The values that can be read from the runs of `rows`.
  SeedValues ValuesOf(const std::vector<std::string>& rows,
                      const MiniatureMeasure& measure) const {
    SeedValues values;
    for (const std::string& row : rows) {
      for (const auto& [seed, run] : RunsOf(row)) {
        const QuantityValue value = ReadQuantity(measure, *run);
        if (value.problem.empty()) values[row][seed] = value.value;
      }
    }
    return values;
  }

  RowNoise NoiseOf(const SeedValues& values, Noise kind) const {
    RowNoise noise = PoolRows(values, kind, claims_.own_deviation,
                              claims_.own_deviation_rows);
    if (measure_.quantity == Quantity::kDepthOrder) {
      // Kendall's tau moves in steps: one exchange of neighbours is the
      // smallest.
      size_t layers = 2;
      for (const auto& [row, seeds] : runs_) {
        for (const auto& [seed, run] : seeds) {
          if (run->allocation.empty()) continue;
          layers = std::max(layers, run->allocation.back().allocation.size());
        }
      }
      noise.pooled.deviation =
          std::max(noise.pooled.deviation, DepthOrderStep(layers));
    }
    return noise;
  }

  // The problem of a run that cannot be read, for it may be bad because of its
  // row.
  std::string ProblemOf(const std::string& row,
                        const MiniatureMeasure& measure) const {
    if (RunsOf(row).size() < 2) {
      return fmt::format("{} has fewer than two runs", row);
    }
    for (const auto& [seed, run] : RunsOf(row)) {
      const QuantityValue value = ReadQuantity(measure, *run);
      if (!value.problem.empty()) {
        return fmt::format("{}, seed {}, {}", row, seed, value.problem);
      }
    }
    return "";
  }

  double MeanAe(const std::string& row) const {
    Values experts;
    for (const auto& [seed, run] : RunsOf(row)) {
      experts.push_back(run->infer_ae);
    }
    return Mean(experts);
  }

  // An allocation that hardly moves has no time at which it does.
  std::string MovementProblem(const std::string& row) const {
    if (measure_.quantity != Quantity::kEarlyMovement) return "";
    Values movements;
    for (const auto& [seed, run] : RunsOf(row)) {
      movements.push_back(MovementOf(*run));
    }
    if (Mean(movements) >= measure_.least_movement) return "";
    return fmt::format("{} moves {:.2g} of its budget, less than {:g}", row,
                       Mean(movements), measure_.least_movement);
  }

  // Why no accuracy is better than guessing; "" if one is.
  std::string TaskProblem() const {
    if (measure_.quantity != Quantity::kHellaswag) return "";
    const SeedValues values = ValuesOf(measure_.pooled, measure_);
    if (values.empty()) return "there are no accuracies";
    const double chance = measure_.chance;
    const double error =
        std::sqrt(chance * (1 - chance) / static_cast<double>(measure_.items));
    const double least =
        chance + NormalQuantile((1 + claims_.confidence) / 2) * error;
    for (const auto& [row, seeds] : values) {
      Values accuracies;
      for (const auto& [seed, value] : seeds) accuracies.push_back(value);
      if (Mean(accuracies) > least) return "";
    }
    return "no row is above chance";
  }

  // The seeds that all rows of `terms` have, at least two, or a problem; sets
  // the counts of the terms.
  std::vector<int64_t> CommonSeeds(std::vector<Term>* terms,
                                   MiniatureCase* result) const {
    std::vector<int64_t> seeds;
    for (const auto& [seed, run] : RunsOf(terms->front().row)) {
      const int64_t wanted = seed;
      if (std::all_of(terms->begin(), terms->end(), [&](const Term& term) {
            return RunsOf(term.row).contains(wanted);
          })) {
        seeds.push_back(wanted);
      }
    }
    for (Term& term : *terms) term.count = seeds.size();
    result->seeds = static_cast<int64_t>(seeds.size());
    if (seeds.size() < 2) {
      result->problem = "its rows have fewer than two seeds in common";
    }
    return seeds;
  }

  // Compares a sum of rows with the noise of the measure; all of them can be
  // read.
  void Compare(std::vector<Term> terms, MiniatureCase* result) const {
    const std::vector<int64_t> seeds = CommonSeeds(&terms, result);
    if (!result->problem.empty()) return;
    for (const Term& term : terms) {
      double sum = 0;
      for (const int64_t seed : seeds) {
        sum += ReadQuantity(measure_, *RunsOf(term.row).at(seed)).value;
      }
      result->estimate += term.weight * sum / static_cast<double>(seeds.size());
    }
    SetError(terms, noise_, result);
  }

  void AgainstRow(const std::string& row, const std::string& other,
                  MiniatureCase* result) const {
    result->label = row + " - " + other;
    result->problem = ProblemOf(other, measure_);
    if (!result->problem.empty()) return;
    Compare({{row, 1, 0}, {other, -1, 0}}, result);
    if (measure_.quantity != Quantity::kHellaswag) return;
    double variance = 0;  // of the items, which are the same for all runs
    for (const std::string& side : {row, other}) {
      Values accuracies;
      for (const auto& [seed, run] : RunsOf(side)) {
        accuracies.push_back(*run->hellaswag);
      }
      variance += Mean(accuracies) * (1 - Mean(accuracies));
    }
    result->least_error =
        std::sqrt(variance / static_cast<double>(measure_.items));
  }

  void AgainstGroup(const std::string& row, MiniatureCase* result) const {
    const double experts = MeanAe(row);
    if (!(experts <= static_cast<double>(claims_.sparse.size()))) {
      result->problem = fmt::format(
          "{} has {:.2f} active experts, and no sparse row has as many", row,
          experts);
      return;
    }
    const double k = std::max(1.0, std::ceil(experts));
    AgainstRow(row, claims_.sparse[static_cast<size_t>(k) - 1], result);
  }

  // The sparse rows, or why there is no curve.
  std::string SparseProblem() const {
    for (const std::string& row : claims_.sparse) {
      const std::string problem = ProblemOf(row, LossMeasure());
      if (!problem.empty()) return problem;
    }
    return "";
  }

  static const MiniatureMeasure& LossMeasure() {
    static const MiniatureMeasure kLoss;  // of a loss, by default
    return kLoss;
  }

  SparseCurve CurveOver(const std::vector<int64_t>& seeds) const {
    Values losses;
    for (const std::string& row : claims_.sparse) {
      double sum = 0;
      for (const int64_t seed : seeds) sum += RunsOf(row).at(seed)->loss;
      losses.push_back(sum / static_cast<double>(seeds.size()));
    }
    return SparseCurve(losses);
  }

  // A run counts with its distance from the curve at its own Infer-AE; the
  // curve's own noise enters with the mean weights of the sparse rows.
  void AgainstCurve(const std::string& row, MiniatureCase* result) {
    result->label = row + " - sparse curve";
    result->problem = SparseProblem();
    const double experts = MeanAe(row);
    if (!(experts >= 1 &&
          experts <= static_cast<double>(claims_.sparse.size()))) {
      result->problem = fmt::format(
          "{} has {:.2f} active experts, outside of the curve", row, experts);
    }
    if (!result->problem.empty()) return;
    std::vector<Term> terms = {{row, 1, 0}};
    for (const std::string& sparse : claims_.sparse) {
      terms.push_back({sparse, 0, 0});
    }
    const std::vector<int64_t> seeds = CommonSeeds(&terms, result);
    if (!result->problem.empty()) return;
    const SparseCurve curve = CurveOver(seeds);
    const auto count = static_cast<double>(seeds.size());
    for (const int64_t seed : seeds) {
      const MiniatureRun& run = *RunsOf(row).at(seed);
      result->estimate += (run.loss - curve.At(run.infer_ae)) / count;
      const Values weights = curve.Weights(run.infer_ae);
      for (size_t k = 0; k < weights.size(); ++k) {
        terms[k + 1].weight -= weights[k] / count;
      }
    }
    SetError(terms, CurveNoise(curve), result);
  }

  RowNoise CurveNoise(const SparseCurve& curve) const {
    SeedValues values;
    for (const auto& [row, seeds] : ValuesOf(measure_.pooled, measure_)) {
      const auto& sparse = claims_.sparse;
      const bool on_curve =
          std::find(sparse.begin(), sparse.end(), row) != sparse.end();
      for (const auto& [seed, loss] : seeds) {
        const double experts = RunsOf(row).at(seed)->infer_ae;
        if (on_curve) {
          values[row][seed] = loss;
        } else if (std::isfinite(experts)) {
          values[row][seed] = loss - curve.At(experts);
        }
      }
    }
    return NoiseOf(values, measure_.noise);
  }

  void AgainstRange(const std::string& row, MiniatureCase* result) const {
    const std::string& first = claims_.sparse.front();
    const std::string& last = claims_.sparse.back();
    result->label = fmt::format("{} - ({} - {})/2", row, first, last);
    result->problem = ProblemOf(first, LossMeasure());
    if (result->problem.empty()) {
      result->problem = ProblemOf(last, LossMeasure());
    }
    if (!result->problem.empty()) return;
    std::vector<Term> terms = {{row, 1, 0}, {first, 1, 0}, {last, -1, 0}};
    const std::vector<int64_t> seeds = CommonSeeds(&terms, result);
    if (!result->problem.empty()) return;
    const auto count = static_cast<double>(seeds.size());
    double cost = 0, range = 0;
    for (const int64_t seed : seeds) {
      cost += ReadQuantity(measure_, *RunsOf(row).at(seed)).value / count;
      range +=
          (RunsOf(first).at(seed)->loss - RunsOf(last).at(seed)->loss) / count;
    }
    const RowNoise losses = NoiseOf(
        ValuesOf(measure_.against_pooled, LossMeasure()), Noise::kPaired);
    MiniatureCase of_range;
    SetError({terms[1], terms[2]}, losses, &of_range);
    SetError({terms[0]}, noise_, result);
    if (result->problem.empty()) result->problem = of_range.problem;
    if (!result->problem.empty()) return;
    // The two-sided interval of the range must hold only positive values.
    if (of_range.seed_error == 0 ||
        StudentCdf(-range / of_range.seed_error, of_range.freedom) >=
            (1 - claims_.confidence) / 2) {
      result->problem = fmt::format(
          "{} is not surely above {}: {:+.3g} with a "
          "standard error of {:.2g}",
          first, last, range, of_range.seed_error);
      return;
    }
    // How the two vary together is not known, so this is the largest possible
    // error.
    result->estimate = cost - range / 2;
    result->seed_error += of_range.seed_error / 2;
    result->freedom = std::min(result->freedom, of_range.freedom);
    result->own_deviation.insert(result->own_deviation.end(),
                                 of_range.own_deviation.begin(),
                                 of_range.own_deviation.end());
  }

  const MiniatureClaims& claims_;
  const MiniatureMeasure& measure_;
  const std::map<std::string, SeedRuns>& runs_;
  const std::string& corpus_;
  RowNoise noise_;
};

std::vector<MiniatureCase> ThroughputCases(
    const MiniatureClaims& claims, const MiniatureMeasure& measure,
    const std::vector<ThroughputSamples>& throughput) {
  SeedValues values;
  auto name = [](double experts) { return fmt::format("AE {:g}", experts); };
  for (const ThroughputSamples& samples : throughput) {
    auto& logs = values[name(samples.active_experts)];
    for (const double speed : samples.tokens_per_second) {
      logs[static_cast<int64_t>(logs.size())] = std::log(speed);
    }
  }
  SeedValues measured;  // the samples that the measure names
  for (const double experts : measure.active_experts) {
    const auto found = values.find(name(experts));
    if (found != values.end()) measured.insert(*found);
  }
  const RowNoise noise = PoolRows(measured, measure.noise, claims.own_deviation,
                                  claims.own_deviation_rows);
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
      } else if (samples < measure.least_samples) {
        result.problem = fmt::format("{} samples at {}, {} are needed", samples,
                                     term.row, measure.least_samples);
      }
      if (!result.problem.empty()) continue;
      for (const auto& [index, value] : found->second) {
        result.estimate += term.weight * value / static_cast<double>(samples);
      }
    }
    if (result.problem.empty()) SetError(terms, noise, &result);
    cases.push_back(std::move(result));
  }
  return cases;
}

}  // namespace

std::vector<MiniatureCase> MakeCases(
    const MiniatureClaims& claims, const MiniatureMeasure& measure,
    const RunIndex& runs, const std::vector<ThroughputSamples>& throughput) {
  if (measure.quantity == Quantity::kLogThroughput) {
    return ThroughputCases(claims, measure, throughput);
  }
  static const std::map<std::string, SeedRuns> kNone;
  std::vector<MiniatureCase> cases;
  for (const std::string& corpus : measure.corpora) {
    const auto found = runs.find(corpus);
    for (MiniatureCase& each :
         CorpusCases(claims, measure,
                     found == runs.end() ? kNone : found->second, corpus)
             .Make()) {
      cases.push_back(std::move(each));
    }
  }
  return cases;
}

}  // namespace softmoe::golden
