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
#include <memory>
#include <span>
#include <vector>

#include "optimized/communicator/communicator.h"
#include "optimized/model.h"
#include "optimized/model_interface.h"
#include "optimized/step.h"

namespace softmoe::optimized {

class Updater {
 public:
  // Keeps a reference to `model`. The moments start at zero.
  explicit Updater(Model& model);
  // Does the same on several ranks, each with a model of its own that was made
  // with `communicator`; they hold the same parameters. All ranks call every
  // function (ranked_updater.h). Keeps references.
  //
  //   carrier  the same on all ranks; NCCL is for models on devices, where each
  //            rank has one of its own
  // Errors     ConfigError if the groups do not divide among the ranks;
  //            EnvironmentError if there is too little memory, or NCCL fails.
  Updater(Model& model, Communicator& communicator,
          CarrierKind carrier = CarrierKind::kHost);

  // The gradient of the mean loss over all groups (DESIGN.md, ruling 6).
  // Errors   NumericsError if a score, a loss or the norm is not finite.
  UpdateGradient ComputeGradient(const RoutingState& routing,
                                 const GroupBatch& batch);

  // Takes the step along the last gradient: optimizer.h says how.
  void Apply(double learning_rate, int64_t completed_updates);

  // Copies; all [layout.total].
  std::vector<float> ReadGradient() const;
  std::vector<float> ReadFirstMoment() const;
  std::vector<float> ReadSecondMoment() const;
  void WriteMoments(std::span<const float> first,
                    std::span<const float> second);

  int64_t num_groups() const;

 private:
  std::unique_ptr<UpdaterInterface> on_backend_;
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_UPDATER_H_
