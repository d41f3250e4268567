// SPDX-License-Identifier: Apache-2.0
//
// work_queue.h - streams and events: what is queued, and when it runs.
//
// Nothing runs when it is queued. Work runs when the host waits, in one of
// three ways (SetSchedule of shim/simulator.h):
//
//   kAscending   only awaited work and its predecessors, as late as possible
//   kDescending  first all other work that can run: other streams run ahead
//   kRandom      any work that can run, until the awaited work is done
//
// If the awaited work needs another host thread that has not queued its part
// yet, the host waits for that thread. If waiting cannot help, or nothing has
// changed for a while (SetPatience of device.h), the program is wrong.
//
// All three are legal. To TSan every stream is a thread, ordered only by events
// and synchronisations; queued work comes after what the host did before it.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_WORK_QUEUE_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_WORK_QUEUE_H_

#include <cstddef>
#include <vector>

#include "kernels/simt/device/guarded_memory.h"
#include "kernels/simt/shim/block.h"

// Declared as in the toolkit's headers: cudaStream_t and cudaEvent_t point to
// these.
struct CUstream_st;
struct CUevent_st;

namespace softmoe::simt {

// Memory that something reads or writes.
struct Range {
  const char* begin = nullptr;
  size_t size = 0;
  bool Overlaps(const Range& other) const {
    return size > 0 && other.size > 0 && begin < other.begin + other.size &&
           other.begin < begin + size;
  }
};

// The point in a stream where an event was recorded.
struct EventRecord {
  CUstream_st* stream;
  bool done;
  char tag;  // for TSan: one per record, so that a wait sees no later one
};

// The number of a device allocation that work uses or at least points to.
struct Use {
  int allocation;
};

// Queued work. Every function but Run is called on the host's behalf.
class Work {
 public:
  explicit Work(const char* what) : what_(what) {}
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Runs the work; to TSan, its stream does. Device memory is open. Returns
  // null, or what is wrong.
  virtual const char* Run() = 0;

  // CanRun is false if the work waits for the stream that WaitsFor returns or,
  // if that is null or has nothing queued, for a host thread.
  virtual bool CanRun() const { return true; }
  virtual CUstream_st* WaitsFor() const { return nullptr; }
  // False if part of the work is left to run; it then stays at the front.
  virtual bool Done() const { return true; }
  // For work that cannot run: NeverRuns returns why it never will, or null;
  // Explain writes who waits for what.
  virtual const char* NeverRuns() const { return nullptr; }
  virtual void Explain(char* text, size_t size) const;

  void AddUse(const Allocation* allocation) {
    if (allocation != nullptr) uses_.push_back({allocation->number});
  }
  bool UsesAllocation(const Allocation& allocation) const;

  // Orders what the host did before queueing this work before what its stream
  // does now. For work that others partly run, acting as its stream.
  void AcquireQueued();

  const char* what() const { return what_; }

  Range host_reads, host_writes;

 private:
  friend class WorkQueue;
  const char* what_;  // "cudaMemcpyAsync"
  std::vector<Use> uses_;
  CUstream_st* stream_ = nullptr;
  Work* next_ = nullptr;
  char queued_ = 0;  // a tag for TSan
};

// While it lives, TSan attributes what happens to `stream`.
class ActAs {
 public:
  explicit ActAs(const CUstream_st& stream);
  ~ActAs();
  ActAs(const ActAs&) = delete;
  ActAs& operator=(const ActAs&) = delete;

 private:
  void* before_ = nullptr;
};

class WorkQueue {
 public:
  CUstream_st* CreateStream(int device);
  // Returns null, or why it is refused: something is still queued.
  const char* DestroyStream(CUstream_st* stream);
  // Whether `stream` is live.
  bool Knows(const CUstream_st* stream) const;

  CUevent_st* CreateEvent(int device);
  void DestroyEvent(CUevent_st* event);
  bool Knows(const CUevent_st* event) const;

  // Takes ownership of `work`.
  void Add(CUstream_st* stream, Work* work);
  // Deletes `work`, wherever it is queued. `instead`, unless null, takes its
  // place and is owned by the queue.
  void Remove(Work* work, Work* instead = nullptr);
  // Whether everything that was queued before `work` on its stream has run.
  bool IsAtFront(const Work& work) const;
  void Record(CUevent_st* event, CUstream_st* stream);
  // Does nothing if the event was never recorded, as on a device.
  void Wait(CUstream_st* stream, CUevent_st* event);

  // Each runs the work that is needed, ordered before what the host does next.
  // Returns null, or what went wrong on the device that was waited for: that
  // device has failed (DeviceFailure), and nothing is queued on it any more.
  // The failure of another device meanwhile does not concern the caller.
  const char* Synchronize(CUstream_st* stream);
  const char* Synchronize(CUevent_st* event);
  const char* SynchronizeAll(int device);
  // Runs at most one piece of work, so that a host that polls reaches an end.
  const char* Query(CUevent_st* event, bool* done);

  // Queued work that uses the allocation (FindUser), reads or writes the host's
  // memory (FindHostUser), or writes it (FindHostWriter); or null.
  const Work* FindUser(const Allocation& allocation) const;
  const Work* FindHostUser(const Range& range) const;
  const Work* FindHostWriter(const Range& range) const;

  // Drops all queued work of all devices.
  void DropAll();

 private:
  template <typename Condition>
  const Work* Find(const Condition& condition) const;
  void RunOne(CUstream_st* needed, bool for_ever);
  void RunFront(CUstream_st* stream);
  CUstream_st* Choose(CUstream_st* needed);
  void WaitForHost(int device, bool for_ever);
  void Fail(int device);
  static void Drop(CUstream_st* stream);
  void OrderBeforeHost(CUstream_st* stream);

  std::vector<CUstream_st*> streams_;  // the live ones
  std::vector<CUevent_st*> events_;
  // Never freed: a new stream at the same address would hide a stale handle.
  std::vector<const void*> destroyed_;
  std::vector<void*> threads_;  // TSan's, one per lane of streams
  std::vector<EventRecord*> records_;
  // Set by Choose: the work that cannot run, and whether it waits in a circle.
  const Work* blocked_ = nullptr;
  bool in_a_circle_ = false;
  int schedules_chosen_ = 0;  // when random_ was made
  Random random_{1};
  char message_[1200] = {};
};

// Never destroyed.
WorkQueue& TheWorkQueue();

int DeviceOf(const CUstream_st* stream);
int DeviceOf(const CUevent_st* event);

// The set of fibers for the kernels of a stream; see Grid.
int FiberSetOf(const CUstream_st* stream);

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_WORK_QUEUE_H_
