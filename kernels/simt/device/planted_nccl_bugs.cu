// SPDX-License-Identifier: Apache-2.0
//
// Small programs whose ranks, threads on simulated devices of their own, use
// NCCL. All but the controls have one mistake, and must be stopped where the
// table at the end says.
#include <pthread.h>
#include <time.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "kernels/simt/device/device.h"
#include "kernels/simt/device/include/nccl.h"
#include "kernels/simt/shim/planted_bugs.h"
#include "kernels/simt/shim/sanitizer_hooks.h"

namespace softmoe::simt {
namespace {

constexpr int kSize = 500;  // floats: no multiple of 256 bytes
constexpr size_t kBytes = kSize * sizeof(float);
constexpr int kMaxRanks = 3;
constexpr int kThreads = 256;

__global__ void Fill(float value, float* out) {
  const int me = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (me < kSize) out[me] = value + static_cast<float>(me);
}

__global__ void Add(const float* in, float* out) {
  const int me = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (me < kSize) out[me] += in[me];
}

// Fails: a barrier that only some threads reach.
__global__ void WaitForHalf() {
  if (threadIdx.x < 40) __syncthreads();
}

// A rank and what belongs to it, on the device with the rank's number.
class Rank {
 public:
  Rank(int rank, int ranks, const ncclUniqueId& id) : rank(rank), ranks(ranks) {
    Try(cudaSetDevice(rank));
    for (cudaStream_t& stream : streams) {
      Try(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    Try(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    Join(id);
  }

  void Join(const ncclUniqueId& id) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    Try(ncclCommInitRankConfig(&comm, ranks, id, rank, &config));
    Poll();
  }

  void Try(cudaError_t error) {
    if (error != cudaSuccess) Refused(cudaGetErrorString(error));
  }
  void Try(ncclResult_t result) {
    if (result != ncclSuccess && result != ncclInProgress) {
      Refused(ncclGetErrorString(result));
    }
  }
  void Refused(const char* why) {
    if (!refused) fprintf(stderr, "simulator: rank %d: %s\n", rank, why);
    refused = true;
  }

  // Waits until what was asked of NCCL is no longer in progress.
  void Poll() {
    ncclResult_t state = ncclInProgress;
    for (int i = 0; state == ncclInProgress && !refused && i < polls; ++i) {
      Try(ncclCommGetAsyncError(comm, &state));
    }
    if (state == ncclInProgress) Refused("in progress for too long");
    Try(state);
  }

  float* Allocate(size_t bytes = kBytes) {
    void* memory = nullptr;
    Try(cudaMalloc(&memory, bytes));
    return static_cast<float*>(memory);
  }
  // Allocates memory with `value` + i in element i.
  float* AllocateFilled(float value, int stream = 0) {
    float* memory = Allocate();
    Launch(stream, Fill, value, memory);
    return memory;
  }
  template <typename... Parameters, typename... Arguments>
  void Launch(int stream, void (*kernel)(Parameters...),
              Arguments... arguments) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(2);
    config.blockDim = dim3(kThreads);
    config.stream = streams[stream];
    Try(cudaLaunchKernelEx(&config, kernel, arguments...));
  }
  void Order(int earlier, int later) {
    Try(cudaEventRecord(event, streams[earlier]));
    Try(cudaStreamWaitEvent(streams[later], event));
  }

  void Send(const void* from, int peer, size_t count = kSize) {
    Try(ncclSend(from, count, ncclFloat32, peer, comm, streams[0]));
  }
  void Receive(void* to, int peer, size_t count = kSize) {
    Try(ncclRecv(to, count, ncclFloat32, peer, comm, streams[0]));
  }
  void Broadcast(void* data, int root, size_t count = kSize) {
    Try(ncclBroadcast(data, data, count, ncclFloat32, root, comm, streams[0]));
  }
  // Sends every rank's `from` to every rank: received[peer] is peer's.
  void Exchange(const float* from, float* const* received) {
    Try(ncclGroupStart());
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      Send(from, peer);
      Receive(received[peer], peer);
    }
    Try(ncclGroupEnd());
    Poll();
  }

