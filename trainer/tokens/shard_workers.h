// SPDX-License-Identifier: Apache-2.0
//
// shard_workers.h - works on the shards of a corpus with several threads, each
// on a shard of its own.
#ifndef SOFTMOE_TRAINER_TOKENS_SHARD_WORKERS_H_
#define SOFTMOE_TRAINER_TOKENS_SHARD_WORKERS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "trainer/corpora/corpus.h"

namespace softmoe::trainer {

// Receives how many stored bytes of a shard were read so far; returns whether
// to go on.
using GoOn = std::function<bool(int64_t bytes)>;
// Works on the shard with this index; returns false if `go_on` ended that.
using ShardTask =
    std::function<bool(const Shard&, int64_t index, const GoOn& go_on)>;

class ShardWorkers {
 public:
  // Begins with shard number `first`, the next of `shards`. `make_task` gives
  // each thread a task of its own.
  ShardWorkers(ShardList shards, int64_t first, int threads,
               std::function<ShardTask()> make_task);
  // Ends the threads as soon as they can; the shards in progress are lost.
  ~ShardWorkers();

  // Waits until shard `index` is done, at most 0.1 s. Once the shards before it
  // are done, throws what the first shard in order that failed has thrown,
  // whichever thread was faster.
  enum class State { kWaiting, kDone, kNoMore };
  State WaitFor(int64_t index);

  // Stored bytes of shards that were read so far.
  int64_t input_bytes() const { return input_bytes_; }

 private:
  void Work(const std::function<ShardTask()>& make_task);
  bool Take(Shard* shard, int64_t* index);
  bool Run(const ShardTask& task, const Shard& shard, int64_t index);
  void Fail(int64_t index);
  void Stop();  // waits for the threads

  ShardList shards_;
  std::mutex take_mutex_;
  int64_t next_;
  // No shard after this one is worked on.
  std::atomic<int64_t> last_ = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> input_bytes_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<int64_t> done_;  // not waited for yet
  int running_;
  std::exception_ptr failure_;
  int64_t failed_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_SHARD_WORKERS_H_
