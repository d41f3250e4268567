// SPDX-License-Identifier: Apache-2.0
//
// Small programs for the simulated device. All but the controls have one
// mistake, and must be stopped where the table at the end says.
#include <pthread.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "kernels/simt/device/device.h"
#include "kernels/simt/shared_memory.h"
#include "kernels/simt/shim/planted_bugs.h"
#include "kernels/simt/shim/sanitizer_hooks.h"

namespace softmoe::simt {
namespace {

constexpr int kSize = 500;  // ints: no multiple of 256 bytes
constexpr size_t kBytes = kSize * sizeof(int);
constexpr int kThreads = 256;

// ---- Kernels

__device__ int Me() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void Increment(int n, const int* in, int* out) {
  if (Me() < n) out[Me()] = in[Me()] + 1;
}

__global__ void Fill(int n, int value, int* out) {
  if (Me() < n) out[Me()] = value;
}

// Reads `shift` elements further on.
__global__ void IncrementShifted(int n, int shift, const int* in, int* out) {
  if (Me() < n) out[Me()] = in[Me() + shift] + 1;
}

// A struct with room for garbage before a pointer, within another struct.
struct Inner {
  bool flag;
  int* out;
};
struct Outer {
  int n;
  const int* in;
  float unused;
  Inner inner;
};
__global__ void IncrementByStruct(Outer arguments) {
  if (Me() < arguments.n) {
    arguments.inner.out[Me()] = arguments.in[Me()] + arguments.inner.flag;
  }
}

// Stores a pointer, table[0] = out, and then uses it.
__global__ void StorePointer(int* out, int** table) {
  if (Me() == 0) table[0] = out;
}
__global__ void FillIndirectly(int n, int** table) {
  if (Me() < n) table[0][Me()] = 1;
}

__global__ void WaitForHalf(int* out) {
  if (threadIdx.x < 40) __syncthreads();
  if (Me() < kSize) out[Me()] = 1;
}

__global__ void UseShared(int* out) {
  SOFTMOE_DYNAMIC_SHARED(int, shared);
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = shared[threadIdx.x] + 1;
}

__global__ void UseMuchStaticShared(int* out) {
  SOFTMOE_SHARED(int, shared, [13 * 1024]);
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = shared[threadIdx.x] + 1;
}

// ---- What every program has

class Program {
 public:
  Program() {
    for (cudaStream_t& stream : streams) {
      Try(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    for (cudaEvent_t& event : events) {
      Try(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
    for (int i = 0; i < kSize; ++i) {
      in[i] = 3 * i;
      out[i] = -7;
    }
  }

  void Try(cudaError_t error) {
    if (error == cudaSuccess || refused) return;
    fprintf(stderr, "simulator: %s\n", cudaGetErrorString(error));
    refused = true;
  }

  int* Allocate(size_t bytes = kBytes) {
    void* memory = nullptr;
    Try(cudaMalloc(&memory, bytes));
    return static_cast<int*>(memory);
  }
  // Allocates memory with the content of `in`.
  int* AllocateInput() {
    int* memory = Allocate();
    ToDevice(memory, in, kBytes, streams[0]);
    Try(cudaStreamSynchronize(streams[0]));
    return memory;
  }
  void ToDevice(void* to, const void* from, size_t bytes, cudaStream_t stream) {
    Try(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
  }
  void ToHost(void* to, const void* from, size_t bytes, cudaStream_t stream) {
    Try(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream));
  }
  void Record(int event, int stream) {
    Try(cudaEventRecord(events[event], streams[stream]));
  }
  void Wait(int stream, int event) {
    Try(cudaStreamWaitEvent(streams[stream], events[event]));
  }
  void Synchronize(int stream) { Try(cudaStreamSynchronize(streams[stream])); }

  // Launches two blocks.
  template <typename... Parameters, typename... Arguments>
  void Launch(cudaStream_t stream, void (*kernel)(Parameters...),
              Arguments... arguments) {
    LaunchWith(0, stream, kernel, arguments...);
  }
  template <typename... Parameters, typename... Arguments>
  void LaunchWith(size_t shared, cudaStream_t stream,
                  void (*kernel)(Parameters...), Arguments... arguments) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(2);
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    Try(cudaLaunchKernelEx(&config, kernel, arguments...));
  }

  // Copies `device` to `out` and compares it with in + add.
  Outcome Check(const int* device, int add, int stream = 0) {
    ToHost(out, device, kBytes, streams[stream]);
    Synchronize(stream);
    return CheckOut(add);
  }
  Outcome CheckOut(int add) {
    if (refused) return Outcome::kRefused;
    RequireInitialized(out, kBytes);
    for (int i = 0; i < kSize; ++i) {
      if (out[i] == in[i] + add) continue;
      fprintf(stderr, "out[%d] is %d, not %d\n", i, out[i], in[i] + add);
      return Outcome::kWrong;
    }
    return Outcome::kClean;
  }
  // For programs whose result says nothing.
  Outcome End() {
    Try(cudaDeviceSynchronize());
    return refused ? Outcome::kRefused : Outcome::kClean;
  }

  cudaStream_t streams[3];
  cudaEvent_t events[3];
  // Not on the stack, where TSan does not see all accesses.
  const std::unique_ptr<int[]> in_memory{new int[kSize]};
  const std::unique_ptr<int[]> out_memory{new int[kSize]};
  int* const in = in_memory.get();
  int* const out = out_memory.get();
  bool refused = false;
};

// Runs work(0) on the calling thread and work(1) on one of its own; nothing
// orders the two.
template <typename Work>
void OnTwoThreads(const Work& work) {
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void* own) -> void* {
        (*static_cast<const Work*>(own))(1);
        return nullptr;
      },
      const_cast<Work*>(&work));
  work(0);
  pthread_join(thread, nullptr);
}

// ---- Correct programs

Outcome OneStream() {
  Program p;
  int* a = p.Allocate();
  int* b = p.Allocate();
  p.ToDevice(a, p.in, kBytes, p.streams[0]);
  p.Launch(p.streams[0], Increment, kSize, a, b);
  p.Launch(p.streams[0], Increment, kSize, b, a);
  return p.Check(a, 2);
}

// Streams 0 -> 1 -> 2; then 0 writes what 2 has read.
Outcome ThreeStreams() {
  Program p;
  int* a = p.Allocate();
  int* b = p.Allocate();
  int* c = p.Allocate();
  p.ToDevice(a, p.in, kBytes, p.streams[0]);
  p.Record(0, 0);
  p.Wait(1, 0);
  p.Launch(p.streams[1], Increment, kSize, a, b);
  p.Record(1, 1);
  p.Wait(2, 1);
  p.Launch(p.streams[2], Increment, kSize, b, c);
  p.Record(2, 2);
  p.Wait(0, 2);
  p.Launch(p.streams[0], Increment, kSize, c, a);
  p.Record(0, 0);  // again
  p.Wait(1, 0);
  p.ToHost(p.out, a, kBytes, p.streams[1]);
  p.Synchronize(1);
  return p.CheckOut(3);
}

// The first wait is for an event that was never recorded.
Outcome DoubleBuffered() {
  Program p;
  int* buffers[2] = {p.Allocate(), p.Allocate()};
  int* sum = p.Allocate();
  p.ToDevice(sum, p.in, kBytes, p.streams[1]);
  for (int step = 0; step < 6; ++step) {
    const int half = step % 2;
    p.Wait(0, half);  // until stream 1 has used it
    p.Try(cudaMemcpyAsync(buffers[half], sum, 0, cudaMemcpyDeviceToDevice,
                          p.streams[0]));  // copies nothing
    p.Launch(p.streams[0], Fill, kSize, step, buffers[half]);
    p.Record(2, 0);
    p.Wait(1, 2);
    p.Launch(p.streams[1], Increment, kSize, sum, sum);
    p.Launch(p.streams[1], Increment, kSize, buffers[half], buffers[half]);
    p.Record(half, 1);
  }
  return p.Check(sum, 6, 1);
}

Outcome HostMemoryIsUsedAgain() {
  Program p;
  int* a = p.Allocate();
  int* b = p.Allocate();
  void* pinned = nullptr;
  p.Try(cudaMallocHost(&pinned, kBytes));
  int* host = static_cast<int*>(pinned);
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < kSize; ++i) host[i] = p.in[i] + step;
    p.ToDevice(a, host, kBytes, p.streams[0]);
    p.Synchronize(0);
  }
  p.ToHost(host, a, kBytes, p.streams[0]);
  p.ToDevice(b, host, kBytes, p.streams[0]);  // after the previous copy
  p.Synchronize(0);
  p.Try(cudaFreeHost(pinned));
  return p.Check(b, 2);
}

// Each thread has streams and memory of its own.
Outcome TwoHostThreads() {
  Program programs[2];
  Outcome outcomes[2];
  OnTwoThreads([&](int i) {
    Program& p = programs[i];
    int* a = p.AllocateInput();
    int* b = p.Allocate();
    for (int step = 0; step < 5; ++step) {
      p.Launch(p.streams[1], Increment, kSize, a, b);
      p.Record(0, 1);
      p.Wait(2, 0);
      p.Launch(p.streams[2], Increment, kSize, b, a);
      p.Record(1, 2);
      p.Wait(1, 1);
      if (step % 2 == 1) p.Synchronize(2);
    }
    p.Synchronize(2);
    outcomes[i] = p.Check(a, 10);
    p.Try(cudaFree(b));
  });
  return outcomes[0] == Outcome::kClean ? outcomes[1] : outcomes[0];
}

// A thread waits for what another one has queued.
Outcome AnotherThreadWaits() {
  Program p;
  int* a = p.AllocateInput();
  p.Launch(p.streams[1], Increment, kSize, a, a);
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void* program) -> void* {
        static_cast<Program*>(program)->Synchronize(1);
        return nullptr;
      },
      &p);
  pthread_join(thread, nullptr);
  return p.Check(a, 1);
}