  // Checks that element i of `device` is first + times * i.
  void Expect(const float* device, float first, float times = 1,
              int stream = 0) {
    const std::unique_ptr<float[]> host(new float[kSize]);
    Try(cudaMemcpyAsync(host.get(), device, kBytes, cudaMemcpyDeviceToHost,
                        streams[stream]));
    Try(cudaStreamSynchronize(streams[stream]));
    if (refused) return;
    RequireInitialized(host.get(), kBytes);
    for (int i = 0; i < kSize; ++i) {
      const float want = first + times * static_cast<float>(i);
      if (host[i] == want) continue;
      fprintf(stderr, "rank %d: element %d is %g, not %g\n", rank, i, host[i],
              want);
      wrong = true;
      return;
    }
  }
  void Synchronize() { Try(cudaStreamSynchronize(streams[0])); }
  void Leave() { Try(ncclCommDestroy(comm)); }

  const int rank, ranks;
  ncclComm_t comm = nullptr;
  cudaStream_t streams[2];
  cudaEvent_t event;
  int polls = 100;  // each may wait for a second
  bool refused = false, wrong = false;
};

using Body = void (*)(Rank& rank);

struct RankThread {
  int rank, ranks;
  ncclUniqueId id;
  Body body;
  bool refused, wrong;
  pthread_t thread;
};

// Runs each rank in a thread of its own.
Outcome OnRanks(int ranks, Body body) {
  SetDeviceLimits({.devices = kMaxRanks});
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) return Outcome::kWrong;
  RankThread threads[kMaxRanks];
  for (int r = 0; r < ranks; ++r) {
    threads[r] = {r, ranks, id, body, false, false, {}};
    pthread_create(
        &threads[r].thread, nullptr,
        [](void* argument) -> void* {
          RankThread& own = *static_cast<RankThread*>(argument);
          Rank rank(own.rank, own.ranks, own.id);
          own.body(rank);
          // Otherwise the other ranks would wait for this one.
          if (rank.refused) (void)ncclCommAbort(rank.comm);
          own.refused = rank.refused;
          own.wrong = rank.wrong;
          return nullptr;
        },
        &threads[r]);
  }
  bool refused = false, wrong = false;
  for (int r = 0; r < ranks; ++r) {
    pthread_join(threads[r].thread, nullptr);
    refused |= threads[r].refused;
    wrong |= threads[r].wrong;
  }
  return refused ? Outcome::kRefused
         : wrong ? Outcome::kWrong
                 : Outcome::kClean;
}

// ---- Correct programs

// The sum over ranks, again and again in the same memory.
void ExchangeAndAdd(Rank& r) {
  float* own = r.Allocate();
  float* received[kMaxRanks] = {};
  for (int peer = 0; peer < r.ranks; ++peer) received[peer] = r.Allocate();
  for (int step = 0; step < 3; ++step) {
    r.Launch(0, Fill, static_cast<float>(step + r.rank), own);
    r.Exchange(own, received);
    for (int peer = 0; peer < r.ranks; ++peer) {
      if (peer != r.rank) r.Launch(0, Add, received[peer], own);
    }
  }
  const int n = r.ranks;
  r.Expect(own, static_cast<float>(2 * n + n * (n - 1) / 2),
           static_cast<float>(n));
  r.Leave();
}
Outcome TwoRanksExchange() { return OnRanks(2, ExchangeAndAdd); }
Outcome ThreeRanksExchange() { return OnRanks(3, ExchangeAndAdd); }
Outcome OneRankAlone() { return OnRanks(1, ExchangeAndAdd); }

// Sends each rank's part of an array to all, in place, in one group.
Outcome Gather() {
  return OnRanks(3, [](Rank& r) {
    float* parts[kMaxRanks];
    for (int root = 0; root < r.ranks; ++root) {
      parts[root] = root == r.rank
                        ? r.AllocateFilled(static_cast<float>(100 * root))
                        : r.Allocate();
    }
    r.Try(ncclGroupStart());
    for (int root = 0; root < r.ranks; ++root) r.Broadcast(parts[root], root);
    r.Try(ncclGroupEnd());
    r.Poll();
    for (int root = 0; root < r.ranks; ++root) {
      r.Expect(parts[root], static_cast<float>(100 * root));
    }
    r.Leave();
  });
}

// Rank 1 has other things to do first.
Outcome LateRank() {
  return OnRanks(2, [](Rank& r) {
    float* own = r.AllocateFilled(5);
    if (r.rank == 1) {
      for (int i = 0; i < 20; ++i) r.Expect(own, 5);
    }
    r.Broadcast(own, 1);
    r.Poll();
    r.Expect(own, 5);
    r.Leave();
  });
}

// Another stream fills what is sent, and uses what is received.
Outcome OrderedByEvents() {
  return OnRanks(2, [](Rank& r) {
    float* own = r.AllocateFilled(static_cast<float>(r.rank), 1);
    r.Order(1, 0);
    float* received[2] = {r.Allocate(), r.Allocate()};
    r.Exchange(own, received);
    r.Order(0, 1);
    r.Launch(1, Add, received[1 - r.rank], own);
    r.Expect(own, 1, 2, 1);
    r.Leave();
  });
}

Outcome NothingIsSent() {
  return OnRanks(2, [](Rank& r) {
    r.Try(ncclGroupStart());
    r.Send(nullptr, 1 - r.rank, 0);
    r.Receive(nullptr, 1 - r.rank, 0);
    r.Try(ncclGroupEnd());
    r.Poll();
    r.Synchronize();
    r.Leave();
  });
}

// Rank 1 never comes; rank 0 asks, then gives up, and its device goes on.
Outcome AbortedWhileWaiting() {
  const Outcome outcome = OnRanks(2, [](Rank& r) {
    if (r.rank == 1) {
      r.Try(ncclCommAbort(r.comm));
      return;
    }
    float* received = r.Allocate();
    r.Receive(received, 1);
    r.Poll();
    r.Try(cudaEventRecord(r.event, r.streams[0]));
    if (cudaEventQuery(r.event) != cudaErrorNotReady) r.wrong = true;
    r.Try(ncclCommAbort(r.comm));
    r.Synchronize();
    r.Launch(0, Fill, 3.0f, received);
    r.Expect(received, 3);
  });
  return LiveNcclCommunicators() == 0 ? outcome : Outcome::kWrong;
}

// A single operation needs no group.
Outcome WithoutGroups() {
  return OnRanks(2, [](Rank& r) {
    float* data = r.rank == 0 ? r.AllocateFilled(7) : r.Allocate();
    if (r.rank == 0) {
      r.Send(data, 1);
    } else {
      r.Receive(data, 0);
    }
    r.Poll();
    r.Broadcast(data, 1);
    r.Poll();
    r.Expect(data, 7);
    r.Leave();
  });
}

Outcome EveryCallCanFail() {
  return OnRanks(1, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    ncclUniqueId id;
    ncclComm_t comm;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    int version = 0;
    const auto fails = [&](const char* name, const auto& call) {
      FailCall(name, 1, ncclSystemError);
      const ncclResult_t once = call();
      if (once == ncclSystemError) return;
      fprintf(stderr, "%s does not fail: %d\n", name, once);
      r.wrong = true;
    };
    fails("ncclGetVersion", [&] { return ncclGetVersion(&version); });
    fails("ncclGetUniqueId", [&] { return ncclGetUniqueId(&id); });
    fails("ncclCommInitRankConfig",
          [&] { return ncclCommInitRankConfig(&comm, 1, id, 0, &config); });
    fails("ncclGroupStart", [&] { return ncclGroupStart(); });
    fails("ncclGroupEnd", [&] { return ncclGroupEnd(); });
    fails("ncclSend", [&] {
      return ncclSend(data, 1, ncclFloat32, 0, r.comm, r.streams[0]);
    });
    fails("ncclRecv", [&] {
      return ncclRecv(data, 1, ncclFloat32, 0, r.comm, r.streams[0]);
    });
    fails("ncclBroadcast", [&] {
      return ncclBroadcast(data, data, 1, ncclFloat32, 0, r.comm, r.streams[0]);
    });
    fails("ncclCommGetAsyncError", [&] {
      ncclResult_t state = ncclSuccess;
      const ncclResult_t asked = ncclCommGetAsyncError(r.comm, &state);
      return asked == ncclSuccess ? state : asked;
    });
    fails("ncclCommAbort", [&] { return ncclCommAbort(r.comm); });
    fails("ncclCommDestroy", [&] { return ncclCommDestroy(r.comm); });
    if (ncclGetVersion(&version) != ncclSuccess ||
        version != NCCL_VERSION_CODE) {
      r.wrong = true;
    }
    r.Synchronize();
    r.Leave();
  });
}

