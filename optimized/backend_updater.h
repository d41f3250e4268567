// SPDX-License-Identifier: Apache-2.0
//
// backend_updater.h - updates of a model on one backend.
#ifndef SOFTMOE_OPTIMIZED_BACKEND_UPDATER_H_
#define SOFTMOE_OPTIMIZED_BACKEND_UPDATER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "optimized/backend.h"
#include "optimized/backend_model.h"
#include "optimized/buffer.h"
#include "optimized/gradient_tree.h"
#include "optimized/optimizer.h"
#include "optimized/step.h"
#include "optimized/updater.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

class BackendUpdater : public Updater {
 public:
  explicit BackendUpdater(BackendModel& model);
  ~BackendUpdater() override { WaitFor(model_.queue()); }

  UpdateGradient ComputeGradient(const RoutingState& routing,
                                 const GroupBatch& batch) override;
  void Apply(double learning_rate, int64_t completed_updates) override;
  std::vector<float> ReadGradient() const override;
  std::vector<float> ReadFirstMoment() const override;
  std::vector<float> ReadSecondMoment() const override;
  void WriteMoments(std::span<const float> first,
                    std::span<const float> second) override;
  int64_t num_groups() const override { return num_groups_; }

 private:
  std::vector<float> Read(std::span<const float> values) const;
  // The budget logits' part of an array [layout.total].
  template <typename T>
  std::span<T> BudgetPart(std::span<T> values) const;

  BackendModel& model_;
  int64_t num_groups_;
  Optimizer optimizer_;
  GradientTree tree_;
  Buffer<float> gradient_;  // [layout.total]
  double norm_ = 0;         // of gradient_
  // The host needs these to update its copy of the budget logits.
  FetchedArray<float> budget_gradient_;
  std::vector<float> budget_first_moment_, budget_second_moment_;
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_BACKEND_UPDATER_H_
