// SPDX-License-Identifier: Apache-2.0
//
// tcp.h - ranks that are processes, started by anybody, over TCP alone.
//
// Each pair of ranks has a connection, so that n ranks have n (n - 1) / 2, and
// an array goes straight from who has it to who needs it: as many bytes as over
// MPI, but through the sockets of the kernel even within a machine, where MPI
// would use shared memory. The watch (watch.h) has connections of its own.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_TCP_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_TCP_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "optimized/communicator/communicator.h"
#include "optimized/communicator/launched_rank.h"
#include "optimized/communicator/socket.h"
#include "optimized/communicator/watch.h"

namespace softmoe::optimized {

struct TcpOptions {
  double join_limit = 120;  // s that ranks wait for each other at the start
  WatchOptions watch = {};
  // Called by rank 0, once it can be reached.
  std::function<void(int port)> on_listening = [](int) {};
};

// This rank's connections to all others.
class TcpSession {
 public:
  // Returns when all ranks are there.
  //
  //   secret   the same for all ranks of a run
  // Errors     as HostMeeting, JoinMeeting and Listener
  TcpSession(const LaunchedRank& launched, const std::string& secret,
             const TcpOptions& options);

  // As MpiSession::World.
  std::unique_ptr<Communicator> World();

  Watch& watch() { return *watch_; }

 private:
  std::unique_ptr<Watch> watch_;
  std::vector<Socket> connections_;  // to every rank but this one
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_TCP_H_
