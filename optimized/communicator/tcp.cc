// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/tcp.h"

#include <fmt/format.h>
#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "core/errors.h"
#include "optimized/communicator/greeting.h"
#include "optimized/communicator/meeting.h"

namespace softmoe::optimized {
namespace {

class TcpCommunicator : public Communicator {
 public:
  TcpCommunicator(std::vector<Socket>& connections, Watch& watch)
      : Communicator(watch.meeting().rank, watch.meeting().size()),
        connections_(connections),
        watch_(watch) {}

 private:
  // What a rank sends of its call first; then comes the text.
  struct Head {
    int32_t kind, code;
    int64_t length;
  };

  std::vector<Call> ShareCalls(const Call& mine) override {
    const auto self = static_cast<size_t>(rank());
    std::vector<Head> heads(connections_.size());
    heads[self] = {static_cast<int32_t>(mine.kind),
                   static_cast<int32_t>(mine.code),
                   static_cast<int64_t>(mine.text.size())};
    Share(std::as_bytes(std::span(&heads[self], 1)), [&](size_t rank) {
      return std::as_writable_bytes(std::span(&heads[rank], 1));
    });
    std::vector<Call> calls;
    for (const Head& head : heads) {
      SOFTMOE_CHECK(0 <= head.length && head.length <= kLongestText)
          << "a call of " << head.length << " characters";
      calls.push_back({static_cast<Call::Kind>(head.kind),
                       static_cast<ExitCode>(head.code),
                       std::string(static_cast<size_t>(head.length), ' ')});
    }
    calls[self] = mine;
    Share(std::as_bytes(std::span(mine.text)), [&](size_t rank) {
      return std::as_writable_bytes(std::span(calls[rank].text));
    });
    return calls;
  }

  // Between operations, what comes next from a rank is the head of its call.
  bool AnotherHasFailed() override {
    for (size_t r = 0; r < connections_.size(); ++r) {
      if (r == static_cast<size_t>(rank())) continue;
      Head head = {};
      const auto bytes = std::as_writable_bytes(std::span(&head, 1));
      const Moved there = connections_[r].TryPeek(bytes);
      if (there.closed) watch_.Lost(static_cast<int>(r));
      if (there.bytes == bytes.size() &&
          static_cast<Call::Kind>(head.kind) == Call::Kind::kFailure) {
        return true;
      }
    }
    return false;
  }

  // Sends `mine` to all others, and receives from each what goes into
  // `place(rank)`.
  template <typename Place>
  void Share(Outgoing mine, const Place& place) {
    std::vector<Outgoing> sends(connections_.size(), mine);
    std::vector<Incoming> receives(connections_.size());
    for (size_t r = 0; r < receives.size(); ++r) receives[r] = place(r);
    sends[static_cast<size_t>(rank())] = {};
    receives[static_cast<size_t>(rank())] = {};
    Move(sends, receives);
  }

  // All at the same time: ranks that all sent first would fill the buffers
  // between them, and wait for ever.
  void Move(std::span<const Outgoing> sends,
            std::span<const Incoming> receives) override {
    std::vector<Outgoing> out(sends.begin(), sends.end());
    std::vector<Incoming> in(receives.begin(), receives.end());
    for (;;) {
      std::vector<pollfd> files;
      for (size_t r = 0; r < connections_.size(); ++r) {
        Advance(r, out[r], in[r]);
        const int events =
            (out[r].empty() ? 0 : POLLOUT) | (in[r].empty() ? 0 : POLLIN);
        if (events == 0) continue;
        files.push_back(
            {connections_[r].descriptor(), static_cast<short>(events), 0});
      }
      if (files.empty()) return;
      // The watch knows how long is too long.
      ::poll(files.data(), files.size(), -1);
    }
  }

  // What can be moved at once, to and from a rank.
  void Advance(size_t rank, Outgoing& out, Incoming& in) {
    Moved moved;
    if (!out.empty()) {
      moved = connections_[rank].TrySend(out);
      out = out.subspan(moved.bytes);
    }
    if (!in.empty() && !moved.closed) {
      moved = connections_[rank].TryReceive(in);
      in = in.subspan(moved.bytes);
    }
    if (moved.closed) watch_.Lost(static_cast<int>(rank));
  }

  static constexpr int64_t kLongestText = int64_t{1} << 26;

  std::vector<Socket>& connections_;
  Watch& watch_;
};

// This machine has that name (RFC 6761), even where neither a file nor a name
// server says so: a container may have no /etc/hosts.
std::string Reachable(const std::string& address) {
  return address == "localhost" ? "127.0.0.1" : address;
}

// Where ranks of one machine need nobody else to reach them, nobody else can.
std::string ListenAt(const std::string& address) {
  return address.starts_with("127.") || address == "::1" ? address : "";
}

// Connects to the ranks below this one, then receives those above it: so none
// waits for one that waits for it.
std::vector<Socket> ConnectAll(const Meeting& meeting, Reception& reception,
                               const std::string& secret, double limit) {
  const int size = meeting.size();
  const Deadline deadline = After(limit);
  std::vector<Socket> connections(static_cast<size_t>(size));
  for (int r = 0; r < meeting.rank; ++r) {
    const Member& member = meeting.members[static_cast<size_t>(r)];
    const std::string place = fmt::format("{} at {}:{}", meeting.Name(r),
                                          member.address, member.port);
    std::string reason = "it does not answer";
    Socket socket = Connect(member.address, member.port, deadline, &reason);
    if (!socket || !Greet(socket, OwnClaim(meeting.rank, size, r, 0), secret,
                          deadline, place)) {
      throw EnvironmentError(fmt::format(
          "{} cannot be reached from rank {}: {}; ranks connect to each other "
          "at any port: look at firewalls, and let MASTER_ADDR be an address "
          "that all machines reach",
          place, meeting.rank, reason));
    }
    connections[static_cast<size_t>(r)] = std::move(socket);
  }
  for (int missing = size - 1 - meeting.rank; missing > 0; --missing) {
    std::optional<Reception::Guest> guest = reception.Next(deadline);
    if (!guest) {
      throw EnvironmentError(fmt::format(
          "{} ranks have not connected to rank {} within {:g} s; see what they "
          "say",
          missing, meeting.rank, limit));
    }
    const Claim& claim = guest->claim;
    SOFTMOE_CHECK(claim.size == size && claim.to_rank == meeting.rank &&
                  meeting.rank < claim.rank && claim.rank < size &&
                  !connections[static_cast<size_t>(claim.rank)])
        << "rank " << claim.rank << " of " << claim.size << " for rank "
        << claim.to_rank;
    connections[static_cast<size_t>(claim.rank)] = std::move(guest->socket);
  }
  return connections;
}

}  // namespace

TcpSession::TcpSession(const LaunchedRank& launched, const std::string& secret,
                       const TcpOptions& options) {
  const std::string address = Reachable(launched.address);
  const bool leads = launched.rank == 0;
  Reception reception(Listener(ListenAt(address), leads ? launched.port : 0),
                      secret);
  if (leads) options.on_listening(reception.port());
  watch_ = std::make_unique<Watch>(
      leads ? HostMeeting(reception, launched.size, options.join_limit)
            : JoinMeeting(
                  {address}, launched.port,
                  OwnClaim(launched.rank, launched.size, 0, reception.port()),
                  secret, options.join_limit),
      options.watch);
  connections_ =
      ConnectAll(watch_->meeting(), reception, secret, options.join_limit);
}

std::unique_ptr<Communicator> TcpSession::World() {
  return std::make_unique<TcpCommunicator>(connections_, *watch_);
}

}  // namespace softmoe::optimized
