// SPDX-License-Identifier: Apache-2.0
//
// batch_reader.h - reads the batches of the next step while this one computes.
#ifndef SOFTMOE_TRAINER_TOKENS_BATCH_READER_H_
#define SOFTMOE_TRAINER_TOKENS_BATCH_READER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace softmoe::trainer {

class BatchReader {
 public:
  // Does what Dataset::FillBatch does, from any thread.
  using Fill = std::function<void(int64_t step, int64_t first, int64_t count,
                                  std::span<int32_t> inputs,
                                  std::span<int32_t> targets)>;

  // Steps are [0, num_steps): nothing is read ahead beyond the last.
  BatchReader(Fill fill, int64_t num_steps);
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // Writes what `fill` writes, and begins to read the same sequences of the
  // next step. A caller that asks in each step for the same sequences in the
  // same order waits only for what has not been read yet. Other sequences are
  // read at once, and what was read ahead for any step but the next is dropped.
  // Throws what `fill` threw for this part of the batch.
  void FillBatch(int64_t step, int64_t first, int64_t count,
                 std::span<int32_t> inputs, std::span<int32_t> targets);

 private:
  // Consecutive sequences of a batch.
  struct Part {
    int64_t step, first, count;
    std::vector<int32_t> inputs, targets;
    bool read = false;
    std::exception_ptr error = nullptr;
  };
  void ReadParts(const std::stop_token& stop);

  const Fill fill_;
  const int64_t num_steps_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  // In the order in which they will be asked for, those already read first. The
  // thread keeps a reference to the one that it reads, which stays in place.
  std::deque<Part> parts_;
  bool reading_ = false;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_BATCH_READER_H_
