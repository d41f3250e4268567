// SPDX-License-Identifier: Apache-2.0
//
// carrier.h - carries arrays as large as the parameters from rank to rank,
// between the memories in which ranks compute: through host memory with the
// communicator, or from device to device over NCCL. Nothing is computed on the
// way, so both give the same bits.
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

// All ranks must call Exchange and Gather with the same shards, in the same
// order, each with arrays in the memory where it computes.
class Carrier {
 public:
  virtual ~Carrier() = default;

  // The stream on which to process incoming data: the queue, or a stream beside
  // it, so that carrying goes on while the queue computes.
  virtual Stream& stream() = 0;
  virtual bool RunsBeside() const = 0;

  // Enqueues on stream(), after everything on the queue: every other rank gets
  // its shard of this rank's `data`, and Row gives what the others have in this
  // rank's shard. Until Join, the queue must leave these shards alone.
  //
  //   shards  within `data`, none larger than MakeCarrier's largest_shard
  virtual void Exchange(const Shards& shards, std::span<float> data) = 0;

  // What rank `rank`, which must be another one, had in this rank's shard in
  // the last Exchange. For use on stream(), until the next Exchange.
  virtual std::span<float> Row(int rank) = 0;

  // Makes later work on the queue wait for everything on stream().
  virtual void Join() = 0;

  // Enqueues a gather on stream(), after everything on the queue: every rank's
  // own shard of `data` reaches all ranks.
  template <typename T>
  void Gather(const Shards& shards, std::span<T> data) {
    static_assert(std::is_trivially_copyable_v<T>);
    GatherBytes(InBytes<T>(shards), std::as_writable_bytes(data));
  }

  // Waits until everything that was enqueued on the queue is done.
  // Errors   NumericsError if some of it failed; RankError if another rank did.
  virtual void Finish() = 0;

  // Called after an error, before the host waits for the queue: work enqueued
  // there stops waiting for other ranks.
  virtual void Abandon() noexcept = 0;

 protected:
  virtual void GatherBytes(const Shards& shards, std::span<std::byte> data) = 0;
};

// Returns this rank's carrier, which keeps references to `communicator` and
// `queue`. All ranks must call this.
//
//   largest_shard  elements of the largest shard in any Exchange
// Errors   for NCCL: as JoinLink in kernels/cuda/rank_link.h, and RankError.
std::unique_ptr<Carrier> MakeCarrier(CarrierKind kind, int64_t largest_shard,
                                     Communicator& communicator, Queue& queue);

// Returns the carrier over NCCL (link_carrier.cc; no_link_carrier.cc, which
// throws, on the CPU). It carries beside the queue. The host waits in Finish,
// and until NCCL has accepted each request.
std::unique_ptr<Carrier> MakeLinkCarrier(int64_t largest_shard,
                                         Communicator& communicator,
                                         Queue& queue);

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_CARRIER_H_
