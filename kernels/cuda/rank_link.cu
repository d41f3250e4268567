// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstring>
#include <exception>
#include <string>
#include <thread>

#include "core/errors.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/nvidia_libraries.h"
#include "kernels/cuda/rank_link.h"

#ifdef SOFTMOE_CUDA_SHIM
#define SOFTMOE_NCCL
#endif

#ifdef SOFTMOE_NCCL
#include <nccl.h>
#endif

namespace softmoe::kernels::SOFTMOE_ISA {

std::string WhyNoLink() {
#ifdef SOFTMOE_CUDA_SHIM
  return "";
#else
  return LoadNccl().missing;
#endif
}

#ifdef SOFTMOE_NCCL

namespace {

// Without the library every call fails.
void RequireLibrary() {
  const std::string missing = WhyNoLink();
  if (!missing.empty()) throw EnvironmentError(missing);
}

class NcclLink : public RankLink {
 public:
  NcclLink(const LinkId& id, int rank, int ranks, cudaStream_t stream,
           const WhileWaiting& while_waiting,
           std::chrono::milliseconds patience)
      : NcclLink(stream, while_waiting, patience) {
    RequireLibrary();
    CheckCuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming),
              "an event");
    CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
              "a stream");
    ncclUniqueId nccl_id;
    static_assert(sizeof(nccl_id.internal) == sizeof(id));
    std::memcpy(nccl_id.internal, id.data(), id.size());
    // Non-blocking: a wait within NCCL would not hear of a rank that failed.
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    Check("joining",
          ncclCommInitRankConfig(&comm_, ranks, nccl_id, rank, &config));
    Settle("joining");
  }

  // Finishes what others may be waiting for, unless one of them, or this rank,
  // fails, or says nothing for too long: then it may itself be waiting for what
  // never comes.
  ~NcclLink() override {
    if (std::uncaught_exceptions() > exceptions_) Abort();
    if (stream_ != nullptr && comm_ != nullptr) {
      give_up_ = Clock::now() + patience_;
      try {
        WaitFor(stream_);
      } catch (...) {
        Abort();
      }
    }
    if (stream_ != nullptr) (void)cudaStreamSynchronize(stream_);
    if (comm_ != nullptr) (void)ncclCommDestroy(comm_);
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
    if (event_ != nullptr) (void)cudaEventDestroy(event_);
  }

  CUstream_st* stream() override { return stream_; }

  void Follow() override { Order(beside_, stream_); }
  void Join() override { Order(stream_, beside_); }

  void Exchange(std::span<const LinkPart> sends,
                std::span<const LinkPart> receives) override {
    Group("an exchange", [&](const auto& note) {
      for (int peer = 0; peer < static_cast<int>(sends.size()); ++peer) {
        const LinkPart &send = sends[peer], &receive = receives[peer];
        if (send.bytes > 0) {
          note(ncclSend(send.data, Count(send), ncclUint8, peer, comm_,
                        stream_));
        }
        if (receive.bytes > 0) {
          note(ncclRecv(receive.data, Count(receive), ncclUint8, peer, comm_,
                        stream_));
        }
      }
    });
  }

  void Gather(std::span<const LinkPart> parts) override {
    Group("a gathering", [&](const auto& note) {
      for (int root = 0; root < static_cast<int>(parts.size()); ++root) {
        const LinkPart& part = parts[root];
        if (part.bytes == 0) continue;
        note(ncclBroadcast(part.data, part.data, Count(part), ncclUint8, root,
                           comm_, stream_));
      }
    });
  }

  void Finish() override { WaitFor(beside_); }

  void Abort() noexcept override {
    if (comm_ != nullptr) (void)ncclCommAbort(comm_);
    comm_ = nullptr;
  }

 private:
  using Clock = std::chrono::steady_clock;

  NcclLink(cudaStream_t beside, const WhileWaiting& while_waiting,
           std::chrono::milliseconds patience)
      : beside_(beside), while_waiting_(while_waiting), patience_(patience) {}

  void WaitFor(cudaStream_t stream) {
    RequireJoined();
    CheckCuda(cudaEventRecord(event_, stream), "an event");
    for (;;) {
      const cudaError_t state = cudaEventQuery(event_);
      if (state == cudaSuccess) return;
      if (state != cudaErrorNotReady) {
        HearOthers();
        Abort();
        CheckCuda(state, "what ranks exchange");
      }
      (void)Progress("waiting");
      Wait();
    }
  }

  // Work enqueued on `later` from now on runs after all that is on `earlier`.
  void Order(cudaStream_t earlier, cudaStream_t later) {
    RequireJoined();
    CheckCuda(cudaEventRecord(event_, earlier), "the order of streams");
    CheckCuda(cudaStreamWaitEvent(later, event_, 0), "the order of streams");
  }

  static size_t Count(const LinkPart& part) {
    return static_cast<size_t>(part.bytes);
  }

  void RequireJoined() const {
    if (comm_ != nullptr) return;
    throw EnvironmentError(
        "the link between the ranks' devices failed before; start all ranks "
        "again");
  }

  static std::string Failure(ncclResult_t result) {
    if (result == ncclSuccess || result == ncclInProgress) return "";
    return ncclGetErrorString(result);
  }

  void Check(const char* what, ncclResult_t result) {
    Require(what, Failure(result));
  }

  void Require(const char* what, const std::string& why) {
    if (why.empty()) return;
    Abort();
    throw EnvironmentError(
        "NCCL, " + std::string(what) + ": " + why +
        "; look at the devices with nvidia-smi, and with NCCL_DEBUG=INFO at "
        "what NCCL says, then start all ranks again");
  }

  // Waits until nothing that was asked for is in progress.
  void Settle(const char* what) {
    while (Progress(what) == ncclInProgress) Wait();
  }

  // Asks NCCL how far it is.
  ncclResult_t Progress(const char* what) {
    ncclResult_t state = ncclSuccess;
    Check(what, ncclCommGetAsyncError(comm_, &state));
    if (!Failure(state).empty()) HearOthers();
    Check(what, state);
    return state;
  }

  // NCCL may have failed because another rank failed or is gone. It is heard
  // first, but does not say who: give the others a second to say so.
  void HearOthers() {
    constexpr std::chrono::seconds kPatience(1);
    for (const auto until = Clock::now() + kPatience; Clock::now() < until;) {
      Wait();
    }
  }

  void Wait() {
    try {
      while_waiting_();
      if (Clock::now() >= give_up_) {
        throw EnvironmentError("another rank has not come");
      }
    } catch (...) {
      Abort();
      throw;
    }
    std::this_thread::yield();
  }

  template <typename Operations>
  void Group(const char* what, const Operations& operations) {
    RequireJoined();
    Check(what, ncclGroupStart());
    std::string why;  // of the first that fails
    const auto note = [&](ncclResult_t result) {
      if (why.empty()) why = Failure(result);
    };
    operations(note);
    note(ncclGroupEnd());
    Require(what, why);
    Settle(what);
  }

  const cudaStream_t beside_;
  const WhileWaiting while_waiting_;
  const std::chrono::milliseconds patience_;
  Clock::time_point give_up_ = Clock::time_point::max();  // in Wait
  const int exceptions_ = std::uncaught_exceptions();
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;  // used for one order after the other
  ncclComm_t comm_ = nullptr;    // null: aborted
};

}  // namespace

