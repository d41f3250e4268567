// SPDX-License-Identifier: Apache-2.0
//
// parallel_for.h - a fixed pool of threads and a static partition of tasks.
//
// The tasks are cut into one share of consecutive tasks per thread. A program
// whose tasks write disjoint memory, and whose task list does not depend on the
// number of threads, computes the same bits with any number of threads. No
// OpenMP: under TSan g++'s libgomp reports false races (DESIGN.md, ruling 10).
//
// A thread that has finished its share takes over shares that nobody has begun,
// so that on a busy machine a job does not wait for a worker that the kernel
// has not woken yet. Which thread runs a task changes no result, only when it
// ends.
#ifndef SOFTMOE_CORE_PARALLEL_FOR_H_
#define SOFTMOE_CORE_PARALLEL_FOR_H_

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace softmoe {

class ThreadPool {
 public:
  // Starts `threads` - 1 workers (the caller is the last thread).
  // threads = 0 takes one per core available to this process.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls task(i) once for every i in [0, num_tasks) and returns when all have
  // ended. The exception of the lowest failing task is rethrown here. A call
  // from inside a task runs its tasks in the calling thread.
  template <typename Task>
  void ParallelFor(int64_t num_tasks, Task&& task) {
    using Body = std::remove_reference_t<Task>;
    Run(
        num_tasks,
        [](void* body, int64_t i) { (*static_cast<Body*>(body))(i); },
        const_cast<void*>(static_cast<const void*>(&task)));
  }

  // Like ParallelFor, over ranges: body(begin, end) for consecutive blocks of
  // `block` items. The blocks do not depend on the number of threads.
  template <typename Body>
  void ParallelForBlocks(int64_t num_items, int64_t block, Body&& body) {
    ParallelFor((num_items + block - 1) / block, [&](int64_t b) {
      const int64_t begin = b * block;
      body(begin, begin + block < num_items ? begin + block : num_items);
    });
  }

 private:
  using Call = void (*)(void* body, int64_t task);

  // One share of the current job, claimed by one thread: 2*generation when
  // it is open, one more when it is taken. On a cache line of its own.
  struct alignas(64) Share {
    std::atomic<uint64_t> state{0};
  };

  void Run(int64_t num_tasks, Call call, void* body);
  // Runs the open shares of job `generation`, beginning with `first`.
  void RunOpenShares(uint64_t generation, int first);
  void RunShare(int share);
  void WorkerLoop(int thread);

  // The job. Written by Run while no share is open, read by the threads that
  // claimed one.
  Call call_ = nullptr;
  void* body_ = nullptr;
  int64_t num_tasks_ = 0;

  std::unique_ptr<Share[]> shares_;  // one per thread
  std::atomic<int> unfinished_shares_{0};
  std::atomic<uint64_t> generation_{0};  // of the job; also raised to stop
  std::atomic<bool> stop_{false};

  std::mutex failure_mutex_;
  int64_t failed_task_ = -1;
  std::exception_ptr failure_;

  std::mutex run_mutex_;  // callers from several threads take turns
  std::vector<std::jthread> workers_;
};

// Cores that this process may use (its affinity mask), at least 1.
int AvailableCores();

}  // namespace softmoe

#endif  // SOFTMOE_CORE_PARALLEL_FOR_H_
