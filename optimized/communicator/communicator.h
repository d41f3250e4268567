// SPDX-License-Identifier: Apache-2.0
//
// communicator.h - how the ranks of one training run exchange arrays.
//
// Ranks are numbered from 0; each has a communicator of its own and calls it
// from one thread. Every operation is collective: all ranks call the same ones,
// with the same sizes, in the same order. An operation begins when all ranks
// have called it, and returns when this rank's arrays hold its result and may
// be written again. Nothing is computed here, so whatever carries the bytes,
// results have the same bits.
//
// Errors. Before an array moves, the ranks tell each other what they were asked
// for. Where that differs, every rank throws InternalError, which names two
// ranks and their calls: a mistake of the program is not a hang. Where a rank
// has failed outside of an operation, the others throw RankError from the next
// one that they call. One that fails inside of an operation, for want of
// memory, cannot say so any more: then nobody waits for it (GiveUp). After an
// error no operation works: each throws it again. A rank that hangs is found by
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

// Something that must be the same on all ranks, by its hash.
struct Agreement {
  std::string what;  // "configuration": one line, no tab
  std::string hash;  // "unknown" equals nothing
  // Where it differs: one line, no tab; for one hash on all ranks the same.
  std::string remedy =
      "start all ranks with the same program, configuration and files";
};

// How long a rank has waited, in seconds in which it ran itself: one that was
// stopped, or whose machine slept, does not take the others for silent.
class Patience {
 public:
  // `elapsed` since the last call. Returns the sum, as it counts.
  double Pass(double elapsed) {
    constexpr double kMostAtOnce = 0.25;
    return seconds_ += std::min(elapsed, kMostAtOnce);
  }

 private:
  double seconds_ = 0;
};

// How a rank waits for others. Times in seconds.
struct WaitOptions {
  double silence_limit = 0;  // in a limited Phase; 0: none
  double words_every = 60;   // how often it says what it waits for
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

// What ranks are at, for those who wait.
struct Phase {
  std::string name = "the preparation";
  // Whether all are expected within WaitOptions::silence_limit: in a step. What
  // rank 0 prepares, a calibration, an evaluation and a checkpoint take as long
  // as they take.
  bool limited = false;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // What this rank is at from here on. Not collective.
  void Begin(Phase phase) { phase_ = std::move(phase); }

  // Runs `body`, this rank's part of the work, and returns when those of all
  // ranks have returned. What it throws is passed on to the caller, and ends
  // the other ranks.
  void Run(const std::function<void()>& body);

  // Moves nothing: returns when all ranks have called it.
  void Barrier();

  // Errors   ConfigError on every rank, naming what differs, where and how. A
  //          rank alone agrees with itself.
  void Agree(std::span<const Agreement> agreements);

  // Overwrites `data` with that of rank `root`.
  template <typename T>
  void Broadcast(std::span<T> data, int root) {
    BroadcastBytes(Bytes(data), root);
  }

  // Each rank has its own shard of `data`; completes their shards on all ranks,
  // or on `root` only.
  //
  //   shards  within `data`, the same on all ranks
  static constexpr int kAllRanks = -1;
  template <typename T>
  void Gather(const Shards& shards, std::span<T> data, int root = kAllRanks) {
    GatherBytes(InBytes<T>(shards), Bytes(data), root);
  }

  // Sends every other rank its part, and overwrites the rows with what they
  // send: parts[r] goes to rank r, and into rows[r] what it sends.
  //
  //   parts  [size()], of the same sizes on all ranks
  //   rows   [size()], each of the size of parts[rank()], apart from the parts;
  //          that of this rank is left alone, as is its part
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

  // For a rank that waits for others elsewhere, and can be told to stop: says
  // beforehand in what it will wait, and then, again and again, calls the
  // second function, which throws RankError if another rank has failed and is
  // about to say so, EnvironmentError if all of this takes too long, or else
  // returns at once. Not collective.
  void WaitElsewhere(const std::string& what);
  void CheckOthers();

  // What this rank has sent to others, without the words about calls.
  int64_t sent_bytes() const { return sent_bytes_; }

 protected:
  Communicator(int rank, int size, WaitOptions waits = {});

  using Incoming = std::span<std::byte>;
  using Outgoing = std::span<const std::byte>;

  // What a rank was asked for, as it tells the others.
  struct Call {
    enum class Kind : int32_t { kOperation, kAgreement, kFailure };
    Kind kind = Kind::kOperation;
    ExitCode code = ExitCode::kDone;  // of a failure
    std::string text;  // "broadcasts 4 bytes"; agreements, a line each; the
                       // failure's text

    friend bool operator==(const Call&, const Call&) = default;
  };

  // Returns the calls of all ranks, in their order, when all have called it.
  virtual std::vector<Call> ShareCalls(const Call& mine) = 0;

  // Whether another rank's next call is known to be a failure. Waits for
  // nobody; called between operations only.
  virtual bool AnotherHasFailed() = 0;

  // sends[r] goes to rank r, receives[r] comes from it; an empty one may be
  // left out. The entries of this rank are empty. Sizes fit: the calls agreed.
  virtual void Move(std::span<const Outgoing> sends,
                    std::span<const Incoming> receives) = 0;

  // No rank is waited for any more: one of them has been silent for too long,
  // or this one has left an operation that the others are still in. May be
  // called again.
  virtual void GiveUp() {}

  // This rank begins to wait for others, and still does, for `whom`.
  // Errors   EnvironmentError, after GiveUp, where that is too long.
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

  // Does a part of an operation, or throws the error that an earlier one ended
  // with. An Error is thrown on all ranks, or after GiveUp; for anything else,
  // which is this rank's alone, gives up.
  template <typename Body>
  void Guarded(Body&& body);
  static std::string Words(const Call& call);
  // Throws unless all ranks were asked for the same.
  void Meet(const Call& mine);
  void MoveCounted(std::span<const Outgoing> sends,
                   std::span<const Incoming> receives);
  // Tells the others that this rank throws the exception being handled.
  void Fail() noexcept;

  const int rank_, size_;
  const WaitOptions waits_;
  int64_t sent_bytes_ = 0;
  std::exception_ptr error_;  // of an operation
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
