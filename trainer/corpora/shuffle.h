// SPDX-License-Identifier: Apache-2.0
//
// shuffle.h - a random order of any length without a table.
#ifndef SOFTMOE_TRAINER_CORPORA_SHUFFLE_H_
#define SOFTMOE_TRAINER_CORPORA_SHUFFLE_H_

#include <cstdint>

namespace softmoe::trainer {

// Returns which of `count` items is at `position` in the order of `epoch`.
//
//   seed      any; epoch >= 0, < 2^32
//   position  in [0, count); count in [1, 2^62]
// Returns     in [0, count): for fixed (seed, epoch, count) a permutation.
//
// A Feistel network whose round function is Philox (stream kShuffle, step:
// epoch, layer: round), with cycle walking down to `count`: memory does not
// grow with 10^8 sequences, and resuming needs only the position.
int64_t ShuffledIndex(uint64_t seed, int64_t epoch, int64_t position,
                      int64_t count);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_SHUFFLE_H_
