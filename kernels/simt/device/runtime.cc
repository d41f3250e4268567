// SPDX-License-Identifier: Apache-2.0
//
// The functions of include/cuda_runtime_api.h, over GuardedMemory and
// WorkQueue. Each is a HostCall.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "kernels/simt/device/device.h"
#include "kernels/simt/device/guarded_memory.h"
#include "kernels/simt/device/host_call.h"
#include "kernels/simt/device/include/cuda_runtime_api.h"
#include "kernels/simt/device/kernel_launch.h"
#include "kernels/simt/device/raw_bytes.h"
#include "kernels/simt/device/taken_memory.h"
#include "kernels/simt/device/work_queue.h"
#include "kernels/simt/shim/sanitizer_hooks.h"
#include "kernels/simt/shim/simulator.h"

namespace softmoe::simt {
namespace {

DeviceLimits limits;
bool has_context[GuardedMemory::kMaxDevices];
int nccl_ranks[GuardedMemory::kMaxDevices];
int pageable_copies = 0;

using Library = LibraryRefusals<cudaError_t, cudaErrorLaunchFailure>;

// Begins every call, and returns from it if there is an error.
#define SOFTMOE_BEGIN(...)                                   \
  const HostCall host_call;                                  \
  if (const cudaError_t begun = Library::Begin(__VA_ARGS__); \
      begun != cudaSuccess)                                  \
  return begun

// Begins a call that frees even after a device's failure, then returns that.
#define SOFTMOE_BEGIN_RELEASE(call)                                      \
  const HostCall host_call;                                              \
  const cudaError_t begun = Library::Begin(call);                        \
  if (begun != cudaSuccess && DeviceFailure(CurrentDevice()) == nullptr) \
  return begun

// The result of a call that waited.
cudaError_t Waited(const char* wrong) {
  if (wrong == nullptr) return cudaSuccess;
  return SOFTMOE_REFUSE(cudaErrorLaunchFailure, "%s", wrong);
}

cudaError_t CheckStream(const char* call, cudaStream_t stream) {
  // 1 and 2 stand for the null stream in the toolkit's headers.
  if (reinterpret_cast<uintptr_t>(stream) <= 2) {
    return SOFTMOE_REFUSE(cudaErrorInvalidResourceHandle,
                          "%s on the null stream, which waits for all others: "
                          "name a stream",
                          call);
  }
  if (!TheWorkQueue().Knows(stream)) {
    return SOFTMOE_REFUSE(
        cudaErrorInvalidResourceHandle,
        "%s on a stream that was never created or is already destroyed", call);
  }
  if (const int device = DeviceOf(stream); device != CurrentDevice()) {
    return SOFTMOE_REFUSE(cudaErrorInvalidResourceHandle,
                          "%s on a stream of device %d, by a thread that has "
                          "chosen device %d",
                          call, device, CurrentDevice());
  }
  return cudaSuccess;
}

#define SOFTMOE_CHECK_STREAM(call, stream)                   \
  if (const cudaError_t checked = CheckStream(call, stream); \
      checked != cudaSuccess)                                \
  return checked

cudaError_t CheckEvent(const char* call, cudaEvent_t event) {
  if (TheWorkQueue().Knows(event)) return cudaSuccess;
  return SOFTMOE_REFUSE(
      cudaErrorInvalidResourceHandle,
      "%s: the event was never created or is already destroyed", call);
}

#define SOFTMOE_CHECK_EVENT(call, event)                   \
  if (const cudaError_t checked = CheckEvent(call, event); \
      checked != cudaSuccess)                              \
  return checked

int DriverVersion() {
  return limits.driver == 0 ? CUDART_VERSION : limits.driver;
}

cudaError_t CheckDevice(int device) {
  if (device >= 0 && device < limits.devices) return cudaSuccess;
  return SOFTMOE_REFUSE(cudaErrorInvalidDevice,
                        "device %d does not exist: the number of devices is %d",
                        device, limits.devices);
}

// Makes the context of the device that the caller has chosen.
void MakeContext() { has_context[CurrentDevice()] = true; }

// The code that contexts have loaded, if it takes memory.
struct Code {
  uint64_t code;
  int device;
};
constexpr size_t kMostCode = 4096;
Code loaded[kMostCode];
size_t num_loaded = 0;

size_t LoadedOn(int device) {
  size_t bytes = 0;
  for (size_t i = 0; i < num_loaded; ++i) {
    if (loaded[i].device == device) bytes += limits.first_use;
  }
  return bytes;
}

size_t FreeOfDevice() {
  MakeContext();
  const int device = CurrentDevice();
  const size_t used = DeviceMemory().live_bytes_of(device) + limits.context +
                      LoadedOn(device) +
                      static_cast<size_t>(nccl_ranks[device]) * limits.nccl;
  return used < limits.memory ? limits.memory - used : 0;
}

// ---- Copies

class CopyWork : public Work {
 public:
  CopyWork(void* to, const void* from, size_t size, bool from_host,
           bool to_host)
      : Work("cudaMemcpyAsync"),
        to_(static_cast<char*>(to)),
        from_(static_cast<const char*>(from)),
        size_(size) {
    if (from_host) host_reads = {from_, size};
    if (to_host) host_writes = {to_, size};
  }

