// SPDX-License-Identifier: Apache-2.0
//
// watch_over.h - the watch of ranks that have a communicator already (MPI's).
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_WATCH_OVER_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_WATCH_OVER_H_

#include <memory>

#include "optimized/communicator/communicator.h"
#include "optimized/communicator/watch.h"

namespace softmoe::optimized {

// Called by all ranks, each a process of its own: rank 0 makes up a secret,
// listens at a free port, and says so by `communicator`; the others connect.
//
//   join_limit  s that they wait for each other
// Errors   as HostMeeting, JoinMeeting and Listener
std::unique_ptr<Watch> WatchOver(Communicator& communicator, double join_limit,
                                 const WatchOptions& options);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_WATCH_OVER_H_