// ---- Ranks that ask for different things

Outcome OtherSize() {
  return OnRanks(2, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    if (r.rank == 0) {
      r.Send(data, 1, 4);
    } else {
      r.Receive(data, 0, 5);
    }
    r.Poll();
    r.Synchronize();
  });
}

Outcome OtherType() {
  return OnRanks(2, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    r.Try(ncclBroadcast(data, data, 4, r.rank == 0 ? ncclFloat32 : ncclUint8, 0,
                        r.comm, r.streams[0]));
    r.Poll();
    r.Synchronize();
  });
}

Outcome OtherRoot() {
  return OnRanks(2, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    r.Broadcast(data, r.rank);
    r.Poll();
    r.Synchronize();
  });
}

Outcome OtherOperation() {
  return OnRanks(2, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    if (r.rank == 0) {
      r.Broadcast(data, 0);
    } else {
      r.Receive(data, 0);
    }
    r.Poll();
    r.Synchronize();
  });
}

// Each rank sends first: without a group neither comes to receive.
Outcome SendsWithoutAGroup() {
  return OnRanks(2, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    float* received = r.Allocate();
    r.Send(data, 1 - r.rank);
    r.Poll();
    r.Receive(received, 1 - r.rank);
    r.Poll();
    r.Synchronize();
  });
}

