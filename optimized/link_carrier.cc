// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/errors.h"
#include "kernels/cuda/rank_link.h"
#include "optimized/buffer.h"
#include "optimized/carrier.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

std::unique_ptr<kernels::RankLink> LinkOf(Communicator& communicator,
                                          Queue& queue) {
  kernels::LinkId id = {};
  if (communicator.rank() == 0) id = device::MakeLinkId();
  communicator.Broadcast<char>(id, 0);
  communicator.WaitElsewhere("joins the others over NCCL");
  return device::JoinLink(id, communicator.rank(), communicator.size(),
                          queue.stream(),
                          [&communicator] { communicator.CheckOthers(); });
}

class LinkCarrier : public Carrier {
 public:
  LinkCarrier(int64_t largest_shard, Communicator& communicator, Queue& queue)
      : communicator_(communicator),
        rank_(communicator.rank()),
        rows_((communicator.size() - 1) * largest_shard),
        link_(LinkOf(communicator, queue)) {}

  Stream& stream() override { return *link_; }
  bool RunsBeside() const override { return true; }

  void Exchange(const Shards& shards, std::span<float> data) override {
    row_ = shards[static_cast<size_t>(rank_)].size();
    const auto ranks = static_cast<int>(shards.size());
    SOFTMOE_CHECK((ranks - 1) * row_ <= rows_.size())
        << "a row of " << row_ << ", for " << rows_.size() << " in all";
    std::vector<kernels::LinkPart> sends(shards.size()), receives(sends);
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == rank_) continue;
      const auto r = static_cast<size_t>(rank);
      sends[r] = Part(std::as_writable_bytes(PartOf(data, shards[r])));
      receives[r] = Part(std::as_writable_bytes(Row(rank)));
    }
    communicator_.WaitElsewhere("asks NCCL for an exchange");
    link_->Follow();
    link_->Exchange(sends, receives);
  }

  std::span<float> Row(int rank) override {
    return {rows_.data() + (rank < rank_ ? rank : rank - 1) * row_,
            static_cast<size_t>(row_)};
  }

  void Join() override { link_->Join(); }

  void Finish() override {
    communicator_.WaitElsewhere("finishes its exchanges over NCCL");
    link_->Finish();
  }

  void Abandon() noexcept override { link_->Abort(); }

 private:
  static kernels::LinkPart Part(std::span<std::byte> bytes) {
    return {bytes.data(), static_cast<int64_t>(bytes.size())};
  }

  void GatherBytes(const Shards& shards, std::span<std::byte> data) override {
    std::vector<kernels::LinkPart> parts;
    for (const Shard& shard : shards) {
      parts.push_back(Part(PartOf(data, shard)));
    }
    communicator_.WaitElsewhere("asks NCCL for a gathering");
    link_->Follow();
    link_->Gather(parts);
  }

  Communicator& communicator_;
  const int rank_;
  int64_t row_ = 0;     // size of a row of rows_
  Buffer<float> rows_;  // [other ranks, own shard]
  // Declared last, so that it ends first: it may still use the memory.
  std::unique_ptr<kernels::RankLink> link_;
};

}  // namespace

std::unique_ptr<Carrier> MakeLinkCarrier(int64_t largest_shard,
                                         Communicator& communicator,
                                         Queue& queue) {
  return std::make_unique<LinkCarrier>(largest_shard, communicator, queue);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