// An error concerns only the thread that made it.
Outcome EachThreadHasItsErrors() {
  Program p;
  cudaError_t seen[2];
  OnTwoThreads([&](int i) {
    if (i == 1) (void)cudaFree(&p);
    seen[i] = cudaGetLastError();
  });
  return seen[0] == cudaSuccess && seen[1] == cudaErrorInvalidValue
             ? p.End()
             : Outcome::kWrong;
}

// Streams, memory and events belong to the device chosen at the time.
Outcome TwoDevices() {
  SetDeviceLimits({.devices = 2, .memory = 8192});
  Program first;
  first.Try(cudaSetDevice(1));
  Program second;
  int count = 0;
  second.Try(cudaGetDeviceCount(&count));
  if (count != 2) return Outcome::kWrong;
  int* b = second.AllocateInput();
  int* more = second.Allocate(8192 - 2048);  // each device has its own
  second.Launch(second.streams[0], Increment, kSize, b, b);
  first.Try(cudaSetDevice(0));
  int* a = first.AllocateInput();
  first.Try(cudaStreamWaitEvent(first.streams[0], second.events[0]));
  first.Launch(first.streams[0], Increment, kSize, a, a);
  const Outcome outcome = first.Check(a, 1);
  if (outcome != Outcome::kClean) return outcome;
  second.Try(cudaSetDevice(1));
  second.Try(cudaFree(more));
  return second.Check(b, 1);
}

Outcome HostAsksUntilDone() {
  Program p;
  int* a = p.AllocateInput();
  p.Launch(p.streams[1], Increment, kSize, a, a);
  p.Record(0, 1);
  p.Launch(p.streams[1], Increment, kSize, a, a);
  p.ToHost(p.out, a, kBytes, p.streams[1]);
  p.Record(1, 1);
  int asked = 0;
  cudaError_t state;
  while ((state = cudaEventQuery(p.events[1])) == cudaErrorNotReady) ++asked;
  p.Try(state);
  p.Try(cudaEventSynchronize(p.events[0]));
  if (asked == 0) return Outcome::kWrong;
  return p.CheckOut(2);
}

Outcome FreedWhenDone() {
  Program p;
  for (int step = 0; step < 3; ++step) {
    int* a = p.AllocateInput();
    p.Launch(p.streams[1], Increment, kSize, a, a);
    const Outcome outcome = p.Check(a, 1, 1);
    if (outcome != Outcome::kClean) return outcome;
    p.Try(cudaFree(a));
  }
  if (LiveAllocations() != 0 || LiveBytes() != 0) return Outcome::kWrong;
  return p.End();
}

Outcome Structs() {
  Program p;
  int* a = p.AllocateInput();
  Outer outer;
  memset(&outer, 0x7f, sizeof(outer));  // as if an address had stood there
  const void* garbage = &outer;
  memcpy(static_cast<void*>(&outer.inner), &garbage, sizeof(garbage));
  outer.n = kSize;
  outer.in = a;
  outer.inner.flag = true;
  outer.inner.out = a;
  p.Launch(p.streams[0], IncrementByStruct, outer);
  // One past the end, for no elements; and null.
  p.Launch(p.streams[0], Increment, 0, a + kSize, static_cast<int*>(nullptr));
  return p.Check(a, 1);
}

Outcome AllSharedMemory() {
  Program p;
  SetDeviceLimits({.shared_memory_per_block = 100 * 1024});
  int* a = p.AllocateInput();
  p.Try(cudaFuncSetAttribute(
      UseShared, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024));
  p.LaunchWith(100 * 1024, p.streams[0], UseShared, a);
  return p.End();
}

Outcome Zeros() {
  Program p;
  int* a = p.Allocate();
  p.Try(cudaMemsetAsync(a, 0, kBytes, p.streams[0]));
  p.Launch(p.streams[0], Increment, kSize, a, a);
  for (int i = 0; i < kSize; ++i) p.in[i] = 0;
  return p.Check(a, 1);
}

