// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/batch_reader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace softmoe::trainer {
namespace {

constexpr int64_t kSteps = 5;
constexpr int64_t kLength = 3;

// A source that counts how often each (step, first) is read. Its numbers encode
// where they come from.
class Source {
 public:
  void Fill(int64_t step, int64_t first, int64_t count,
            std::span<int32_t> inputs, std::span<int32_t> targets) {
    {
      const std::lock_guard lock(mutex_);
      ++reads_[{step, first}];
      changed_.notify_all();
    }
    if (step == fails_at_) throw std::runtime_error("step " + Name(step));
    for (int64_t i = 0; i < count * kLength; ++i) {
      inputs[static_cast<size_t>(i)] =
          static_cast<int32_t>(100 * step + kLength * first + i);
      targets[static_cast<size_t>(i)] = inputs[static_cast<size_t>(i)] + 1;
    }
  }
  BatchReader::Fill Function() {
    return [this](auto... part) { Fill(part...); };
  }
  void FailAt(int64_t step) { fails_at_ = step; }

  // Waits until (step, first) has been asked for; false after `most`.
  bool WaitFor(int64_t step, int64_t first,
               std::chrono::milliseconds most = std::chrono::minutes(1)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [&] {
      return reads_.contains({step, first});
    });
  }
  std::map<std::pair<int64_t, int64_t>, int> reads() {
    const std::lock_guard lock(mutex_);
    return reads_;
  }

 private:
  static std::string Name(int64_t step) { return std::to_string(step); }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int64_t, int64_t>, int> reads_;
  int64_t fails_at_ = -1;
};

// Whether `reader` gives the right two sequences from `first` on.
bool Gives(BatchReader& reader, int64_t step, int64_t first) {
  std::vector<int32_t> inputs(2 * kLength), targets(2 * kLength);
  reader.FillBatch(step, first, 2, inputs, targets);
  Source source;
  std::vector<int32_t> i(2 * kLength), t(2 * kLength);
  source.Fill(step, first, 2, i, t);
  return inputs == i && targets == t;
}

// Each read of the next step begins before it is asked for; nothing is read
// twice, and nothing beyond the last step.
TEST(BatchReader, ReadsTheNextStepAhead) {
  Source source;
  BatchReader reader(source.Function(), kSteps);
  for (int64_t step = 0; step < kSteps; ++step) {
    for (const int64_t first : {0, 2, 4}) {
      ASSERT_TRUE(Gives(reader, step, first)) << step << " " << first;
    }
    // Nobody has asked for these parts yet.
    for (const int64_t first : {0, 2, 4}) {
      ASSERT_TRUE(step + 1 == kSteps || source.WaitFor(step + 1, first));
    }
  }
  EXPECT_FALSE(source.WaitFor(kSteps, 0, std::chrono::milliseconds(20)));
  EXPECT_EQ(source.reads().size(), static_cast<size_t>(3 * kSteps));
  for (const auto& [part, times] : source.reads()) {
    EXPECT_EQ(times, 1) << part.first << " " << part.second;
  }
}

// A step that is asked for again begins no second read of the next one.
TEST(BatchReader, ReadsAheadOnceForAStepThatIsRepeated) {
  Source source;
  BatchReader reader(source.Function(), kSteps);
  for (int again = 0; again < 3; ++again) ASSERT_TRUE(Gives(reader, 0, 0));
  ASSERT_TRUE(Gives(reader, 1, 0));
  ASSERT_TRUE(source.WaitFor(2, 0));
  EXPECT_EQ((source.reads()[{1, 0}]), 1);
}

// A resumed run, a profile that repeats a step, and a caller with another order
// of sequences ask like this.
TEST(BatchReader, GivesWhateverIsAskedFor) {
  Source source;
  BatchReader reader(source.Function(), kSteps);
  for (const auto& [step, first] :
       std::vector<std::pair<int64_t, int64_t>>{{3, 0},
                                                {3, 2},
                                                {4, 2},
                                                {4, 0},
                                                {0, 0},
                                                {0, 0},
                                                {0, 0},
                                                {1, 0},
                                                {3, 4},
                                                {1, 2},
                                                {2, 2},
                                                {2, 0},
                                                {9, 0},
                                                {10, 0}}) {
    EXPECT_TRUE(Gives(reader, step, first)) << step << " " << first;
  }
}

TEST(BatchReader, AFailureIsThatOfTheStepThatNeedsIt) {
  Source source;
  source.FailAt(1);
  BatchReader reader(source.Function(), kSteps);
  EXPECT_TRUE(Gives(reader, 0, 0));
  EXPECT_TRUE(Gives(reader, 0, 2));
  EXPECT_TRUE(source.WaitFor(1, 0));
  try {
    Gives(reader, 1, 0);
    ADD_FAILURE() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "step 1");
  }
}

// Training may end early, at a signal or an error.
TEST(BatchReader, EndsWhileItReads) {
  std::promise<void> begun, go_on;
  bool first = true;
  {
    BatchReader reader(
        [&](int64_t step, auto...) {
          if (step == 0 || !std::exchange(first, false)) return;
          begun.set_value();
          go_on.get_future().wait();
        },
        kSteps);
    std::vector<int32_t> inputs(kLength), targets(kLength);
    reader.FillBatch(0, 0, 1, inputs, targets);
    reader.FillBatch(0, 1, 1, inputs, targets);
    begun.get_future().wait();
    go_on.set_value();
  }
  EXPECT_FALSE(first);
}

}  // namespace
}  // namespace softmoe::trainer
