// SPDX-License-Identifier: Apache-2.0
//
// communicator.h - how the ranks of one training run exchange arrays.
//
// Ranks are numbered from 0; each has a communicator of its own and calls it
// from one thread. Every operation is collective: all ranks call the same ones,
// with the same sizes, in the same order. An operation begins when all ranks
// have called it, and returns when this rank's arrays hold its result and may
// be written again. Nothing is computed here, so results have the same bits
// whatever carries them.
//
// Errors. Before an array moves, the ranks tell each other which operation they
// were asked for. If these differ, every rank throws InternalError, which names
// two ranks and their calls, so that a programming error does not hang. If a
// rank fails outside an operation, the others throw RankError from the next one
// that they call. A rank that fails inside an operation, for want of memory,
// cannot tell the others, so nobody waits for it (GiveUp). After an error no
// operation works: each throws that error again. A rank that hangs is found by
// those who wait for it (WaitOptions).
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_COMMUNICATOR_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_COMMUNICATOR_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "optimized/communicator/shards.h"

namespace softmoe::optimized {

// Another rank failed: its text, and the exit code with which it ends.
struct RankError : Error {
  RankError(int rank, ExitCode code, const std::string& text)
      : Error(code, "rank " + std::to_string(rank) + " failed: " + text) {}
};

// Something that must be the same on all ranks, compared by its hash.
struct Agreement {
  std::string what;  // "configuration": one line, no tab
  std::string hash;  // "unknown" equals nothing
  // What to do if hashes differ: one line, no tab, the same for equal hashes.
  std::string remedy =
      "start all ranks with the same program, configuration and files";
};

// Seconds that a rank has waited while it ran itself: one that was stopped, or
// whose machine slept, does not take the others for silent.
class Patience {
 public:
  // Adds what counts of `elapsed` since the last call; returns the sum.
  double Pass(double elapsed) {
    constexpr double kMostAtOnce = 0.25;
    return seconds_ += std::min(elapsed, kMostAtOnce);
  }

 private:
  double seconds_ = 0;
};

// How a rank waits for others. Times in seconds.
struct WaitOptions {
  double silence_limit = 0;  // in a limited Phase; 0: no limit
  double words_every = 60;   // how often it says what it waits for
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

// What the ranks are doing, as a waiting rank reports it.
struct Phase {
  std::string name = "the preparation";
  // Whether all ranks are expected within WaitOptions::silence_limit, as in a
  // step. What rank 0 prepares, a calibration, an evaluation and a checkpoint
  // may take any time.
  bool limited = false;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Sets what this rank is doing from here on. Not collective.
  void Begin(Phase phase) { phase_ = std::move(phase); }

  // Runs `body`, this rank's part of the work, and returns when the bodies of
  // all ranks have returned. An exception from `body` reaches the caller and
  // ends the other ranks.
  void Run(const std::function<void()>& body);

  // Moves nothing: returns when all ranks have called it.
  void Barrier();

  // Compares the agreements of all ranks; a single rank agrees with itself.
  // Errors   ConfigError on every rank, naming what differs, where and how.
  void Agree(std::span<const Agreement> agreements);

  // Overwrites `data` with rank `root`'s.
  template <typename T>
  void Broadcast(std::span<T> data, int root) {
    BroadcastBytes(Bytes(data), root);
  }

  // Gathers shards: each rank has its own shard of `data`, and receives the
  // others' if it is `root` or `root` is kAllRanks.
  //
  //   shards  within `data`, the same on all ranks
  static constexpr int kAllRanks = -1;
  template <typename T>
  void Gather(const Shards& shards, std::span<T> data, int root = kAllRanks) {
    GatherBytes(InBytes<T>(shards), Bytes(data), root);
  }

  // Sends parts[r] to every other rank r, and overwrites rows[r] with what rank
  // r sends.
  //
  //   parts  [size()], of the same sizes on all ranks
  //   rows   [size()], each as large as parts[rank()], apart from the parts;
  //          rows[rank()] and parts[rank()] are left alone
  template <typename T>
  void Exchange(const std::vector<std::span<const T>>& parts,
                const std::vector<std::span<T>>& rows) {
    std::vector<Outgoing> sends;
    std::vector<Incoming> receives;
    for (const std::span<const T>& part : parts) {
      sends.push_back(std::as_bytes(part));
    }
    for (const std::span<T>& row : rows) receives.push_back(Bytes(row));
    ExchangeBytes(std::move(sends), std::move(receives));
  }

