// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/device/host_call.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernels/simt/shim/sanitizer_hooks.h"

namespace softmoe::simt {
namespace {

// Not std::atomic, whose functions an instrumented source may define as well.
int lock = 0;  // 1: taken; 2: and somebody may be waiting
int changes = 0;

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

}  // namespace

HostCall::HostCall() {
  if (depth++ == 0) Enter();
}

HostCall::~HostCall() {
  if (--depth == 0) Leave();
}

void NoteChange() {
  __atomic_add_fetch(&changes, 1, __ATOMIC_SEQ_CST);
  Wake(&changes, 1 << 30);
}

bool WaitForChange() {
  const int before = __atomic_load_n(&changes, __ATOMIC_SEQ_CST);
  const timespec limit = {1, 0};
  Leave();
  SleepWhile(&changes, before, &limit);
  Enter();
  return __atomic_load_n(&changes, __ATOMIC_SEQ_CST) != before;
}

bool IsInHostCall() { return depth > 0; }

int CurrentDevice() { return device; }
void SetCurrentDevice(int chosen) { device = chosen; }

}  // namespace softmoe::simt
