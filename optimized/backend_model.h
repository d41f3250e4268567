// SPDX-License-Identifier: Apache-2.0
//
// backend_model.h - the model on one backend.
#ifndef SOFTMOE_OPTIMIZED_BACKEND_MODEL_H_
#define SOFTMOE_OPTIMIZED_BACKEND_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "optimized/allocation.h"
#include "optimized/backend.h"
#include "optimized/buffer.h"
#include "optimized/model_interface.h"
#include "optimized/pass.h"
#include "optimized/step.h"
#include "optimized/workspace.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

class BackendModel : public ModelInterface {
 public:
  BackendModel(const Config& config, int64_t group_sequences, Queue& queue);
  // Memory that is in use must not be freed.
  ~BackendModel() override { WaitFor(queue_); }

  const Config& config() const override { return config_; }
  const ParameterLayout& layout() const override { return layout_; }
  std::vector<float> ReadParameters() const override;
  void WriteParameters(std::span<const float> values, int64_t first) override;
  std::vector<LayerAllocation> Allocations(
      const RoutingState& routing) const override;
  StepStats Forward(const Batch& batch, const RoutingState& routing) override;
  StepStats ForwardBackward(const Batch& batch, const RoutingState& routing,
                            double loss_scale, double group_scale,
                            std::span<float> gradients) override;
  std::vector<float> CollectSoftWeightRatios(
      const Batch& batch, const RoutingState& routing) override;
  RoutingView LastRouting(int64_t layer) override;
  int64_t MemoryBytes() const override;
  std::unique_ptr<UpdaterInterface> MakeUpdater() override;

  Queue& queue() const { return queue_; }
  std::span<float> parameters() { return parameters_.span(); }
  // ForwardBackward, with gradients [layout().total] where the model computes.
  StepStats ComputeGradients(const Batch& batch, const RoutingState& routing,
                             double loss_scale, double group_scale,
                             float* gradients);

 private:
  std::vector<float> BudgetLogits() const;  // empty if they are not learned
  // Checks `batch`, and of `routing` what a caller can get wrong.
  Pass Begin(const Batch& batch, const RoutingState& routing,
             std::span<const LayerAllocation> allocations, double group_scale);
  // Everything but the head.
  void ForwardLayers(const Pass& pass,
                     std::span<const LayerAllocation> allocations);
  // The loss; with `gradients`, also the head's gradient and d_residual.
  void Head(const Pass& pass, double loss_scale, float* gradients);
  // Waits for the pass. Throws NumericsError if a score was not finite.
  void FetchReport(const Pass& pass);
  // What the pass reports, once scores and loss are known to be finite.
  StepStats Finish(const Pass& pass);

  struct RoutingCopy {
    std::vector<float> scores, soft_weights;
    std::vector<int32_t> selected;
  };

  Config config_;
  ParameterLayout layout_;
  Queue& queue_;
  Buffer<float> parameters_;
  Workspace work_;
  int64_t last_num_tokens_ = 0;
  // What is copied to the host, where it cannot be read in place.
  std::vector<RoutingCopy> routing_copies_;  // of each layer
  Buffer<float> gradients_;
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_BACKEND_MODEL_H_
