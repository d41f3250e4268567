// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "core/errors.h"
#include "optimized/communicator/frame.h"

namespace softmoe::optimized {
namespace {

constexpr auto kPause = std::chrono::milliseconds(50);  // between two attempts
constexpr double kAttempt = 10;                         // s, for one

std::string Where(const Member& member) {
  return fmt::format("({}, process {})", member.host, member.process);
}

Member MemberOf(const Claim& claim, const std::string& address) {
  return {claim.host.data(), claim.process, address, claim.port};
}

// A line for each rank. Names of machines have no spaces.
std::string MembersText(const std::vector<Member>& members) {
  std::string text;
  for (const Member& member : members) {
    text +=
        fmt::format("{} {} {} {}\n", member.host, member.process,
                    member.address.empty() ? "-" : member.address, member.port);
  }
  return text;
}

std::vector<Member> MembersOf(const std::string& text) {
  std::vector<Member> members;
  std::istringstream lines(text);
  Member member;
  while (lines >> member.host >> member.process >> member.address >>
         member.port) {
    members.push_back(member);
  }
  return members;
}

// Whether the other side has not closed it. It says nothing before all are
// here.
bool IsOpen(Socket& socket) {
  std::array<std::byte, 1> byte{};
  return !socket.TryReceive(byte).closed;
}

// What is wrong with a rank that has come; "" if nothing is.
std::string Objection(const Claim& claim, Meeting& meeting) {
  const Member member = MemberOf(claim, "");
  if (claim.size != meeting.size()) {
    return fmt::format(
        "rank {} {} was started as one of {} ranks, rank 0 as one of {}; start "
        "all with the same number",
        claim.rank, Where(member), claim.size, meeting.size());
  }
  if (claim.rank < 1 || claim.rank >= claim.size || claim.to_rank != 0) {
    return fmt::format("there is no rank {} of {} {}", claim.rank, claim.size,
                       Where(member));
  }
  const auto rank = static_cast<size_t>(claim.rank);
  if (meeting.connections[rank] && IsOpen(meeting.connections[rank])) {
    return fmt::format(
        "two processes are rank {}: {} and {}; give each a number of its own",
        claim.rank, Where(meeting.members[rank]), Where(member));
  }
  return "";
}

std::string WhoIsMissing(const Meeting& meeting, const Reception& reception,
                         double join_limit) {
  std::string ranks;
  for (size_t r = 1; r < meeting.connections.size(); ++r) {
    if (!meeting.connections[r]) ranks += fmt::format(" {}", r);
  }
  std::string text = fmt::format(
      "of {} ranks, these have not come to rank 0 within {:g} s:{}; see what "
      "they say, and start all ranks at the same time",
      meeting.size(), join_limit, ranks);
  if (reception.other_secrets() > 0) {
    text +=
        fmt::format("; {} with another secret came", reception.other_secrets());
  }
  return text;
}

// Tells those who have come, and throws.
[[noreturn]] void GiveUp(const Error& error, Meeting& meeting) {
  const Frame end = {Frame::Kind::kEnd, static_cast<int32_t>(error.code()),
                     error.what()};
  for (Socket& socket : meeting.connections) {
    if (socket) SendFrame(end, socket, After(0));
  }
  throw error;
}

// One attempt. Nothing if nobody answers: then `reason` says why.
Socket Reach(const std::string& address, int port, const Claim& claim,
             const std::string& secret, Deadline deadline,
             std::string* reason) {
  const Deadline attempt = std::min(deadline, After(kAttempt));
  Socket socket = Connect(address, port, attempt, reason);
  if (!socket) return {};
  const std::string place = fmt::format("what listens at {}:{}", address, port);
  if (Greet(socket, claim, secret, attempt, place)) return socket;
  *reason = "somebody is there, who does not answer as rank 0 does";
  return {};
}

}  // namespace

std::string Meeting::Name(int of_rank) const {
  return fmt::format("rank {} of {} {}", of_rank, size(),
                     Where(members[static_cast<size_t>(of_rank)]));
}

Meeting HostMeeting(Reception& reception, int size, double join_limit) {
  SOFTMOE_CHECK(size > 0) << size << " ranks";
  Meeting meeting;
  meeting.members.resize(static_cast<size_t>(size));
  meeting.connections.resize(static_cast<size_t>(size));
  meeting.members[0] = MemberOf(OwnClaim(0, size, 0, reception.port()), "");
  const Deadline deadline = After(join_limit);
  const auto all_are_here = [&] {
    return std::ranges::all_of(meeting.connections.begin() + 1,
                               meeting.connections.end(),
                               [](const Socket& s) { return bool(s); });
  };
  while (!all_are_here()) {
    std::optional<Reception::Guest> guest = reception.Next(deadline);
    if (!guest) {
      GiveUp(EnvironmentError(WhoIsMissing(meeting, reception, join_limit)),
             meeting);
    }
    const std::string objection = Objection(guest->claim, meeting);
    if (!objection.empty()) {
      meeting.connections.push_back(std::move(guest->socket));
      GiveUp(ConfigError(objection), meeting);
    }
    const auto rank = static_cast<size_t>(guest->claim.rank);
    meeting.members[rank] =
        MemberOf(guest->claim, guest->socket.peer_address());
    meeting.connections[rank] = std::move(guest->socket);
  }
  for (Socket& socket : meeting.connections) {
    // Who is gone by now will be missed by the watch.
    if (socket) {
      SendFrame({Frame::Kind::kMembers, 0, MembersText(meeting.members)},
                socket, After(kAttempt));
    }
  }
  return meeting;
}

Meeting JoinMeeting(const std::vector<std::string>& addresses, int port,
                    const Claim& claim, const std::string& secret,
                    double join_limit) {
  const Deadline deadline = After(join_limit);
  Socket socket;
  while (!socket) {
    std::string reason = "it has no address";
    for (const std::string& address : addresses) {
      socket = Reach(address, port, claim, secret, deadline, &reason);
      if (socket) break;
    }
    if (socket) break;
    if (Clock::now() >= deadline) {
      throw EnvironmentError(fmt::format(
          "rank 0 does not answer at {}:{} within {:g} s: {}; start it, look "
          "at firewalls, and let MASTER_ADDR be an address of its machine that "
          "this one reaches, and MASTER_PORT its port: set them under srun, "
          "too, where what Slurm says is of no use",
          fmt::join(addresses, ", "), port, join_limit, reason));
    }
    std::this_thread::sleep_until(std::min(deadline, Clock::now() + kPause));
  }
  // Rank 0 began to wait before, so that it gives up before.
  const std::optional<Frame> frame =
      ReceiveFrame(socket, After(join_limit + kAttempt));
  if (!frame) {
    throw EnvironmentError(
        "rank 0 has received this rank, and then said no more; see what it "
        "says");
  }
  if (frame->kind == Frame::Kind::kEnd) {
    throw Error(static_cast<ExitCode>(frame->number), frame->text);
  }
  Meeting meeting;
  meeting.rank = claim.rank;
  meeting.members = MembersOf(frame->text);
  SOFTMOE_CHECK(meeting.size() == claim.size) << frame->text;
  meeting.members[0].address = socket.peer_address();
  meeting.connections.resize(meeting.members.size());
  meeting.connections[0] = std::move(socket);
  return meeting;
}

}  // namespace softmoe::optimized
