// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "golden/verdict/miniature_noise.h"
#include "golden/verdict/miniature_quantity.h"
#include "golden/verdict/statistics.h"

namespace softmoe::golden {
namespace {

using Values = std::vector<double>;

// ---- The error of a case, from the scatter of its rows.

// The scatter of a corpus or of a benchmark, and the numbers it was estimated
// from.
struct Scatter {
  SeedValues values;
  RowNoise noise;
  Noise kind = Noise::kPlain;
};

// Stores the error of the sum in the case: ErrorOf, or OwnErrorOf if nothing is
// pooled. `seeds`: common to all terms, or empty if they are not paired.
void SetError(const std::vector<Term>& terms, const Scatter& scatter,
              const std::vector<int64_t>& seeds, MiniatureCase* result) {
  const RowNoise& noise = scatter.noise;
  if (!noise.pooled.known()) {
    result->problem = "no two rows with two seeds in common: unknown noise";
    return;
  }
  SumError error = ErrorOf(terms, noise);
  if (!seeds.empty()) {
    const SumError own = OwnErrorOf(terms, scatter.values, seeds);
    result->own_error = own.error;
    result->own_freedom = own.freedom;
    if (noise.unequal && scatter.kind == Noise::kPaired) error = own;
  }
  result->seed_error = error.error;
  result->freedom = error.freedom;
  result->own_deviation = error.own;
  result->left_out = noise.left_out;
  result->bartlett = noise.bartlett;
  result->not_pooled = noise.unequal;
}

// ---- Runs on a corpus.

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

// The sparse rows of some seeds, and the scatter of all rows around them.
struct CurveWithScatter {
  SparseCurve curve;
  Scatter scatter;
};

// "a; b", each once.
std::string Joined(const std::vector<std::string>& texts) {
  std::vector<std::string> once;
  for (const std::string& text : texts) {
    if (text.empty() || std::ranges::find(once, text) != once.end()) continue;
    once.push_back(text);
  }
  return fmt::format("{}", fmt::join(once, "; "));
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
      scatter_ = ScatterOf(ValuesOf(measure_.pooled, measure_), measure_.noise);
    }
    const std::string problem_of_task = TaskProblem();
    std::vector<MiniatureCase> cases;
    for (size_t r = 0; r < measure_.rows.size(); ++r) {
      const std::string& row = measure_.rows[r];
      MiniatureCase result;
      result.corpus = corpus_;
      result.label = row;
      result.problem = problem_of_task;
      if (result.problem.empty()) result.problem = ProblemOf(row, measure_);
      if (result.problem.empty()) result.problem = LearningRateProblem(row);
      if (result.problem.empty()) result.problem = MovementProblem(row);
      if (result.problem.empty()) {
        switch (measure_.against) {
          case Against::kZero:
          case Against::kRows:
          case Against::kBudgetGroup:
            AgainstRow(row, OtherRow(r, &result), &result);
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

  // The mean of the cases that Make returned, which use no curve or range.
  MiniatureCase MeanOf(const std::vector<MiniatureCase>& cases) const {
    MiniatureCase result;
    result.corpus = corpus_;
    result.label = fmt::format("mean of {}", cases.size());
    std::vector<std::string> problems;
    for (const MiniatureCase& each : cases) {
      if (!each.problem.empty()) problems.push_back(each.problem);
    }
    result.problem = Joined(problems);
    if (!result.problem.empty()) return result;
    const double part = 1 / static_cast<double>(cases.size());
    std::map<std::string, double> weights;  // by row, which cases may share
    for (size_t r = 0; r < cases.size(); ++r) {
      MiniatureCase unused;
      weights[measure_.rows[r]] += part;
      const std::string other = OtherRow(r, &unused);
      if (!other.empty()) weights[other] -= part;
    }
    std::vector<Term> terms;
    for (const auto& [row, weight] : weights) terms.push_back({row, weight, 0});
    Compare(terms, &result);
    return result;
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

  Scatter ScatterOf(SeedValues values, Noise kind) const {
    RowNoise noise = PoolRows(values, kind, claims_);
    if (measure_.quantity == Quantity::kDepthOrder) {
      // Kendall's tau moves in steps; one exchange of neighbours is the
      // smallest.
      size_t layers = 2;
      for (const auto& [row, seeds] : runs_) {
        for (const auto& [seed, run] : seeds) {
          if (run->allocation.empty()) continue;
          layers = std::max(layers, run->allocation.back().allocation.size());
        }
      }
      const double step = DepthOrderStep(layers);
      noise.pooled.deviation = std::max(noise.pooled.deviation, step);
      for (auto& [row, own] : noise.own) {
        own.deviation = std::max(own.deviation, step);
      }
    }
    return {
        .values = std::move(values), .noise = std::move(noise), .kind = kind};
  }

  // Why the runs of `row` cannot be compared; "" if they can.
  std::string ProblemOf(const std::string& row,
                        const MiniatureMeasure& measure) const {
    if (RunsOf(row).size() < 2) {
      return fmt::format("{} has fewer than two runs", row);
    }
    const std::string& reading = RunsOf(row).begin()->second->load_balance;
    for (const auto& [seed, run] : RunsOf(row)) {
      if (run->load_balance != reading) {
        return fmt::format(
            "{} mixes readings of the balance loss, '{}' and '{}'", row,
            reading, run->load_balance);
      }
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

  // Why the budget logits could not have moved early; "" if they could.
  std::string LearningRateProblem(const std::string& row) const {
    if (measure_.quantity != Quantity::kEarlyMovement) return "";
    Values sums, needed;
    for (const auto& [seed, run] : RunsOf(row)) {
      sums.push_back(LearningRateSum(*run, measure_.share_of_steps));
      needed.push_back(LearningRateNeeded(measure_, *run));
    }
    if (Mean(sums) >= Mean(needed)) return "";
    return fmt::format(
        "the learning rates of {} add up to {:.2g} by then, and {:g} of the "
        "paper's movement needs {:.2g}",
        row, Mean(sums), measure_.share_of_movement, Mean(needed));
  }

  // Why the allocation moves too little for its movement to have a time.
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

  // Why no accuracy exceeds guessing; "" if one does.
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

  // The seeds common to all rows of `terms`, at least two, or a problem; sets
  // the terms' counts.
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

  // Compares a sum of rows, all of them readable, with the measure's noise.
  void Compare(std::vector<Term> terms, MiniatureCase* result) const {
    const std::vector<int64_t> seeds = CommonSeeds(&terms, result);
    if (!result->problem.empty()) return;
    const auto count = static_cast<double>(seeds.size());
    const bool of_caps = measure_.quantity == Quantity::kInferAe;
    if (of_caps) result->cap_rise = 0;
    for (const Term& term : terms) {
      double sum = 0, caps = 0;
      for (const int64_t seed : seeds) {
        const MiniatureRun& run = *RunsOf(term.row).at(seed);
        sum += scatter_.values.at(term.row).at(seed);
        caps += run.mean_cap;
      }
      result->estimate += term.weight * sum / count;
      if (of_caps) *result->cap_rise += term.weight * caps / count;
    }
    SetError(terms, scatter_, seeds, result);
  }

  // The row that the r-th row is compared with; "" for zero, or if there is a
  // problem.
  std::string OtherRow(size_t r, MiniatureCase* result) const {
    if (measure_.against == Against::kRows) return measure_.against_rows[r];
    if (measure_.against == Against::kZero) return "";
    const std::string& row = measure_.rows[r];
    const double experts = MeanAe(row);
    if (!(experts <= static_cast<double>(claims_.sparse.size()))) {
      result->problem = fmt::format(
          "{} has {:.2f} active experts, and no sparse row has as many", row,
          experts);
      return "";
    }
    const double k = std::max(1.0, std::ceil(experts));
    return claims_.sparse[static_cast<size_t>(k) - 1];
  }

  void AgainstRow(const std::string& row, const std::string& other,
                  MiniatureCase* result) const {
    if (!result->problem.empty()) return;
    if (other.empty()) return Compare({{row, 1, 0}}, result);
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

  // Why there is no curve through the sparse rows; "" if there is one.
  std::string SparseProblem() const {
    for (const std::string& row : claims_.sparse) {
      const std::string problem = ProblemOf(row, LossMeasure());
      if (!problem.empty()) return problem;
    }
    return "";
  }

  static const MiniatureMeasure& LossMeasure() {
    static const MiniatureMeasure kLoss;  // measures a loss by default
    return kLoss;
  }

  // Rows with the same seeds share one curve.
  const CurveWithScatter& CurveOver(const std::vector<int64_t>& seeds) {
    const auto found = curves_.find(seeds);
    if (found != curves_.end()) return found->second;
    Values losses;
    for (const std::string& row : claims_.sparse) {
      double sum = 0;
      for (const int64_t seed : seeds) sum += RunsOf(row).at(seed)->loss;
      losses.push_back(sum / static_cast<double>(seeds.size()));
    }
    const SparseCurve curve(std::move(losses));
    return curves_.emplace(seeds, CurveWithScatter{curve, ScatterAround(curve)})
        .first->second;
  }

  // A run counts by its distance from the curve at its own Infer-AE; the
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
    const auto& [curve, scatter] = CurveOver(seeds);
    const auto count = static_cast<double>(seeds.size());
    for (const int64_t seed : seeds) {
      const MiniatureRun& run = *RunsOf(row).at(seed);
      result->estimate += (run.loss - curve.At(run.infer_ae)) / count;
      const Values weights = curve.Weights(run.infer_ae);
      for (size_t k = 0; k < weights.size(); ++k) {
        terms[k + 1].weight -= weights[k] / count;
      }
    }
    SetError(terms, scatter, seeds, result);
  }

  Scatter ScatterAround(const SparseCurve& curve) const {
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
    return ScatterOf(std::move(values), measure_.noise);
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
    const Scatter losses = ScatterOf(
        ValuesOf(measure_.against_pooled, LossMeasure()), Noise::kPaired);
    MiniatureCase of_range;
    SetError({terms[1], terms[2]}, losses, seeds, &of_range);
    SetError({terms[0]}, scatter_, seeds, result);
    if (result->problem.empty()) result->problem = of_range.problem;
    if (!result->problem.empty()) return;
    // The two-sided interval of the range must contain only positive values.
    if (of_range.seed_error == 0 ||
        StudentCdf(-range / of_range.seed_error, of_range.freedom) >=
            (1 - claims_.confidence) / 2) {
      result->problem = fmt::format(
          "{} is not surely above {}: {:+.3g} with a "
          "standard error of {:.2g}",
          first, last, range, of_range.seed_error);
      return;
    }
    // How the two covary is unknown, so this is the largest possible error.
    result->estimate = cost - range / 2;
    result->seed_error += of_range.seed_error / 2;
    result->freedom = std::min(result->freedom, of_range.freedom);
    result->own_error += of_range.own_error / 2;
    result->own_freedom = std::min(result->own_freedom, of_range.own_freedom);
    result->bartlett = std::min(result->bartlett, of_range.bartlett);
    result->not_pooled = result->not_pooled || of_range.not_pooled;
    std::ranges::copy(of_range.own_deviation,
                      std::back_inserter(result->own_deviation));
    std::ranges::copy(of_range.left_out, std::back_inserter(result->left_out));
  }

  const MiniatureClaims& claims_;
  const MiniatureMeasure& measure_;
  const std::map<std::string, SeedRuns>& runs_;
  const std::string& corpus_;
  Scatter scatter_;
  std::map<std::vector<int64_t>, CurveWithScatter> curves_;  // by seeds
};

// The mean of the corpora's independent means.
MiniatureCase MeanOverCorpora(const std::vector<MiniatureCase>& corpora) {
  if (corpora.size() == 1) return corpora[0];
  MiniatureCase mean;
  mean.label =
      fmt::format("{} on {} corpora each", corpora[0].label, corpora.size());
  mean.seeds = std::numeric_limits<int64_t>::max();
  std::vector<std::string> problems;
  const double part = 1 / static_cast<double>(corpora.size());
  double variance = 0, squares = 0, own_variance = 0, own_squares = 0;
  for (const MiniatureCase& each : corpora) {
    if (!each.problem.empty()) {
      problems.push_back(each.corpus + ": " + each.problem);
      continue;
    }
    mean.seeds = std::min(mean.seeds, each.seeds);
    mean.estimate += part * each.estimate;
    mean.sources.push_back({part * each.seed_error, each.freedom, each.seeds});
    const double square = std::pow(part * each.seed_error, 2);
    variance += square;
    squares += square * square / each.freedom;
    const double own_square = std::pow(part * each.own_error, 2);
    own_variance += own_square;
    own_squares += own_square * own_square / each.own_freedom;
    auto named = [&](const std::vector<std::string>& rows,
                     std::vector<std::string>* all) {
      for (const std::string& row : rows)
        all->push_back(each.corpus + "/" + row);
    };
    named(each.own_deviation, &mean.own_deviation);
    named(each.left_out, &mean.left_out);
    mean.bartlett = std::min(mean.bartlett, each.bartlett);
    mean.not_pooled = mean.not_pooled || each.not_pooled;
    if (each.cap_rise) {
      mean.cap_rise = mean.cap_rise.value_or(0) + part * *each.cap_rise;
    }
  }
  mean.problem = Joined(problems);
  if (!mean.problem.empty()) mean.seeds = 0;
  mean.seed_error = std::sqrt(variance);
  mean.freedom = variance == 0 ? 1 : variance * variance / squares;
  mean.own_error = std::sqrt(own_variance);
  mean.own_freedom =
      own_variance == 0 ? 0 : own_variance * own_variance / own_squares;
  return mean;
}

// Which readings that the measure needs are missing from all runs of its rows
// on some corpus: readings must be compared on the same corpus.
std::string ReadingProblem(const MiniatureMeasure& measure,
                           const RunIndex& runs) {
  std::vector<std::string> problems;
  for (const std::string& reading : measure.readings) {
    std::vector<std::string> without;  // corpora
    for (const std::string& corpus : measure.corpora) {
      std::set<std::string> run;
      const auto rows = runs.find(corpus);
      for (const std::string& row : measure.rows) {
        if (rows == runs.end() || !rows->second.contains(row)) continue;
        for (const auto& [seed, each] : rows->second.at(row)) {
          run.insert(each->load_balance);
        }
      }
      if (!run.contains(reading)) without.push_back(corpus);
    }
    if (without.empty()) continue;
    const bool anywhere = without.size() < measure.corpora.size();
    problems.push_back(fmt::format(
        "no run{} has the reading {} of the balance loss, which "
        "the claim needs beside the other",
        anywhere ? fmt::format(" on {}", fmt::join(without, ", ")) : "",
        reading));
  }
  return Joined(problems);
}

// ---- A benchmark.

// Cases that compare neighbours among the measure's numbers of active experts
// by the logarithm of speed, with estimates, errors and degrees of freedom; not
// yet tested.
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

}  // namespace

MeasureCases MakeCases(const MiniatureClaims& claims,
                       const MiniatureMeasure& measure, const RunIndex& runs,
                       const std::vector<ThroughputSamples>& throughput) {
  if (measure.quantity == Quantity::kLogThroughput) {
    return {.cases = ThroughputCases(claims, measure, throughput), .parts = {}};
  }
  static const std::map<std::string, SeedRuns> kNone;
  MeasureCases made;
  std::vector<MiniatureCase> means;
  for (const std::string& corpus : measure.corpora) {
    const auto found = runs.find(corpus);
    CorpusCases of_corpus(claims, measure,
                          found == runs.end() ? kNone : found->second, corpus);
    const std::vector<MiniatureCase> cases = of_corpus.Make();
    if (measure.of_cases == OfCases::kMean) {
      means.push_back(of_corpus.MeanOf(cases));
    }
    std::ranges::copy(cases, std::back_inserter(made.cases));
  }
  if (!means.empty()) {
    made.parts = std::exchange(made.cases, {MeanOverCorpora(means)});
  }
  const std::string problem = ReadingProblem(measure, runs);
  for (MiniatureCase& each : made.cases) {
    if (!problem.empty()) each.problem = Joined({problem, each.problem});
  }
  return made;
}

}  // namespace softmoe::golden