// Rank 0 waits for rank 1 before it comes to what rank 1 needs from it.
Outcome OtherOrder() {
  return OnRanks(2, [](Rank& r) {
    float* a = r.AllocateFilled(1);
    float* b = r.AllocateFilled(2);
    const int first = r.rank;
    for (int i = 0; i < 2; ++i) {
      if ((first + i) % 2 == 0) {
        r.Broadcast(a, 0);
      } else if (r.rank == 0) {
        r.Send(b, 1);
      } else {
        r.Receive(b, 0);
      }
      r.Poll();
    }
    r.Synchronize();
  });
}

double Seconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

// Patience does not end sooner with two waiting ranks than with one.
Outcome RankThatNeverComes() {
  constexpr int kPatience = 2;
  SetPatience(kPatience);
  const double begin = Seconds();
  const Outcome outcome = OnRanks(3, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    if (r.rank == 1) return;
    r.Broadcast(data, 0);
    r.Poll();
    r.Synchronize();
  });
  return Seconds() - begin < kPatience ? Outcome::kWrong : outcome;
}

// The waiting rank waits by an event.
Outcome RankThatNeverComesToAnEvent() {
  SetPatience(1);
  return OnRanks(2, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    if (r.rank == 1) return;
    r.Broadcast(data, 0);
    r.Poll();
    r.Order(0, 1);
    r.Try(cudaStreamSynchronize(r.streams[1]));
  });
}

Outcome RankThatLeftEarly() {
  return OnRanks(2, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    if (r.rank == 1) return r.Leave();
    r.Broadcast(data, 0);
    r.Poll();
    r.Synchronize();
  });
}

Outcome PeerHasAborted() {
  return OnRanks(2, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    if (r.rank == 1) return r.Try(ncclCommAbort(r.comm));
    r.Receive(data, 1);
    r.Poll();
    r.Synchronize();
  });
}

// The kernel of rank 1 fails, which is no failure of rank 0's device.
Outcome PeerHasFailed() {
  return OnRanks(2, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    if (r.rank == 1) {
      r.Launch(0, WaitForHalf);
    } else {
      r.Receive(data, 1);
      r.Poll();
    }
    r.Synchronize();
  });
}

// The rank's device fails before the group is in its stream.
Outcome FailedBeforeItIsAsked() {
  return OnRanks(1, [](Rank& r) {
    r.Broadcast(r.AllocateFilled(1), 0);
    r.Launch(0, WaitForHalf);
    (void)cudaStreamSynchronize(r.streams[0]);
    r.Poll();
  });
}

// ---- Streams

// Data is sent before another stream has filled it.
Outcome SentTooEarly() {
  return OnRanks(2, [](Rank& r) {
    float* own = r.AllocateFilled(static_cast<float>(r.rank), 1);
    float* received[2] = {r.Allocate(), r.Allocate()};
    r.Exchange(own, received);
    r.Expect(received[1 - r.rank], static_cast<float>(1 - r.rank));
  });
}

// Data is used by another stream before it has come.
Outcome UsedTooEarly() {
  return OnRanks(2, [](Rank& r) {
    float* own = r.AllocateFilled(static_cast<float>(r.rank));
    r.Order(0, 1);
    float* received[2] = {r.Allocate(), r.Allocate()};
    r.Exchange(own, received);
    r.Launch(1, Add, received[1 - r.rank], own);
    r.Expect(own, 1, 2, 1);
  });
}

// Data is overwritten by another stream while it is being sent.
Outcome OverwrittenTooEarly() {
  return OnRanks(2, [](Rank& r) {
    float* own = r.AllocateFilled(static_cast<float>(r.rank));
    r.Order(0, 1);
    float* received[2] = {r.Allocate(), r.Allocate()};
    r.Exchange(own, received);
    r.Launch(1, Fill, 50.0f, own);
    r.Try(cudaStreamSynchronize(r.streams[1]));
    r.Expect(received[1 - r.rank], static_cast<float>(1 - r.rank));
  });
}

