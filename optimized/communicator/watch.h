// SPDX-License-Identifier: Apache-2.0
//
// watch.h - ranks that are processes miss the one that dies or falls silent,
// and end with its name, wherever they wait for it.
//
// A thread of each rank sends rank 0 a beat eight times in the silence limit,
// and rank 0 sends one to each. So what is watched is the process and the way
// to it: killed, stopped, or cut off, or its machine dead or out of memory.
// That the training thread gets on is not watched, since no time is too long
// for a step: one that has failed says so in its next operation
// (communicator.h), and one that hangs while its process lives keeps all others
// waiting, as it would keep a process that is alone.
//
// Rank 0 judges, and tells the others; they judge rank 0 alone. Silence is
// counted while the own watch runs: a rank that was stopped itself, or whose
// machine is overloaded, does not take the others for silent.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_WATCH_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_WATCH_H_

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/errors.h"
#include "optimized/communicator/frame.h"
#include "optimized/communicator/meeting.h"
#include "optimized/communicator/socket.h"

namespace softmoe::optimized {

// How long somebody has been silent. Times in seconds.
class Silence {
 public:
  // limit   > 0, or 0: no silence is too long
  explicit Silence(double limit) : limit_(limit) {}

  // How often who is watched has to be heard.
  double beat() const { return limit_ > 0 ? limit_ / 8 : 1; }
  // `elapsed` since it was last called, of which more than a beat is time in
  // which this process did not run.
  void Pass(double elapsed) { silent_ += elapsed < beat() ? elapsed : beat(); }
  void Hear() { silent_ = 0; }
  double seconds() const { return silent_; }
  // After three quarters of the limit: within the last one the others are told,
  // and end.
  bool too_long() const { return limit_ > 0 && silent_ >= 0.75 * limit_; }

 private:
  double limit_;
  double silent_ = 0;
};

struct WatchOptions {
  double silence_limit =
      30;  // s; 0: closed connections count, silence does not
  // Says `text` and ends this process with `code`, at once: the thread that
  // trains may be waiting for what will never come. Called by the watch's own
  // thread.
  std::function<void(ExitCode code, const std::string& text)> end;
};

class Watch {
 public:
  Watch(Meeting meeting, WatchOptions options);
  // Without Leave, the others take this rank for dead.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // This rank has ended its work in order, or with an error that the others
  // know or will know by this: it ends with `code`, and all others have to
  // follow within the silence limit. Waits for them to notice, no longer than
  // that.
  void Leave(ExitCode code);

  // A connection to `rank` is broken. Does not return: waits for the watch,
  // which knows who is dead, to end this process.
  [[noreturn]] void Lost(int rank);

  const Meeting& meeting() const { return meeting_; }

 private:
  // Who is watched: rank 0 by the others, they by rank 0.
  struct Peer {
    int rank;
    Silence silence;
    std::string inbox, outbox;
    std::optional<ExitCode> left;  // has taken its leave with it
  };

  Socket& SocketOf(const Peer& peer) {
    return meeting_.connections[static_cast<size_t>(peer.rank)];
  }
  bool leads() const { return meeting_.rank == 0; }

  // A connection that `by` has lost. If the rank at its other end has died, its
  // own connection to rank 0 closes, too, and says more: until `until`.
  struct Loss {
    int by, rank;
    Deadline until;
  };

  // The thread's work.
  void Run();
  // Of the peers that can still be read, but `but`.
  std::vector<const Socket*> OpenSockets(int but);
  void Read(Peer& peer);
  void Obey(const Frame& frame, Peer& peer);
  void Judge(double elapsed);
  void Report(int lost_rank);
  void Send(const Frame& frame, Peer& peer);
  void TakeLeave();
  // Waits for all peers but `but` to close, at most to the deadline.
  void ReadToTheEnd(Deadline deadline, int but);
  // Ends all ranks because of `culprit`.
  void End(ExitCode code, const std::string& text, int culprit);

  Meeting meeting_;
  const WatchOptions options_;
  std::vector<Peer> peers_;
  Socket wake_, woken_;    // a pair: ends the wait
  Silence after_leaving_;  // of the first peer that left
  std::optional<Loss> loss_;
  bool ending_ = false, ended_ = false;

  // What the other threads ask for.
  enum class Request { kNone, kStop, kLeave };
  std::atomic<Request> request_ = Request::kNone;
  std::atomic<ExitCode> code_ = ExitCode::kDone;
  std::atomic<int> lost_ = -1;
  std::thread thread_;
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_WATCH_H_