  // Makes Run fail if the host changes the source from now on.
  void ExpectUnchanged() {
    hashed_ = true;
    hash_ = HashRaw(from_, size_);
  }

  const char* Run() override {
    if (IsForbidden(host_reads.begin, host_reads.size) ||
        IsForbidden(host_writes.begin, host_writes.size)) {
      return "the host's memory was freed before the copy ran";
    }
    NoteRead(from_, size_);
    NoteWrite(to_, size_);
    if (hashed_ && HashRaw(from_, size_) != hash_) {
      return "the host's memory was written to before the copy ran";
    }
    CopyRaw(to_, from_, size_);
    CopyInitialization(to_, from_, size_);
    return nullptr;
  }

 private:
  char* to_;
  const char* from_;
  size_t size_;
  bool hashed_ = false;
  uint64_t hash_ = 0;
};

class FillWork : public Work {
 public:
  FillWork(void* at, int value, size_t size)
      : Work("cudaMemsetAsync"), at_(at), value_(value), size_(size) {}
  const char* Run() override {
    NoteWrite(at_, size_);
    FillRaw(at_, static_cast<uint16_t>((value_ & 0xff) * 0x0101), size_);
    MarkInitialized(at_, size_);
    return nullptr;
  }

 private:
  void* at_;
  int value_;
  size_t size_;
};

// Checks one side of a copy or fill.
cudaError_t CheckRange(const char* call, const char* side, const void* at,
                       size_t size) {
  for (GuardedMemory* memory : {&DeviceMemory(), &PinnedMemory()}) {
    if (!memory->Holds(at)) continue;
    const Allocation* allocation = memory->FindLive(at, size);
    if (allocation != nullptr) {
      if (memory == &PinnedMemory() || allocation->device == CurrentDevice()) {
        continue;
      }
      return SOFTMOE_REFUSE(cudaErrorInvalidValue,
                            "%s on device %d: %s is memory of device %d", call,
                            CurrentDevice(), side, allocation->device);
    }
    char where[300];
    memory->Describe(static_cast<const char*>(at) + size - 1, where,
                     sizeof(where));
    return SOFTMOE_REFUSE(cudaErrorInvalidValue,
                          "%s: %s, %zu bytes, the last of them %s", call, side,
                          size, where);
  }
  if (at != nullptr) return cudaSuccess;
  return SOFTMOE_REFUSE(cudaErrorInvalidValue, "%s: %s is null", call, side);
}

// ---- Kernels

// The dynamic shared memory that a kernel is allowed on a device. Entries in
// use come first in the array.
struct SharedAllowance {
  const void* kernel;
  int device;
  size_t bytes;
};
SharedAllowance allowances[1024];

// Returns the kernel's entry for the device that the caller has chosen, or else
// the first free one, of 0 bytes; the end of the array if there is none.
SharedAllowance* AllowanceOf(const void* kernel) {
  return std::find_if(std::begin(allowances), std::end(allowances),
                      [kernel](const SharedAllowance& allowance) {
                        return (allowance.kernel == kernel &&
                                allowance.device == CurrentDevice()) ||
                               allowance.kernel == nullptr;
                      });
}

KernelRunner* kernel_runner = nullptr;

class KernelWork : public Work {
 public:
  KernelWork(const Grid& grid, const KernelCall& call)
      : Work("a kernel"), grid_(grid), call_(call) {}
  ~KernelWork() override { Destroy(); }