// The kernel is in the stream before the group is.
Outcome NotAskedUntilTheEnd() {
  return OnRanks(2, [](Rank& r) {
    float* own = r.AllocateFilled(static_cast<float>(r.rank));
    float* received = r.Allocate();
    r.Try(ncclGroupStart());
    r.Send(own, 1 - r.rank);
    r.Receive(received, 1 - r.rank);
    r.Try(ncclGroupEnd());
    r.Launch(0, Add, received, own);
    r.Poll();
    r.Expect(own, 1, 2);
  });
}

// Rank 1 never asks, so its group never begins.
Outcome NeverAsked() {
  SetPatience(3);
  return OnRanks(2, [](Rank& r) {
    float* data = r.AllocateFilled(static_cast<float>(r.rank));
    r.Broadcast(data, 0);
    if (r.rank == 0) r.Poll();
    r.Synchronize();
  });
}

Outcome AskedForMoreInBetween() {
  return OnRanks(2, [](Rank& r) {
    float* data = r.AllocateFilled(static_cast<float>(r.rank));
    r.Broadcast(data, 0);
    r.Broadcast(data, 1);
    r.Synchronize();
  });
}

Outcome AnotherStream() {
  return OnRanks(2, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    for (const cudaStream_t stream : r.streams) {
      r.Try(ncclBroadcast(data, data, kSize, ncclFloat32, 0, r.comm, stream));
      if (!r.refused) r.Poll();
    }
    r.Synchronize();
  });
}

Outcome NullStream() {
  return OnRanks(1, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    r.Try(ncclBroadcast(data, data, kSize, ncclFloat32, 0, r.comm, nullptr));
  });
}

// ---- Memory

Outcome HostMemory() {
  return OnRanks(1, [](Rank& r) {
    const std::unique_ptr<float[]> host(new float[kSize]());
    r.Broadcast(host.get(), 0);
  });
}

Outcome MemoryOfAnotherDevice() {
  return OnRanks(1, [](Rank& r) {
    r.Try(cudaSetDevice(1));
    float* data = r.Allocate();
    r.Try(cudaSetDevice(0));
    r.Broadcast(data, 0);
  });
}

Outcome FreedMemory() {
  return OnRanks(1, [](Rank& r) {
    float* data = r.Allocate();
    r.Try(cudaFree(data));
    r.Broadcast(data, 0);
  });
}

Outcome TooMuchMemory() {
  return OnRanks(1, [](Rank& r) { r.Broadcast(r.Allocate(), 0, kSize + 1); });
}

Outcome FreedWhileQueued() {
  return OnRanks(2, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    r.Synchronize();
    r.Broadcast(data, 0);
    r.Poll();
    r.Try(cudaFree(data));
    r.Synchronize();
  });
}

Outcome FreshMemory() {
  return OnRanks(2, [](Rank& r) {
    float* data = r.Allocate();
    r.Broadcast(data, 0);
    r.Poll();
    r.Expect(data, 1);
  });
}

Outcome TwiceInAGroup() {
  return OnRanks(3, [](Rank& r) {
    float* own = r.AllocateFilled(1);
    float* one = r.Allocate();
    float* const received[] = {one, one, one};
    r.Exchange(own, received);
    r.Synchronize();
  });
}

// The content from before the abort is gone, whether or not the group was in
// its stream by then (kAsked), and first in it (kFirst).
template <bool kAsked, bool kFirst>
Outcome ReadAfterAnAbort() {
  return OnRanks(2, [](Rank& r) {
    if (r.rank == 1) return;
    float* received = r.AllocateFilled(3);
    if (kFirst) r.Synchronize();
    r.Receive(received, 1);
    if (kAsked) r.Poll();
    r.Try(ncclCommAbort(r.comm));
    r.Expect(received, 3);
  });
}

// An aborted group does not keep its memory from being freed.
Outcome FreedAfterAnAbort() {
  return OnRanks(2, [](Rank& r) {
    if (r.rank == 1) return;
    float* data = r.AllocateFilled(3);
    float* received = r.Allocate();
    r.Receive(received, 1);
    r.Poll();
    r.Try(ncclCommAbort(r.comm));
    r.Try(cudaFree(received));
    r.Expect(data, 3);
  });
}

Outcome BroadcastBesideItself() {
  return OnRanks(1, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    r.Try(ncclBroadcast(data, data + 1, kSize - 1, ncclFloat32, 0, r.comm,
                        r.streams[0]));
  });
}

