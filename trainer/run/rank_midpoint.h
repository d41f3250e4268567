// SPDX-License-Identifier: Apache-2.0
//
// rank_midpoint.h - the middle between two neighbours of a sorted list.
#ifndef SOFTMOE_TRAINER_RUN_RANK_MIDPOINT_H_
#define SOFTMOE_TRAINER_RUN_RANK_MIDPOINT_H_

#include <cstdint>
#include <span>

namespace softmoe::trainer {

struct RankMidpoint {
  double midpoint = 0;  // of `larger` and `smaller`, exact in double
  float larger = 0;     // the rank-th largest value
  float smaller = 0;    // the next one, <= larger
  int64_t rank = 0;     // after clamping to [1, number of values - 1]
};

// The midpoint between the rank-th and the (rank+1)-th largest value, rank
// clamped to [1, number of values - 1].
//
//   values   finite, >= 0; reordered by the call
// Errors     NumericsError for a negative or non-finite value; DataError for
//            fewer than two values.
RankMidpoint FindRankMidpoint(std::span<float> values, int64_t rank);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_RANK_MIDPOINT_H_
