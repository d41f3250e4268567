// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/device/host_call.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/simt/device/device.h"
#include "kernels/simt/device/guarded_memory.h"
#include "kernels/simt/shim/sanitizer_hooks.h"

namespace softmoe::simt {
namespace {

// Not std::atomic: instrumented sources may define its functions, too.
int lock = 0;  // 1: taken; 2: and somebody may be waiting
int changes = 0;

// When a thread began to wait; negative if something has changed since.
double waiting_since = -1;

thread_local int depth = 0;
thread_local int device = 0;

void SleepWhile(int* word, int value, const timespec* limit) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, limit, nullptr, 0);
}

void Wake(int* word, int sleepers) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr, 0);
}

void Enter() {
  int free = 0;
  if (!__atomic_compare_exchange_n(&lock, &free, 1, false, __ATOMIC_SEQ_CST,
                                   __ATOMIC_SEQ_CST)) {
    while (__atomic_exchange_n(&lock, 2, __ATOMIC_SEQ_CST) != 0) {
      SleepWhile(&lock, 2, nullptr);
    }
  }
  IgnoreThreadBegin();
}

void Leave() {
  IgnoreThreadEnd();
  if (__atomic_exchange_n(&lock, 0, __ATOMIC_SEQ_CST) == 2) Wake(&lock, 1);
}

double Seconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

// What failed on each device; empty if nothing did.
char failures[GuardedMemory::kMaxDevices][1300] = {};

struct Call {
  const char* name;
  int count;
  int fails_at;  // the count of the call that fails
  int error;
};

Call& Find(const char* name) {
  static Call calls[64];
  for (Call& call : calls) {
    if (call.name == nullptr) call.name = name;
    if (strcmp(call.name, name) == 0) return call;
  }
  abort();  // unreachable: there are fewer functions
}

}  // namespace

HostCall::HostCall() {
  if (depth++ == 0) Enter();
}

HostCall::~HostCall() {
  if (--depth == 0) Leave();
}

void NoteChange() {
  waiting_since = -1;
  __atomic_add_fetch(&changes, 1, __ATOMIC_SEQ_CST);
  Wake(&changes, 1 << 30);
}

void WaitForChange() {
  if (waiting_since < 0) waiting_since = Seconds();
  const int before = __atomic_load_n(&changes, __ATOMIC_SEQ_CST);
  const timespec limit = {1, 0};
  Leave();
  SleepWhile(&changes, before, &limit);
  Enter();
}

double SecondsWithoutChange() {
  return waiting_since < 0 ? 0 : Seconds() - waiting_since;
}

bool IsInHostCall() { return depth > 0; }

int CurrentDevice() { return device; }
void SetCurrentDevice(int chosen) { device = chosen; }

int CountCall(const char* name) {
  Call& call = Find(name);
  return ++call.count == call.fails_at ? call.error : 0;
}

void FailCall(const char* name, int n, int error) {
  const HostCall host_call;
  Call& call = Find(name);
  call.fails_at = call.count + n;
  call.error = error;
}

int CallsOf(const char* name) {
  const HostCall host_call;
  return Find(name).count;
}

int Refusals::Begin(const char* name, int after_failure, int device_used) {
  if (const int error = CountCall(name)) {
    return Refuse(error, "%s fails, as a test ordered", name);
  }
  const char* failure = DeviceFailure(device_used);
  return failure == nullptr ? 0 : Refuse(after_failure, "%s", failure);
}

int Refusals::Refuse(int error, const char* format, ...) {
  last_error_ = explained_ = error;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why_, sizeof(why_), format, arguments);
  va_end(arguments);
  return error;
}

const char* Refusals::Text(int error, const char* name) {
  if (error == 0 || error != explained_) return name;
  snprintf(text_, sizeof(text_), "%s: %s", name, why_);
  return text_;
}

const char* DeviceFailure(int failed) {
  if (failed < 0 || failed >= GuardedMemory::kMaxDevices) return nullptr;
  return failures[failed][0] == '\0' ? nullptr : failures[failed];
}

void SetDeviceFailure(int failed, const char* what) {
  snprintf(failures[failed], sizeof(failures[failed]), "%s", what);
}

void ForgetDeviceFailures() {
  for (auto& failure : failures) failure[0] = '\0';
}

}  // namespace softmoe::simt
