// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/in_process.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/errors.h"

namespace softmoe::optimized {
namespace {

class InProcessCommunicator : public Communicator {
 public:
  // What the ranks of a process share.
  class Meeting {
   public:
    explicit Meeting(int ranks)
        : ranks_(ranks),
          calls_(static_cast<size_t>(ranks)),
          sends_(static_cast<size_t>(ranks)) {}

    // Returns when every rank has called it; all then see what each wrote
    // before. Throws RankError if one of them never will.
    void Arrive() {
      std::unique_lock<std::mutex> lock(mutex_);
      const uint64_t round = round_;
      if (gone_ < 0 && ++arrived_ == ranks_) {
        arrived_ = 0;
        ++round_;
        changed_.notify_all();
        return;
      }
      changed_.wait(lock, [&] { return round_ != round || gone_ >= 0; });
      if (round_ == round) {
        throw RankError(
            gone_, ExitCode::kEnvironment,
            "it left an operation that all ranks were in; see its own error");
      }
    }

    // Records that rank `rank` will not arrive again. Only the first counts:
    // others leave because of it.
    void Leave(int rank) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (gone_ < 0) gone_ = rank;
      failed_ = true;
      changed_.notify_all();
    }

   private:
    friend class InProcessCommunicator;

    const int ranks_;
    std::mutex mutex_;
    std::condition_variable changed_;
    int arrived_ = 0;
    uint64_t round_ = 0;
    int gone_ = -1;  // the rank that has left
    // One entry per rank, which writes it before ranks arrive; all ranks read
    // between two arrivals.
    std::vector<Call> calls_;
    std::vector<std::span<const Outgoing>> sends_;
    // Set before the failed rank arrives or leaves; after that none goes on.
    std::atomic<bool> failed_ = false;
  };

  InProcessCommunicator(int rank, int size, Meeting& meeting)
      : Communicator(rank, size),
        self_(static_cast<size_t>(rank)),
        meeting_(meeting) {}

 private:
  std::vector<Call> ShareCalls(const Call& mine) override {
    if (mine.kind == Call::Kind::kFailure) meeting_.failed_ = true;
    meeting_.calls_[self_] = mine;
    meeting_.Arrive();
    std::vector<Call> calls = meeting_.calls_;
    meeting_.Arrive();
    return calls;
  }

  bool AnotherHasFailed() override { return meeting_.failed_; }

  void Move(std::span<const Outgoing> sends,
            std::span<const Incoming> receives) override {
    meeting_.sends_[self_] = sends;
    meeting_.Arrive();
    for (size_t r = 0; r < receives.size(); ++r) {
      const Outgoing& source = meeting_.sends_[r][self_];
      std::ranges::copy(source, receives[r].begin());
    }
    meeting_.Arrive();
  }

  void GiveUp() override { meeting_.Leave(rank()); }

  const size_t self_;
  Meeting& meeting_;
};

// Whether `error` is the rank's own, not another rank's RankError.
bool IsItsOwn(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const RankError&) {
    return false;
  } catch (...) {
    return true;
  }
}

// Where ranks wait until it is known whether all of them can be started.
class StartingGate {
 public:
  void Open(bool go) {
    const std::lock_guard<std::mutex> lock(mutex_);
    go_ = go;
    known_ = true;
    changed_.notify_all();
  }
  bool Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return known_; });
    return go_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool known_ = false, go_ = false;
};

}  // namespace

void RunInProcessRanks(int ranks,
                       const std::function<void(Communicator&)>& body) {
  SOFTMOE_CHECK(ranks > 0) << ranks << " ranks";
  InProcessCommunicator::Meeting meeting(ranks);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(ranks));
  const auto run = [&](int rank) {
    try {
      InProcessCommunicator communicator(rank, ranks, meeting);
      communicator.Run([&] { body(communicator); });
    } catch (...) {
      errors[static_cast<size_t>(rank)] = std::current_exception();
    }
  };
  {
    StartingGate gate;
    std::vector<std::jthread> threads;
    try {
      for (int rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&run, &gate, rank] {
          if (gate.Wait()) run(rank);
        });
      }
    } catch (...) {
      gate.Open(false);
      throw;
    }
    gate.Open(true);
  }
  const auto first = std::ranges::find_if(errors, IsItsOwn);
  if (first != errors.end()) std::rethrow_exception(*first);
}

}  // namespace softmoe::optimized
