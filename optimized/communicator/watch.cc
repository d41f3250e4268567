// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/watch.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <utility>

namespace softmoe::optimized {
namespace {

// How long a rank that leaves waits for the others where silence is no reason.
constexpr double kLeaving = 5;  // s

// How long rank 0 waits for the others to read why they end, and for a rank to
// die whose connection to another is broken; at most a beat.
constexpr double kPatience = 1;  // s

constexpr int kNobody = -1;

double Seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Watch::Watch(Meeting meeting, WatchOptions options)
    : meeting_(std::move(meeting)),
      options_(std::move(options)),
      after_leaving_(options_.silence_limit) {
  for (int r = 0; r < meeting_.size(); ++r) {
    if (meeting_.connections[static_cast<size_t>(r)]) {
      peers_.push_back({r, Silence(options_.silence_limit), {}, {}, {}});
    }
  }
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                   pair.data()) != 0) {
    throw EnvironmentError(
        "cannot make a pair of sockets; raise `ulimit -n`, or end other "
        "programs");
  }
  wake_ = Socket(pair[0]);
  woken_ = Socket(pair[1]);
  thread_ = std::thread([this] { Run(); });
}

Watch::~Watch() {
  if (!thread_.joinable()) return;
  request_ = Request::kStop;
  wake_.Close();
  thread_.join();
}

void Watch::Leave(ExitCode code) {
  SOFTMOE_CHECK(thread_.joinable());
  code_ = code;
  request_ = Request::kLeave;
  wake_.Close();
  thread_.join();
}

void Watch::Lost(int rank) {
  lost_ = rank;
  const std::array<std::byte, 1> byte{};
  wake_.TrySend(byte);
  for (;;) ::pause();
}

void Watch::Run() {
  const double beat = Silence(options_.silence_limit).beat();
  Clock::time_point last = Clock::now();
  Deadline next_beat = last;
  bool reported = false;
  while (!ended_ && request_ == Request::kNone) {
    std::vector<const Socket*> sockets = OpenSockets(kNobody);
    sockets.push_back(&woken_);
    WaitToRead(sockets, loss_ ? std::min(next_beat, loss_->until) : next_beat);
    std::array<std::byte, 8> bytes;
    woken_.TryReceive(bytes);
    const Clock::time_point now = Clock::now();
    for (Peer& peer : peers_) Read(peer);
    Judge(Seconds(now - last));
    last = now;
    const int lost = lost_;
    if (lost >= 0 && !std::exchange(reported, true)) Report(lost);
    if (now < next_beat) continue;
    for (Peer& peer : peers_) Send({Frame::Kind::kBeat}, peer);
    next_beat = now + std::chrono::duration_cast<Clock::duration>(
                          std::chrono::duration<double>(beat));
  }
  if (!ended_ && request_ == Request::kLeave) TakeLeave();
  for (Peer& peer : peers_) SocketOf(peer).Close();
}

std::vector<const Socket*> Watch::OpenSockets(int but) {
  std::vector<const Socket*> sockets;
  for (const Peer& peer : peers_) {
    const Socket& socket = SocketOf(peer);
    if (socket && peer.rank != but) sockets.push_back(&socket);
  }
  return sockets;
}

void Watch::Read(Peer& peer) {
  Socket& socket = SocketOf(peer);
  if (!socket) return;
  std::array<std::byte, 4096> buffer;
  Moved moved;
  do {
    moved = socket.TryReceive(buffer);
    peer.inbox.append(reinterpret_cast<const char*>(buffer.data()),
                      moved.bytes);
    if (moved.bytes > 0) peer.silence.Hear();
  } while (moved.bytes > 0);
  try {
    while (const std::optional<Frame> frame = TakeFrame(&peer.inbox)) {
      Obey(*frame, peer);
      if (ended_) return;
    }
  } catch (const DataError&) {
    moved.closed = true;  // nothing more can be understood
  }
  if (!moved.closed) return;
  socket.Close();
  if (peer.left) return;
  End(ExitCode::kEnvironment,
      meeting_.Name(peer.rank) + " has ended without a word", peer.rank);
}

