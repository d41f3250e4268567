// SPDX-License-Identifier: Apache-2.0
//
// small_training.h - a small model with all optional parts, and its updates;
// tests train it on any device and compare bits.
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_SMALL_TRAINING_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_SMALL_TRAINING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/config/config.h"
#include "optimized/model.h"
#include "property_tests/testing/model_difference.h"

namespace softmoe::property_tests {

// Two layers, five experts, both auxiliary losses, no noise; odd sizes in fp32,
// suitable sizes in bf16.
Config SmallConfig(RouterKind router, Precision precision = Precision::kFp32);

// Smaller still, with input jitter, and updates of `kSmallGroups` balance
// groups with one sequence each.
inline constexpr int64_t kSmallGroups = 2;
Config SmallTrainingConfig(RouterKind router,
                           Precision precision = Precision::kFp32);

// Every router in each precision.
struct SmallKind {
  RouterKind router;
  Precision precision = Precision::kFp32;
};
std::vector<SmallKind> SmallKinds();

// The routing of update number `update`, counted from 0.
optimized::RoutingState SmallRouting(int64_t update);

// The parameters before the first update.
std::vector<float> SmallParameters(const Config& config);

// An optimized::GroupBatch: one sequence per group, drawn anew for each update.
// `config` must outlive this; a batch is valid until the next one.
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

// The state after some updates, and the norms of their gradients.
struct TrainingState {
  std::vector<float> parameters, first_moment, second_moment;
  std::vector<double> norms;
  bool operator==(const TrainingState&) const = default;
};

// Trains a model of `make` for some updates. `interrupted`: midway everything
// is copied to the host, and a new model continues.
//
//   after_each  called with the model after each update
TrainingState TrainSmall(
    const Config& config,
    const std::function<std::unique_ptr<optimized::Model>()>& make,
    int64_t updates, bool interrupted,
    const std::function<void(const optimized::Model&)>& after_each =
        [](const optimized::Model&) {});

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_SMALL_TRAINING_H_
