// SPDX-License-Identifier: Apache-2.0
//
// miniature_noise.h - the scatter of a grid's runs over seeds (FORMAT.md,
// "Claims in miniature").
#ifndef SOFTMOE_GOLDEN_VERDICT_MINIATURE_NOISE_H_
#define SOFTMOE_GOLDEN_VERDICT_MINIATURE_NOISE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "golden/verdict/equivalence.h"
#include "golden/verdict/miniature.h"

namespace softmoe::golden {

// One number of each run on a corpus: row, seed, value.
using SeedValues = std::map<std::string, std::map<int64_t, double>>;

// The deviation of one run, in the unit of the values.
struct RowNoise {
  PooledDeviation pooled;
  std::map<std::string, PooledDeviation> own;  // rows that keep their own
  std::vector<std::string> left_out;           // not pooled, by name
  // p of Bartlett's test that the pooled rows have one plain deviation; 1 for
  // fewer than two rows. `unequal`: it rejects, and nothing is pooled.
  double bartlett = 1;
  bool unequal = false;

  const PooledDeviation& Of(const std::string& row) const {
    const auto found = own.find(row);
    return found == own.end() ? pooled : found->second;
  }
};

// The deviation pooled over rows with two seeds or more. kPaired: over the rows
// and seeds that make a full table, less each row's mean and each seed's
// effect. A row above `own_deviation` times the pool of the others keeps its
// own; at most the share `own_deviation_rows` does, and at least two remain
// pooled. Rows whose value is the same for all seeds, a setting rather than a
// measurement, are left out so as not to dilute the pool. If Bartlett's test
// rejects, all plain rows keep their own, and paired differences use
// OwnErrorOf. The limits are those of `claims`.
RowNoise PoolRows(const SeedValues& values, Noise noise,
                  const MiniatureClaims& claims);

// A row in a sum of row means, with its sign and weight, and the number of runs
// in its mean.
struct Term {
  std::string row;
  double weight = 0;
  size_t count = 0;
};

// Standard error of such a sum, its degrees of freedom, and those of its rows
// that keep their own deviation.
struct SumError {
  double error = 0, freedom = 0;
  std::vector<std::string> own;
};

// Combines variances of several sources as Welch and Satterthwaite do. The
// pooled deviation must be known, counts positive.
SumError ErrorOf(const std::vector<Term>& terms, const RowNoise& noise);

// Does the same from the deviation of the sum itself over `seeds`, at least
// two, which all its rows have in `values`; seeds - 1 degrees of freedom.
SumError OwnErrorOf(const std::vector<Term>& terms, const SeedValues& values,
                    const std::vector<int64_t>& seeds);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_NOISE_H_
