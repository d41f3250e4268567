// SPDX-License-Identifier: Apache-2.0
//
// in_process.h - ranks that are threads of this process, for tests and for
// trying out what ranks do.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_IN_PROCESS_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_IN_PROCESS_H_

#include <functional>

#include "optimized/communicator/communicator.h"

namespace softmoe::optimized {

// Calls body(communicator) inside Communicator::Run, once for each of `ranks`
// ranks, each in a thread of its own, and returns when all have ended. A
// ThreadPool belongs to one rank: make it in `body`.
//
//   ranks    >= 1
// Errors     The one of the lowest rank that failed by itself; RankErrors about
//            it are dropped. std::system_error if a thread cannot be started;
//            then no rank has begun.
void RunInProcessRanks(int ranks,
                       const std::function<void(Communicator&)>& body);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_IN_PROCESS_H_
