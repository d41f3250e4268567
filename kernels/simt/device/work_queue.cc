// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/device/work_queue.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "kernels/simt/device/device.h"
#include "kernels/simt/device/host_call.h"
#include "kernels/simt/shim/sanitizer_hooks.h"
#include "kernels/simt/shim/simulator.h"

struct CUstream_st {
  int device = 0;
  softmoe::simt::Work* front = nullptr;
  softmoe::simt::Work* back = nullptr;
  int lane = 0;            // later streams reuse the lanes of destroyed ones
  void* thread = nullptr;  // TSan's; one per lane
};

struct CUevent_st {
  int device = 0;
  softmoe::simt::EventRecord* last = nullptr;
};

namespace softmoe::simt {
namespace {

class RecordWork : public Work {
 public:
  explicit RecordWork(EventRecord* record)
      : Work("cudaEventRecord"), record_(record) {}
  const char* Run() override {
    Release(&record_->tag);
    record_->done = true;
    return nullptr;
  }

 private:
  EventRecord* record_;
};

class WaitWork : public Work {
 public:
  explicit WaitWork(EventRecord* record)
      : Work("cudaStreamWaitEvent"), record_(record) {}
  const char* Run() override {
    Acquire(&record_->tag);
    return nullptr;
  }
  bool CanRun() const override { return record_->done; }
  CUstream_st* WaitsFor() const override { return record_->stream; }
  const char* NeverRuns() const override {
    return DeviceFailure(record_->stream->device) == nullptr
               ? nullptr
               : "an event will never be recorded";
  }
  void Explain(char* text, size_t size) const override {
    snprintf(text, size, "%s waits for device %d", what(),
             record_->stream->device);
  }

