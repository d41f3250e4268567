// SPDX-License-Identifier: Apache-2.0
//
// profile.h - where the time of a computation goes, operation by operation.
//
// Code that may be profiled calls BeginOperation(name) where an operation
// begins. The operation lasts until the next one begins, so the operations add
// up to the whole. ThreadPool reports its jobs. Time outside jobs is serial;
// time that a thread of a job does not spend in tasks is waiting. Without a
// Profile all of this costs one load and one branch per operation and job.
#ifndef SOFTMOE_CORE_PROFILE_H_
#define SOFTMOE_CORE_PROFILE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace softmoe {

// The work of an operation, whatever the implementation: the multiplications
// and additions that the mathematics needs or, where these are few, the bytes
// that must be read and written once. Only attention's backward pass counts the
// recomputation of the scores.
struct OperationWork {
  double flops = 0;
  double bytes = 0;
};

// Sums over the calls of one operation.
struct OperationTime {
  std::string name = {};
  int64_t calls = 0;
  OperationWork work = {};
  double seconds = 0;
  double job_seconds = 0;   // the part while a ThreadPool's job ran
  double task_seconds = 0;  // inside the tasks of such jobs, over all threads

  double SerialSeconds() const { return seconds - job_seconds; }
  // Returns how long `threads` threads waited for each other and for tasks.
  double WaitSeconds(int threads) const {
    return threads * job_seconds - task_seconds;
  }
};

// Collects times during its lifetime; a process has at most one at a time. One
// thread creates it, begins operations and destroys it; no other thread drives
// a ThreadPool meanwhile.
class Profile {
 public:
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // Ends the current operation, returns all operations so far in the order in
  // which they first began, and starts afresh.
  std::vector<OperationTime> Take();

  // Returns nullptr if there is no Profile.
  static Profile* Active() { return active_.load(std::memory_order_relaxed); }

  void Begin(const char* name, const OperationWork& work);
  void AddJob(int64_t nanoseconds) { job_nanoseconds_ += nanoseconds; }
  // May be called from any thread.
  void AddTasks(int64_t nanoseconds) {
    task_nanoseconds_.fetch_add(nanoseconds, std::memory_order_relaxed);
  }

  // Returns the time of a clock that only goes forward.
  static int64_t Nanoseconds() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

 private:
  void End();

  static std::atomic<Profile*> active_;

  std::vector<OperationTime> operations_;
  std::map<std::string, size_t> index_;  // into operations_
  // The index of the running operation.
  int64_t current_ = -1;
  int64_t start_ = 0;
  int64_t job_nanoseconds_ = 0;
  std::atomic<int64_t> task_nanoseconds_{0};
};

// Begins the operation `name`, which lasts until the next one begins.
inline void BeginOperation(const char* name, const OperationWork& work = {}) {
  if (Profile* profile = Profile::Active()) profile->Begin(name, work);
}

}  // namespace softmoe

#endif  // SOFTMOE_CORE_PROFILE_H_
