// SPDX-License-Identifier: Apache-2.0
//
// gradient_exchange.h - the sum of the ranks' gradients, in one fixed order.
//
//   every rank sends every other its shard; each adds all ranks' values of its
//   own shard, along the tree of gradient_tree.h with ranks for groups
//
// This sends as many bytes as a ring reduce-scatter, but adds in an order that
// is the same for any number of ranks (RanksAreSubtrees) and any carrier.
//
// Buckets go one after the other, so those that a backward pass has completed
// can go while it works on the others.
#ifndef SOFTMOE_OPTIMIZED_GRADIENT_EXCHANGE_H_
#define SOFTMOE_OPTIMIZED_GRADIENT_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "optimized/backend.h"
#include "optimized/carrier.h"
#include "optimized/communicator/communicator.h"
#include "optimized/communicator/shards.h"
#include "optimized/parameter_shards.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

class GradientExchange {
 public:
  // Keeps references.
  //
  //   buckets  of all gradients, as ParameterBuckets gives them
  //   piece    elements of each shard to exchange at a time, >= 1; a rank needs
  //            memory to receive as many from each other rank
  GradientExchange(std::vector<Bucket> buckets, int64_t piece, CarrierKind kind,
                   Communicator& communicator, Queue& queue);

  const std::vector<Bucket>& buckets() const { return buckets_; }

  // The carrier, for other arrays as well.
  Carrier& carrier() const { return *carrier_; }

  // All ranks must call these alike. SumDownTo enqueues the sums over ranks of
  // the buckets that a backward pass has completed when it has come down to
  // `parameter`. They overwrite this rank's shards of `gradient`; the other
  // ranks' shards become meaningless. The queue must not touch these buckets
  // until Finish, which sums the others; after it the queue has the sums.
  //
  //   gradient  of all parameters, on the queue: this rank's sum over its own
  //             groups
  void SumDownTo(int64_t parameter, std::span<float> gradient);
  void Finish(std::span<float> gradient);

 private:
  void SumBucket(const Shards& shards, std::span<float> gradient);
  std::span<float> SumRows(int begin, int end, std::span<float> own);

  const int rank_, ranks_;
  const std::vector<Bucket> buckets_;
  const int64_t piece_;
  const size_t size_;  // of all gradients
  std::unique_ptr<Carrier> carrier_;
  size_t next_ = 0;  // index into buckets_
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_GRADIENT_EXCHANGE_H_
