// SPDX-License-Identifier: Apache-2.0
//
// final_checkpoint.h - whether a checkpoint has the parameters of which a
// finished run's result tells: copies of folders may mix files of several runs.
#ifndef SOFTMOE_TRAINER_RESULTS_FINAL_CHECKPOINT_H_
#define SOFTMOE_TRAINER_RESULTS_FINAL_CHECKPOINT_H_

#include <string>

#include "trainer/results/checkpoint.h"
#include "trainer/results/run_result.h"

namespace softmoe::trainer {

// Why `checkpoint` is not that of the last step of the training that gave
// `result`; "" if it is: they have the same identity, tau and metrics of all
// steps, clocks apart. Their code versions may differ.
std::string WhyNotFinal(const RunResult& result, const Checkpoint& checkpoint);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_FINAL_CHECKPOINT_H_
