// SPDX-License-Identifier: Apache-2.0
//
// gradient_exchange.h - the sum of the ranks' gradients, in one fixed order.
//
//   every rank sends every other its shard; each adds what it has, along the
//   tree of gradient_tree.h with ranks for groups
//
// As many bytes as a reduce-scatter in a ring, but an order that is the same
// for any number of ranks (RanksAreSubtrees) and whatever carries the bytes.
#ifndef SOFTMOE_OPTIMIZED_GRADIENT_EXCHANGE_H_
#define SOFTMOE_OPTIMIZED_GRADIENT_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <span>

#include "optimized/backend.h"
#include "optimized/carrier.h"
#include "optimized/communicator/communicator.h"
#include "optimized/communicator/shards.h"
#include "optimized/gradient_tree.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

class GradientExchange {
 public:
  // Keeps references. Beside what the carrier needs it holds ceil(log2(ranks))
  // pieces of a shard.
  //
  //   piece  elements of each shard that are exchanged at a time: memory for
  //          `ranks` of them is all that a device needs for what it receives
  GradientExchange(int64_t size, int64_t piece, CarrierKind kind,
                   Communicator& communicator, Queue& queue);

  // Of a buffer of `size` elements. They begin at blocks of the norm
  // (kSumOfSquaresBlock), so that it is added in the order of one process.
  const Shards& shards() const { return shards_; }
  Shard own_shard() const { return shards_[static_cast<size_t>(rank_)]; }

  // What carries, for other arrays as well.
  Carrier& carrier() const { return *carrier_; }

  // All ranks call it. Enqueues that `sum` is overwritten with this rank's shard
  // of the sum over ranks; `partial` may be written again when it returns, by
  // what is enqueued.
  //
  //   partial  [size] this rank's sum over its own groups
  //   sum      [own_shard().size()], apart from `partial`
  void Sum(std::span<const float> partial, std::span<float> sum);

 private:
  const int rank_, ranks_;
  const Shards shards_;
  const int64_t piece_;
  std::unique_ptr<Carrier> carrier_;
  GradientTree tree_;
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_GRADIENT_EXCHANGE_H_