  const char* Run() override {
    kernel_argument = call_.arguments;
    const char* wrong = kernel_runner != nullptr
                            ? kernel_runner->Run(grid_, call_)
                            : RunGrid(grid_, call_.run);
    Destroy();
    return wrong;
  }

 private:
  void Destroy() {
    if (call_.arguments == nullptr) return;
    kernel_argument = call_.arguments;
    call_.destroy();
    call_.arguments = nullptr;
  }

  Grid grid_;
  KernelCall call_;
};

cudaError_t CheckPointers(const PointerList& pointers) {
  if (pointers.size > PointerList::kMax) {
    return SOFTMOE_REFUSE(
        cudaErrorInvalidValue,
        "a launch with %d pointers: the simulator handles at most %d",
        pointers.size, PointerList::kMax);
  }
  for (int i = 0; i < pointers.size; ++i) {
    const void* at = pointers.pointers[i];
    if (at == nullptr) continue;
    const int parameter = pointers.parameters[i] + 1;
    if (!DeviceMemory().Holds(at)) {
      return SOFTMOE_REFUSE(cudaErrorInvalidValue,
                            "a launch whose parameter %d holds the host "
                            "address %p",
                            parameter, at);
    }
    const Allocation* allocation = DeviceMemory().Find(at);
    if (allocation != nullptr && allocation->live) {
      if (allocation->device == CurrentDevice()) continue;
      return SOFTMOE_REFUSE(cudaErrorInvalidValue,
                            "a launch on device %d whose parameter %d points "
                            "to memory of device %d",
                            CurrentDevice(), parameter, allocation->device);
    }
    char where[300];
    DeviceMemory().Describe(at, where, sizeof(where));
    return SOFTMOE_REFUSE(cudaErrorInvalidValue,
                          "a launch whose parameter %d points to %s", parameter,
                          where);
  }
  return cudaSuccess;
}

cudaError_t CheckConfiguration(const cudaLaunchConfig_t& config,
                               size_t allowance) {
  const dim3 &grid = config.gridDim, &block = config.blockDim;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (grid.x < 1 || grid.x > 0x7fffffffu || grid.y < 1 || grid.y > 65535 ||
      grid.z < 1 || grid.z > 65535 || threads < 1 || threads > 1024 ||
      block.x > 1024 || block.y > 1024 || block.z > 64) {
    return SOFTMOE_REFUSE(cudaErrorInvalidConfiguration,
                          "a grid of (%u, %u, %u) blocks of (%u, %u, %u) "
                          "threads: there must be blocks, of 1 to 1024 threads",
                          grid.x, grid.y, grid.z, block.x, block.y, block.z);
  }
  const size_t most = allowance > 0 ? allowance : size_t{48} * 1024;
  if (config.dynamicSmemBytes > most) {
    return SOFTMOE_REFUSE(cudaErrorInvalidValue,
                          "%zu bytes of dynamic shared memory, of %zu that the "
                          "kernel may have (cudaFuncSetAttribute)",
                          config.dynamicSmemBytes, most);
  }
  return cudaSuccess;
}

cudaError_t TryToQueue(const cudaLaunchConfig_t& config, const KernelCall& call,
                       const PointerList& pointers) {
  constexpr const char* kCall = "cudaLaunchKernelEx";
  SOFTMOE_BEGIN(kCall);
  SOFTMOE_CHECK_STREAM(kCall, config.stream);
  const SharedAllowance* allowed = AllowanceOf(call.kernel);
  const size_t allowance = allowed == std::end(allowances) ? 0 : allowed->bytes;
  cudaError_t error = CheckConfiguration(config, allowance);
  if (error == cudaSuccess) error = CheckPointers(pointers);
  if (error != cudaSuccess) return error;
  if (const char* why = LoadCode(reinterpret_cast<uintptr_t>(call.kernel))) {
    return SOFTMOE_REFUSE(cudaErrorMemoryAllocation, "a kernel %s", why);
  }
  Grid grid;
  grid.blocks = {config.gridDim.x, config.gridDim.y, config.gridDim.z};
  grid.threads = {config.blockDim.x, config.blockDim.y, config.blockDim.z};
  grid.dynamic_shared = config.dynamicSmemBytes;
  grid.dynamic_shared_limit = allowance;
  grid.fiber_set = FiberSetOf(config.stream);
  KernelWork* work = new KernelWork(grid, call);
  for (int i = 0; i < pointers.size; ++i) {
    work->AddUse(DeviceMemory().Find(pointers.pointers[i]));
  }
  TheWorkQueue().Add(config.stream, work);
  return cudaSuccess;
}

}  // namespace

void SetKernelRunner(KernelRunner* runner) {
  const HostCall host_call;
  kernel_runner = runner;
}

cudaError_t QueueKernel(const cudaLaunchConfig_t& config,
                        const KernelCall& call, const PointerList& pointers) {
  const HostCall host_call;
  const cudaError_t error = TryToQueue(config, call, pointers);
  if (error != cudaSuccess) {
    kernel_argument = call.arguments;
    call.destroy();
  }
  return error;
}

void SetDeviceLimits(const DeviceLimits& new_limits) {
  const HostCall host_call;
  limits = new_limits;
  for (bool& has : has_context) has = false;
  num_loaded = 0;
  SetSharedMemoryLimit(limits.shared_memory_per_block);
}

const DeviceLimits& ChosenDeviceLimits() { return limits; }

bool HasContext(int device) {
  const HostCall host_call;
  return has_context[device];
}

namespace {

// Returns null if `bytes` are free, else a message that says so.
const char* RequireFree(const char* what, size_t bytes) {
  static thread_local char why[200];
  const size_t free = FreeOfDevice();
  if (bytes <= free) return nullptr;
  snprintf(why, sizeof(why), "%s %zu bytes of memory: %zu are free", what,
           bytes, free);
  return why;
}

}  // namespace

const char* LoadCode(uint64_t code) {
  if (limits.first_use == 0) return nullptr;
  const int device = CurrentDevice();
  for (size_t i = 0; i < num_loaded; ++i) {
    if (loaded[i].code == code && loaded[i].device == device) return nullptr;
  }
  if (num_loaded == kMostCode) return "is one too many for the simulator";
  const char* why =
      RequireFree("that is loaded at its first use takes", limits.first_use);
  if (why == nullptr) loaded[num_loaded++] = {code, device};
  return why;
}

const char* TakeForRank() {
  const char* why = RequireFree("takes", limits.nccl);
  if (why == nullptr) ++nccl_ranks[CurrentDevice()];
  return why;
}
void GiveBackOfRank(int device) { --nccl_ranks[device]; }

size_t LoadedCode(int device) {
  const HostCall host_call;
  return LoadedOn(device);
}

int PageableCopies() {
  const HostCall host_call;
  return pageable_copies;
}

int LiveAllocations() {
  const HostCall host_call;
  return DeviceMemory().num_live();
}
size_t LiveBytes() {
  const HostCall host_call;
  return DeviceMemory().live_bytes();
}

void ForgetFreedMemory() {
  const HostCall host_call;
  DeviceMemory().ForgetFreed();
}

void ForgetFailure() {
  const HostCall host_call;
  ForgetDeviceFailures();
  TheWorkQueue().DropAll();
  Library::Get().Forget();
}

}  // namespace softmoe::simt

