// SPDX-License-Identifier: Apache-2.0
#include "optimized/backend_parameters.h"

#include <algorithm>

#include "core/errors.h"
#include "optimized/memory_plan.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

template <typename T>
std::span<T> PartOf(std::span<T> values, int64_t begin, int64_t size) {
  return values.subspan(static_cast<size_t>(begin), static_cast<size_t>(size));
}

// What of `part` is in `within`.
Shard Clamped(const Shard& part, const Shard& within) {
  return {std::clamp(part.begin, within.begin, within.end),
          std::clamp(part.end, within.begin, within.end)};
}

Communicator* IfShared(Communicator* communicator) {
  const bool shared = kPrecision == Precision::kBf16 &&
                      communicator != nullptr && communicator->size() > 1;
  return shared ? communicator : nullptr;
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
      shards_(
          ParameterShards(layout.total, shared() ? communicator_->size() : 1)),
      held_(shards_[static_cast<size_t>(shared() ? communicator_->rank() : 0)]),
      masters_(held_.size()),
      weights_(
          BufferIf<Activation>(kPrecision == Precision::kBf16, layout.total)),
      packed_(BufferIf<float>(shared(), tensors_.packed().total)),
      staged_(BufferIf<float>(shared(), StagedParameters(layout.total))) {
  ClearArray(queue, masters_.size(), masters_.data());
  ClearArray(queue, weights_.size(), weights_.data());
  ClearArray(queue, packed_.size(), packed_.data());
  if (!shared()) return;
  packed_shards_ = tensors_.PackedShards(shards_);
  held_pieces_ = tensors_.PiecesOf(held_);
}

std::vector<float> BackendParameters::Read() const {
  std::vector<float> values(static_cast<size_t>(layout_.total));
  ReadArray<float>(queue_, masters_.data(),
                   PartOf(std::span(values), held_.begin, held_.size()));
  if (shared()) communicator_->Gather<float>(shards_, values);
  return values;
}

void BackendParameters::Write(std::span<const float> values, int64_t first) {
  const Shard written = {first, first + static_cast<int64_t>(values.size())};
  const Shard own = Clamped(held_, written);
  if (own.size() > 0) {
    WriteArray(queue_, PartOf(values, own.begin - first, own.size()),
               Masters(own).data());
  }
  if (!shared()) {
    CopyMasters();
    return;
  }
  // Every rank is given what the others have.
  for (const Fp32Tensors::Piece& piece : tensors_.PiecesOf(written)) {
    WriteArray(queue_, PartOf(values, piece.offset - first, piece.size),
               packed_.data() + piece.packed);
  }
  SendWeights(values, first);
}

void BackendParameters::SendWeights(std::span<const float> values,
                                    int64_t first) {
  const auto total = static_cast<int64_t>(values.size());
  for (int64_t begin = 0; begin < total; begin += staged_.size()) {
    const int64_t size = std::min(staged_.size(), total - begin);
    WriteArray(queue_, PartOf(values, begin, size), staged_.data());
    (void)CastTo(queue_, size, staged_.data(), weights_.data() + first + begin);
  }
}

std::span<float> BackendParameters::Masters(const Shard& part) {
  SOFTMOE_CHECK(part.begin >= held_.begin && part.end <= held_.end)
      << "parameters from " << part.begin << " to " << part.end << ", here are "
      << held_.begin << " to " << held_.end;
  return PartOf(masters_.span(), part.begin - held_.begin, part.size());
}

void BackendParameters::CopyMasters() {
  (void)CastTo(queue_, held_.size(), masters_.data(),
               weights_.data() + held_.begin);
  for (const Fp32Tensors::Piece& piece : held_pieces_) {
    CopyArray(queue_, piece.size,
              Masters({piece.offset, piece.offset + piece.size}).data(),
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
