// SPDX-License-Identifier: Apache-2.0
//
// parallel_for.h - a fixed pool of threads and a static partition of tasks.
//
// Task i of n always runs on thread floor(i * threads / n), so a program whose
// tasks write disjoint memory, and whose task list does not depend on the
// number of threads, computes the same bits with any number of threads. No
// OpenMP: under TSan g++'s libgomp reports false races (design.md, ruling 10).
#ifndef SOFTMOE_CORE_PARALLEL_FOR_H_
#define SOFTMOE_CORE_PARALLEL_FOR_H_

#include <atomic>
#include <cstdint>
#include <exception>
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

  // As ParallelFor over ranges: body(begin, end) for consecutive blocks of
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

  void Run(int64_t num_tasks, Call call, void* body);
  void RunShare(int thread);
  void WorkerLoop(int thread);

  // One job at a time; written by Run before `generation_` is published.
  Call call_ = nullptr;
  void* body_ = nullptr;
  int64_t num_tasks_ = 0;

  std::atomic<uint32_t> generation_{0};  // bumped to start a job or to stop
  std::atomic<int> running_{0};          // workers not yet done with the job
  bool stop_ = false;                    // published by `generation_`

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
