// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/shard_workers.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace softmoe::trainer {

ShardWorkers::ShardWorkers(ShardList shards, int64_t first, int threads,
                           std::function<ShardTask()> make_task)
    : shards_(std::move(shards)), next_(first), running_(threads) {
  try {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, make_task] { Work(make_task); });
    }
  } catch (...) {
    Stop();  // or the threads already started would do all shards
    throw;
  }
}

ShardWorkers::~ShardWorkers() { Stop(); }

void ShardWorkers::Stop() {
  {
    const std::lock_guard lock(mutex_);  // Fail reads and writes it
    last_ = -1;
  }
  threads_.clear();  // joins
}

ShardWorkers::State ShardWorkers::WaitFor(int64_t index) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(100),
                    [&] { return done_.contains(index) || running_ == 0; });
  if (done_.erase(index) > 0) return State::kDone;
  if (running_ > 0) return State::kWaiting;
  if (failure_) std::rethrow_exception(failure_);
  return State::kNoMore;
}

void ShardWorkers::Work(const std::function<ShardTask()>& make_task) {
  int64_t index = 0;
  try {
    const ShardTask task = make_task();
    for (Shard shard; Take(&shard, &index);) {
      if (!Run(task, shard, index)) break;
      shard = {};  // frees a member held in memory
      const std::lock_guard lock(mutex_);
      done_.insert(index);
      changed_.notify_all();
    }
  } catch (...) {
    Fail(index);
  }
  const std::lock_guard lock(mutex_);
  --running_;
  changed_.notify_all();
}

bool ShardWorkers::Take(Shard* shard, int64_t* index) {
  const std::lock_guard lock(take_mutex_);
  *index = next_;
  try {
    if (next_ > last_ || !shards_(shard)) return false;
  } catch (...) {
    Fail(next_);  // before another thread asks the list that has failed
    throw;
  }
  ++next_;
  return true;
}

bool ShardWorkers::Run(const ShardTask& task, const Shard& shard,
                       int64_t index) {
  int64_t counted = 0;
  const auto count = [&](int64_t bytes) {
    bytes = std::min(bytes, shard.bytes);
    input_bytes_ += bytes - std::exchange(counted, bytes);
  };
  const bool ended = task(shard, index, [&](int64_t bytes) {
    count(bytes);
    return index <= last_;
  });
  if (ended) count(shard.bytes);
  return ended;
}

// Shards before the one that failed go on: one of them may fail, too.
void ShardWorkers::Fail(int64_t index) {
  const std::lock_guard lock(mutex_);
  if (failure_ && index > failed_) return;
  failure_ = std::current_exception();
  failed_ = index;
  last_ = std::min<int64_t>(last_, index - 1);
}

}  // namespace softmoe::trainer
