// SPDX-License-Identifier: Apache-2.0
#include "optimized/gradient_exchange.h"

#include <algorithm>
#include <utility>

#include "core/errors.h"
#include "core/profile.h"
#include "kernels/adamw.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

size_t SizeOfAll(const std::vector<Bucket>& buckets) {
  int64_t size = 0;
  for (const Bucket& bucket : buckets) size += bucket.end() - bucket.begin();
  return static_cast<size_t>(size);
}

// The next elements, at most `piece`, of each shard after its first `done`.
Shards PiecesOf(Shards shards, int64_t done, int64_t piece) {
  for (Shard& shard : shards) {
    shard.begin = std::min(shard.begin + done, shard.end);
    shard.end = std::min(shard.begin + piece, shard.end);
  }
  return shards;
}

}  // namespace

GradientExchange::GradientExchange(std::vector<Bucket> buckets, int64_t piece,
                                   CarrierKind kind, Communicator& communicator,
                                   Queue& queue)
    : rank_(communicator.rank()),
      ranks_(communicator.size()),
      buckets_(std::move(buckets)),
      piece_(std::min(piece, LargestShard(buckets_))),
      size_(SizeOfAll(buckets_)),
      carrier_(MakeCarrier(kind, piece_, communicator, queue)) {}

void GradientExchange::SumDownTo(int64_t parameter, std::span<float> gradient) {
  SOFTMOE_CHECK(gradient.size() == size_)
      << gradient.size() << " gradients, expected " << size_;
  for (; next_ < buckets_.size() && buckets_[next_].complete_at >= parameter;
       ++next_) {
    SumBucket(buckets_[next_].shards, gradient);
  }
}

void GradientExchange::Finish(std::span<float> gradient) {
  SumDownTo(0, gradient);
  carrier_->Join();
  next_ = 0;
}

void GradientExchange::SumBucket(const Shards& shards,
                                 std::span<float> gradient) {
  if (ranks_ == 1) return;
  const int64_t largest = LargestShard(shards);
  for (int64_t done = 0; done < largest; done += piece_) {
    const Shards pieces = PiecesOf(shards, done, piece_);
    carrier_->Exchange(pieces, gradient);
    SumRows(0, ranks_, PartOf(gradient, pieces[static_cast<size_t>(rank_)]));
  }
}

// Sums over ranks [begin, end) and returns the sum: in `own` if this rank is
// one of them, else in the row of the first.
std::span<float> GradientExchange::SumRows(int begin, int end,
                                           std::span<float> own) {
  if (end - begin == 1) return begin == rank_ ? own : carrier_->Row(begin);
  const int middle = begin + (end - begin) / 2;
  std::span<float> sum = SumRows(begin, middle, own);
  std::span<float> other = SumRows(middle, end, own);
  // A sum of two has the same bits either way round.
  if (middle <= rank_ && rank_ < end) std::swap(sum, other);
  const auto size = static_cast<int64_t>(sum.size());
  BeginOperation("sum over ranks", {.bytes = 12.0 * static_cast<double>(size)});
  ops::Add(kernels::AddArgs{.size = size, .x = other.data(), .y = sum.data()},
           carrier_->stream());
  return sum;
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
