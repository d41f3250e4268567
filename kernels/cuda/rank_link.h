// SPDX-License-Identifier: Apache-2.0
//
// rank_link.h - sends arrays from device to device over NCCL, between ranks
// that have a device each. Nothing is added up on the way.
#ifndef SOFTMOE_KERNELS_CUDA_RANK_LINK_H_
#define SOFTMOE_KERNELS_CUDA_RANK_LINK_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "kernels/cuda/device.h"

namespace softmoe::kernels {

// Memory of a device; there may be none.
struct LinkPart {
  void* data = nullptr;
  int64_t bytes = 0;
};

// Identifies a link, so that its ranks find each other.
using LinkId = std::array<char, 128>;

// Called again and again while a rank waits for others. An exception ends the
// wait, and the link.
using WhileWaiting = std::function<void()>;

// How long a link that ends waits for what was asked for, at most. Who needs a
// result has called Finish before: what is left are the last operations of a
// rank that ends before the others, or of one whose peer is gone.
inline constexpr std::chrono::milliseconds kPatienceAtEnd(60'000);

// A stream beside the one that ranks compute on, so that both are busy at the
// same time. All ranks call Exchange and Gather, in the same order, from one
// thread each. After an error the link is gone: each function throws
// EnvironmentError.
class RankLink : public Stream {
 public:
  // Work enqueued here after Follow runs after all that is on the stream
  // beside; work enqueued there after Join runs after all that is here.
  virtual void Follow() = 0;
  virtual void Join() = 0;

  // Enqueues that rank r, this one included, gets sends[r], and that
  // receives[r] is overwritten with what it sends. Sizes must fit; empty parts
  // are not sent.
  //
  //   sends, receives  [ranks]
  // Errors   EnvironmentError with what NCCL says, and what to do.
  virtual void Exchange(std::span<const LinkPart> sends,
                        std::span<const LinkPart> receives) = 0;

  // Enqueues that parts[r] is overwritten with rank r's, on all ranks.
  //
  //   parts  [ranks]: of the same sizes on all ranks
  virtual void Gather(std::span<const LinkPart> parts) = 0;

  // Waits until all that is on the stream beside is done. Errors: as before;
  // NumericsError if some of it failed.
  virtual void Finish() = 0;

  // Ends the link as an error does: work enqueued on it waits for no other rank
  // any more, and what it would have written means nothing.
  virtual void Abort() noexcept = 0;
};

// isa_shim is the same source over simulated devices (simt/device/README.md).
//
//   WhyNoLink   why this program or machine has no NCCL, and what to do; "" if
//               it has one
//   LinkLibrary  "NCCL 2.28.9". Errors: EnvironmentError.
//   MakeLinkId  the id of a new link; one rank makes it and tells the others.
//               Errors: EnvironmentError.
//   JoinLink    the link of rank `rank`, of the device in use, beside `stream`,
//               which must outlive it. Returns when all ranks have joined.
//               When it ends, it waits for the others for `patience`, and
//               then does what Abort does. Errors: EnvironmentError: there is
//               no NCCL, two ranks have one device, or NCCL fails.
#define SOFTMOE_DECLARE_RANK_LINK(isa)                            \
  namespace isa {                                                 \
  std::string WhyNoLink();                                        \
  std::string LinkLibrary();                                      \
  LinkId MakeLinkId();                                            \
  std::unique_ptr<RankLink> JoinLink(                             \
      const LinkId& id, int rank, int ranks, CUstream_st* stream, \
      const WhileWaiting& while_waiting,                          \
      std::chrono::milliseconds patience = kPatienceAtEnd);       \
  }                                                               \
  static_assert(true)

SOFTMOE_DECLARE_RANK_LINK(isa_cuda);
SOFTMOE_DECLARE_RANK_LINK(isa_shim);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_RANK_LINK_H_
