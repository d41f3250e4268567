// SPDX-License-Identifier: Apache-2.0
#include "optimized/gradient_exchange.h"

#include <algorithm>

#include "core/errors.h"
#include "optimized/parameter_shards.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

// The part of each shard that is at most `piece` long and begins after `done`.
Shards PiecesOf(Shards shards, int64_t done, int64_t piece) {
  for (Shard& shard : shards) {
    shard.begin = std::min(shard.begin + done, shard.end);
    shard.end = std::min(shard.begin + piece, shard.end);
  }
  return shards;
}

}  // namespace

GradientExchange::GradientExchange(int64_t size, int64_t piece,
                                   CarrierKind kind, Communicator& communicator,
                                   Queue& queue)
    : rank_(communicator.rank()),
      ranks_(communicator.size()),
      shards_(ParameterShards(size, ranks_)),
      piece_(piece),
      carrier_(MakeCarrier(kind, std::min(piece, LargestShard(shards_)),
                           communicator, queue)),
      tree_(std::min(piece, LargestShard(shards_)), ranks_, queue) {}

void GradientExchange::Sum(std::span<const float> partial,
                           std::span<float> sum) {
  const Shard own = own_shard();
  SOFTMOE_CHECK(static_cast<int64_t>(partial.size()) == shards_.back().end &&
                static_cast<int64_t>(sum.size()) == own.size())
      << partial.size() << " and " << sum.size() << " gradients, expected "
      << shards_.back().end << " and " << own.size();
  const auto leaf = [&](int64_t rank, std::span<float> gradient) {
    carrier_->Receive(static_cast<int>(rank), gradient);
  };
  const int64_t largest = LargestShard(shards_);
  for (int64_t done = 0; done < largest; done += piece_) {
    const Shards pieces = PiecesOf(shards_, done, piece_);
    carrier_->Exchange(pieces,
                       partial.first(static_cast<size_t>(pieces.back().end)));
    const Shard& part = pieces[static_cast<size_t>(rank_)];
    tree_.Sum(0, ranks_, leaf,
              sum.subspan(static_cast<size_t>(part.begin - own.begin),
                          static_cast<size_t>(part.size())));
  }
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
