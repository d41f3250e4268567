// SPDX-License-Identifier: Apache-2.0
//
// work_queue.h - streams and events: what is queued, and when it runs.
//
// Nothing runs when it is queued. When the host waits, what it waits for runs,
// in one of three ways (SetSchedule of shim/simulator.h):
//
//   kAscending   only that, and what events order before it: as late as it can
//   kDescending  first everything else that can run: other streams run ahead
//   kRandom      any that can run, until what is waited for is done
//
// If what is waited for needs another thread of the host, which has not queued
// its part yet, the host waits for that thread. If that cannot help, or nothing
// has come for a while (SetPatience of device.h), the program is wrong.
//
// All three are legal. To TSan every stream is a thread of its own, ordered by
// events and synchronisations only; queueing orders what the host did before.
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
  char tag;  // for TSan: new for each, or a later record would be seen, too
};

// A numbered part of device memory that work uses, if only by its address.
struct Use {
  int allocation;
};

// Something that is queued. Everything but Run happens on the host's behalf.
class Work {
 public:
  explicit Work(const char* what) : what_(what) {}
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Runs it, to TSan as its stream. Device memory is open; memory on the host's
  // heap must not be allocated or freed. Returns null, or what is wrong.
  virtual const char* Run() = 0;

  // False if it waits for another stream or, if that is null or has nothing
  // queued, for a thread of the host.
  virtual bool CanRun() const { return true; }
  virtual CUstream_st* WaitsFor() const { return nullptr; }
  // False if there is more of it to run; it stays at the front.
  virtual bool Done() const { return true; }
  // For work that cannot run: why it never will, or null; who waits for what.
  virtual const char* NeverRuns() const { return nullptr; }
  virtual void Explain(char* text, size_t size) const;

  void AddUse(const Allocation* allocation) {
    if (allocation != nullptr) uses_.push_back({allocation->number});
  }
  bool UsesAllocation(const Allocation& allocation) const;

  // Orders what the host did before queueing it before what its stream does
  // now; for work that others run a part of, as its stream.
  void AcquireQueued();

  const char* what() const { return what_; }

  Range host_reads, host_writes;

 private:
  friend class WorkQueue;
  const char* what_;  // "cudaMemcpyAsync"
  std::vector<Use> uses_;
  CUstream_st* stream_ = nullptr;
  Work* next_ = nullptr;
  char queued_ = 0;  // a tag
};

// While it lives, TSan takes what happens for the work of `stream`.
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
  // Returns null, or why not: something is still queued.
  const char* DestroyStream(CUstream_st* stream);
  // Whether it is a stream that lives.
  bool Knows(const CUstream_st* stream) const;

  CUevent_st* CreateEvent(int device);
  void DestroyEvent(CUevent_st* event);
  bool Knows(const CUevent_st* event) const;

  // Takes ownership.
  void Add(CUstream_st* stream, Work* work);
  // Deletes it, wherever it is queued; `instead` takes its place, if there is
  // one, and is owned from now on.
  void Remove(Work* work, Work* instead = nullptr);
  // Whether all that was queued before it has run.
  bool IsAtFront(const Work& work) const;
  void Record(CUevent_st* event, CUstream_st* stream);
  // Does nothing if the event was never recorded, as on a device.
  void Wait(CUstream_st* stream, CUevent_st* event);

  // Each runs what is needed, ordered before what the host does next. Returns
  // null, or what went wrong on the device that was waited for: it has failed
  // (DeviceFailure), and nothing is queued there any more. What fails on
  // another device meanwhile is no concern of the caller's.
  const char* Synchronize(CUstream_st* stream);
  const char* Synchronize(CUevent_st* event);
  const char* SynchronizeAll(int device);
  // Runs one thing at most, so that a host that asks again reaches an end.
  const char* Query(CUevent_st* event, bool* done);

  // Queued work that uses the allocation, that reads or writes the host's
  // memory, or that writes to it; null if there is none.
  const Work* FindUser(const Allocation& allocation) const;
  const Work* FindHostUser(const Range& range) const;
  const Work* FindHostWriter(const Range& range) const;

  // Forgets all that is queued, on all devices.
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
  // From the last Choose: the work that waits for a host thread, or for itself.
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
