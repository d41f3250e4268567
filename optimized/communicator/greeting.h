// SPDX-License-Identifier: Apache-2.0
//
// greeting.h - how two ranks find out that they belong to one run, before
// anything else is sent: each proves that it knows the run's secret.
//
//   who listens    its version, and a number that was never used before
//   who connects   its claim (who it is, and a number of its own), with an HMAC
//                  of both numbers and the claim
//   who listens    an HMAC of the same, which only it can give
//
// The secret itself never goes over the wire, and what was once heard opens no
// other connection. What follows is neither encrypted nor signed: the greeting
// keeps strangers out, not those who can change packets on the way.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_GREETING_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_GREETING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "optimized/communicator/socket.h"

namespace softmoe::optimized {

// Of everything that ranks send each other over TCP.
inline constexpr uint32_t kTcpVersion = 1;

// What a rank says of itself when it connects.
struct Claim {
  int32_t rank = 0, size = 0;  // of how many it believes to be one
  int32_t to_rank = 0;         // whom it means to reach
  int32_t port = 0;            // where it listens itself, 0: nowhere
  int64_t process = 0;
  std::array<char, 64> host = {};  // its machine's name, ends with 0
};
static_assert(sizeof(Claim) == 88, "it goes over the wire without gaps");

// The claim of this process.
Claim OwnClaim(int rank, int size, int to_rank, int port);

// Where ranks are received.
class Reception {
 public:
  struct Guest {
    Socket socket;
    Claim claim;
  };

  static constexpr double kPatience = 10;  // s
  static constexpr size_t kWaiting = 64;   // connections at a time

  // patience   s that a connection has to prove it
  Reception(Listener listener, std::string secret, double patience = kPatience);

  int port() const { return listener_.port(); }

  // The next connection that has proved that it knows the secret; nothing at
  // the deadline. Others are closed: at once if what they say is wrong, when
  // patience ends if they say too little, or sooner if kWaiting more have come.
  std::optional<Guest> Next(Deadline deadline);

  // Refused so far: connections that gave the proof of another secret, and all
  // others.
  int other_secrets() const { return other_secrets_; }
  int strangers() const { return strangers_; }

 private:
  struct Waiting {
    Socket socket;
    std::string nonce;
    std::vector<std::byte> heard;
    Deadline until;
  };
  void AcceptAll();
  // Reads what has come. True if the connection is done with: then it is in
  // `guest`, or refused.
  bool Hear(Waiting& waiting, std::optional<Guest>* guest);

  Listener listener_;
  const std::string secret_;
  const double patience_;
  std::vector<Waiting> waiting_;
  int other_secrets_ = 0, strangers_ = 0;
};

// Greets who listens at the other end of `socket`. False if it does not answer
// in time, or closes.
// Errors   ConfigError if it has another secret or another version;
//          EnvironmentError if it is something else. Both begin with `place`.
bool Greet(Socket& socket, const Claim& claim, const std::string& secret,
           Deadline deadline, const std::string& place);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_GREETING_H_