// Checks whether stream 1 has run once the host has waited for stream 0. In the
// random schedule it may have.
Outcome SchedulesAreWhatTheySay() {
  Program p;
  p.Launch(p.streams[0], Fill, kSize, 1, p.Allocate());
  p.Launch(p.streams[1], Fill, kSize, 1, p.Allocate());
  p.Record(1, 1);
  if (cudaEventQuery(p.events[2]) != cudaSuccess) return Outcome::kWrong;
  p.Synchronize(0);
  const bool ran = cudaEventQuery(p.events[1]) == cudaSuccess;
  if (ChosenSchedule() == Schedule::kAscending && ran) return Outcome::kWrong;
  if (ChosenSchedule() == Schedule::kDescending && !ran) return Outcome::kWrong;
  return p.End();
}

// ---- Host and device

Outcome HostReadsDevice() {
  Program p;
  const volatile int* a = p.AllocateInput();
  return a[3] == 9 ? Outcome::kClean : Outcome::kWrong;
}

// Memory that the device has not used yet.
Outcome HostReadsFreshDevice() {
  Program p;
  const volatile int* a = p.Allocate();
  return a[3] == 9 ? Outcome::kClean : Outcome::kWrong;
}

Outcome HostWritesDevice() {
  Program p;
  int* a = p.AllocateInput();
  a[3] = 1;
  return p.Check(a, 0);
}

// The old content happens to be right.
Outcome HostReadsTooEarly() {
  Program p;
  int* a = p.AllocateInput();
  for (int i = 0; i < kSize; ++i) p.out[i] = p.in[i];
  p.ToHost(p.out, a, kBytes, p.streams[0]);
  const Outcome outcome = p.CheckOut(0);
  p.Synchronize(0);
  return outcome;
}

Outcome HostWaitsForTheWrongStream() {
  Program p;
  int* a = p.AllocateInput();
  p.ToHost(p.out, a, kBytes, p.streams[1]);
  p.Synchronize(0);
  const Outcome outcome = p.CheckOut(0);
  p.Synchronize(1);
  return outcome;
}

Outcome HostReusesMemory() {
  Program p;
  int* a = p.Allocate();
  p.ToDevice(a, p.in, kBytes, p.streams[0]);
  p.in[kSize - 1] = 5;
  return p.Check(a, 0);
}

// The second copy still reads the memory that the host changes.
Outcome HostReusesMemoryOfTheSecond() {
  Program p;
  int* a = p.Allocate();
  p.ToDevice(a, p.in, kBytes, p.streams[0]);
  p.Record(0, 0);
  p.ToDevice(a, p.in, kBytes, p.streams[0]);
  p.Try(cudaEventSynchronize(p.events[0]));
  p.in[1] = 5;
  return p.Check(a, 0);
}

Outcome HostFreesMemory() {
  Program p;
  int* a = p.Allocate();
  int* host = static_cast<int*>(malloc(kBytes));
  memcpy(host, p.in, kBytes);
  p.ToDevice(a, host, kBytes, p.streams[0]);
  free(host);
  return p.Check(a, 0);
}

Outcome HostFreesPinned() {
  Program p;
  int* a = p.Allocate();
  void* host = nullptr;
  p.Try(cudaMallocHost(&host, kBytes));
  memcpy(host, p.in, kBytes);
  p.ToDevice(a, host, kBytes, p.streams[0]);
  p.Try(cudaFreeHost(host));
  return p.End();
}

Outcome HostUsesFreedPinned() {
  Program p;
  void* host = nullptr;
  p.Try(cudaMallocHost(&host, kBytes));
  p.Try(cudaFreeHost(host));
  static_cast<volatile int*>(host)[0] = 1;
  return Outcome::kClean;
}

// ---- Streams

Outcome MissingEvent() {
  Program p;
  int* a = p.AllocateInput();
  int* b = p.Allocate();
  p.Launch(p.streams[1], Increment, kSize, a, b);
  p.Launch(p.streams[0], Increment, kSize, b, a);  // stream 1 is not waited for
  const Outcome outcome = p.Check(a, 2);
  p.Synchronize(1);
  return outcome;
}

Outcome MissingEventBeforeOverwriting() {
  Program p;
  int* a = p.AllocateInput();
  int* b = p.Allocate();
  p.Launch(p.streams[0], Increment, kSize, a, b);
  p.Launch(p.streams[1], Fill, kSize, 0, a);
  const Outcome outcome = p.Check(b, 1);
  p.Synchronize(1);
  return outcome;
}

// Stream 1 writes what is there already: no result can show it.
Outcome MissingEventOfTheSame() {
  Program p;
  int* a = p.Allocate();
  p.Launch(p.streams[0], Fill, kSize, 1, a);
  p.Synchronize(0);
  p.Launch(p.streams[0], Fill, kSize, 1, a);
  p.Launch(p.streams[1], Fill, kSize, 1, a);
  return p.End();
}

Outcome MissingEventOfACopy() {
  Program p;
  int* a = p.Allocate();
  int* b = p.Allocate();
  p.ToDevice(a, p.in, kBytes, p.streams[1]);
  p.Launch(p.streams[0], Increment, kSize, a, b);
  const Outcome outcome = p.Check(b, 1);
  p.Synchronize(1);
  return outcome;
}

Outcome WaitBeforeRecord() {
  Program p;
  int* a = p.AllocateInput();
  p.Wait(0, 0);
  p.Launch(p.streams[1], Increment, kSize, a, a);
  p.Record(0, 1);
  const Outcome outcome = p.Check(a, 1);
  p.Synchronize(1);
  return outcome;
}

// The event is recorded before the work that it should stand for.
Outcome RecordTooEarly() {
  Program p;
  int* a = p.AllocateInput();
  p.Record(0, 1);
  p.Launch(p.streams[1], Increment, kSize, a, a);
  p.Wait(0, 0);
  const Outcome outcome = p.Check(a, 1);
  p.Synchronize(1);
  return outcome;
}

// The wait of another stream must not order this one.
Outcome OnlyTheOtherWaits() {
  Program p;
  int* a = p.AllocateInput();
  p.Launch(p.streams[1], Increment, kSize, a, a);
  p.Record(0, 1);
  p.Wait(2, 0);
  p.Launch(p.streams[2], Increment, 0, a, a);
  const Outcome outcome = p.Check(a, 1);
  p.Try(cudaDeviceSynchronize());
  return outcome;
}

// The host has waited for stream 1, but not for a later kernel.
Outcome WaitedTooEarly() {
  Program p;
  int* a = p.AllocateInput();
  p.Launch(p.streams[1], Fill, kSize, 1, a);
  p.Synchronize(1);
  p.Launch(p.streams[1], Fill, kSize, 2, a);
  p.Launch(p.streams[0], Fill, kSize, 2, a);
  return p.End();
}

// Stream 0 has run a kernel of its own after that of stream 1, unordered.
Outcome MissingEventAfterAnother() {
  Program p;
  int* a = p.Allocate();
  int* b = p.Allocate();
  p.Launch(p.streams[1], Fill, kSize, 1, a);
  p.Record(0, 1);
  p.Launch(p.streams[0], Fill, kSize, 1, b);
  p.Launch(p.streams[0], Fill, kSize, 1, a);
  p.Try(cudaEventSynchronize(p.events[0]));
  return p.End();
}

