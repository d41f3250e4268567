// SPDX-License-Identifier: Apache-2.0
#include "optimized/parameter_shards.h"

#include <algorithm>
#include <utility>

#include "core/errors.h"
#include "kernels/adamw.h"

namespace softmoe::optimized {
namespace {

// Products look at their operands' addresses modulo 256 bytes
// (kernels/cuda/queue.cu).
constexpr int64_t kAligned = 256 / static_cast<int64_t>(sizeof(float));

}  // namespace

std::vector<Bucket> ParameterBuckets(const ParameterLayout& layout, int ranks) {
  constexpr int64_t kBlock = kernels::kSumOfSquaresBlock;
  std::vector<Bucket> buckets;
  const auto add = [&](int64_t begin, int64_t end, int64_t complete_at) {
    if (begin >= end) return;
    buckets.push_back(
        {Shifted(ShareOut(end - begin, kBlock, ranks), begin), complete_at});
  };
  // The gradients of the budget logits come last.
  const int64_t late = layout.budget_logits < 0
                           ? layout.total
                           : layout.budget_logits / kBlock * kBlock;
  int64_t end = late;
  const auto add_from = [&](int64_t offset) {
    const int64_t begin =
        std::min((offset + kBlock - 1) / kBlock * kBlock, end);
    add(begin, end, offset);
    end = begin;
  };
  add_from(layout.final_norm);
  for (size_t l = layout.layers.size(); l-- > 0;) {
    add_from(layout.layers[l].attention_norm);
  }
  add_from(0);
  add(late, layout.total, 0);
  return buckets;
}

std::vector<PackedPiece> PiecesOfRank(std::span<const Bucket> buckets,
                                      int rank) {
  std::vector<PackedPiece> pieces;
  for (const Bucket& bucket : buckets) {
    const Shard& shard = bucket.shards[static_cast<size_t>(rank)];
    pieces.push_back({shard.begin, 0, shard.size()});
  }
  std::vector<PackedPiece*> in_order;
  for (PackedPiece& piece : pieces) in_order.push_back(&piece);
  std::ranges::sort(in_order, {}, &PackedPiece::offset);
  int64_t packed = 0;
  for (PackedPiece* piece : in_order) {
    piece->packed = packed;
    packed += piece->size;
  }
  return pieces;
}

int64_t SizeOf(std::span<const PackedPiece> pieces) {
  int64_t size = 0;
  for (const PackedPiece& piece : pieces) size += piece.size;
  return size;
}

int64_t LargestPart(std::span<const Bucket> buckets) {
  int64_t largest = 0;
  for (size_t rank = 0; rank < buckets.front().shards.size(); ++rank) {
    int64_t part = 0;
    for (const Bucket& bucket : buckets) part += bucket.shards[rank].size();
    largest = std::max(largest, part);
  }
  return largest;
}

int64_t LargestShard(std::span<const Bucket> buckets) {
  int64_t largest = 0;
  for (const Bucket& bucket : buckets) {
    largest = std::max(largest, LargestShard(bucket.shards));
  }
  return largest;
}

Fp32Tensors::Fp32Tensors(const ParameterLayout& layout) : packed_(layout) {
  // The offsets in the order of the layout.
  std::vector<int64_t*> offsets = {&packed_.embedding};
  for (LayerOffsets& layer : packed_.layers) {
    offsets.push_back(&layer.attention_norm);
    offsets.push_back(&layer.moe_norm);
    offsets.push_back(&layer.router_weight);
    layer.qkv_weight = layer.output_weight = -1;
    layer.gate_up_weight = layer.down_weight = -1;
  }
  offsets.push_back(&packed_.final_norm);
  if (packed_.budget_logits >= 0) offsets.push_back(&packed_.budget_logits);
  packed_.head_weight = -1;
  packed_.tensors.clear();
  packed_.total = 0;
  auto offset = offsets.begin();
  for (ParameterTensor tensor : layout.tensors) {
    if (offset == offsets.end() || **offset != tensor.offset) continue;
    const int64_t packed =
        packed_.total + (tensor.offset - packed_.total) % kAligned;
    tensors_.push_back({tensor.offset, packed, tensor.size});
    **offset++ = tensor.offset = packed;
    packed_.total = packed + tensor.size;
    packed_.tensors.push_back(std::move(tensor));
  }
  SOFTMOE_CHECK(offset == offsets.end());
}

std::vector<PackedPiece> Fp32Tensors::PiecesOf(const Shard& part) const {
  std::vector<PackedPiece> pieces;
  for (const PackedPiece& tensor : tensors_) {
    const Shard both = Overlap(tensor.range(), part);
    if (both.size() == 0) continue;
    pieces.push_back({both.begin, tensor.packed + (both.begin - tensor.offset),
                      both.size()});
  }
  return pieces;
}

Shards Fp32Tensors::PackedShards(const Shards& shards) const {
  const std::vector<PackedPiece> all =
      PiecesOf({shards.front().begin, shards.back().end});
  Shards packed;
  int64_t end = all.empty() ? 0 : all.front().packed;
  for (const Shard& shard : shards) {
    const int64_t begin = end;
    const std::vector<PackedPiece> pieces = PiecesOf(shard);
    if (!pieces.empty()) end = pieces.back().packed + pieces.back().size;
    packed.push_back({begin, end});
  }
  return packed;
}

}  // namespace softmoe::optimized