  // For a rank that waits for others elsewhere, in a wait that can be stopped.
  // WaitElsewhere says beforehand what it will wait in. CheckOthers, to be
  // called again and again, throws RankError if another rank has failed and is
  // about to say so, EnvironmentError if the wait takes too long, and else
  // returns at once. Not collective.
  void WaitElsewhere(const std::string& what);
  void CheckOthers();

  // Bytes that this rank has sent to others, without the messages about calls.
  int64_t sent_bytes() const { return sent_bytes_; }

 protected:
  Communicator(int rank, int size, WaitOptions waits = {});

  using Incoming = std::span<std::byte>;
  using Outgoing = std::span<const std::byte>;

  // What a rank tells the others about the operation it was asked for.
  struct Call {
    enum class Kind : int32_t { kOperation, kAgreement, kFailure };
    Kind kind = Kind::kOperation;
    ExitCode code = ExitCode::kDone;  // of a failure
    std::string text;  // "broadcasts 4 bytes"; agreements, a line each; the
                       // failure's text

    friend bool operator==(const Call&, const Call&) = default;
  };

  // Returns the calls of all ranks, in rank order, once all have called it.
  virtual std::vector<Call> ShareCalls(const Call& mine) = 0;

  // Whether another rank's next call is known to be a failure. Waits for
  // nobody; called between operations only.
  virtual bool AnotherHasFailed() = 0;

  // Sends sends[r] to rank r and fills receives[r] from it; empty ones may be
  // left out. This rank's own entries are empty. Sizes fit: the calls agreed.
  virtual void Move(std::span<const Outgoing> sends,
                    std::span<const Incoming> receives) = 0;

  // Stops waiting for any rank: one of them has been silent for too long, or
  // this one has left an operation that the others are still in. May be called
  // again.
  virtual void GiveUp() {}

  // Record that this rank begins to wait for others, or still waits for `whom`.
  // Errors   EnvironmentError, after GiveUp, if the wait is too long.
  void StartWaiting();
  void KeepWaiting(const std::string& whom);

 private:
  template <typename T>
  static Incoming Bytes(std::span<T> data) {
    static_assert(std::is_trivially_copyable_v<T>);
    return std::as_writable_bytes(data);
  }

  void CheckShards(const Shards& shards, size_t bytes) const;
  void BroadcastBytes(Incoming data, int root);
  void GatherBytes(const Shards& shards, Incoming data, int root);
  void ExchangeBytes(std::vector<Outgoing> sends,
                     std::vector<Incoming> receives);

  // Runs part of an operation, or rethrows the error that ended an earlier one.
  // An Error from `body` is thrown on all ranks, or after GiveUp; any other
  // exception is this rank's alone, so Guarded gives up.
  template <typename Body>
  void Guarded(Body&& body);
  static std::string Words(const Call& call);
  // Throws unless all ranks were asked for the same operation.
  void Meet(const Call& mine);
  void MoveCounted(std::span<const Outgoing> sends,
                   std::span<const Incoming> receives);
  // Tells the others that this rank throws the exception being handled.
  void Fail() noexcept;

  const int rank_, size_;
  const WaitOptions waits_;
  int64_t sent_bytes_ = 0;
  std::exception_ptr error_;  // that ended an operation
  Phase phase_;
  std::string call_;  // in its words
  // State of the wait for others in that call.
  Patience patience_;
  std::chrono::steady_clock::time_point last_look_;
  int64_t times_said_ = 0;
};

// The communicator of a rank that is alone.
class SingleCommunicator : public Communicator {
 public:
  SingleCommunicator() : Communicator(0, 1) {}

 private:
  std::vector<Call> ShareCalls(const Call& mine) override { return {mine}; }
  bool AnotherHasFailed() override { return false; }
  void Move(std::span<const Outgoing> /*sends*/,
            std::span<const Incoming> /*receives*/) override {}
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_COMMUNICATOR_H_