// NOLINTBEGIN: the toolkit's names

using namespace softmoe::simt;

// ---- Errors

const char* cudaGetErrorName(cudaError_t error) {
#define SOFTMOE_NAME(name) \
  case name:               \
    return #name
  switch (error) {
    SOFTMOE_NAME(cudaSuccess);
    SOFTMOE_NAME(cudaErrorInvalidValue);
    SOFTMOE_NAME(cudaErrorMemoryAllocation);
    SOFTMOE_NAME(cudaErrorInitializationError);
    SOFTMOE_NAME(cudaErrorInvalidConfiguration);
    SOFTMOE_NAME(cudaErrorInvalidMemcpyDirection);
    SOFTMOE_NAME(cudaErrorInsufficientDriver);
    SOFTMOE_NAME(cudaErrorNoDevice);
    SOFTMOE_NAME(cudaErrorInvalidDevice);
    SOFTMOE_NAME(cudaErrorNoKernelImageForDevice);
    SOFTMOE_NAME(cudaErrorInvalidResourceHandle);
    SOFTMOE_NAME(cudaErrorNotReady);
    SOFTMOE_NAME(cudaErrorIllegalAddress);
    SOFTMOE_NAME(cudaErrorLaunchOutOfResources);
    SOFTMOE_NAME(cudaErrorHardwareStackError);
    SOFTMOE_NAME(cudaErrorIllegalInstruction);
    SOFTMOE_NAME(cudaErrorMisalignedAddress);
    SOFTMOE_NAME(cudaErrorInvalidAddressSpace);
    SOFTMOE_NAME(cudaErrorInvalidPc);
    SOFTMOE_NAME(cudaErrorLaunchFailure);
    SOFTMOE_NAME(cudaErrorUnknown);
  }
#undef SOFTMOE_NAME
  return "an error that the simulator does not know";
}

