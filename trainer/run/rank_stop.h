// SPDX-License-Identifier: Apache-2.0
//
// rank_stop.h - a signal that comes to any rank stops all of them, at the same
// place.
#ifndef SOFTMOE_TRAINER_RUN_RANK_STOP_H_
#define SOFTMOE_TRAINER_RUN_RANK_STOP_H_

#include <string>

#include "core/process/stop_signal.h"
#include "optimized/communicator/communicator.h"

namespace softmoe::trainer {

// The first rank to which a signal has come, or -1; the same on all ranks,
// which all call it.
int RankAskedToStop(const StopSignal& stop,
                    optimized::Communicator& communicator);

// Throws StoppedError, which names the signal, or the rank to which it came.
// `done` says what state the user will find and how to go on.
[[noreturn]] void ThrowStopped(const StopSignal& stop, int asked_rank,
                               const std::string& done);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_RANK_STOP_H_