// The wait is for the first record, whatever has run by then.
Outcome RecordedAgain() {
  Program p;
  int* a = p.Allocate();
  p.Record(0, 1);
  p.Wait(0, 0);
  p.Launch(p.streams[1], Fill, kSize, 1, a);
  p.Record(0, 1);
  p.Record(1, 1);
  p.Launch(p.streams[0], Fill, kSize, 1, a);
  p.Try(cudaEventSynchronize(p.events[1]));
  return p.End();
}

Outcome NullStreamOfAKernel() {
  Program p;
  int* a = p.AllocateInput();
  p.Launch(nullptr, Increment, kSize, a, a);
  return p.End();
}
Outcome LegacyStream() {
  Program p;
  int* a = p.AllocateInput();
  p.Launch(reinterpret_cast<cudaStream_t>(1), Increment, kSize, a, a);
  return p.End();
}
Outcome NullStreamOfACopy() {
  Program p;
  int* a = p.Allocate();
  p.ToDevice(a, p.in, kBytes, nullptr);
  return p.End();
}
Outcome NullStreamOfAFill() {
  Program p;
  p.Try(cudaMemsetAsync(p.Allocate(), 0, kBytes));
  return p.End();
}
Outcome NullStreamOfAnEvent() {
  Program p;
  p.Try(cudaEventRecord(p.events[0]));
  return p.End();
}

Outcome StreamDestroyedTooEarly() {
  Program p;
  int* a = p.AllocateInput();
  p.Launch(p.streams[1], Increment, kSize, a, a);
  p.Try(cudaStreamDestroy(p.streams[1]));
  return p.End();
}
Outcome StreamUsedAfterDestroy() {
  Program p;
  int* a = p.AllocateInput();
  p.Try(cudaStreamDestroy(p.streams[1]));
  p.Launch(p.streams[1], Increment, kSize, a, a);
  return p.End();
}
Outcome EventUsedAfterDestroy() {
  Program p;
  p.Try(cudaEventDestroy(p.events[1]));
  p.Record(1, 0);
  return p.End();
}

// ---- Memory

Outcome LaunchAfterFree() {
  Program p;
  int* a = p.AllocateInput();
  p.Try(cudaFree(a));
  p.Launch(p.streams[0], Increment, kSize, a, a);
  return p.End();
}

Outcome FreeWhileQueued() {
  Program p;
  int* a = p.AllocateInput();
  p.Launch(p.streams[1], Increment, kSize, a, a);
  p.Try(cudaFree(a));
  return p.End();
}

Outcome FreeWhileCopied() {
  Program p;
  int* a = p.AllocateInput();
  p.ToHost(p.out, a, kBytes, p.streams[1]);
  p.Try(cudaFree(a));
  return p.End();
}

// The launch does not show the pointer.
Outcome IndirectUseAfterFree() {
  Program p;
  int* a = p.Allocate();
  int** table = reinterpret_cast<int**>(p.Allocate());
  p.Launch(p.streams[0], StorePointer, a, table);
  p.Synchronize(0);
  p.Try(cudaFree(a));
  p.Launch(p.streams[0], FillIndirectly, kSize, table);
  return p.End();
}

Outcome IndirectUse() {
  Program p;
  int* a = p.Allocate();
  int** table = reinterpret_cast<int**>(p.Allocate());
  p.Launch(p.streams[0], StorePointer, a, table);
  p.Synchronize(0);
  p.Launch(p.streams[0], FillIndirectly, kSize, table);
  for (int i = 0; i < kSize; ++i) p.in[i] = 0;
  return p.Check(a, 1);
}

Outcome FreeTwice() {
  Program p;
  int* a = p.Allocate();
  p.Try(cudaFree(a));
  p.Try(cudaFree(a));
  return p.End();
}
Outcome FreeInside() {
  Program p;
  p.Try(cudaFree(p.Allocate() + 64));
  return p.End();
}
Outcome FreeOfHost() {
  Program p;
  p.Try(cudaFree(p.in));
  return p.End();
}

// Would be right if fresh memory were zero.
Outcome ReadFresh() {
  Program p;
  int* a = p.Allocate();
  p.Launch(p.streams[0], Increment, kSize, a, a);
  for (int i = 0; i < kSize; ++i) p.in[i] = 0;
  return p.Check(a, 1);
}

Outcome CopyFresh() {
  Program p;
  for (int i = 0; i < kSize; ++i) p.in[i] = 0;
  return p.Check(p.Allocate(), 0);
}

// Freed memory is fresh when it is allocated again.
Outcome ReadFreshAfterFree() {
  Program p;
  p.Try(cudaFree(p.AllocateInput()));
  return p.Check(p.Allocate(), 0);
}

Outcome ReadPastTheEnd() {
  Program p;
  int* a = p.AllocateInput();
  p.Launch(p.streams[0], IncrementShifted, kSize, 1, a, a);
  return p.End();
}

Outcome WritePastTheEnd() {
  Program p;
  int* a = p.Allocate();
  p.Launch(p.streams[0], Fill, kSize + 1, 1, a);
  return p.End();
}

Outcome WriteBeforeTheBeginning() {
  Program p;
  int* a = p.Allocate();
  p.Launch(p.streams[0], Fill, kSize, 1, a - 1);
  return p.End();
}

// Reads as far beyond the end as the buffer is long.
Outcome ReadTheNeighbour() {
  Program p;
  int* a = p.AllocateInput();
  int* b = p.AllocateInput();
  p.Launch(p.streams[0], IncrementShifted, kSize, kSize, a, b);
  return p.End();
}

// ---- Arguments

Outcome HostPointer() {
  Program p;
  int* a = p.Allocate();
  p.Launch(p.streams[0], Increment, 0, p.in, a);
  return p.End();
}
Outcome HostPointerInAStruct() {
  Program p;
  int* a = p.AllocateInput();
  Outer outer = {};
  outer.n = 0;
  outer.in = a;
  outer.inner.out = p.out;
  p.Launch(p.streams[0], IncrementByStruct, outer);
  return p.End();
}
Outcome HeapPointer() {
  Program p;
  int* a = p.Allocate();
  const std::unique_ptr<int[]> heap(new int[kSize]());
  p.Launch(p.streams[0], Increment, 0, heap.get(), a);
  return p.End();
}
Outcome PinnedPointer() {
  Program p;
  int* a = p.Allocate();
  void* host = nullptr;
  p.Try(cudaMallocHost(&host, kBytes));
  p.Launch(p.streams[0], Increment, 0, static_cast<int*>(host), a);
  return p.End();
}
Outcome PointerBesideMemory() {
  Program p;
  int* a = p.Allocate();
  p.Launch(p.streams[0], Increment, 0, a + kSize + 1, a);
  return p.End();
}
Outcome CopyToHostCalledToDevice() {
  Program p;
  int* a = p.AllocateInput();
  p.ToDevice(p.out, a, kBytes, p.streams[0]);
  return p.End();
}
Outcome CopyBetweenHosts() {
  Program p;
  p.Try(cudaMemcpyAsync(p.out, p.in, kBytes, cudaMemcpyDefault, p.streams[0]));
  return p.End();
}
Outcome CopyTooMuch() {
  Program p;
  int* a = p.Allocate(kBytes - 4);
  p.ToDevice(a, p.in, kBytes, p.streams[0]);
  return p.End();
}
Outcome FillTooMuch() {
  Program p;
  p.Try(cudaMemsetAsync(p.Allocate() + 1, 0, kBytes, p.streams[0]));
  return p.End();
}
Outcome FillOfHost() {
  Program p;
  p.Try(cudaMemsetAsync(p.in, 0, kBytes, p.streams[0]));
  return p.End();
}

