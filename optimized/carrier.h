// SPDX-License-Identifier: Apache-2.0
//
// carrier.h - carries arrays as large as the parameters from rank to rank, from
// where one computes to where the other does: through memory of the host, with
// the communicator, or from device to device, over NCCL.
// Nothing is computed on the way, so the bits are the same.
//
// Everything small (sums of blocks, statistics, agreements) goes through the
// communicator.
#ifndef SOFTMOE_OPTIMIZED_CARRIER_H_
#define SOFTMOE_OPTIMIZED_CARRIER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "optimized/backend.h"
#include "optimized/communicator/communicator.h"
#include "optimized/communicator/shards.h"
#include "optimized/updater.h"

namespace softmoe::optimized {

inline namespace SOFTMOE_BACKEND {

// All ranks call Exchange and Gather with the same shards, in the same order,
// each for arrays where it computes.
class Carrier {
 public:
  virtual ~Carrier() = default;

  // Where incoming data is worked on: the queue, or a stream beside it, so that
  // carrying goes on while the queue computes.
  virtual Stream& stream() = 0;
  virtual bool RunsBeside() const = 0;

  // Enqueues on stream(), after all that is on the queue, that every other rank
  // gets its shard of this rank's `data`, and that Row is what it has in this
  // rank's shard. Until a Join the queue leaves these shards alone.
  //
  //   shards  within `data`, none larger than MakeCarrier was told
  virtual void Exchange(const Shards& shards, std::span<float> data) = 0;

  // What rank `rank`, not this one, had in this rank's shard in the last
  // Exchange; to be used on stream(), until the next Exchange.
  virtual std::span<float> Row(int rank) = 0;

  // Work enqueued on the queue from now on runs after all that is on stream().
  virtual void Join() = 0;

  // Enqueues on stream(), after all that is on the queue, a gather: every
  // rank's own shard of `data` comes to all ranks.
  template <typename T>
  void Gather(const Shards& shards, std::span<T> data) {
    static_assert(std::is_trivially_copyable_v<T>);
    GatherBytes(InBytes<T>(shards), std::as_writable_bytes(data));
  }

  // Waits until everything that was enqueued on the queue is done.
  // Errors   NumericsError if some of it failed; RankError if another rank has.
  virtual void Finish() = 0;

  // Called after an error, before the host waits for the queue by itself: work
  // enqueued there waits for no other rank any more.
  virtual void Abandon() noexcept = 0;

 protected:
  virtual void GatherBytes(const Shards& shards, std::span<std::byte> data) = 0;
};

// The carrier of a rank. Keeps references to `communicator` and `queue`. All
// ranks call it.
//
//   largest_shard  the largest in any Exchange, in elements
// Errors   for NCCL: as JoinLink in kernels/cuda/rank_link.h, and RankError.
std::unique_ptr<Carrier> MakeCarrier(CarrierKind kind, int64_t largest_shard,
                                     Communicator& communicator, Queue& queue);

// The carrier over NCCL (link_carrier.cc; no_link_carrier.cc, which throws, on
// the CPU). Carries beside the queue. The host waits in Finish, and until NCCL
// has accepted what is asked of it.
std::unique_ptr<Carrier> MakeLinkCarrier(int64_t largest_shard,
                                         Communicator& communicator,
                                         Queue& queue);

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_CARRIER_H_
