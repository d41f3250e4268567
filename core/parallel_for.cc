// SPDX-License-Identifier: Apache-2.0
#include "core/parallel_for.h"

#include <sched.h>

#include <algorithm>

#include "core/errors.h"

namespace softmoe {
namespace {

// Set while this thread runs a task: nested calls stay in the thread.
thread_local bool inside_task = false;

// A step of a small model starts hundreds of jobs a few microseconds apart, so
// waiting threads spin this often before they sleep in the kernel.
constexpr int kSpins = 4000;

inline void Pause() { __builtin_ia32_pause(); }

// Returns when `value` differs from `old`.
template <typename T>
void WaitWhileEqual(const std::atomic<T>& value, T old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    Pause();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old);
}

}  // namespace

int AvailableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return std::max(1, CPU_COUNT(&set));
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

ThreadPool::ThreadPool(int threads) {
  if (threads == 0) threads = AvailableCores();
  SOFTMOE_CHECK(threads > 0) << "threads=" << threads;
  workers_.reserve(threads - 1);
  for (int t = 1; t < threads; ++t) {
    workers_.emplace_back([this, t] { WorkerLoop(t); });
  }
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
}

void ThreadPool::Run(int64_t num_tasks, Call call, void* body) {
  if (num_tasks <= 0) return;
  if (inside_task || workers_.empty() || num_tasks == 1) {
    for (int64_t i = 0; i < num_tasks; ++i) call(body, i);
    return;
  }
  std::lock_guard<std::mutex> turn(run_mutex_);
  call_ = call;
  body_ = body;
  num_tasks_ = num_tasks;
  failed_task_ = -1;
  failure_ = nullptr;
  running_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();

  RunShare(0);
  for (int left; (left = running_.load(std::memory_order_acquire)) != 0;) {
    WaitWhileEqual(running_, left);
  }
  if (failure_) std::rethrow_exception(failure_);
}

void ThreadPool::RunShare(int thread) {
  const int64_t n = num_tasks_, count = threads();
  const int64_t begin = (thread * n + count - 1) / count;
  const int64_t end = ((thread + 1) * n + count - 1) / count;
  inside_task = true;
  for (int64_t i = begin; i < end; ++i) {
    try {
      call_(body_, i);
    } catch (...) {
      std::lock_guard<std::mutex> lock(failure_mutex_);
      if (failed_task_ < 0 || i < failed_task_) {
        failed_task_ = i;
        failure_ = std::current_exception();
      }
      break;  // every later task of this share has a higher index
    }
  }
  inside_task = false;
}

void ThreadPool::WorkerLoop(int thread) {
  uint32_t seen = 0;
  for (;;) {
    WaitWhileEqual(generation_, seen);
    // Exactly one: Run does not start a job before this worker ended the last.
    seen += 1;
    if (stop_) return;
    RunShare(thread);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      running_.notify_one();
    }
  }
}

}  // namespace softmoe
