// SPDX-License-Identifier: Apache-2.0
#include "optimized/carrier.h"

#include <vector>

#include "core/errors.h"
#include "kernels/cuda/rank_link.h"
#include "optimized/buffer.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

template <typename T>
std::span<T> PartOf(std::span<T> data, const Shard& shard) {
  return data.subspan(static_cast<size_t>(shard.begin),
                      static_cast<size_t>(shard.size()));
}

// Waits for the queue before the host reads or writes what it has in common
// with it.
class HostCarrier : public Carrier {
 public:
  HostCarrier(Communicator& communicator, Queue& queue)
      : communicator_(communicator), queue_(queue) {}

  void Exchange(const Shards& shards, std::span<const float> data) override {
    sent_.Start(queue_, data.data(), static_cast<int64_t>(data.size()));
    optimized::Finish(queue_);  // for what was received last, too
    row_ = static_cast<size_t>(
        shards[static_cast<size_t>(communicator_.rank())].size());
    const size_t size = row_ * static_cast<size_t>(communicator_.size());
    communicator_.ExchangeShards<float>(shards, sent_.view(),
                                        {received_.OfSize(size), size});
  }

  void Receive(int rank, std::span<float> row) override {
    SOFTMOE_CHECK(row.size() == row_) << row.size() << " of " << row_;
    SendArray<float>(queue_, {received_.data() + rank * row_, row_},
                     row.data());
  }

  void Finish() override { optimized::Finish(queue_); }

  // The queue waits for nobody: what goes between ranks, the host moves.
  void Abandon() noexcept override {}

 private:
  void GatherBytes(const Shards& shards, std::span<std::byte> data) override {
    const std::span<std::byte> all(gathered_.OfSize(data.size()), data.size());
    const Shard& own = shards[static_cast<size_t>(communicator_.rank())];
    ReadArray<std::byte>(queue_, PartOf(data, own).data(), PartOf(all, own));
    communicator_.Gather<std::byte>(shards, all);
    WriteArray<std::byte>(queue_, all, data.data());
  }

  Communicator& communicator_;
  Queue& queue_;
  size_t row_ = 0;  // of received_
  FetchedArray<float> sent_;
  HostArray<float> received_;      // [ranks, own shard]
  HostArray<std::byte> gathered_;  // all of it
};

std::unique_ptr<kernels::RankLink> LinkOf(Communicator& communicator,
                                          Queue& queue) {
  kernels::LinkId id = {};
  if (communicator.rank() == 0) id = MakeLinkId();
  communicator.Broadcast<char>(id, 0);
  return JoinLink(id, communicator.rank(), communicator.size(), queue,
                  [&communicator] { communicator.CheckOthers(); });
}

// The host waits in Finish, and for NCCL to have taken in what is asked of it.
class LinkCarrier : public Carrier {
 public:
  LinkCarrier(int64_t largest_shard, Communicator& communicator, Queue& queue)
      : ranks_(communicator.size()),
        rank_(communicator.rank()),
        queue_(queue),
        received_(ranks_ * largest_shard),
        link_(LinkOf(communicator, queue)) {}

  void Exchange(const Shards& shards, std::span<const float> data) override {
    row_ = shards[static_cast<size_t>(rank_)].size();
    SOFTMOE_CHECK(ranks_ * row_ <= received_.size())
        << "a shard of " << row_ << ", for " << received_.size() / ranks_;
    std::vector<kernels::LinkPart> sends, receives;
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::span<const float> part =
          PartOf(data, shards[static_cast<size_t>(rank)]);
      // Which is only read.
      sends.push_back({const_cast<float*>(part.data()),
                       static_cast<int64_t>(part.size_bytes())});
      receives.push_back(
          {Row(rank), row_ * static_cast<int64_t>(sizeof(float))});
    }
    link_->Exchange(sends, receives);
  }

  void Receive(int rank, std::span<float> row) override {
    SOFTMOE_CHECK(static_cast<int64_t>(row.size()) == row_)
        << row.size() << " of " << row_;
    CopyArray<float>(queue_, row_, Row(rank), row.data());
  }

  void Finish() override { link_->Finish(); }

  void Abandon() noexcept override { link_->Abort(); }

 private:
  float* Row(int rank) const { return received_.data() + rank * row_; }

  void GatherBytes(const Shards& shards, std::span<std::byte> data) override {
    std::vector<kernels::LinkPart> parts;
    for (const Shard& shard : shards) {
      const std::span<std::byte> part = PartOf(data, shard);
      parts.push_back({part.data(), static_cast<int64_t>(part.size())});
    }
    link_->Gather(parts);
  }

  const int ranks_, rank_;
  Queue& queue_;
  int64_t row_ = 0;         // of received_
  Buffer<float> received_;  // [ranks, own shard]
  // The first to end: it may still use the memory.
  std::unique_ptr<kernels::RankLink> link_;
};

}  // namespace

std::unique_ptr<Carrier> MakeCarrier(CarrierKind kind, int64_t largest_shard,
                                     Communicator& communicator, Queue& queue) {
  if (kind == CarrierKind::kHost) {
    return std::make_unique<HostCarrier>(communicator, queue);
  }
  return std::make_unique<LinkCarrier>(largest_shard, communicator, queue);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
