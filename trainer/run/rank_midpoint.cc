// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/rank_midpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <vector>

#include "core/errors.h"

namespace softmoe::trainer {
namespace {

constexpr int64_t kCells = 1 << 16;

// For floats >= 0 the bit pattern is monotone in the value.
uint32_t Pattern(float value) {
  // -0.0f equals 0 but has the sign bit set.
  return value == 0.0f ? 0 : std::bit_cast<uint32_t>(value);
}

void RequireFinite(float value) {
  if (!(value >= 0.0f) || std::isinf(value)) {
    throw NumericsError(fmt::format(
        "calibrating tau: a soft weight ratio is {}, expected a finite number "
        ">= 0; the initial parameters or the router are broken",
        value));
  }
}

// The cell that holds the rank-th largest (1-based) of what `counts` counted,
// and its rank inside that cell.
struct CellRank {
  int64_t cell;
  int64_t rank;
};
CellRank FindCell(const std::vector<int64_t>& counts, int64_t rank) {
  for (int64_t cell = kCells - 1; cell >= 0; --cell) {
    if (rank <= counts[cell]) return {cell, rank};
    rank -= counts[cell];
  }
  throw InternalError("rank beyond the number of values");
}

float FromPattern(int64_t upper, int64_t lower) {
  return std::bit_cast<float>(static_cast<uint32_t>(upper << 16 | lower));
}

}  // namespace

RankMidpoint FindRankMidpoint(const ValueSource& source, int64_t rank,
                              int64_t max_stored) {
  RankMidpoint result;
  std::vector<int64_t> upper_counts(kCells, 0);
  std::vector<float> stored;
  source([&](std::span<const float> values) {
    result.count += static_cast<int64_t>(values.size());
    const bool store = result.count <= max_stored;
    if (!store) std::vector<float>().swap(stored);
    for (float value : values) {
      RequireFinite(value);
      ++upper_counts[Pattern(value) >> 16];
    }
    if (store) stored.insert(stored.end(), values.begin(), values.end());
  });
  if (result.count < 2) {
    throw DataError(fmt::format(
        "calibrating tau needs at least 2 soft weights, found {}; use more "
        "calibration_batches or longer sequences",
        result.count));
  }
  result.rank = std::clamp<int64_t>(rank, 1, result.count - 1);

  if (result.count <= max_stored) {
    const auto nth = stored.begin() + (result.rank - 1);
    std::nth_element(stored.begin(), nth, stored.end(), std::greater<>());
    result.larger = *nth;
    result.smaller = *std::max_element(nth + 1, stored.end());
  } else {
    const CellRank first = FindCell(upper_counts, result.rank);
    const CellRank second = FindCell(upper_counts, result.rank + 1);
    std::map<int64_t, std::vector<int64_t>> lower_counts;
    lower_counts[first.cell].resize(kCells);
    lower_counts[second.cell].resize(kCells);
    int64_t seen_again = 0;
    source([&](std::span<const float> values) {
      seen_again += static_cast<int64_t>(values.size());
      for (float value : values) {
        const uint32_t pattern = Pattern(value);
        const auto cell = lower_counts.find(pattern >> 16);
        if (cell != lower_counts.end()) ++cell->second[pattern & 0xffff];
      }
    });
    SOFTMOE_CHECK(seen_again == result.count)
        << "second visit saw " << seen_again << " of " << result.count;
    const auto value_of = [&](const CellRank& at) {
      return FromPattern(at.cell,
                         FindCell(lower_counts[at.cell], at.rank).cell);
    };
    result.larger = value_of(first);
    result.smaller = value_of(second);
  }
  result.midpoint = 0.5 * (static_cast<double>(result.larger) +
                           static_cast<double>(result.smaller));
  return result;
}

}  // namespace softmoe::trainer
