// SPDX-License-Identifier: Apache-2.0
//
// model.h - the SoftMoE decoder: loss, routing statistics and gradients.
//
// One call works on one balance group of whole sequences (DESIGN.md, ruling 6):
// the unit over which the load-balancing loss is defined, and the leaf of the
// tree along which gradients are summed.
#ifndef SOFTMOE_OPTIMIZED_MODEL_H_
#define SOFTMOE_OPTIMIZED_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "core/parallel_for.h"
#include "optimized/allocation.h"
#include "optimized/device.h"
#include "optimized/model_interface.h"
#include "optimized/step.h"

namespace softmoe::optimized {

class Model {
 public:
  // Keeps references to `pool` and `device`, on which it computes. Allocates
  // what a group of `group_sequences` sequences needs; a smaller group is fine.
  // `recompute` changes no bit.
  //
  //   communicator  of the ranks that will train it; nullptr if they are not
  //                 several
  // Errors   as Device::MakeModel.
  Model(const Config& config, int64_t group_sequences, ThreadPool& pool,
        Device& device = Cpu(), Recompute recompute = Recompute::kNone,
        Communicator* communicator = nullptr);

  const Config& config() const;
  const ParameterLayout& layout() const;

  // Copies of the parameters, in the order of layout(): all of them, and those
  // from `first` on. The originals live where the model computes. With a
  // communicator, all ranks call these, with the same values.
  std::vector<float> ReadParameters() const;
  void WriteParameters(std::span<const float> values, int64_t first = 0);

  // Draws the initial parameters of SPEC.md 3.2 (Philox stream kParameters).
  void InitializeParameters(uint64_t seed);

  // k_l, cutoff and cap of each layer for the current parameters.
  std::vector<LayerAllocation> Allocations(const RoutingState& routing) const;

  // Loss and statistics only.
  StepStats Forward(const Batch& batch, const RoutingState& routing);

  // Also overwrites `gradients` [layout().total] with the gradient of
  //   loss_sum * loss_scale + group_scale * sum_l (load balance + z loss).
  // For a step over G groups of N tokens in all: loss_scale = 1/N,
  // group_scale = 1/G.
  // Errors   NumericsError if a score or the loss is not finite: names layer,
  //          token and expert. `gradients` then mean nothing.
  StepStats ForwardBackward(const Batch& batch, const RoutingState& routing,
                            double loss_scale, double group_scale,
                            std::span<float> gradients);

  // The largest max_active soft weights of every token and layer, each divided
  // by k_l/num_experts, from a forward pass with tau = 0: what tau is
  // calibrated on. Soft routers only.
  std::vector<float> CollectSoftWeightRatios(const Batch& batch,
                                             const RoutingState& routing);

  // The loss of each token in the last pass, in nats [num_tokens]; valid until
  // the next one.
  std::span<const float> LastTokenLosses();

  // For each token of the last Forward, whether its target is the most likely
  // one, of equals the first: 1 or 0 [num_tokens]; valid until the next pass.
  std::span<const int32_t> LastTokensGreedy();

  // The routing of `layer` in the last pass; valid until the next one.
  RoutingView LastRouting(int64_t layer);

  // Bytes held for activations and parameters.
  int64_t MemoryBytes() const;

 private:
  friend class Updater;

  ThreadPool& pool_;  // of the host
  std::unique_ptr<ModelInterface> on_backend_;
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_MODEL_H_
