// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature_noise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "golden/verdict/statistics.h"

namespace softmoe::golden {
namespace {

using Values = std::vector<double>;

// Rows and their values, ordered by seed; kPaired: all have the same seeds.
struct Block {
  std::vector<std::string> rows;
  std::vector<Values> values;
};

bool AllEqual(const Values& values) {
  return std::adjacent_find(values.begin(), values.end(),
                            std::not_equal_to<>()) == values.end();
}

// The seeds that all of `rows` have.
std::set<int64_t> CommonSeeds(const SeedValues& values,
                              const std::vector<std::string>& rows) {
  std::set<int64_t> common;
  for (const auto& [seed, value] : values.at(rows.front())) {
    const bool everywhere = std::all_of(
        rows.begin(), rows.end(), [&, seed = seed](const std::string& row) {
          return values.at(row).contains(seed);
        });
    if (everywhere) common.insert(seed);
  }
  return common;
}

// An unfinished grid has no full table: rows with the fewest seeds are dropped
// first, until the others have two seeds in common.
Block MakeBlock(const SeedValues& values, Noise noise) {
  Block block;
  for (const auto& [row, seeds] : values) {
    if (seeds.size() > 1) block.rows.push_back(row);
  }
  std::set<int64_t> seeds;
  while (noise == Noise::kPaired && !block.rows.empty()) {
    seeds = CommonSeeds(values, block.rows);
    if (seeds.size() > 1) break;
    block.rows.erase(
        std::min_element(block.rows.begin(), block.rows.end(),
                         [&](const std::string& a, const std::string& b) {
                           return values.at(a).size() < values.at(b).size();
                         }));
  }
  for (const std::string& row : block.rows) {
    block.values.emplace_back();
    for (const auto& [seed, value] : values.at(row)) {
      if (noise == Noise::kPlain || seeds.contains(seed)) {
        block.values.back().push_back(value);
      }
    }
  }
  return block;
}

// The mean of `rows` for each seed.
Values SeedMeans(const std::vector<const Values*>& rows) {
  Values means(rows.front()->size());
  for (const Values* row : rows) {
    for (size_t s = 0; s < means.size(); ++s) means[s] += (*row)[s];
  }
  for (double& mean : means) mean /= static_cast<double>(rows.size());
  return means;
}

Values Minus(Values a, const Values& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

PooledDeviation Deviation(double squares, double freedom) {
  if (freedom == 0) return {};
  return {std::sqrt(squares / freedom), freedom};
}

PooledDeviation PoolOf(const std::vector<const Values*>& rows, Noise noise) {
  if (rows.empty()) return {};
  const auto num_rows = static_cast<double>(rows.size());
  double squares = 0, freedom = 0;
  Values means;
  if (noise == Noise::kPaired) means = SeedMeans(rows);
  for (const Values* row : rows) {
    const auto seeds = static_cast<double>(row->size());
    if (noise == Noise::kPaired) {
      squares += SquaresAroundMean(Minus(*row, means));
      freedom = (num_rows - 1) * (seeds - 1);
    } else {
      squares += SquaresAroundMean(*row);
      freedom += seeds - 1;
    }
  }
  return Deviation(squares, freedom);
}

// A row's own deviation; the row is not among `others`.
PooledDeviation OwnOf(const Values& row,
                      const std::vector<const Values*>& others, Noise noise) {
  const double squares = noise == Noise::kPaired
                             ? SquaresAroundMean(Minus(row, SeedMeans(others)))
                             : SquaresAroundMean(row);
  return Deviation(squares, static_cast<double>(row.size()) - 1);
}

RowNoise PoolBlock(const Block& block, Noise noise,
                   const MiniatureClaims& claims) {
  // If no row varies, the deviation is known to be 0.
  std::vector<size_t> rows;
  for (size_t r = 0; r < block.rows.size(); ++r) {
    if (!AllEqual(block.values[r])) rows.push_back(r);
  }
  std::vector<const Values*> all;
  if (rows.empty()) {
    for (const Values& row : block.values) all.push_back(&row);
    return {PoolOf(all, noise), {}, {}};
  }
  // Noisiest first.
  for (const size_t r : rows) all.push_back(&block.values[r]);
  const Values means = noise == Noise::kPaired ? SeedMeans(all) : Values();
  Values scatter(block.rows.size());
  for (const size_t r : rows) {
    const Values& row = block.values[r];
    scatter[r] =
        noise == Noise::kPaired
            ? SquaresAroundMean(Minus(row, means))
            : SquaresAroundMean(row) / static_cast<double>(row.size() - 1);
  }
  std::ranges::stable_sort(rows, std::greater<>(),
                           [&](size_t r) { return scatter[r]; });
  const auto allowed = static_cast<size_t>(claims.own_deviation_rows *
                                           static_cast<double>(rows.size()));
  const size_t most = std::min(allowed, rows.size() < 2 ? 0 : rows.size() - 2);
  for (size_t count = most; count > 0; --count) {
    std::vector<const Values*> others;
    for (size_t i = count; i < rows.size(); ++i) {
      others.push_back(&block.values[rows[i]]);
    }
    RowNoise result{PoolOf(others, noise), {}, {}};
    for (size_t i = 0; i < count; ++i) {
      const PooledDeviation own = OwnOf(block.values[rows[i]], others, noise);
      if (own.deviation > claims.own_deviation * result.pooled.deviation) {
        result.own[block.rows[rows[i]]] = own;
      }
    }
    if (result.own.size() == count) return result;
  }
  return {PoolOf(all, noise), {}, {}};
}

// p of Bartlett's test that the rows, none of them constant, have one deviation
// (Bartlett 1937, with his correction).
double BartlettP(const std::vector<const Values*>& rows) {
  if (rows.size() < 2) return 1;
  double squares = 0, freedom = 0, logarithms = 0, inverses = 0;
  for (const Values* row : rows) {
    const double of_row = static_cast<double>(row->size()) - 1;
    const double around = SquaresAroundMean(*row);
    squares += around;
    freedom += of_row;
    logarithms += of_row * std::log(around / of_row);
    inverses += 1 / of_row;
  }
  const auto others = static_cast<double>(rows.size()) - 1;
  const double correction = 1 + (inverses - 1 / freedom) / (3 * others);
  return ChiSquareTail(
      std::max(0.0, freedom * std::log(squares / freedom) - logarithms) /
          correction,
      others);
}

}  // namespace

RowNoise PoolRows(const SeedValues& values, Noise noise,
                  const MiniatureClaims& claims) {
  const Block block = MakeBlock(values, noise);
  RowNoise result = PoolBlock(block, noise, claims);
  for (const auto& [row, own] : result.own) result.left_out.push_back(row);
  for (const auto& [row, seeds] : values) {
    if (std::ranges::find(block.rows, row) == block.rows.end()) {
      result.left_out.push_back(row + " (too few seeds)");
    }
  }
  std::vector<const Values*> pooled;
  for (size_t r = 0; r < block.rows.size(); ++r) {
    if (!AllEqual(block.values[r]) && !result.own.contains(block.rows[r])) {
      pooled.push_back(&block.values[r]);
    }
  }
  result.bartlett = BartlettP(pooled);
  result.unequal = result.bartlett < claims.equal_deviations;
  if (result.unequal && noise == Noise::kPlain) {
    for (size_t r = 0; r < block.rows.size(); ++r) {
      result.own[block.rows[r]] = OwnOf(block.values[r], {}, noise);
    }
  }
  return result;
}

SumError ErrorOf(const std::vector<Term>& terms, const RowNoise& noise) {
  SumError result;
  double pooled = 0, variance = 0, squares = 0;
  for (const Term& term : terms) {
    if (term.weight == 0) continue;
    const PooledDeviation& of = noise.Of(term.row);
    const double part = term.weight * term.weight * of.deviation *
                        of.deviation / static_cast<double>(term.count);
    variance += part;
    if (noise.own.contains(term.row)) {
      squares += part * part / of.freedom;
      result.own.push_back(term.row);
    } else {
      pooled += part;
    }
  }
  squares += pooled * pooled / noise.pooled.freedom;
  result.error = std::sqrt(variance);
  result.freedom =
      variance == 0 ? noise.pooled.freedom : variance * variance / squares;
  return result;
}

SumError OwnErrorOf(const std::vector<Term>& terms, const SeedValues& values,
                    const std::vector<int64_t>& seeds) {
  Values sums(seeds.size());
  for (const Term& term : terms) {
    if (term.weight == 0) continue;
    for (size_t s = 0; s < seeds.size(); ++s) {
      sums[s] += term.weight * values.at(term.row).at(seeds[s]);
    }
  }
  return {ErrorOfMean(sums), static_cast<double>(seeds.size()) - 1, {}};
}

}  // namespace softmoe::golden
