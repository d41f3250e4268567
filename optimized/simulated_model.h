// SPDX-License-Identifier: Apache-2.0
//
// simulated_model.h - the model on the simulated device (kernels/simt/device),
// for tests.
#ifndef SOFTMOE_OPTIMIZED_SIMULATED_MODEL_H_
#define SOFTMOE_OPTIMIZED_SIMULATED_MODEL_H_

#include <cstdint>
#include <memory>

#include "core/config/config.h"
#include "kernels/cuda/queue.h"
#include "optimized/model.h"

namespace softmoe::optimized {
inline namespace backend_simulated {

// Keeps references to `queue` and `communicator` (device.h).
// Errors   EnvironmentError if the device has less memory than planned
//          (memory_plan.h).
std::unique_ptr<Model> MakeBackendModel(const Config& config,
                                        int64_t group_sequences,
                                        kernels::Queue& queue,
                                        Recompute recompute = Recompute::kNone,
                                        Communicator* communicator = nullptr);

}  // namespace backend_simulated

// Does the same for a configuration in bf16.
inline namespace backend_simulated_bf16 {
std::unique_ptr<Model> MakeBackendModel(const Config& config,
                                        int64_t group_sequences,
                                        kernels::Queue& queue,
                                        Recompute recompute = Recompute::kNone,
                                        Communicator* communicator = nullptr);
}
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_SIMULATED_MODEL_H_
