// SPDX-License-Identifier: Apache-2.0
//
// updater.h - one update of a model's parameters (SPEC.md 4):
//
//   balance groups -> gradients, added along the tree -> norm -> AdamW
//
// In two halves, so that nothing has changed yet when the caller has looked at
// loss and norm. Everything as large as the parameters stays where the model
// computes; a caller reads copies.
#ifndef SOFTMOE_OPTIMIZED_UPDATER_H_
#define SOFTMOE_OPTIMIZED_UPDATER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/parallel_for.h"
#include "optimized/buffer.h"
#include "optimized/gradient_tree.h"
#include "optimized/model.h"
#include "optimized/optimizer.h"
#include "optimized/step.h"

namespace softmoe::optimized {

// What the first half of an update found.
struct UpdateGradient {
  std::vector<StepStats> groups;  // in their order
  double norm = 0;                // before clipping
  double model_seconds = 0;       // inside the model's passes
};

class Updater {
 public:
  // Keeps references to `model` and `pool`. The moments start at zero.
  Updater(Model& model, ThreadPool& pool);

  // Of the balance groups of one global batch, asked for in ascending order;
  // what the spans view must last until the next call.
  using GroupBatch = std::function<Batch(int64_t group)>;

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

  int64_t num_groups() const { return num_groups_; }

 private:
  Model& model_;
  int64_t num_groups_;
  Optimizer optimizer_;
  GradientTree tree_;
  Buffer<float> gradient_;  // [layout.total]
  double norm_ = 0;         // of gradient_
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_UPDATER_H_
