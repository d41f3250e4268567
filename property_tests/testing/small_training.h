// SPDX-License-Identifier: Apache-2.0
//
// small_training.h - a small model with all that a model may have, and its
// updates: what tests train to compare bits, wherever it computes.
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_SMALL_TRAINING_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_SMALL_TRAINING_H_

#include <cstdint>
#include <vector>

#include "core/config/config.h"
#include "optimized/model_interface.h"
#include "property_tests/testing/model_difference.h"

namespace softmoe::property_tests {

// Two layers, five experts, both auxiliary losses, no noise; sizes that are odd
// in fp32, and suit bf16 there.
Config SmallConfig(RouterKind router, Precision precision = Precision::kFp32);

// Smaller still, with input jitter, and with updates of `kSmallGroups` balance
// groups of one sequence.
inline constexpr int64_t kSmallGroups = 2;
Config SmallTrainingConfig(RouterKind router,
                           Precision precision = Precision::kFp32);

// Of update number `update`, from 0.
optimized::RoutingState SmallRouting(int64_t update);

// Where updates begin.
std::vector<float> SmallParameters(const Config& config);

// An optimized::GroupBatch: a sequence for each group, drawn anew for each
// update. `config` must live as long as this; a batch, until the next one.
class SmallGroups {
 public:
  SmallGroups(const Config& config, int64_t update)
      : config_(config), update_(update) {}

  optimized::Batch operator()(int64_t group);

 private:
  const Config& config_;
  int64_t update_;
  ModelCase batch_;
};

// What updates leave.
struct TrainingState {
  std::vector<float> parameters, first_moment, second_moment;
  bool operator==(const TrainingState&) const = default;
};
TrainingState ReadState(const optimized::ModelInterface& model,
                        const optimized::UpdaterInterface& updater);
void WriteState(const TrainingState& state, optimized::ModelInterface& model,
                optimized::UpdaterInterface& updater);

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_SMALL_TRAINING_H_