// ---- Limits and failures

Outcome TooMuchMemory() {
  Program p;
  p.Allocate(size_t{80} * 1000 * 1000 * 1000 + 1);
  return p.End();
}
Outcome TooMuchOfLittleMemory() {
  Program p;
  SetDeviceLimits({.memory = 8192});
  p.Allocate(4096);
  p.Allocate(4096);
  size_t free = 1, total = 0;
  p.Try(cudaMemGetInfo(&free, &total));
  if (free != 0 || total != 8192) return Outcome::kWrong;
  p.Allocate(1);
  return p.End();
}
// Memory is filled before the kernel, which is loaded when it is first used.
Outcome MemoryFilledBeforeAKernel() {
  Program p;
  SetDeviceLimits({.memory = 8192, .first_use = 1024});
  int* a = static_cast<int*>(p.Allocate(4096));
  p.Launch(p.streams[0], Fill, kSize, 1, a);
  p.Allocate(8192 - 4096 - 1024);
  p.Launch(p.streams[0], Fill, kSize, 2, a);  // is loaded
  if (p.refused || LoadedCode(0) != 1024) return Outcome::kWrong;
  p.Launch(p.streams[0], Increment, kSize, a, a);
  return p.End();
}
Outcome SharedMemoryWithoutAsking() {
  Program p;
  int* a = p.AllocateInput();
  p.LaunchWith(48 * 1024 + 4, p.streams[0], UseShared, a);
  return p.End();
}
Outcome TooMuchSharedMemoryAskedFor() {
  Program p;
  p.Try(cudaFuncSetAttribute(
      UseShared, cudaFuncAttributeMaxDynamicSharedMemorySize, 163 * 1024 + 4));
  return p.End();
}
Outcome TooMuchOfLittleSharedMemory() {
  Program p;
  SetDeviceLimits({.shared_memory_per_block = 100 * 1024});
  p.Try(cudaFuncSetAttribute(
      UseShared, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024 + 4));
  return p.End();
}
Outcome TooMuchStaticSharedMemory() {
  Program p;
  p.Launch(p.streams[0], UseMuchStaticShared, p.AllocateInput());
  return p.End();
}
// Kernels for which cudaFuncSetAttribute was never called still run.
Outcome SharedMemoryOfManyKernels() {
  Program p;
  int* a = p.AllocateInput();
  p.Launch(p.streams[0], Increment, kSize, a, a);
  constexpr int kMost = 1024;
  static const char kernels[kMost + 1] = {};
  const auto ask = [&](int i) {
    p.Try(cudaFuncSetAttribute(
        &kernels[i], cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
  };
  for (int i = 0; i < kMost; ++i) ask(i);
  ask(0);
  p.Launch(p.streams[0], Fill, kSize, 1, a);
  p.Synchronize(0);
  if (p.refused) return Outcome::kWrong;
  ask(kMost);
  return p.End();
}
Outcome TooManyThreads() {
  Program p;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1025);
  config.stream = p.streams[0];
  p.Try(cudaLaunchKernelEx(&config, Fill, 0, 1, p.Allocate()));
  return p.End();
}

Outcome KernelFails() {
  Program p;
  p.Launch(p.streams[1], WaitForHalf, p.AllocateInput());
  p.Synchronize(1);
  return p.End();
}
// After a failure all calls fail, though freeing frees, until it is forgotten.
Outcome FailureStays() {
  Program p;
  int* a = p.AllocateInput();
  int* b = p.AllocateInput();
  p.Launch(p.streams[1], WaitForHalf, a);
  p.Launch(p.streams[0], Increment, kSize, b, b);
  if (cudaStreamSynchronize(p.streams[1]) != cudaErrorLaunchFailure ||
      cudaStreamSynchronize(p.streams[0]) != cudaErrorLaunchFailure ||
      cudaGetLastError() != cudaErrorLaunchFailure ||
      cudaFree(a) != cudaErrorLaunchFailure || LiveAllocations() != 1) {
    return Outcome::kWrong;
  }
  ForgetFailure();
  p.ToDevice(b, p.in, kBytes, p.streams[1]);
  p.Launch(p.streams[1], Increment, kSize, b, b);
  return p.Check(b, 1, 1);
}

// A failure of one device is not another's, whichever of them runs first.
Outcome FailureStaysOnItsDevice() {
  SetDeviceLimits({.devices = 2});
  Program first;
  int* a = first.AllocateInput();
  first.Launch(first.streams[0], Increment, kSize, a, a);
  first.Try(cudaSetDevice(1));
  Program second;
  second.Launch(second.streams[0], WaitForHalf, second.Allocate());
  if (cudaStreamSynchronize(second.streams[0]) != cudaErrorLaunchFailure ||
      cudaSetDevice(1) != cudaErrorLaunchFailure) {
    return Outcome::kWrong;
  }
  first.Try(cudaSetDevice(0));
  return first.Check(a, 1);
}
// All schedules but kAscending run the kernel of device 1 while the host waits
// for device 0.
Outcome AnotherDeviceFailsMeanwhile() {
  SetDeviceLimits({.devices = 2});
  Program first;
  int* a = first.AllocateInput();
  first.Try(cudaSetDevice(1));
  Program second;
  second.Launch(second.streams[0], WaitForHalf, second.Allocate());
  first.Try(cudaSetDevice(0));
  first.Launch(first.streams[0], Increment, kSize, a, a);
  const Outcome outcome = first.Check(a, 1);
  if (outcome != Outcome::kClean) return outcome;
  if (cudaSetDevice(1) == cudaSuccess &&
      cudaStreamSynchronize(second.streams[0]) == cudaSuccess) {
    return Outcome::kWrong;
  }
  ForgetFailure();
  return first.End();
}
// Work that waits for an event of the failed device waits for ever.
Outcome EventOfADeviceThatFailed() {
  SetDeviceLimits({.devices = 2});
  Program first;
  first.Try(cudaSetDevice(1));
  Program second;
  second.Launch(second.streams[0], WaitForHalf, second.Allocate());
  second.Record(0, 0);
  first.Try(cudaSetDevice(0));
  first.Try(cudaStreamWaitEvent(first.streams[0], second.events[0]));
  first.Try(cudaSetDevice(1));
  (void)cudaStreamSynchronize(second.streams[0]);
  first.Try(cudaSetDevice(0));
  if (cudaEventSynchronize(second.events[0]) != cudaErrorLaunchFailure ||
      cudaEventQuery(second.events[0]) != cudaErrorLaunchFailure) {
    return Outcome::kWrong;
  }
  first.Synchronize(0);
  return first.End();
}

// Each of these calls is the first one that needs a context.
Outcome CallsMakeAContext() {
  cudaEvent_t event;
  void* memory = nullptr;
  const auto makes_one = [](const auto& call) {
    SetDeviceLimits({});  // contexts end
    return !HasContext(0) && call() == cudaSuccess && HasContext(0);
  };
  const bool all =
      makes_one([&] {
        return cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
      }) &&
      makes_one([&] { return cudaMallocHost(&memory, kBytes); }) &&
      makes_one([] { return cudaFree(nullptr); }) && makes_one([] {
        return cudaFuncSetAttribute(
            UseShared, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024);
      });
  return all ? Outcome::kClean : Outcome::kWrong;
}

Outcome CallFails() {
  Program p;
  FailCall("cudaMalloc", 2, cudaErrorMemoryAllocation);
  const int before = CallsOf("cudaMalloc");
  p.Allocate();
  if (p.refused) return Outcome::kWrong;
  p.Allocate();
  if (CallsOf("cudaMalloc") != before + 2) return Outcome::kWrong;
  if (cudaGetLastError() != cudaErrorMemoryAllocation ||
      cudaGetLastError() != cudaSuccess) {
    return Outcome::kWrong;
  }
  void* third = nullptr;
  if (cudaMalloc(&third, 4) != cudaSuccess) return Outcome::kWrong;
  return p.End();
}

// ---- Several threads of the host

// Nothing orders what the two threads have queued.
Outcome MissingEventBetweenThreads() {
  Program p;
  int* a = p.AllocateInput();
  int* b = p.Allocate();
  OnTwoThreads([&](int i) {
    if (i == 0) {
      p.Launch(p.streams[0], Increment, kSize, a, a);
      p.Synchronize(0);
    } else {
      p.Launch(p.streams[1], Increment, kSize, a, b);
      p.Synchronize(1);
    }
  });
  return p.refused ? Outcome::kRefused : Outcome::kClean;
}

// One thread waits, another one reads.
Outcome TheOtherThreadReadsTooEarly() {
  Program p;
  int* a = p.AllocateInput();
  p.ToHost(p.out, a, kBytes, p.streams[0]);
  int sum = 0;
  OnTwoThreads([&](int i) {
    if (i == 0) {
      p.Synchronize(0);
    } else {
      for (int j = 0; j < kSize; ++j) sum += p.out[j];
    }
  });
  fprintf(stderr, "%d\n", sum & 1);
  return Outcome::kClean;
}

// Calling the device does not order the two threads.
Outcome ThreadsShareAVariable() {
  Program p;
  const std::unique_ptr<int> variable(new int(0));
  OnTwoThreads([&](int) {
    (void)CallsOf("cudaMalloc");
    ++*variable;
    (void)CallsOf("cudaMalloc");
  });
  return p.End();
}

// ---- Several devices

Outcome DeviceThatIsNotThere() {
  Program p;
  p.Try(cudaSetDevice(1));
  return p.End();
}

// A thread that has chosen device 1 uses what belongs to device 0.
template <typename Work>
Outcome OnDeviceOne(const Work& work) {
  SetDeviceLimits({.devices = 2});
  Program p;
  int* a = p.AllocateInput();
  p.Try(cudaSetDevice(1));
  Program other;
  work(p, other, a);
  if (other.refused) return Outcome::kRefused;
  return p.End();
}

Outcome StreamOfAnotherDevice() {
  return OnDeviceOne([](Program& p, Program& other, int*) {
    p.Launch(p.streams[0], Fill, kSize, 1, other.Allocate());
  });
}
Outcome MemoryOfAnotherDevice() {
  return OnDeviceOne([](Program&, Program& other, int* a) {
    other.Launch(other.streams[0], Fill, kSize, 1, a);
  });
}
Outcome CopyFromAnotherDevice() {
  return OnDeviceOne([](Program&, Program& other, int* a) {
    other.ToHost(other.out, a, kBytes, other.streams[0]);
  });
}
Outcome EventOfAnotherDevice() {
  return OnDeviceOne([](Program& p, Program& other, int*) {
    other.Try(cudaEventRecord(p.events[0], other.streams[0]));
  });
}
Outcome SharedMemoryAskedForElsewhere() {
  return OnDeviceOne([](Program& p, Program& other, int*) {
    p.Try(cudaSetDevice(0));
    p.Try(cudaFuncSetAttribute(
        UseShared, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024));
    p.Try(cudaSetDevice(1));
    other.LaunchWith(100 * 1024, other.streams[0], UseShared,
                     other.AllocateInput());
  });
}

// Each of the calls that enqueue or wait can be told to fail.
Outcome EveryCallCanFail() {
  Program p;
  int* a = p.AllocateInput();
  cudaStream_t stream = p.streams[0];
  cudaEvent_t event = p.events[0];
  int count = 0;
  size_t size = 0;
  void* memory = nullptr;
  cudaDeviceProp properties;
  cudaLaunchConfig_t config = {};
  config.stream = stream;
  const auto fails = [&](const char* name, const auto& call) {
    FailCall(name, 1, cudaErrorUnknown);
    if (call() == cudaErrorUnknown && call() == cudaSuccess) return;
    fprintf(stderr, "%s does not fail once\n", name);
    ++count;
  };
#define SOFTMOE_FAILS(name, ...) fails(#name, [&] { return name(__VA_ARGS__); })
  SOFTMOE_FAILS(cudaGetDeviceCount, &count);
  count = 0;
  SOFTMOE_FAILS(cudaSetDevice, 0);
  SOFTMOE_FAILS(cudaGetDeviceProperties, &properties, 0);
  SOFTMOE_FAILS(cudaDeviceSynchronize);
  SOFTMOE_FAILS(cudaMemGetInfo, &size, &size);
  SOFTMOE_FAILS(cudaMalloc, &memory, 4);
  SOFTMOE_FAILS(cudaMallocHost, &memory, 4);
  SOFTMOE_FAILS(cudaFree, nullptr);
  SOFTMOE_FAILS(cudaFreeHost, nullptr);
  SOFTMOE_FAILS(cudaMemsetAsync, a, 0, 4, stream);
  SOFTMOE_FAILS(cudaMemcpyAsync, p.out, a, 4, cudaMemcpyDeviceToHost, stream);
  SOFTMOE_FAILS(cudaStreamCreateWithFlags, &stream, 0);
  SOFTMOE_FAILS(cudaEventCreateWithFlags, &event, 0);
  SOFTMOE_FAILS(cudaEventRecord, event, stream);
  SOFTMOE_FAILS(cudaStreamWaitEvent, stream, event);
  SOFTMOE_FAILS(cudaEventSynchronize, event);
  SOFTMOE_FAILS(cudaEventQuery, event);
  SOFTMOE_FAILS(cudaStreamSynchronize, stream);
  SOFTMOE_FAILS(cudaLaunchKernelEx, &config, Fill, 0, 1, a);
  SOFTMOE_FAILS(cudaFuncSetAttribute, Fill,
                cudaFuncAttributeMaxDynamicSharedMemorySize, 4);
#undef SOFTMOE_FAILS
  return count == 0 ? p.End() : Outcome::kWrong;
}

constexpr Must kClean = Must::kStayClean, kWrong = Must::kBeWrong,
               kRefuse = Must::kRefuse, kReport = Must::kReport,
               kDie = Must::kDie, kAny = Must::kAnything;

// clang-format off
constexpr PlantedBug kPlantedBugs[] = {
    //                                    plain    ASan+UBSan TSan   MSan
    {"one stream (correct)",             {kClean,  kClean,  kClean,  kClean},  OneStream},
    {"three streams (correct)",          {kClean,  kClean,  kClean,  kClean},  ThreeStreams},
    {"double buffered (correct)",        {kClean,  kClean,  kClean,  kClean},  DoubleBuffered},
    {"host memory again (correct)",      {kClean,  kClean,  kClean,  kClean},  HostMemoryIsUsedAgain},
    {"two host threads (correct)",       {kClean,  kClean,  kClean,  kClean},  TwoHostThreads},
    {"another thread waits (correct)",   {kClean,  kClean,  kClean,  kClean},  AnotherThreadWaits},
    {"errors of each thread (correct)",  {kClean,  kClean,  kClean,  kClean},  EachThreadHasItsErrors},
    {"two devices (correct)",            {kClean,  kClean,  kClean,  kClean},  TwoDevices},
    {"host asks until done (correct)",   {kClean,  kClean,  kClean,  kClean},  HostAsksUntilDone},
    {"freed when done (correct)",        {kClean,  kClean,  kClean,  kClean},  FreedWhenDone},
    {"schedules (correct)",              {kClean,  kClean,  kClean,  kClean},  SchedulesAreWhatTheySay},
    {"structs (correct)",                {kClean,  kClean,  kClean,  kClean},  Structs},
    {"all shared memory (correct)",      {kClean,  kClean,  kClean,  kClean},  AllSharedMemory},
    {"indirect use (correct)",           {kClean,  kClean,  kClean,  kClean},  IndirectUse},
    {"zeros (correct)",                  {kClean,  kClean,  kClean,  kClean},  Zeros},
    {"failure stays (correct)",          {kClean,  kClean,  kClean,  kClean},  FailureStays},
    {"failure of one device (correct)",  {kClean,  kClean,  kClean,  kClean},  FailureStaysOnItsDevice},
    {"another fails (correct)",          {kClean,  kClean,  kClean,  kClean},  AnotherDeviceFailsMeanwhile},
    {"calls make a context (correct)",   {kClean,  kClean,  kClean,  kClean},  CallsMakeAContext},
    {"every call can fail (correct)",    {kClean,  kClean,  kClean,  kClean},  EveryCallCanFail},

    {"host reads device",                {kDie,    kReport, kReport, kReport}, HostReadsDevice, "the host touches byte 12 of device memory"},
    {"host reads fresh device",          {kDie,    kReport, kReport, kReport}, HostReadsFreshDevice, "the host touches byte 12 of device memory"},
    {"host writes device",               {kDie,    kReport, kReport, kReport}, HostWritesDevice, "the host touches byte 12 of device memory"},
    {"host reads too early",             {kWrong,  kWrong,  kReport, kReport}, HostReadsTooEarly},
    {"host waits for the wrong stream",  {kWrong,  kWrong,  kReport, kReport}, HostWaitsForTheWrongStream},
    {"host reuses memory",               {kRefuse, kRefuse, kReport, kRefuse}, HostReusesMemory, "was written to before the copy ran"},
    {"host reuses memory of the second", {kRefuse, kRefuse, kReport, kRefuse}, HostReusesMemoryOfTheSecond, "was written to before the copy ran"},
    {"host frees memory",                {kRefuse, kRefuse, kReport, kAny},    HostFreesMemory, "before the copy ran"},
    {"host frees page-locked memory",    {kRefuse, kRefuse, kRefuse, kRefuse}, HostFreesPinned, "cudaFreeHost of memory that cudaMemcpyAsync"},
    {"host uses freed page-locked",      {kDie,    kReport, kReport, kReport}, HostUsesFreedPinned, "page-locked memory 1 (2000 bytes, freed)"},

    {"missing event",                    {kWrong,  kWrong,  kReport, kReport}, MissingEvent},
    {"missing event before overwriting", {kWrong,  kWrong,  kReport, kWrong},  MissingEventBeforeOverwriting},
    {"missing event, same value",        {kAny,    kAny,    kReport, kAny},    MissingEventOfTheSame},
    {"missing event of a copy",          {kWrong,  kWrong,  kReport, kReport}, MissingEventOfACopy},
    {"wait before record",               {kWrong,  kWrong,  kReport, kWrong},  WaitBeforeRecord},
    {"record too early",                 {kWrong,  kWrong,  kReport, kWrong},  RecordTooEarly},
    {"only the other waits",             {kWrong,  kWrong,  kReport, kWrong},  OnlyTheOtherWaits},
    {"waited too early",                 {kAny,    kAny,    kReport, kAny},    WaitedTooEarly},
    // Should be kReport for TSan, which misses it: see "What it cannot show".
    {"missing event after another",      {kAny,    kAny,    kAny,    kAny},    MissingEventAfterAnother},
    {"recorded again",                   {kAny,    kAny,    kReport, kAny},    RecordedAgain},
    {"null stream of a kernel",          {kRefuse, kRefuse, kRefuse, kRefuse}, NullStreamOfAKernel, "null stream"},
    {"legacy stream",                    {kRefuse, kRefuse, kRefuse, kRefuse}, LegacyStream, "null stream"},
    {"null stream of a copy",            {kRefuse, kRefuse, kRefuse, kRefuse}, NullStreamOfACopy, "null stream"},
    {"null stream of a fill",            {kRefuse, kRefuse, kRefuse, kRefuse}, NullStreamOfAFill, "null stream"},
    {"null stream of an event",          {kRefuse, kRefuse, kRefuse, kRefuse}, NullStreamOfAnEvent, "null stream"},
    {"stream destroyed too early",       {kRefuse, kRefuse, kRefuse, kRefuse}, StreamDestroyedTooEarly, "is still queued"},
    {"stream after destroy",             {kRefuse, kRefuse, kRefuse, kRefuse}, StreamUsedAfterDestroy, "was never created or is already destroyed"},
    {"event after destroy",              {kRefuse, kRefuse, kRefuse, kRefuse}, EventUsedAfterDestroy, "was never created or is already destroyed"},

    {"launch after free",                {kRefuse, kRefuse, kRefuse, kRefuse}, LaunchAfterFree, "freed)"},
    {"free while queued",                {kRefuse, kRefuse, kRefuse, kRefuse}, FreeWhileQueued, "which a kernel that is still queued uses"},
    {"free while copied",                {kRefuse, kRefuse, kRefuse, kRefuse}, FreeWhileCopied, "still queued uses"},
    {"use after free, indirect",         {kRefuse, kReport, kReport, kReport}, IndirectUseAfterFree, "of device memory 1 (2000 bytes, freed)"},
    {"free twice",                       {kRefuse, kRefuse, kRefuse, kRefuse}, FreeTwice, "freed)"},
    {"free inside",                      {kRefuse, kRefuse, kRefuse, kRefuse}, FreeInside, "byte 256 of device memory"},
    {"free of host memory",              {kRefuse, kRefuse, kRefuse, kRefuse}, FreeOfHost, "a host address"},
    {"read fresh memory",                {kWrong,  kWrong,  kWrong,  kReport}, ReadFresh},
    {"copy fresh memory",                {kWrong,  kWrong,  kWrong,  kReport}, CopyFresh},
    {"read fresh memory after free",     {kWrong,  kWrong,  kWrong,  kReport}, ReadFreshAfterFree},
    {"read past the end",                {kAny,    kReport, kAny,    kAny},    ReadPastTheEnd},
    {"write past the end",               {kRefuse, kReport, kRefuse, kRefuse}, WritePastTheEnd, "1 bytes past the end of device memory"},
    {"write before the beginning",       {kRefuse, kRefuse, kRefuse, kRefuse}, WriteBeforeTheBeginning, "4 bytes before the beginning of device memory"},
    {"read the neighbour",               {kRefuse, kReport, kReport, kReport}, ReadTheNeighbour, "past the end of device memory"},

    {"host pointer",                     {kRefuse, kRefuse, kRefuse, kRefuse}, HostPointer, "parameter 2 holds the host address"},
    {"host pointer in a struct",         {kRefuse, kRefuse, kRefuse, kRefuse}, HostPointerInAStruct, "parameter 1 holds the host address"},
    {"heap pointer",                     {kRefuse, kRefuse, kRefuse, kRefuse}, HeapPointer, "parameter 2 holds the host address"},
    {"page-locked pointer",              {kRefuse, kRefuse, kRefuse, kRefuse}, PinnedPointer, "parameter 2 holds the host address"},
    {"pointer beside memory",            {kRefuse, kRefuse, kRefuse, kRefuse}, PointerBesideMemory, "past the end of device memory"},
    {"copy in the other direction",      {kRefuse, kRefuse, kRefuse, kRefuse}, CopyToHostCalledToDevice, "from device to host memory"},
    {"copy between hosts",               {kRefuse, kRefuse, kRefuse, kRefuse}, CopyBetweenHosts, "from host to host memory"},
    {"copy too much",                    {kRefuse, kRefuse, kRefuse, kRefuse}, CopyTooMuch, "4 bytes past the end of device memory"},
    {"fill too much",                    {kRefuse, kRefuse, kRefuse, kRefuse}, FillTooMuch, "4 bytes past the end of device memory"},
    {"fill of host memory",              {kRefuse, kRefuse, kRefuse, kRefuse}, FillOfHost, "of the host address"},

    {"missing event between threads",    {kAny,    kAny,    kReport, kAny},    MissingEventBetweenThreads},
    {"other thread reads too early",     {kAny,    kAny,    kReport, kAny},    TheOtherThreadReadsTooEarly},
    {"threads share a variable",         {kAny,    kAny,    kReport, kAny},    ThreadsShareAVariable},
    {"device that is not there",         {kRefuse, kRefuse, kRefuse, kRefuse}, DeviceThatIsNotThere, "device 1 does not exist"},
    {"stream of another device",         {kRefuse, kRefuse, kRefuse, kRefuse}, StreamOfAnotherDevice, "on a stream of device 0, by a thread that has chosen device 1"},
    {"memory of another device",         {kRefuse, kRefuse, kRefuse, kRefuse}, MemoryOfAnotherDevice, "points to memory of device 0"},
    {"copy from another device",         {kRefuse, kRefuse, kRefuse, kRefuse}, CopyFromAnotherDevice, "the source is memory of device 0"},
    {"event of another device",          {kRefuse, kRefuse, kRefuse, kRefuse}, EventOfAnotherDevice, "an event of device 0 on a stream of device 1"},
    {"shared memory asked for elsewhere", {kRefuse, kRefuse, kRefuse, kRefuse}, SharedMemoryAskedForElsewhere, "102400 bytes of dynamic shared memory, of 49152"},

    {"too much memory",                  {kRefuse, kRefuse, kRefuse, kRefuse}, TooMuchMemory, "80000000000 of 80000000000 are free"},
    {"too much of little memory",        {kRefuse, kRefuse, kRefuse, kRefuse}, TooMuchOfLittleMemory, "0 of 8192 are free"},
    {"memory filled before a kernel",    {kRefuse, kRefuse, kRefuse, kRefuse}, MemoryFilledBeforeAKernel, "a kernel that is loaded at its first use takes 1024 bytes of memory: 0 are free"},
    {"shared memory without asking",     {kRefuse, kRefuse, kRefuse, kRefuse}, SharedMemoryWithoutAsking, "49156 bytes of dynamic shared memory"},
    {"too much shared memory",           {kRefuse, kRefuse, kRefuse, kRefuse}, TooMuchSharedMemoryAskedFor, "at most 166912"},
    {"too much of little shared memory", {kRefuse, kRefuse, kRefuse, kRefuse}, TooMuchOfLittleSharedMemory, "at most 102400"},
    {"too much static shared memory",    {kRefuse, kRefuse, kRefuse, kRefuse}, TooMuchStaticSharedMemory, "53248 bytes of shared memory"},
    {"shared memory of many kernels",    {kRefuse, kRefuse, kRefuse, kRefuse}, SharedMemoryOfManyKernels, "the simulator handles at most 1024"},
    {"too many threads",                 {kRefuse, kRefuse, kRefuse, kRefuse}, TooManyThreads, "1 to 1024 threads"},
    {"kernel fails",                     {kRefuse, kRefuse, kRefuse, kRefuse}, KernelFails, "planted_device_bugs.cu:"},
    {"event of a device that failed",    {kRefuse, kRefuse, kRefuse, kRefuse}, EventOfADeviceThatFailed, "an event will never be recorded: cudaStreamWaitEvent waits for device 1"},
    {"call fails",                       {kRefuse, kRefuse, kRefuse, kRefuse}, CallFails, "as a test ordered"},
};
// clang-format on

}  // namespace

std::span<const PlantedBug> PlantedBugs() { return kPlantedBugs; }
const char* PlantedBugsSource() { return "planted_device_bugs.cu:"; }

}  // namespace softmoe::simt
