// SPDX-License-Identifier: Apache-2.0
//
// meeting.h - how the ranks of a run find each other: each connects to rank 0,
// which tells all who is there once all are.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_MEETING_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_MEETING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "optimized/communicator/greeting.h"
#include "optimized/communicator/socket.h"

namespace softmoe::optimized {

// One rank, as the others see it.
struct Member {
  std::string host;  // its machine's name
  int64_t process = 0;
  std::string address;  // of its machine, numeric
  int port = 0;         // where it listens, 0: nowhere
};

struct Meeting {
  int rank = 0;
  std::vector<Member> members;  // of all ranks
  // Rank 0 has one to each other rank, the others have one to rank 0; the rest
  // are none.
  std::vector<Socket> connections;

  int size() const { return static_cast<int>(members.size()); }
  // "rank 3 of 4 (node7, process 123)"
  std::string Name(int of_rank) const;
};

// Rank 0 of `size` ranks: receives the others.
//
//   join_limit  s, how long ranks wait for each other
// Errors   on all ranks that are there by then: ConfigError if two have the same
//          number, or one was told another number of ranks; EnvironmentError if
//          one does not come.
Meeting HostMeeting(Reception& reception, int size, double join_limit);

// Another rank, which makes `claim`: connects to rank 0, at whichever of
// `addresses` it answers, and waits until all have come.
// Errors   as HostMeeting and Greet; EnvironmentError if nobody answers.
Meeting JoinMeeting(const std::vector<std::string>& addresses, int port,
                    const Claim& claim, const std::string& secret,
                    double join_limit);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_MEETING_H_