const char* cudaGetErrorString(cudaError_t error) {
  const HostCall host_call;
  return Library::Get().Text(error, cudaGetErrorName(error));
}

cudaError_t cudaGetLastError() {
  const HostCall host_call;
  const int error = Library::Get().last_error();
  if (DeviceFailure(CurrentDevice()) == nullptr) Library::Get().Forget();
  return static_cast<cudaError_t>(error);
}

// ---- The device

cudaError_t cudaGetDeviceCount(int* count) {
  SOFTMOE_BEGIN("cudaGetDeviceCount");
  if (DriverVersion() / 1000 < CUDART_VERSION / 1000) {
    return SOFTMOE_REFUSE(
        cudaErrorInsufficientDriver,
        "the driver, of version %d, is too old for the runtime, of version %d",
        DriverVersion(), CUDART_VERSION);
  }
  *count = limits.devices;
  MarkInitialized(count);
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  SOFTMOE_BEGIN("cudaSetDevice", device);  // a thread may leave a failed device
  const cudaError_t error = CheckDevice(device);
  if (error != cudaSuccess) return error;
  SetCurrentDevice(device);
  MakeContext();  // since CUDA 12
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  SOFTMOE_BEGIN("cudaGetDeviceProperties");
  if (const cudaError_t error = CheckDevice(device); error != cudaSuccess) {
    return error;
  }
  *properties = {};
  snprintf(properties->name, sizeof(properties->name), "simulated device");
  properties->uuid.bytes[0] = static_cast<char>(1 + device);
  properties->totalGlobalMem = limits.memory;
  properties->sharedMemPerBlock = size_t{48} * 1024;
  properties->sharedMemPerBlockOptin = limits.shared_memory_per_block;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->major = 9;  // an H100's
  properties->minor = 0;
  properties->multiProcessorCount = 132;
  MarkInitialized(properties);
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  SOFTMOE_BEGIN("cudaDriverGetVersion");
  *version = DriverVersion();
  MarkInitialized(version);
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  SOFTMOE_BEGIN("cudaRuntimeGetVersion");
  *version = CUDART_VERSION;
  MarkInitialized(version);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  SOFTMOE_BEGIN("cudaDeviceSynchronize");
  return Waited(TheWorkQueue().SynchronizeAll(CurrentDevice()));
}