// ---- Communicators

// Both choose the device of rank 0.
Outcome TwoRanksOnADevice() {
  return OnRanks(2, [](Rank& r) {
    r.Leave();
    static ncclUniqueId id;
    static pthread_barrier_t barrier;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, [] {
      pthread_barrier_init(&barrier, nullptr, 2);
      (void)ncclGetUniqueId(&id);
    });
    r.Try(cudaSetDevice(0));
    pthread_barrier_wait(&barrier);
    r.polls = 1;  // the other one is refused
    r.Join(id);
  });
}

template <typename Change>
Outcome JoinsWith(const Change& change) {
  SetDeviceLimits({.devices = kMaxRanks});
  ncclUniqueId id;
  (void)ncclGetUniqueId(&id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comms[2];
  int ranks = 2, rank = 0;
  (void)ncclCommInitRankConfig(&comms[0], ranks, id, rank, &config);
  (void)cudaSetDevice(1);
  rank = 1;
  change(&id, &ranks, &rank, &config);
  const ncclResult_t result =
      ncclCommInitRankConfig(&comms[1], ranks, id, rank, &config);
  if (result == ncclInProgress) return Outcome::kClean;
  fprintf(stderr, "simulator: %s\n", ncclGetErrorString(result));
  return Outcome::kRefused;
}
Outcome JoinsBlocking() {
  return JoinsWith([](ncclUniqueId*, int*, int*, ncclConfig_t* config) {
    *config = NCCL_CONFIG_INITIALIZER;
  });
}
Outcome JoinsWithAForeignId() {
  return JoinsWith([](ncclUniqueId* id, int*, int*, ncclConfig_t*) {
    id->internal[0] = 'S';
  });
}
Outcome JoinsAsTheSameRank() {
  return JoinsWith(
      [](ncclUniqueId*, int*, int* rank, ncclConfig_t*) { *rank = 0; });
}
Outcome JoinsAsARankTooMany() {
  return JoinsWith(
      [](ncclUniqueId*, int*, int* rank, ncclConfig_t*) { *rank = 2; });
}
Outcome JoinsAsOneOfMore() {
  return JoinsWith(
      [](ncclUniqueId*, int* ranks, int*, ncclConfig_t*) { *ranks = 3; });
}

// Nothing is left of the second device's memory for NCCL.
Outcome MemoryFilledBeforeItJoins() {
  return JoinsWith([](ncclUniqueId*, int*, int*, ncclConfig_t*) {
    SetDeviceLimits({.devices = kMaxRanks, .memory = 999, .nccl = 1000});
  });
}

Outcome UsedBeforeItIsReady() {
  return OnRanks(1, [](Rank& r) {
    float* data = r.AllocateFilled(1);
    r.Leave();
    ncclUniqueId id;
    r.Try(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    r.Try(ncclCommInitRankConfig(&r.comm, 1, id, 0, &config));
    r.Broadcast(data, 0);
  });
}

Outcome UsedAfterAbort() {
  return OnRanks(1, [](Rank& r) {
    r.Try(ncclCommAbort(r.comm));
    r.Broadcast(r.Allocate(), 0);
  });
}

Outcome DestroyedWhileQueued() {
  return OnRanks(2, [](Rank& r) {
    r.Broadcast(r.AllocateFilled(1), 0);
    r.Poll();
    r.Leave();
  });
}

Outcome SentToItself() {
  return OnRanks(2, [](Rank& r) {
    float* received = r.Allocate();
    r.Try(ncclGroupStart());
    r.Send(r.AllocateFilled(static_cast<float>(r.rank)), r.rank);
    r.Receive(received, r.rank);
    r.Try(ncclGroupEnd());
    r.Poll();
    r.Expect(received, static_cast<float>(r.rank));
  });
}

Outcome SentToItselfAlone() {
  return OnRanks(2, [](Rank& r) { r.Send(r.AllocateFilled(1), r.rank); });
}

Outcome SentToNobody() {
  return OnRanks(2, [](Rank& r) { r.Send(r.AllocateFilled(1), 2); });
}

Outcome EndWithoutStart() {
  return OnRanks(1, [](Rank& r) { r.Try(ncclGroupEnd()); });
}

Outcome NetworkFails() {
  return OnRanks(1, [](Rank& r) {
    FailCall("ncclCommGetAsyncError", 1, ncclRemoteError);
    r.Poll();
  });
}

constexpr Must kClean = Must::kStayClean, kWrong = Must::kBeWrong,
               kRefuse = Must::kRefuse, kReport = Must::kReport;

// clang-format off
constexpr PlantedBug kPlantedBugs[] = {
    //                                    plain    ASan+UBSan TSan   MSan
    {"two ranks (correct)",              {kClean,  kClean,  kClean,  kClean},  TwoRanksExchange},
    {"three ranks (correct)",            {kClean,  kClean,  kClean,  kClean},  ThreeRanksExchange},
    {"one rank (correct)",               {kClean,  kClean,  kClean,  kClean},  OneRankAlone},
    {"gather (correct)",                 {kClean,  kClean,  kClean,  kClean},  Gather},
    {"late rank (correct)",              {kClean,  kClean,  kClean,  kClean},  LateRank},
    {"ordered by events (correct)",      {kClean,  kClean,  kClean,  kClean},  OrderedByEvents},
    {"nothing is sent (correct)",        {kClean,  kClean,  kClean,  kClean},  NothingIsSent},
    {"aborted while waiting (correct)",  {kClean,  kClean,  kClean,  kClean},  AbortedWhileWaiting},
    {"freed after an abort (correct)",   {kClean,  kClean,  kClean,  kClean},  FreedAfterAnAbort},
    {"sent to itself (correct)",         {kClean,  kClean,  kClean,  kClean},  SentToItself},
    {"without groups (correct)",         {kClean,  kClean,  kClean,  kClean},  WithoutGroups},
    {"every call can fail (correct)",    {kClean,  kClean,  kClean,  kClean},  EveryCallCanFail},

    {"other size",                       {kRefuse, kRefuse, kRefuse, kRefuse}, OtherSize, " floats of rank 0, rank "},
    {"other type",                       {kRefuse, kRefuse, kRefuse, kRefuse}, OtherType, " 4 bytes of rank 0"},
    {"other root",                       {kRefuse, kRefuse, kRefuse, kRefuse}, OtherRoot, "ncclBroadcast number 1: rank "},
    {"other operation",                  {kRefuse, kRefuse, kRefuse, kRefuse}, OtherOperation, "deadlock: ranks wait for each other: rank 0 is in ncclBroadcast number 1 from rank 0; rank 1 is in ncclRecv number 1 from rank 0"},
    {"sends without a group",            {kRefuse, kRefuse, kRefuse, kRefuse}, SendsWithoutAGroup, "deadlock: ranks wait for each other: rank 0 is in ncclSend number 1 to rank 1; rank 1 is in ncclSend number 1 to rank 0"},
    {"other order",                      {kRefuse, kRefuse, kRefuse, kRefuse}, OtherOrder, "deadlock: ranks wait for each other"},
    {"rank that never comes",            {kRefuse, kRefuse, kRefuse, kRefuse}, RankThatNeverComes, "timed out waiting for a rank: rank 0 is in ncclBroadcast number 1 from rank 0; rank 1 has made no further call"},
    {"rank that never comes to an event", {kRefuse, kRefuse, kRefuse, kRefuse}, RankThatNeverComesToAnEvent, "timed out waiting for a rank: rank 0 is in ncclBroadcast"},
    {"rank that left early",             {kRefuse, kRefuse, kRefuse, kRefuse}, RankThatLeftEarly, "rank 1 has destroyed its communicator"},
    {"peer has aborted",                 {kRefuse, kRefuse, kRefuse, kRefuse}, PeerHasAborted, "rank 1 has aborted its communicator"},
    {"peer has failed",                  {kRefuse, kRefuse, kRefuse, kRefuse}, PeerHasFailed, "rank 0 waits forever in ncclRecv number 1 from rank 1: rank 1 has aborted its communicator"},
    {"failed before it is asked",        {kRefuse, kRefuse, kRefuse, kRefuse}, FailedBeforeItIsAsked},

    {"sent too early",                   {kWrong,  kWrong,  kReport, kReport}, SentTooEarly},
    {"used too early",                   {kWrong,  kWrong,  kReport, kReport}, UsedTooEarly},
    {"overwritten too early",            {kWrong,  kWrong,  kReport, kWrong},  OverwrittenTooEarly},
    {"not asked until the end",          {kWrong,  kWrong,  kWrong,  kReport}, NotAskedUntilTheEnd},
    {"never asked",                      {kRefuse, kRefuse, kRefuse, kRefuse}, NeverAsked, "rank 1 has not asked whether its group has ended"},
    {"asked for more in between",        {kRefuse, kRefuse, kRefuse, kRefuse}, AskedForMoreInBetween, "while a group is in progress"},
    {"another stream",                   {kRefuse, kRefuse, kRefuse, kRefuse}, AnotherStream, "on a different stream from"},
    {"null stream",                      {kRefuse, kRefuse, kRefuse, kRefuse}, NullStream, "on the null stream"},

    {"host memory",                      {kRefuse, kRefuse, kRefuse, kRefuse}, HostMemory, "is not an address on a device"},
    {"memory of another device",         {kRefuse, kRefuse, kRefuse, kRefuse}, MemoryOfAnotherDevice, "is memory of device 1, rank 0 is on device 0"},
    {"freed memory",                     {kRefuse, kRefuse, kRefuse, kRefuse}, FreedMemory, "freed)"},
    {"too much memory",                  {kRefuse, kRefuse, kRefuse, kRefuse}, TooMuchMemory, "4 bytes past the end of device memory"},
    {"freed while queued",               {kRefuse, kRefuse, kRefuse, kRefuse}, FreedWhileQueued, "which NCCL that is still queued uses"},
    {"fresh memory",                     {kWrong,  kWrong,  kWrong,  kReport}, FreshMemory},
    {"twice in a group",                 {kRefuse, kRefuse, kRefuse, kRefuse}, TwiceInAGroup, "overlaps what another operation"},

    {"read after an abort",              {kWrong,  kWrong,  kWrong,  kReport}, ReadAfterAnAbort<true, false>},
    {"read after an abort, the first",   {kWrong,  kWrong,  kWrong,  kReport}, ReadAfterAnAbort<true, true>},
    {"read after an abort, not asked",   {kWrong,  kWrong,  kWrong,  kReport}, ReadAfterAnAbort<false, false>},
    {"read after an abort, alone",       {kWrong,  kWrong,  kWrong,  kReport}, ReadAfterAnAbort<false, true>},
    {"broadcast beside itself",          {kRefuse, kRefuse, kRefuse, kRefuse}, BroadcastBesideItself, "what it sends and what it receives overlap"},

    {"two ranks on a device",            {kRefuse, kRefuse, kRefuse, kRefuse}, TwoRanksOnADevice, "Duplicate GPU detected: rank "},
    {"memory filled before it joins",    {kRefuse, kRefuse, kRefuse, kRefuse}, MemoryFilledBeforeItJoins, "ncclCommInitRankConfig takes 1000 bytes of memory: 999 are free"},
    {"joins blocking",                   {kRefuse, kRefuse, kRefuse, kRefuse}, JoinsBlocking, "only config.blocking = 0"},
    {"joins with a foreign id",          {kRefuse, kRefuse, kRefuse, kRefuse}, JoinsWithAForeignId, "ncclGetUniqueId did not make"},
    {"joins as the same rank",           {kRefuse, kRefuse, kRefuse, kRefuse}, JoinsAsTheSameRank, "that rank has already joined"},
    {"joins as a rank too many",         {kRefuse, kRefuse, kRefuse, kRefuse}, JoinsAsARankTooMany, "as rank 2 of 2"},
    {"joins as one of more",             {kRefuse, kRefuse, kRefuse, kRefuse}, JoinsAsOneOfMore, "a different number of ranks"},
    {"used before it is ready",          {kRefuse, kRefuse, kRefuse, kRefuse}, UsedBeforeItIsReady, "while the communicator is in progress"},
    {"used after abort",                 {kRefuse, kRefuse, kRefuse, kRefuse}, UsedAfterAbort, "was never created or is already destroyed"},
    {"destroyed while queued",           {kRefuse, kRefuse, kRefuse, kRefuse}, DestroyedWhileQueued, "still has operations queued"},
    {"sent to itself alone",             {kRefuse, kRefuse, kRefuse, kRefuse}, SentToItselfAlone, "sends to itself without receiving"},
    {"sent to nobody",                   {kRefuse, kRefuse, kRefuse, kRefuse}, SentToNobody, "of 2, with rank 2"},
    {"end without start",                {kRefuse, kRefuse, kRefuse, kRefuse}, EndWithoutStart, "ncclGroupEnd without ncclGroupStart"},
    {"network fails",                    {kRefuse, kRefuse, kRefuse, kRefuse}, NetworkFails, "as a test ordered"},
};
// clang-format on

}  // namespace

std::span<const PlantedBug> PlantedBugs() { return kPlantedBugs; }
const char* PlantedBugsSource() { return "planted_nccl_bugs.cu:"; }

}  // namespace softmoe::simt
