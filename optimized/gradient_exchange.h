// SPDX-License-Identifier: Apache-2.0
//
// gradient_exchange.h - the sum of the ranks' gradients, in one fixed order.
//
//   every rank sends every other its shard; each adds what it has, along the
//   tree of gradient_tree.h with ranks for groups
//
// As many bytes as a reduce-scatter in a ring, but an order that is the same
// for any number of ranks (RanksAreSubtrees) and whatever carries the bytes.
// They go through memory of the host.
#ifndef SOFTMOE_OPTIMIZED_GRADIENT_EXCHANGE_H_
#define SOFTMOE_OPTIMIZED_GRADIENT_EXCHANGE_H_

#include <cstdint>
#include <span>

#include "optimized/backend.h"
#include "optimized/communicator/communicator.h"
#include "optimized/communicator/shards.h"
#include "optimized/gradient_tree.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

class GradientExchange {
 public:
  // Keeps references. Holds about `size` floats of the host for what ranks send,
  // as many for what a device sends, and ceil(log2(ranks)) shards.
  GradientExchange(int64_t size, Communicator& communicator, Queue& queue);

  // Of a buffer of `size` elements. They begin at blocks of the norm
  // (kSumOfSquaresBlock), so that it is added in the order of one process.
  const Shards& shards() const { return shards_; }
  Shard own_shard() const {
    return shards_[static_cast<size_t>(communicator_.rank())];
  }

  // All ranks call it. Enqueues that `sum` is overwritten with this rank's shard
  // of the sum over ranks; `partial` may be written again when it returns.
  //
  //   partial  [size] this rank's sum over its own groups
  //   sum      [own_shard().size()], apart from `partial`
  void Sum(std::span<const float> partial, std::span<float> sum);

 private:
  Communicator& communicator_;
  Queue& queue_;
  Shards shards_;
  FetchedArray<float> sent_;
  HostArray<float> received_;  // [ranks, own shard]
  GradientTree tree_;
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_GRADIENT_EXCHANGE_H_
