// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/batch_reader.h"

#include <algorithm>
#include <utility>

namespace softmoe::trainer {

BatchReader::BatchReader(Fill fill, int64_t num_steps)
    : fill_(std::move(fill)),
      num_steps_(num_steps),
      thread_([this](const std::stop_token& stop) { ReadParts(stop); }) {}

BatchReader::~BatchReader() = default;

void BatchReader::FillBatch(int64_t step, int64_t first, int64_t count,
                            std::span<int32_t> inputs,
                            std::span<int32_t> targets) {
  std::unique_lock lock(mutex_);
  const bool ahead = !parts_.empty() && parts_.front().step == step &&
                     parts_.front().first == first &&
                     parts_.front().count == count;
  if (ahead) {
    changed_.wait(lock, [this] { return parts_.front().read; });
    const Part part = std::move(parts_.front());
    parts_.pop_front();
    if (part.error) std::rethrow_exception(part.error);
    std::ranges::copy(part.inputs, inputs.begin());
    std::ranges::copy(part.targets, targets.begin());
  } else {
    if (!parts_.empty() && parts_.front().step != step + 1) {
      changed_.wait(lock, [this] { return !reading_; });
      parts_.clear();
    }
    lock.unlock();
    fill_(step, first, count, inputs, targets);
    lock.lock();
  }
  const bool queued = std::ranges::any_of(parts_, [&](const Part& part) {
    return part.step == step + 1 && part.first == first && part.count == count;
  });
  if (queued || step + 1 >= num_steps_) return;
  parts_.push_back({.step = step + 1,
                    .first = first,
                    .count = count,
                    .inputs = std::vector<int32_t>(inputs.size()),
                    .targets = std::vector<int32_t>(targets.size())});
  changed_.notify_all();
}

void BatchReader::ReadParts(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto next = [this] {
    return std::ranges::find(parts_, false, &Part::read);
  };
  while (changed_.wait(lock, stop, [&] { return next() != parts_.end(); }) &&
         !stop.stop_requested()) {
    Part& part = *next();
    reading_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      fill_(part.step, part.first, part.count, part.inputs, part.targets);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    part.error = error;
    part.read = true;
    reading_ = false;
    changed_.notify_all();
  }
}

}  // namespace softmoe::trainer
