// SPDX-License-Identifier: Apache-2.0
//
// miniature_noise.h - how much the runs of a grid scatter over seeds
// (FORMAT.md, "Claims in miniature").
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
  std::vector<std::string> left_out;           // of the pool, named
  // p of Bartlett's test that the pooled rows have one plain deviation; 1 if
  // there are fewer than two. `unequal`: it is rejected, and nothing is pooled.
  double bartlett = 1;
  bool unequal = false;

  const PooledDeviation& Of(const std::string& row) const {
    const auto found = own.find(row);
    return found == own.end() ? pooled : found->second;
  }
};

// The deviation pooled over rows with two seeds or more. kPaired: of those rows
// and seeds that make a full table, less the mean of each row and the effect of
// each seed. A row above `own_deviation` times the pool of the others keeps its
// own; at most the share `own_rows` do, and at least two rows remain. Rows
// whose value is the same for all seeds, a setting rather than a measurement,
// are left out so as not to dilute the pool. Where Bartlett's test rejects,
// plain rows all keep their own, and paired differences take OwnErrorOf. The
// rules' numbers are those of `claims`.
RowNoise PoolRows(const SeedValues& values, Noise noise,
                  const MiniatureClaims& claims);

// A row in a sum of row means, with its sign and weight, and the number of runs
// in its mean.
struct Term {
  std::string row;
  double weight = 0;
  size_t count = 0;
};

// Standard error of such a sum, its degrees of freedom, and the rows in it that
// keep their own deviation.
struct SumError {
  double error = 0, freedom = 0;
  std::vector<std::string> own;
};

// Variances of several sources combine as Welch and Satterthwaite do. The
// pooled deviation must be known, counts positive.
SumError ErrorOf(const std::vector<Term>& terms, const RowNoise& noise);

// The same by the deviation of the sum itself over `seeds`, at least two, which
// all of its rows have in `values`; seeds - 1 degrees of freedom.
SumError OwnErrorOf(const std::vector<Term>& terms, const SeedValues& values,
                    const std::vector<int64_t>& seeds);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_NOISE_H_