// ---- Memory

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  SOFTMOE_BEGIN("cudaMemGetInfo");
  *free = FreeOfDevice();
  *total = limits.memory;
  MarkInitialized(free);
  MarkInitialized(total);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t size) {
  SOFTMOE_BEGIN("cudaMalloc");
  *memory = nullptr;
  MarkInitialized(memory);
  if (size == 0) return cudaSuccess;
  const size_t free = FreeOfDevice();
  if (size > free || GuardedMemory::Rounded(size) > free) {
    return SOFTMOE_REFUSE(cudaErrorMemoryAllocation,
                          "cudaMalloc of %zu bytes: %zu of %zu are free", size,
                          free, limits.memory);
  }
  *memory = DeviceMemory().Allocate(size, CurrentDevice());
  if (*memory != nullptr) return cudaSuccess;
  return SOFTMOE_REFUSE(cudaErrorMemoryAllocation,
                        "cudaMalloc of %zu bytes: the simulator, which never "
                        "uses an address twice, has no room left",
                        size);
}

cudaError_t cudaFree(void* memory) {
  SOFTMOE_BEGIN_RELEASE("cudaFree");
  if (memory == nullptr) {
    MakeContext();
    return begun;
  }
  Allocation* allocation = DeviceMemory().Find(memory);
  char where[300];
  if (allocation == nullptr || !allocation->live ||
      allocation->begin != memory) {
    DeviceMemory().Describe(memory, where, sizeof(where));
    return SOFTMOE_REFUSE(
        cudaErrorInvalidValue, "cudaFree of %p: %s", memory,
        DeviceMemory().Holds(memory) ? where : "a host address");
  }
  if (const Work* user = TheWorkQueue().FindUser(*allocation)) {
    return SOFTMOE_REFUSE(cudaErrorInvalidValue,
                          "cudaFree of device memory %d, which %s that is "
                          "still queued uses",
                          allocation->number, user->what());
  }
  DeviceMemory().Free(allocation);
  return begun;
}

cudaError_t cudaMallocHost(void** memory, size_t size) {
  SOFTMOE_BEGIN("cudaMallocHost");
  MakeContext();
  *memory = size == 0 ? nullptr : PinnedMemory().Allocate(size);
  MarkInitialized(memory);
  if (size == 0 || *memory != nullptr) return cudaSuccess;
  return SOFTMOE_REFUSE(cudaErrorMemoryAllocation,
                        "cudaMallocHost of %zu bytes: no memory is left", size);
}

