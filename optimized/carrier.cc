// SPDX-License-Identifier: Apache-2.0
#include "optimized/carrier.h"

#include <vector>

#include "core/errors.h"
#include "optimized/buffer.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

// Carries through host memory. The host waits for the queue before it reads or
// writes memory that both use.
class HostCarrier : public Carrier {
 public:
  HostCarrier(int64_t largest_shard, Communicator& communicator, Queue& queue)
      : communicator_(communicator),
        queue_(queue),
        sent_(static_cast<size_t>(communicator.size())),
        rows_((communicator.size() - 1) * largest_shard) {}

  Stream& stream() override { return queue_; }
  bool RunsBeside() const override { return false; }

  void Exchange(const Shards& shards, std::span<float> data) override {
    row_ = shards[static_cast<size_t>(communicator_.rank())].size();
    const auto size = static_cast<size_t>((communicator_.size() - 1) * row_);
    SOFTMOE_CHECK(size <= rows_.span().size())
        << "a row of " << row_ << ", for " << rows_.size() << " in all";
    for (size_t r = 0; r < shards.size(); ++r) {
      const std::span<float> part = PartOf(data, shards[r]);
      // This rank's own part is not sent.
      sent_[r].Start(queue_, part.data(), IsOwn(r) ? 0 : shards[r].size());
    }
    optimized::Finish(queue_);  // also waits for the last SendArray
    float* const received = InMemoryOfTheHost(size);
    std::vector<std::span<const float>> parts;
    std::vector<std::span<float>> rows;
    for (size_t r = 0; r < shards.size(); ++r) {
      parts.push_back(IsOwn(r) ? PartOf(data, shards[r]) : sent_[r].view());
      rows.push_back(IsOwn(r) ? std::span<float>() : RowIn(received, r));
    }
    communicator_.Exchange<float>(parts, rows);
    if (received != rows_.data()) {
      SendArray<float>(queue_, {received, size}, rows_.data());
    }
  }

  std::span<float> Row(int rank) override {
    return RowIn(rows_.data(), static_cast<size_t>(rank));
  }

  void Join() override {}

  void Finish() override { optimized::Finish(queue_); }

  // The queue waits for nobody: the host moves what goes between ranks.
  void Abandon() noexcept override {}

 private:
  bool IsOwn(size_t rank) const {
    return rank == static_cast<size_t>(communicator_.rank());
  }

  // The other ranks' rows lie one after the other.
  std::span<float> RowIn(float* rows, size_t rank) const {
    const auto self = static_cast<size_t>(communicator_.rank());
    const auto row = static_cast<size_t>(row_);
    return {rows + (rank < self ? rank : rank - 1) * row, row};
  }

  float* InMemoryOfTheHost(size_t size) {
    return kMemory == MemoryKind::kHost ? rows_.data() : received_.OfSize(size);
  }

  void GatherBytes(const Shards& shards, std::span<std::byte> data) override {
    if constexpr (kMemory == MemoryKind::kHost) {
      communicator_.Gather<std::byte>(shards, data);
      return;
    }
    const Shard whole = {shards.front().begin, shards.back().end};
    const Shards parts = Shifted(shards, -whole.begin);
    const Shard& own = parts[static_cast<size_t>(communicator_.rank())];
    const std::span<std::byte> there = PartOf(data, whole);
    const std::span<std::byte> here(gathered_.OfSize(there.size()),
                                    there.size());
    ReadArray<std::byte>(queue_, PartOf(there, own).data(), PartOf(here, own));
    communicator_.Gather<std::byte>(parts, here);
    WriteArray<std::byte>(queue_, here, there.data());
  }

  Communicator& communicator_;
  Queue& queue_;
  int64_t row_ = 0;                        // size of a row of rows_
  std::vector<FetchedArray<float>> sent_;  // to each rank
  Buffer<float> rows_;                     // [other ranks, own shard]
  HostArray<float> received_;              // a device's rows_, on the host
  HostArray<std::byte> gathered_;
};

}  // namespace

std::unique_ptr<Carrier> MakeCarrier(CarrierKind kind, int64_t largest_shard,
                                     Communicator& communicator, Queue& queue) {
  if (kind == CarrierKind::kHost) {
    return std::make_unique<HostCarrier>(largest_shard, communicator, queue);
  }
  return MakeLinkCarrier(largest_shard, communicator, queue);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