 private:
  EventRecord* record_;
};

int patience = 20;  // seconds

bool IsReady(const CUstream_st& stream) {
  return stream.front != nullptr && stream.front->CanRun();
}

}  // namespace

// The simulator is not instrumented, so the call stacks that TSan keeps are not
// confused.
constexpr unsigned kNoSync = 1;

ActAs::ActAs(const CUstream_st& stream) {
  if (!HasTsan()) return;
  before_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(stream.thread, kNoSync);
}

ActAs::~ActAs() {
  if (HasTsan()) __tsan_switch_to_fiber(before_, kNoSync);
}

void Work::AcquireQueued() { Acquire(&queued_); }

void Work::Explain(char* text, size_t size) const {
  snprintf(text, size, "%s waits for a thread of the host", what_);
}

bool Work::UsesAllocation(const Allocation& allocation) const {
  for (const Use& use : uses_) {
    if (use.allocation == allocation.number) return true;
  }
  return false;
}

void SetPatience(int seconds) {
  const HostCall host_call;
  patience = seconds;
}

WorkQueue& TheWorkQueue() {
  static WorkQueue& queue = *new WorkQueue;
  return queue;
}

// Without TSan nothing tells sets apart.
int FiberSetOf(const CUstream_st* stream) {
  return HasTsan() ? stream->lane % kNumFiberSets : 0;
}

int DeviceOf(const CUstream_st* stream) { return stream->device; }
int DeviceOf(const CUevent_st* event) { return event->device; }

// ---- Streams and events

CUstream_st* WorkQueue::CreateStream(int device) {
  CUstream_st* stream = new CUstream_st;
  stream->device = device;
  const auto taken = [&](const CUstream_st* other) {
    return other->lane == stream->lane;
  };
  while (std::ranges::any_of(streams_, taken)) ++stream->lane;
  if (HasTsan()) {
    const size_t lane = static_cast<size_t>(stream->lane);
    if (lane == threads_.size()) threads_.push_back(__tsan_create_fiber(0));
    stream->thread = threads_[lane];
  }
  streams_.push_back(stream);
  return stream;
}

const char* WorkQueue::DestroyStream(CUstream_st* stream) {
  if (stream->front != nullptr) {
    snprintf(message_, sizeof(message_),
             "%s is still queued on this stream: synchronise first",
             stream->front->what());
    return message_;
  }
  std::erase(streams_, stream);
  destroyed_.push_back(stream);
  return nullptr;
}

bool WorkQueue::Knows(const CUstream_st* stream) const {
  return std::ranges::count(streams_, stream) > 0;
}

CUevent_st* WorkQueue::CreateEvent(int device) {
  events_.push_back(new CUevent_st);
  events_.back()->device = device;
  return events_.back();
}

void WorkQueue::DestroyEvent(CUevent_st* event) {
  std::erase(events_, event);
  destroyed_.push_back(event);
}

bool WorkQueue::Knows(const CUevent_st* event) const {
  return std::ranges::count(events_, event) > 0;
}

void WorkQueue::Add(CUstream_st* stream, Work* work) {
  work->stream_ = stream;
  (stream->front == nullptr ? stream->front : stream->back->next_) = work;
  stream->back = work;
  Release(&work->queued_);
  NoteChange();
}

void WorkQueue::Remove(Work* work, Work* instead) {
  CUstream_st* stream = work->stream_;
  Work* before = nullptr;
  for (Work* w = stream->front; w != work; w = w->next_) before = w;
  Work* next = work->next_;
  if (instead != nullptr) {
    instead->stream_ = stream;
    instead->next_ = next;
    Release(&instead->queued_);
    next = instead;
  }
  (before == nullptr ? stream->front : before->next_) = next;
  if (stream->back == work) {
    stream->back = instead != nullptr ? instead : before;
  }
  delete work;
  NoteChange();
}

bool WorkQueue::IsAtFront(const Work& work) const {
  return work.stream_ != nullptr && work.stream_->front == &work;
}

void WorkQueue::Record(CUevent_st* event, CUstream_st* stream) {
  event->last = new EventRecord{stream, false, 0};
  records_.push_back(event->last);
  Add(stream, new RecordWork(event->last));
}

void WorkQueue::Wait(CUstream_st* stream, CUevent_st* event) {
  if (event->last != nullptr) Add(stream, new WaitWork(event->last));
}

// ---- What runs

// Returns the stream to run next so that the front of `needed` runs in the end;
// null if none can run.
CUstream_st* WorkQueue::Choose(CUstream_st* needed) {
  CUstream_st* late = needed;
  size_t steps = 0;
  while (late != nullptr && !late->front->CanRun()) {
    blocked_ = late->front;
    late = late->front->WaitsFor();
    if (late != nullptr && late->front == nullptr) late = nullptr;
    if (++steps > streams_.size()) break;
  }
  in_a_circle_ = steps > streams_.size();
  if (in_a_circle_) late = nullptr;
  if (schedules_chosen_ != SchedulesChosen()) {
    schedules_chosen_ = SchedulesChosen();
    random_ = Random(ChosenSeed());
  }
  const auto is_other = [late](const CUstream_st* stream) {
    return stream != late && IsReady(*stream);
  };
  switch (ChosenSchedule()) {
    case Schedule::kAscending:
      return late;
    case Schedule::kDescending:
      for (size_t i = streams_.size(); i-- > 0;) {
        if (is_other(streams_[i])) return streams_[i];
      }
      return late;
    default: {
      int others = 0;
      for (const CUstream_st* stream : streams_) others += is_other(stream);
      int chosen = random_.Below(others + 1);
      for (CUstream_st* stream : streams_) {
        if (is_other(stream) && chosen-- == 0) return stream;
      }
      return late;
    }
  }
}

void WorkQueue::RunOne(CUstream_st* needed, bool for_ever) {
  CUstream_st* next = Choose(needed);
  if (next != nullptr) return RunFront(next);
  WaitForHost(needed->device, for_ever);
}

// Waits for a change, such as work queued by another thread. `device` fails if
// that has taken too long or, unless `for_ever`, if it cannot help. To be
// called after Choose has found nothing.
void WorkQueue::WaitForHost(int device, bool for_ever) {
  const char* why = nullptr;
  if (!for_ever) {
    why = in_a_circle_ ? "deadlock: ranks wait for each other"
                       : blocked_->NeverRuns();
  }
  if (SecondsWithoutChange() >= patience) {
    why = "timed out waiting for a rank";
  }
  if (why != nullptr) {
    char who[600];
    blocked_->Explain(who, sizeof(who));
    snprintf(message_, sizeof(message_), "%s: %s", why, who);
    return Fail(device);
  }
  DeviceMemory().Close();
  WaitForChange();
  DeviceMemory().Open();
}

// Makes the device fail, as message_ says. An event that has not been recorded
// there by now never will be.
void WorkQueue::Fail(int device) {
  SetDeviceFailure(device, message_);
  for (CUstream_st* stream : streams_) {
    if (stream->device == device) Drop(stream);
  }
  NoteChange();
}

void WorkQueue::RunFront(CUstream_st* stream) {
  Work* work = stream->front;
  const char* wrong = nullptr;
  for (const Use& use : work->uses_) DeviceMemory().OpenNumber(use.allocation);
  {
    const ActAs as(*stream);
    Acquire(&work->queued_);
    wrong = work->Run();
  }
  char text[300];
  if (wrong != nullptr) {
    OrderBeforeHost(stream);  // a kernel's thread wrote the message
    snprintf(message_, sizeof(message_), "%s: %s", work->what(), wrong);
  } else if (!DeviceMemory().FencesHold(text, sizeof(text))) {
    snprintf(message_, sizeof(message_), "%s wrote %s", work->what(), text);
    wrong = text;
  }
  if (wrong != nullptr) return Fail(stream->device);
  if (work->Done()) {
    stream->front = work->next_;
    delete work;
  }
  NoteChange();
}

// Everything `stream` has done happens before what the host does now.
void WorkQueue::OrderBeforeHost(CUstream_st* stream) {
  if (!HasTsan()) return;
  char* tag = new char;  // a used tag would bring along an older order
  {
    const ActAs as(*stream);
    Release(tag);
  }
  Acquire(tag);
  delete tag;
}

namespace {

// While it lives, the device works and its memory is accessible.
struct Working {
  Working() { DeviceMemory().Open(); }
  ~Working() { DeviceMemory().Close(); }
};

}  // namespace

const char* WorkQueue::Synchronize(CUstream_st* stream) {
  if (stream->front != nullptr) {
    const Working working;
    // Also waits for what other threads queue on this stream meanwhile.
    while (stream->front != nullptr) {
      RunOne(stream, /*for_ever=*/false);
      if (const char* wrong = DeviceFailure(stream->device)) return wrong;
    }
  }
  OrderBeforeHost(stream);
  return nullptr;
}

const char* WorkQueue::Synchronize(CUevent_st* event) {
  EventRecord* record = event->last;
  if (record == nullptr) return nullptr;
  if (!record->done) {
    const Working working;
    while (!record->done) {
      const int device = record->stream->device;
      if (const char* wrong = DeviceFailure(device)) return wrong;
      RunOne(record->stream, /*for_ever=*/false);
    }
  }
  Acquire(&record->tag);
  return nullptr;
}

const char* WorkQueue::SynchronizeAll(int device) {
  // A copy, since other threads may create and destroy streams meanwhile.
  for (CUstream_st* stream : std::vector(streams_)) {
    if (!Knows(stream) || stream->device != device) continue;
    if (const char* wrong = Synchronize(stream)) return wrong;
  }
  return nullptr;
}

const char* WorkQueue::Query(CUevent_st* event, bool* done) {
  EventRecord* record = event->last;
  *done = record == nullptr || record->done;
  if (*done) {
    if (record != nullptr) Acquire(&record->tag);
    return nullptr;
  }
  const int device = record->stream->device;
  if (const char* wrong = DeviceFailure(device)) return wrong;
  const Working working;
  // A host that polls may still give up, so a hopeless wait is no failure.
  RunOne(record->stream, /*for_ever=*/true);
  return DeviceFailure(device);
}

// ---- Who uses what

template <typename Condition>
const Work* WorkQueue::Find(const Condition& condition) const {
  for (const CUstream_st* stream : streams_) {
    for (const Work* work = stream->front; work != nullptr;
         work = work->next_) {
      if (condition(*work)) return work;
    }
  }
  return nullptr;
}

const Work* WorkQueue::FindUser(const Allocation& allocation) const {
  return Find(
      [&](const Work& work) { return work.UsesAllocation(allocation); });
}

const Work* WorkQueue::FindHostUser(const Range& range) const {
  return Find([&](const Work& work) {
    return range.Overlaps(work.host_reads) || range.Overlaps(work.host_writes);
  });
}

const Work* WorkQueue::FindHostWriter(const Range& range) const {
  return Find(
      [&](const Work& work) { return range.Overlaps(work.host_writes); });
}

void WorkQueue::Drop(CUstream_st* stream) {
  while (stream->front != nullptr) {
    Work* next = stream->front->next_;
    delete stream->front;
    stream->front = next;
  }
}

void WorkQueue::DropAll() {
  for (CUstream_st* stream : streams_) Drop(stream);
  // Nobody can wait for these any more.
  for (EventRecord* record : records_) record->done = true;
  NoteChange();
}

}  // namespace softmoe::simt