cudaError_t cudaFreeHost(void* memory) {
  SOFTMOE_BEGIN_RELEASE("cudaFreeHost");
  if (memory == nullptr) return begun;
  Allocation* allocation = PinnedMemory().Find(memory);
  if (allocation == nullptr || !allocation->live ||
      allocation->begin != memory) {
    return SOFTMOE_REFUSE(cudaErrorInvalidValue,
                          "cudaFreeHost of %p, which cudaMallocHost did not "
                          "return, or which is freed",
                          memory);
  }
  if (const Work* user =
          TheWorkQueue().FindHostUser({allocation->begin, allocation->size})) {
    return SOFTMOE_REFUSE(cudaErrorInvalidValue,
                          "cudaFreeHost of memory that %s, which is still "
                          "queued, uses",
                          user->what());
  }
  PinnedMemory().Free(allocation);
  return begun;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  constexpr const char* kCall = "cudaMemcpyAsync";
  SOFTMOE_BEGIN(kCall);
  SOFTMOE_CHECK_STREAM(kCall, stream);
  if (size == 0) return cudaSuccess;
  cudaError_t error = CheckRange(kCall, "the source", from, size);
  if (error == cudaSuccess) {
    error = CheckRange(kCall, "the destination", to, size);
  }
  if (error != cudaSuccess) return error;
  const bool from_host = !DeviceMemory().Holds(from);
  const bool to_host = !DeviceMemory().Holds(to);
  const cudaMemcpyKind actual =
      from_host ? (to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice)
      : to_host ? cudaMemcpyDeviceToHost
                : cudaMemcpyDeviceToDevice;
  if (actual == cudaMemcpyHostToHost ||
      (kind != cudaMemcpyDefault && kind != actual)) {
    return SOFTMOE_REFUSE(cudaErrorInvalidMemcpyDirection,
                          "%s from %s to %s memory, called a copy of kind %d",
                          kCall, from_host ? "host" : "device",
                          to_host ? "host" : "device", static_cast<int>(kind));
  }
  if ((from_host && !PinnedMemory().Holds(from)) ||
      (to_host && !PinnedMemory().Holds(to))) {
    ++pageable_copies;
  }
  const Range source = {static_cast<const char*>(from), size};
  const Range destination = {static_cast<const char*>(to), size};
  if (source.Overlaps(destination)) {
    return SOFTMOE_REFUSE(cudaErrorInvalidValue,
                          "%s between ranges that overlap", kCall);
  }
  CopyWork* work = new CopyWork(to, from, size, from_host, to_host);
  if (from_host && TheWorkQueue().FindHostWriter(source) == nullptr) {
    work->ExpectUnchanged();
  }
  if (to_host && TheWorkQueue().FindHostUser(destination) == nullptr) {
    // Until the host waits, the content is undefined.
    FillRaw(to, 0xffff, size);
    MarkUninitialized(to, size);
  }
  work->AddUse(DeviceMemory().Find(from));
  work->AddUse(DeviceMemory().Find(to));
  TheWorkQueue().Add(stream, work);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* at, int value, size_t size,
                            cudaStream_t stream) {
  constexpr const char* kCall = "cudaMemsetAsync";
  SOFTMOE_BEGIN(kCall);
  SOFTMOE_CHECK_STREAM(kCall, stream);
  if (size == 0) return cudaSuccess;
  if (!DeviceMemory().Holds(at)) {
    return SOFTMOE_REFUSE(cudaErrorInvalidValue, "%s of the host address %p",
                          kCall, at);
  }
  const cudaError_t error = CheckRange(kCall, "the destination", at, size);
  if (error != cudaSuccess) return error;
  FillWork* work = new FillWork(at, value, size);
  work->AddUse(DeviceMemory().Find(at));
  TheWorkQueue().Add(stream, work);
  return cudaSuccess;
}

