// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/task_comparison.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/config/router_traits.h"
#include "core/errors.h"
#include "experiments/report/row_summary.h"
#include "golden/verdict/equivalence.h"
#include "golden/verdict/statistics.h"

namespace softmoe::experiments {
namespace {

using trainer::TaskMeasure;
using trainer::TaskResult;

// A row, possibly with another tau in inference.
struct Side {
  const RowSummary* row = nullptr;
  std::optional<double> factor = {};  // times the tau of training

  std::string label() const {
    return row->row->id + (factor ? ", tau x" + Setting(*factor) : "");
  }
};
using SidePair = std::pair<Side, Side>;

// ---- Which rows are compared.

bool SameSetting(const RowSummary& a, const RowSummary& b) {
  const RouterConfig &first = a.config().router, &second = b.config().router;
  return a.row->variant == b.row->variant && first.kind == second.kind &&
         first.mean_active_experts == second.mean_active_experts &&
         (!TraitsOf(a.config()).cap ||
          first.expansion_factor == second.expansion_factor);
}

std::vector<double> OtherFactors(const RowSummary& row) {
  std::vector<double> factors;
  for (const RunOutcome* run : row.Finished()) {
    if (!run->result->final_evaluations) continue;
    for (const auto& at : run->result->final_evaluations->inference_tau) {
      if (at.factor == 1 || std::ranges::count(factors, at.factor) > 0)
        continue;
      factors.push_back(at.factor);
    }
  }
  std::ranges::sort(factors);
  return factors;
}

// The pairs among `rows`, which must be of one corpus.
std::vector<SidePair> PairRows(const std::vector<const RowSummary*>& rows) {
  std::vector<SidePair> pairs;
  for (auto row = rows.begin(); row != rows.end(); ++row) {
    if (TraitsOf((*row)->config()).lapsum) {
      const auto k = static_cast<double>(ExpertBudget(**row));
      const auto sparse = std::ranges::find_if(rows, [k](const auto* other) {
        return !TraitsOf(other->config()).lapsum &&
               other->config().router.mean_active_experts == k;
      });
      if (sparse != rows.end()) pairs.push_back({{*row}, {*sparse}});
    }
    for (auto other = rows.begin(); other != row; ++other) {
      if (SameSetting(**row, **other)) pairs.push_back({{*row}, {*other}});
    }
    for (const double factor : OtherFactors(**row)) {
      pairs.push_back({{*row, factor}, {*row}});
    }
  }
  return pairs;
}

// ---- What a pair says about a task.

struct SeedPair {
  int64_t seed = 0;
  const TaskResult *first = nullptr, *second = nullptr;
};

std::vector<SeedPair> PairSeeds(const SidePair& pair, const std::string& task) {
  std::vector<SeedPair> seeds;
  for (const RunOutcome* run : pair.first.row->Finished()) {
    for (const RunOutcome* other : pair.second.row->Finished()) {
      if (run->run.seed != other->run.seed) continue;
      const TaskResult* first = FindTask(*run->result, task, pair.first.factor);
      const TaskResult* second =
          FindTask(*other->result, task, pair.second.factor);
      if (first == nullptr || second == nullptr) continue;
      if (SameItems(*first, *second)) {
        seeds.push_back({run->run.seed, first, second});
      }
    }
  }
  return seeds;
}

// A difference of accuracies, its standard error, and its significance.
struct Tested {
  double difference = 0, error = 0;  // as fractions
  double p = 1;                      // NaN: there is no noise to judge by
};

// The mean of the `differences` of two or more seeds, all given the same items.
// For one row at two tau, `moved` is the share of the items that only one
// answers correctly, as the mean over the seeds.
Tested OverSeeds(const std::vector<SeedPair>& seeds,
                 const std::vector<double>& differences, TaskMeasure measure,
                 std::optional<double> moved) {
  std::vector<const TaskResult*> first, second;
  for (const SeedPair& seed : seeds) {
    first.push_back(seed.first);
    second.push_back(seed.second);
  }
  const auto count = static_cast<double>(seeds.size());
  const auto items = static_cast<double>(first.front()->right.size());
  const double flips =
      FlipShare(first, measure).value() + FlipShare(second, measure).value();
  Tested mean{.difference = golden::Mean(differences),
              .p = std::numeric_limits<double>::quiet_NaN()};
  // The variance that an item of one seed adds to the difference.
  const double variance = moved.value_or(flips / 2);
  // Probably a run counted twice; or no answer moved.
  if (flips == 0 || variance == 0) return mean;
  const double by_flips = std::sqrt(variance / (items * count));
  const double over_seeds = golden::ErrorOfMean(differences);
  mean.error = std::max(over_seeds, by_flips);
  // Both kinds of noise must be ruled out: few seeds can agree to the last
  // item.
  const double size = std::abs(mean.difference);
  mean.p = 2 * golden::NormalCdf(-size / by_flips);
  if (over_seeds > 0) {
    mean.p =
        std::max(mean.p, 2 * golden::StudentCdf(-size / over_seeds, count - 1));
  }
  return mean;
}

std::vector<std::string> Line(const SidePair& pair, const std::string& seed,
                              const std::string& only_first,
                              const std::string& only_second,
                              const Tested& tested) {
  return {
      pair.first.label(),
      pair.second.label(),
      seed,
      only_first,
      only_second,
      fmt::format("{:+.2f}", 100 * tested.difference),
      std::isnan(tested.p) ? "-" : fmt::format("{:.2f}", 100 * tested.error),
      std::isnan(tested.p) ? "-" : fmt::format("{:.3g}", tested.p),
      ""};
}

// Appends the lines of a pair and returns the p by which it is judged, that of
// the last line. nullopt if seeds were given different items: they have no
// mean, and none of them speaks for the others.
std::optional<double> AddLines(const SidePair& pair,
                               const std::vector<SeedPair>& seeds,
                               TaskMeasure measure,
                               std::vector<std::vector<std::string>>* lines) {
  std::vector<double> differences;
  double p = 1, moved = 0;
  for (const SeedPair& seed : seeds) {
    const AnswerPairs answers =
        PairAnswers(seed.first->right, seed.second->right, measure);
    differences.push_back(answers.Difference());
    moved += answers.Flips() / static_cast<double>(seeds.size());
    p = McNemarExact(answers.only_first, answers.only_second);
    lines->push_back(Line(pair, std::to_string(seed.seed),
                          std::to_string(answers.only_first),
                          std::to_string(answers.only_second),
                          {answers.Difference(), answers.StandardError(), p}));
  }
  if (seeds.size() < 2) return p;
  for (const SeedPair& seed : seeds) {
    if (!SameItems(*seed.first, *seeds.front().first)) return std::nullopt;
  }
  const bool same_models = pair.first.row == pair.second.row;
  const Tested mean =
      OverSeeds(seeds, differences, measure,
                same_models ? std::optional(moved) : std::nullopt);
  lines->push_back(
      Line(pair, fmt::format("mean of {}", seeds.size()), "", "", mean));
  return mean.p;
}

constexpr char kCaption[] =
    "b: items that only the row answers correctly, c: only the other; points: "
    "difference of the accuracies in percent, se: its standard error over "
    "items; p of a seed: McNemar's exact test, whether these two models could "
    "be equally good on other such items. Seeds answer the same items, so "
    "their counts are not added up: a mean is tested against the noise over "
    "seeds (Student's t) and against that of answers that flip independently "
    "between seeds or, if a row is compared with itself at another tau, "
    "between the two tau (normal); it is given the larger se and the larger "
    "p: whether other seeds could reverse it. Seeds that were asked different "
    "items have no mean, and their pair is not judged. Holm: whether the "
    "pair's last p shows a difference at 5 %, corrected for the pairs of this "
    "table that are judged; other p are not corrected.";

EvaluationTable MakeTable(const std::vector<SidePair>& pairs,
                          const std::string& task, TaskMeasure measure) {
  EvaluationTable table;
  table.header = {"row",    "against", "seed", "b",   "c",
                  "points", "se",      "p",    "Holm"};
  std::vector<double> p_values;
  std::vector<size_t> last;  // lines of the pairs
  for (const SidePair& pair : pairs) {
    const std::vector<SeedPair> seeds = PairSeeds(pair, task);
    if (seeds.empty()) continue;
    const std::optional<double> p = AddLines(pair, seeds, measure, &table.rows);
    if (!p) {
      table.rows.back().back() = "-";
      continue;
    }
    p_values.push_back(*p);
    last.push_back(table.rows.size() - 1);
  }
  const std::vector<bool> differ =
      golden::HolmRejections(p_values, golden::kLevel);
  for (size_t i = 0; i < last.size(); ++i) {
    table.rows[last[i]].back() = differ[i] ? "yes" : "no";
  }
  return table;
}

}  // namespace

double McNemarExact(int64_t only_first, int64_t only_second) {
  SOFTMOE_CHECK(only_first >= 0 && only_second >= 0)
      << only_first << " and " << only_second;
  // Twice the lower tail of a binomial distribution of fair coins.
  const auto coins = static_cast<double>(only_first + only_second);
  const auto fewer = static_cast<double>(std::min(only_first, only_second));
  return std::min(
      1.0, 2 * boost::math::cdf(boost::math::binomial(coins, 0.5), fewer));
}

double AnswerPairs::Flips() const {
  return static_cast<double>(only_first + only_second) /
         static_cast<double>(num_items);
}

double AnswerPairs::Difference() const {
  return static_cast<double>(only_first - only_second) /
         static_cast<double>(num_items);
}

double AnswerPairs::StandardError() const {
  return std::sqrt((Flips() - Difference() * Difference()) /
                   static_cast<double>(num_items));
}

AnswerPairs PairAnswers(std::span<const uint8_t> first,
                        std::span<const uint8_t> second, TaskMeasure measure) {
  SOFTMOE_CHECK(!first.empty() && first.size() == second.size())
      << first.size() << " and " << second.size() << " items";
  AnswerPairs pairs{.num_items = static_cast<int64_t>(first.size())};
  const int bit = static_cast<int>(measure);
  for (size_t i = 0; i < first.size(); ++i) {
    const int by_first = first[i] >> bit & 1, by_second = second[i] >> bit & 1;
    pairs.only_first += by_first & ~by_second;
    pairs.only_second += by_second & ~by_first;
  }
  return pairs;
}

std::optional<double> FlipShare(const std::vector<const TaskResult*>& seeds,
                                TaskMeasure measure) {
  double sum = 0;
  int64_t pairs = 0;
  for (size_t i = 0; i < seeds.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (seeds[i] == nullptr || seeds[j] == nullptr ||
          !SameItems(*seeds[i], *seeds[j])) {
        return std::nullopt;
      }
      sum += PairAnswers(seeds[i]->right, seeds[j]->right, measure).Flips();
      ++pairs;
    }
  }
  if (pairs == 0) return std::nullopt;
  return sum / static_cast<double>(pairs);
}

std::vector<EvaluationTable> TaskComparisonTables(const GridOutcome& outcome) {
  const std::vector<RowSummary> all = SummarizeRows(outcome);
  std::vector<EvaluationTable> tables;
  for (const GridCorpus& corpus : outcome.grid.corpora) {
    std::vector<const RowSummary*> rows;
    std::vector<std::string> tasks;
    for (const RowSummary& row : all) {
      if (row.corpus->id != corpus.id) continue;
      rows.push_back(&row);
      AddTaskNames(row, &tasks);
    }
    const std::vector<SidePair> pairs = PairRows(rows);
    for (const std::string& task : tasks) {
      for (const TaskMeasure measure :
           {TaskMeasure::kAcc, TaskMeasure::kAccNorm}) {
        EvaluationTable table = MakeTable(pairs, task, measure);
        if (table.rows.empty()) continue;
        table.caption = tables.empty() ? kCaption : "Columns as above.";
        table.title = fmt::format(
            "{} of {} on {}, pair by pair",
            trainer::kTaskMeasureNames[static_cast<size_t>(measure)], task,
            corpus.id);
        tables.push_back(std::move(table));
      }
    }
  }
  return tables;
}

}  // namespace softmoe::experiments
