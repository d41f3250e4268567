// SPDX-License-Identifier: Apache-2.0
//
// parameter_shards.h - what of the parameters each of several ranks holds
// (ZeRO-1; DESIGN.md, "Types on a device").
//
//   in fp32  the parameters, whole; of the moments its shard
//   in bf16  of the parameters and the moments its shard; besides, whole, the
//            weights of products in bf16 and, packed, the tensors that are read
//            in fp32
#ifndef SOFTMOE_OPTIMIZED_PARAMETER_SHARDS_H_
#define SOFTMOE_OPTIMIZED_PARAMETER_SHARDS_H_

#include <cstdint>
#include <vector>

#include "core/config/parameter_layout.h"
#include "optimized/communicator/shards.h"

namespace softmoe::optimized {

// Those of `total` parameters. They begin at blocks of the gradient's norm
// (kSumOfSquaresBlock), so that it is added in the order of one process.
Shards ParameterShards(int64_t total, int ranks);

// The tensors that are read in fp32 in either precision: embedding, norms and
// routers' weights by passes, the budget logits by the host. Packed: one after
// the other, in the order of the layout, each aligned as it is there, since the
// bits of a product may depend on that.
class Fp32Tensors {
 public:
  explicit Fp32Tensors(const ParameterLayout& layout);

  // Where each is in the packed array; of other tensors, -1.
  const ParameterLayout& packed() const { return packed_; }

  // What of them is in `part` of all parameters.
  struct Piece {
    int64_t offset;  // among all parameters
    int64_t packed;  // in the packed array
    int64_t size;
  };
  std::vector<Piece> PiecesOf(const Shard& part) const;

  // The shards of the packed array: what of it lies in those of all parameters.
  Shards PackedShards(const Shards& shards) const;

 private:
  ParameterLayout packed_;
  std::vector<Piece> tensors_;
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_PARAMETER_SHARDS_H_
