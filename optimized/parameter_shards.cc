// SPDX-License-Identifier: Apache-2.0
#include "optimized/parameter_shards.h"

#include <algorithm>
#include <utility>

#include "core/errors.h"
#include "kernels/adamw.h"

namespace softmoe::optimized {
namespace {

// What products look at of the addresses of their operands: 256 bytes
// (kernels/cuda/queue.cu).
constexpr int64_t kAligned = 256 / static_cast<int64_t>(sizeof(float));

}  // namespace

Shards ParameterShards(int64_t total, int ranks) {
  return ShareOut(total, kernels::kSumOfSquaresBlock, ranks);
}

Fp32Tensors::Fp32Tensors(const ParameterLayout& layout) : packed_(layout) {
  // In the order of the layout.
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

std::vector<Fp32Tensors::Piece> Fp32Tensors::PiecesOf(const Shard& part) const {
  std::vector<Piece> pieces;
  for (const Piece& tensor : tensors_) {
    const int64_t begin = std::max(tensor.offset, part.begin);
    const int64_t end = std::min(tensor.offset + tensor.size, part.end);
    if (begin >= end) continue;
    pieces.push_back(
        {begin, tensor.packed + (begin - tensor.offset), end - begin});
  }
  return pieces;
}

Shards Fp32Tensors::PackedShards(const Shards& shards) const {
  Shards packed;
  int64_t end = 0;
  for (const Shard& shard : shards) {
    const int64_t begin = end;
    const std::vector<Piece> pieces = PiecesOf(shard);
    if (!pieces.empty()) end = pieces.back().packed + pieces.back().size;
    packed.push_back({begin, end});
  }
  return packed;
}

}  // namespace softmoe::optimized
