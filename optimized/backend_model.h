// SPDX-License-Identifier: Apache-2.0
//
// backend_model.h - the model on one backend.
#ifndef SOFTMOE_OPTIMIZED_BACKEND_MODEL_H_
#define SOFTMOE_OPTIMIZED_BACKEND_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "optimized/allocation.h"
#include "optimized/backend.h"
#include "optimized/backend_parameters.h"
#include "optimized/buffer.h"
#include "optimized/communicator/communicator.h"
#include "optimized/model.h"
#include "optimized/pass.h"
#include "optimized/step.h"
#include "optimized/updater.h"
#include "optimized/workspace.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

class BackendModel : public Model {
 public:
  // Keeps references to `queue` and `communicator` (device.h).
  BackendModel(const Config& config, int64_t group_sequences,
               Recompute recompute, Queue& queue, Communicator* communicator);
  // Waits, since memory in use must not be freed.
  ~BackendModel() override { WaitFor(queue_); }

  const Config& config() const override { return config_; }
  const ParameterLayout& layout() const override { return layout_; }
  std::vector<float> ReadParameters() const override;
  void WriteParameters(std::span<const float> values, int64_t first) override;
  std::vector<LayerAllocation> Allocations(
      const RoutingState& routing) const override;
  void Reserve() override { work_.Reserve(Allocations({}), queue_); }
  StepStats Forward(const Batch& batch, const RoutingState& routing) override;
  StepStats ForwardBackward(const Batch& batch, const RoutingState& routing,
                            double loss_scale, double group_scale,
                            std::span<float> gradients) override;
  std::vector<float> CollectSoftWeightRatios(
      const Batch& batch, const RoutingState& routing) override;
  std::span<const float> LastTokenLosses() override;
  std::span<const int32_t> LastTokensGreedy() override;
  RoutingView LastRouting(int64_t layer) override;
  int64_t MemoryBytes() const override;
  std::unique_ptr<Updater> MakeUpdater() override;
  std::unique_ptr<Updater> MakeUpdater(Communicator& communicator,
                                       CarrierKind carrier) override;

  Queue& queue() const { return queue_; }
  BackendParameters& parameters() { return parameters_; }
  // The host's copy of the budget logits, from which it computes allocations
  // without asking the device; empty if they are not learned. Whoever changes
  // parameters() must change this copy as well.
  std::span<float> host_budget_logits() { return budget_logits_; }

  // ForwardBackward in parts, so that several groups need only one wait:
  // StartGroups; StartGradients for each group, in any order; StartReports.
  // Then the host waits and calls ReadReport for each. Nothing else may use the
  // model in between. At most as many groups as an update has.
  void StartGroups(const RoutingState& routing);
  // `gradients` [layout().total] must be in memory where the model computes.
  //
  //   down_to  called after each part of the backward pass: the work enqueued
  //            so far computes the gradients of all parameters from `parameter`
  //            on, except those of the budget logits; 0 means all gradients
  using DownTo = std::function<void(int64_t parameter)>;
  void StartGradients(
      const Batch& batch, double loss_scale, double group_scale, int64_t group,
      float* gradients, const DownTo& down_to = [](int64_t) {});
  void StartReports(int64_t num_groups);
  // Errors: as ForwardBackward.
  StepStats ReadReport(int64_t group) const;

 private:
  // Checks `batch` and returns its pass.
  Pass Begin(const Batch& batch, double group_scale, int64_t group);
  // Everything but the head.
  void ForwardLayers(const Pass& pass);
  // The loss; with `gradients`, also the head's gradient and d_normed.
  void Head(const Pass& pass, double loss_scale, float* gradients);
  // Recomputes what the backward pass of `layer` needs and was not kept.
  void RecomputeLayer(const Pass& pass, int64_t layer);
  // Throws DivergedError if a score was not finite.
  void CheckScores(int64_t group) const;

  // Facts about a group that its report lacks.
  struct Group {
    int64_t num_tokens, first_token, sequence_length;
  };
  struct RoutingCopy {
    FetchedArray<float> scores, soft_weights;
    FetchedArray<int32_t> selected;
  };

  Config config_;
  ParameterLayout layout_;
  Queue& queue_;
  BackendParameters parameters_;
  Workspace work_;
  std::vector<float> budget_logits_;
  // For the groups in progress:
  RoutingState routing_;
  std::vector<LayerAllocation> allocations_;
  std::vector<double> budget_shares_;
  SentArray<double> sent_shares_;   // to work_.budget_shares
  const double* shares_ = nullptr;  // where the model computes
  std::vector<Group> groups_;
  int64_t last_group_ = 0;  // the group whose routing is in the workspace
  // Copies for the host, where it cannot read arrays in place.
  std::vector<RoutingCopy> routing_copies_;  // of each layer
  FetchedArray<float> token_losses_;
  FetchedArray<int32_t> tokens_greedy_;
  Buffer<float> gradients_;
};

// Errors   EnvironmentError if the backend has less memory than planned
//          (memory_plan.h).
std::unique_ptr<Model> MakeBackendModel(const Config& config,
                                        int64_t group_sequences, Queue& queue,
                                        Recompute recompute,
                                        Communicator* communicator);

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_BACKEND_MODEL_H_
