// SPDX-License-Identifier: Apache-2.0
#include "optimized/backend_parameters.h"

#include <algorithm>

#include "core/errors.h"
#include "optimized/memory_plan.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

Communicator* IfShared(Communicator* communicator) {
  const bool shared = kPrecision == Precision::kBf16 &&
                      communicator != nullptr && communicator->size() > 1;
  return shared ? communicator : nullptr;
}

std::vector<Bucket> BucketsOf(const ParameterLayout& layout,
                              const Communicator* communicator) {
  if (communicator == nullptr) return {};
  return ParameterBuckets(layout, communicator->size());
}

template <typename T>
Buffer<T> BufferIf(bool needed, int64_t size) {
  return needed ? Buffer<T>(size) : Buffer<T>();
}

}  // namespace

BackendParameters::BackendParameters(const ParameterLayout& layout,
                                     Communicator* communicator, Queue& queue)
    : layout_(layout),
      queue_(queue),
      communicator_(IfShared(communicator)),
      tensors_(layout),
      buckets_(BucketsOf(layout, communicator_)),
      held_(shared() ? PiecesOfRank(buckets_, communicator_->rank())
                     : std::vector<PackedPiece>{{0, 0, layout.total}}),
      masters_(SizeOf(held_)),
      weights_(
          BufferIf<Activation>(kPrecision == Precision::kBf16, layout.total)),
      packed_(BufferIf<float>(shared(), tensors_.packed().total)),
      staged_(BufferIf<float>(shared(), StagedParameters(layout.total))) {
  ClearArray(queue, masters_.size(), masters_.data());
  ClearArray(queue, weights_.size(), weights_.data());
  ClearArray(queue, packed_.size(), packed_.data());
  if (!shared()) return;
  for (const Bucket& bucket : buckets_) {
    packed_shards_.push_back(tensors_.PackedShards(bucket.shards));
  }
}

std::vector<float> BackendParameters::Read() const {
  std::vector<float> values(static_cast<size_t>(layout_.total));
  for (const PackedPiece& held : held_) {
    ReadArray<float>(queue_, masters_.data() + held.packed,
                     PartOf(std::span(values), held.range()));
  }
  for (const Bucket& bucket : buckets_) {
    communicator_->Gather<float>(bucket.shards, values);
  }
  return values;
}

void BackendParameters::Write(std::span<const float> values, int64_t first) {
  const Shard written = {first, first + static_cast<int64_t>(values.size())};
  const auto of = [&](const Shard& part) {
    return PartOf(values, {part.begin - first, part.end - first});
  };
  for (const PackedPiece& held : held_) {
    const Shard own = Overlap(held.range(), written);
    if (own.size() > 0) WriteArray(queue_, of(own), Masters(own).data());
  }
  if (!shared()) {
    CopyMasters(written);
    return;
  }
  // The copies are whole on every rank.
  for (const PackedPiece& piece : tensors_.PiecesOf(written)) {
    WriteArray(queue_, of(piece.range()), packed_.data() + piece.packed);
  }
  SendWeights(values, first);
}

void BackendParameters::SendWeights(std::span<const float> values,
                                    int64_t first) {
  const auto total = static_cast<int64_t>(values.size());
  for (int64_t begin = 0; begin < total; begin += staged_.size()) {
    const int64_t size = std::min(staged_.size(), total - begin);
    WriteArray(queue_, PartOf(values, {begin, begin + size}), staged_.data());
    (void)CastTo(queue_, size, staged_.data(), weights_.data() + first + begin);
  }
}

std::span<float> BackendParameters::Masters(const Shard& part) {
  const auto held = std::ranges::find_if(held_, [&](const PackedPiece& piece) {
    return piece.offset <= part.begin && part.end <= piece.end();
  });
  SOFTMOE_CHECK(held != held_.end()) << "parameters from " << part.begin
                                     << " to " << part.end << " are not here";
  const int64_t begin = held->packed + (part.begin - held->offset);
  return PartOf(masters_.span(), {begin, begin + part.size()});
}

void BackendParameters::CopyMasters(const Shard& part) {
  (void)CastTo(queue_, part.size(), Masters(part).data(),
               PartOf(weights(), part).data());
  if (!shared()) return;
  for (const PackedPiece& piece : tensors_.PiecesOf(part)) {
    CopyArray(queue_, piece.size, Masters(piece.range()).data(),
              packed_.data() + piece.packed);
  }
}

std::span<Activation> BackendParameters::weights() {
  return {InPlaceOr(masters_.data(), weights_.data()),
          static_cast<size_t>(layout_.total)};
}

int64_t BackendParameters::bytes() const {
  return masters_.bytes() + weights_.bytes() + packed_.bytes() +
         staged_.bytes();
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