// ---- Streams and events

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  SOFTMOE_BEGIN("cudaStreamCreateWithFlags");
  if (flags > cudaStreamNonBlocking) {
    return SOFTMOE_REFUSE(cudaErrorInvalidValue, "a stream with flags %u",
                          flags);
  }
  MakeContext();
  *stream = TheWorkQueue().CreateStream(CurrentDevice());
  MarkInitialized(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  constexpr const char* kCall = "cudaStreamDestroy";
  SOFTMOE_BEGIN_RELEASE(kCall);
  SOFTMOE_CHECK_STREAM(kCall, stream);
  const char* wrong = TheWorkQueue().DestroyStream(stream);
  if (wrong == nullptr) return begun;
  return SOFTMOE_REFUSE(cudaErrorInvalidValue, "%s: %s", kCall, wrong);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  constexpr const char* kCall = "cudaStreamSynchronize";
  SOFTMOE_BEGIN(kCall);
  SOFTMOE_CHECK_STREAM(kCall, stream);
  return Waited(TheWorkQueue().Synchronize(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags) {
  constexpr const char* kCall = "cudaStreamWaitEvent";
  SOFTMOE_BEGIN(kCall);
  SOFTMOE_CHECK_STREAM(kCall, stream);
  SOFTMOE_CHECK_EVENT(kCall, event);
  if (flags != 0) {
    return SOFTMOE_REFUSE(cudaErrorInvalidValue, "%s with flags %u", kCall,
                          flags);
  }
  TheWorkQueue().Wait(stream, event);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  SOFTMOE_BEGIN("cudaEventCreateWithFlags");
  if ((flags & ~static_cast<unsigned>(cudaEventDisableTiming)) != 0) {
    return SOFTMOE_REFUSE(cudaErrorInvalidValue, "an event with flags %u",
                          flags);
  }
  MakeContext();
  *event = TheWorkQueue().CreateEvent(CurrentDevice());
  MarkInitialized(event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  constexpr const char* kCall = "cudaEventDestroy";
  SOFTMOE_BEGIN_RELEASE(kCall);
  SOFTMOE_CHECK_EVENT(kCall, event);
  TheWorkQueue().DestroyEvent(event);
  return begun;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  constexpr const char* kCall = "cudaEventRecord";
  SOFTMOE_BEGIN(kCall);
  SOFTMOE_CHECK_STREAM(kCall, stream);
  SOFTMOE_CHECK_EVENT(kCall, event);
  if (const int device = DeviceOf(event); device != DeviceOf(stream)) {
    return SOFTMOE_REFUSE(cudaErrorInvalidResourceHandle,
                          "%s of an event of device %d on a stream of device "
                          "%d",
                          kCall, device, DeviceOf(stream));
  }
  TheWorkQueue().Record(event, stream);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  constexpr const char* kCall = "cudaEventSynchronize";
  SOFTMOE_BEGIN(kCall);
  SOFTMOE_CHECK_EVENT(kCall, event);
  return Waited(TheWorkQueue().Synchronize(event));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  constexpr const char* kCall = "cudaEventQuery";
  SOFTMOE_BEGIN(kCall);
  SOFTMOE_CHECK_EVENT(kCall, event);
  bool done = false;
  const char* wrong = TheWorkQueue().Query(event, &done);
  if (wrong != nullptr) return Waited(wrong);
  return done ? cudaSuccess : cudaErrorNotReady;  // not an error to remember
}

// ---- Kernels

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute,
                                 int value) {
  SOFTMOE_BEGIN("cudaFuncSetAttribute");
  MakeContext();
  if (value < 0 ||
      static_cast<size_t>(value) > limits.shared_memory_per_block) {
    return SOFTMOE_REFUSE(cudaErrorInvalidValue,
                          "%d bytes of dynamic shared memory: a block has at "
                          "most %zu",
                          value, limits.shared_memory_per_block);
  }
  SharedAllowance* allowance = AllowanceOf(kernel);
  if (allowance == std::end(allowances)) {
    return SOFTMOE_REFUSE(cudaErrorInvalidValue,
                          "dynamic shared memory of one more kernel: the "
                          "simulator handles at most %zu",
                          std::size(allowances));
  }
  *allowance = {kernel, CurrentDevice(), static_cast<size_t>(value)};
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  SOFTMOE_BEGIN("cudaFuncGetAttributes");
  MakeContext();
  *attributes = {1024};
  MarkInitialized(attributes);
  return cudaSuccess;
}

// NOLINTEND
