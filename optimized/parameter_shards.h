// SPDX-License-Identifier: Apache-2.0
//
// parameter_shards.h - which of the parameters each of several ranks holds
// (ZeRO-1; DESIGN.md, "Types on a device").
//
//   in fp32  all parameters; its shard of the moments
//   in bf16  its shard of the parameters and of the moments; and, in full, the
//            bf16 weights of products and, packed, the tensors that are read in
//            fp32
#ifndef SOFTMOE_OPTIMIZED_PARAMETER_SHARDS_H_
#define SOFTMOE_OPTIMIZED_PARAMETER_SHARDS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/config/parameter_layout.h"
#include "optimized/communicator/shards.h"

namespace softmoe::optimized {

// A range of parameters whose gradients are exchanged together; every rank has
// a shard of it. So the buckets that a backward pass has completed can be
// exchanged while it goes on, and every rank receives as much as any other.
struct Bucket {
  Shards shards;  // among all parameters, one after the other
  // A backward pass that has come down to this parameter has computed the
  // gradients of the range (backend_model.h).
  int64_t complete_at;

  int64_t begin() const { return shards.front().begin; }
  int64_t end() const { return shards.back().end; }
};

// The buckets of all parameters, in the order in which a backward pass
// completes them: the head's, those of each layer, the embedding's, that of the
// budget logits; empty ones are left out. Shards begin at blocks of the
// gradient's norm (kSumOfSquaresBlock), so that the norm is added in the order
// of one process: a block that two buckets would share is in the later one.
std::vector<Bucket> ParameterBuckets(const ParameterLayout& layout, int ranks);

// The place of a piece of all parameters in an array that holds some of them,
// one after the other.
struct PackedPiece {
  int64_t offset;  // among all parameters
  int64_t packed;  // in the packed array
  int64_t size;

  int64_t end() const { return offset + size; }
  Shard range() const { return {offset, end()}; }
  friend bool operator==(const PackedPiece&, const PackedPiece&) = default;
};

// The shard of rank `rank` in each bucket, which may be empty. They are packed
// in the order of the parameters, so they begin at blocks in the packed array,
// too. SizeOf returns the number of these parameters.
std::vector<PackedPiece> PiecesOfRank(std::span<const Bucket> buckets,
                                      int rank);
int64_t SizeOf(std::span<const PackedPiece> pieces);

// The number of parameters of the rank that has the most.
int64_t LargestPart(std::span<const Bucket> buckets);

// The largest shard of any bucket.
int64_t LargestShard(std::span<const Bucket> buckets);

// The tensors that are read in fp32 in either precision: embedding, norms and
// router weights by passes, the budget logits by the host. They are packed one
// after the other, in the order of the layout, each aligned as in the layout,
// since the bits of a product may depend on alignment.
class Fp32Tensors {
 public:
  explicit Fp32Tensors(const ParameterLayout& layout);

  // The packed array's layout; offsets of other tensors are -1.
  const ParameterLayout& packed() const { return packed_; }

  // The pieces of these tensors that are in `part` of all parameters.
  std::vector<PackedPiece> PiecesOf(const Shard& part) const;

  // The shards of the packed array that lie in those of all parameters.
  Shards PackedShards(const Shards& shards) const;

 private:
  ParameterLayout packed_;
  std::vector<PackedPiece> tensors_;
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_PARAMETER_SHARDS_H_
