// SPDX-License-Identifier: Apache-2.0
#include "core/parallel_for.h"

#include <sched.h>

#include <algorithm>

#include "core/errors.h"
#include "core/profile.h"

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
  shares_ = std::make_unique<Share[]>(threads);
  workers_.reserve(threads - 1);
  try {
    for (int t = 1; t < threads; ++t) {
      workers_.emplace_back([this, t] { WorkerLoop(t); });
    }
  } catch (...) {
    // Otherwise the destructor would wait forever for the threads that started.
    stop_.store(true, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
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
  Profile* const profile = Profile::Active();
  const int64_t start = profile == nullptr ? 0 : Profile::Nanoseconds();
  call_ = call;
  body_ = body;
  num_tasks_ = num_tasks;
  failed_task_ = -1;
  failure_ = nullptr;
  unfinished_shares_.store(threads(), std::memory_order_relaxed);
  const uint64_t generation = generation_.load(std::memory_order_relaxed) + 1;
  for (int share = 0; share < threads(); ++share) {
    shares_[share].state.store(2 * generation, std::memory_order_release);
  }
  generation_.store(generation, std::memory_order_release);
  generation_.notify_all();

  RunOpenShares(generation, 0);
  for (int left;
       (left = unfinished_shares_.load(std::memory_order_acquire)) != 0;) {
    WaitWhileEqual(unfinished_shares_, left);
  }
  if (profile != nullptr) profile->AddJob(Profile::Nanoseconds() - start);
  if (failure_) std::rethrow_exception(failure_);
}

void ThreadPool::RunOpenShares(uint64_t generation, int first) {
  for (int i = 0; i < threads(); ++i) {
    const int share = (first + i) % threads();
    // A later job has other states, so a thread that comes late takes no share
    // and does not touch the job.
    uint64_t open = 2 * generation;
    if (!shares_[share].state.compare_exchange_strong(
            open, open + 1, std::memory_order_acquire,
            std::memory_order_relaxed)) {
      continue;
    }
    RunShare(share);
    if (unfinished_shares_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      unfinished_shares_.notify_all();
    }
  }
}

void ThreadPool::RunShare(int share) {
  const int64_t n = num_tasks_, count = threads();
  const int64_t begin = (share * n + count - 1) / count;
  const int64_t end = ((share + 1) * n + count - 1) / count;
  Profile* const profile = Profile::Active();
  const int64_t start = profile == nullptr ? 0 : Profile::Nanoseconds();
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
  if (profile != nullptr) profile->AddTasks(Profile::Nanoseconds() - start);
}

void ThreadPool::WorkerLoop(int thread) {
  uint64_t seen = 0;
  for (;;) {
    WaitWhileEqual(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    RunOpenShares(seen, thread);
  }
}

}  // namespace softmoe