std::string LinkLibrary() {
  RequireLibrary();
  int version = 0;
  const ncclResult_t result = ncclGetVersion(&version);
  if (result != ncclSuccess) {
    throw EnvironmentError(std::string("NCCL, its version: ") +
                           ncclGetErrorString(result));
  }
  return "NCCL " + NcclRelease(version);
}

LinkId MakeLinkId() {
  RequireLibrary();
  ncclUniqueId made;
  const ncclResult_t result = ncclGetUniqueId(&made);
  if (result != ncclSuccess) {
    throw EnvironmentError(std::string("NCCL, an id: ") +
                           ncclGetErrorString(result) +
                           "; look with NCCL_DEBUG=INFO at what NCCL says");
  }
  LinkId id;
  std::memcpy(id.data(), made.internal, id.size());
  return id;
}

std::unique_ptr<RankLink> JoinLink(const LinkId& id, int rank, int ranks,
                                   cudaStream_t stream,
                                   const WhileWaiting& while_waiting,
                                   std::chrono::milliseconds patience) {
  return std::make_unique<NcclLink>(id, rank, ranks, stream, while_waiting,
                                    patience);
}

#else

std::string LinkLibrary() { throw EnvironmentError(WhyNoLink()); }

LinkId MakeLinkId() { throw EnvironmentError(WhyNoLink()); }

std::unique_ptr<RankLink> JoinLink(const LinkId&, int, int, cudaStream_t,
                                   const WhileWaiting&,
                                   std::chrono::milliseconds) {
  throw EnvironmentError(WhyNoLink());
}

#endif  // SOFTMOE_NCCL

}  // namespace softmoe::kernels::SOFTMOE_ISA
