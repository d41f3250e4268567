// SPDX-License-Identifier: Apache-2.0
//
// updater.h - one update of a model's parameters (SPEC.md 4):
//
//   balance groups -> gradients, added along the tree -> norm -> AdamW
//
// The two halves let the caller look at loss and norm before anything has
// changed. Everything as large as the parameters stays where the model
// computes; a caller reads copies.
#ifndef SOFTMOE_OPTIMIZED_UPDATER_H_
#define SOFTMOE_OPTIMIZED_UPDATER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "optimized/step.h"

namespace softmoe::optimized {

// What carries arrays as large as the parameters from rank to rank (carrier.h).
// It changes no bit.
enum class CarrierKind {
  kHost,  // the communicator, through memory of the host
  kNccl,  // from device to device, where each rank has one of its own
};

// Made by Model::MakeUpdater.
class Updater {
 public:
  virtual ~Updater() = default;

  // The gradient of the mean loss over all groups (DESIGN.md, ruling 6).
  // Errors   DivergedError if a budget logit, a score or a loss is not finite,
  //          or as NormOf (optimizer.h).
  virtual UpdateGradient ComputeGradient(const RoutingState& routing,
                                         const GroupBatch& batch) = 0;

  // Takes the step along the last gradient: optimizer.h says how.
  virtual void Apply(double learning_rate, int64_t completed_updates) = 0;

  // Copies; all [layout.total].
  virtual std::vector<float> ReadGradient() const = 0;
  virtual std::vector<float> ReadFirstMoment() const = 0;
  virtual std::vector<float> ReadSecondMoment() const = 0;
  virtual void WriteMoments(std::span<const float> first,
                            std::span<const float> second) = 0;

  virtual int64_t num_groups() const = 0;
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_UPDATER_H_
