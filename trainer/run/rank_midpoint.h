// SPDX-License-Identifier: Apache-2.0
//
// rank_midpoint.h - the middle between two neighbours of a huge sorted list,
// in bounded memory.
//
// Calibration ranks one number per token, layer and candidate expert: 200
// million at the paper's sizes. Up to `max_stored` values are kept and
// selected from; beyond that they are only counted by the upper 16 bits of
// their float pattern, and a second visit counts the lower 16 bits inside the
// one or two cells that matter. Either way the result is exact.
#ifndef SOFTMOE_TRAINER_RUN_RANK_MIDPOINT_H_
#define SOFTMOE_TRAINER_RUN_RANK_MIDPOINT_H_

#include <cstdint>
#include <functional>
#include <span>

namespace softmoe::trainer {

using ValueVisitor = std::function<void(std::span<const float>)>;
// Passes all values to the visitor, in any pieces; the same ones every time.
using ValueSource = std::function<void(const ValueVisitor&)>;

struct RankMidpoint {
  double midpoint = 0;  // of `larger` and `smaller`, exact in double
  float larger = 0;     // the rank-th largest value
  float smaller = 0;    // the next one, <= larger
  int64_t count = 0;    // values visited
  int64_t rank = 0;     // after clamping to [1, count - 1]
};

// The midpoint between the rank-th and the (rank+1)-th largest value, rank
// clamped to [1, count - 1].
//
//   source      finite values >= 0; called once, or twice if they are more
//               than `max_stored`
// Errors        NumericsError for a negative or non-finite value; DataError
//               for fewer than two values.
RankMidpoint FindRankMidpoint(const ValueSource& source, int64_t rank,
                              int64_t max_stored = int64_t{1} << 24);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_RANK_MIDPOINT_H_