void Watch::Obey(const Frame& frame, Peer& peer) {
  switch (frame.kind) {
    case Frame::Kind::kLeave:
      peer.left = static_cast<ExitCode>(frame.number);
      return;
    case Frame::Kind::kEnd:
      if (!leads()) {
        End(static_cast<ExitCode>(frame.number), frame.text, peer.rank);
      }
      return;
    case Frame::Kind::kLost:
      if (!leads() || frame.number < 0 || frame.number >= meeting_.size()) {
        return;
      }
      if (!loss_) {
        loss_ = {peer.rank, frame.number,
                 After(std::min(kPatience, peer.silence.beat()))};
      }
      return;
    case Frame::Kind::kBeat:
    case Frame::Kind::kMembers:
      return;
  }
}

void Watch::Judge(double elapsed) {
  if (ended_) return;
  if (loss_ && Clock::now() >= loss_->until) {
    End(ExitCode::kEnvironment,
        fmt::format("rank {} has lost its connection to {}", loss_->by,
                    meeting_.Name(loss_->rank)),
        kNobody);
    return;
  }
  const Peer* first_left = nullptr;
  for (Peer& peer : peers_) {
    if (peer.left) {
      if (first_left == nullptr) first_left = &peer;
      continue;
    }
    peer.silence.Pass(elapsed);
    if (!peer.silence.too_long()) continue;
    End(ExitCode::kEnvironment,
        fmt::format("{} has been silent for {:.1f} s", meeting_.Name(peer.rank),
                    peer.silence.seconds()),
        peer.rank);
    return;
  }
  if (first_left == nullptr) return;
  after_leaving_.Pass(elapsed);
  if (!after_leaving_.too_long()) return;
  // It ended with an error that it could not tell, or too early.
  const ExitCode code = *first_left->left == ExitCode::kDone
                            ? ExitCode::kSelfCheck
                            : *first_left->left;
  End(code,
      fmt::format("{} has ended with exit code {}, and others have not "
                  "followed for {:.1f} s",
                  meeting_.Name(first_left->rank),
                  static_cast<int>(*first_left->left),
                  after_leaving_.seconds()),
      first_left->rank);
}

void Watch::Report(int lost_rank) {
  if (ended_) return;
  const Frame frame = {Frame::Kind::kLost, lost_rank};
  if (leads()) {
    Peer self = {0, Silence(options_.silence_limit), {}, {}, {}};
    Obey(frame, self);
  } else {
    Send(frame, peers_.front());
  }
}

void Watch::Send(const Frame& frame, Peer& peer) {
  Socket& socket = SocketOf(peer);
  if (!socket || peer.left) return;
  // Beats that a silent rank does not read must not pile up.
  if (frame.kind != Frame::Kind::kBeat || peer.outbox.empty()) {
    peer.outbox += FrameBytes(frame);
  }
  const Moved moved = socket.TrySend(std::as_bytes(std::span(peer.outbox)));
  peer.outbox.erase(0, moved.bytes);
}

void Watch::ReadToTheEnd(Deadline deadline, int but) {
  ending_ = true;
  for (;;) {
    const std::vector<const Socket*> sockets = OpenSockets(but);
    if (sockets.empty() || Clock::now() >= deadline) return;
    WaitToRead(sockets, deadline);
    for (Peer& peer : peers_) {
      if (peer.rank != but) Read(peer);
    }
  }
}

void Watch::TakeLeave() {
  for (Peer& peer : peers_) {
    Send({Frame::Kind::kLeave, static_cast<int32_t>(code_.load())}, peer);
    if (SocketOf(peer)) SocketOf(peer).EndSending();
  }
  // Closing while beats come in would reset the connection, and the word could
  // be lost.
  ReadToTheEnd(
      After(options_.silence_limit > 0 ? options_.silence_limit : kLeaving),
      kNobody);
}

void Watch::End(ExitCode code, const std::string& text, int culprit) {
  if (ending_) return;
  if (leads()) {
    for (Peer& peer : peers_) {
      Send({Frame::Kind::kEnd, static_cast<int32_t>(code), text}, peer);
      if (SocketOf(peer)) SocketOf(peer).EndSending();
    }
    // As in TakeLeave. The others end as soon as they have read it.
    ReadToTheEnd(
        After(std::min(kPatience, Silence(options_.silence_limit).beat())),
        culprit);
  }
  ending_ = ended_ = true;
  options_.end(code, text);
}

}  // namespace softmoe::optimized
