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
#include "optimized/step.h"
#include "optimized/updater.h"

namespace softmoe::optimized {

class Model {
 public:
  virtual ~Model() = default;

  virtual const Config& config() const = 0;
  virtual const ParameterLayout& layout() const = 0;

  // Read a copy of all parameters, and write those from `first` on, in the
  // order of layout(). The originals live where the model computes. With a
  // communicator, all ranks must call these, with the same values.
  virtual std::vector<float> ReadParameters() const = 0;
  virtual void WriteParameters(std::span<const float> values,
                               int64_t first) = 0;

  // k_l, cutoff and cap of each layer for the current parameters.
  virtual std::vector<LayerAllocation> Allocations(
      const RoutingState& routing) const = 0;

  // Takes the memory that a pass with the current parameters needs; otherwise
  // the next pass does. The results of the last one are lost.
  // Errors   EnvironmentError if there is too little; parameters stay readable.
  virtual void Reserve() = 0;

  // Loss and statistics only.
  virtual StepStats Forward(const Batch& batch,
                            const RoutingState& routing) = 0;

  // Also overwrites `gradients` [layout().total] with the gradient of
  //   loss_sum * loss_scale + group_scale * sum_l (load balance + z loss).
  // For a step over G groups of N tokens in all: loss_scale = 1/N,
  // group_scale = 1/G.
  // Errors   DivergedError if a score or the loss is not finite: names layer,
  //          token and expert. `gradients` then mean nothing.
  virtual StepStats ForwardBackward(const Batch& batch,
                                    const RoutingState& routing,
                                    double loss_scale, double group_scale,
                                    std::span<float> gradients) = 0;

  // The largest max_active soft weights of every token and layer, each divided
  // by k_l/num_experts, from a forward pass with tau = 0: what tau is
  // calibrated on. Soft routers only.
  virtual std::vector<float> CollectSoftWeightRatios(
      const Batch& batch, const RoutingState& routing) = 0;

  // The loss of each token in the last pass, in nats [num_tokens]; valid until
  // the next one.
  virtual std::span<const float> LastTokenLosses() = 0;

  // For each token of the last Forward, 1 if its target is the most likely
  // token, the first of equals, else 0 [num_tokens]; valid until the next pass.
  virtual std::span<const int32_t> LastTokensGreedy() = 0;

  // The routing of `layer` in the last pass; valid until the next one.
  virtual RoutingView LastRouting(int64_t layer) = 0;

  // Bytes held for activations and parameters.
  virtual int64_t MemoryBytes() const = 0;

  // Keeps a reference to this model. The moments start at zero.
  virtual std::unique_ptr<Updater> MakeUpdater() = 0;
  // Does the same for several ranks, each with its own model made with
  // `communicator`; all hold the same parameters. All ranks must call every
  // function (ranked_updater.h). Also keeps a reference to `communicator`.
  //
  //   carrier  the same on all ranks; NCCL is for models on devices, where each
  //            rank has one of its own
  // Errors     ConfigError if the groups do not divide among the ranks;
  //            EnvironmentError if there is too little memory, or NCCL fails.
  virtual std::unique_ptr<Updater> MakeUpdater(Communicator& communicator,
                                               CarrierKind carrier) = 0;
};

// Returns a model that computes on `device`, and keeps references to it, `pool`
// and `communicator`. It has memory for a group of `group_sequences` sequences;
// a smaller group is fine. `recompute` changes no bit.
//
//   communicator  of the ranks that will train it; nullptr if there are not
//                 several
// Errors   as Device::MakeModel.
inline std::unique_ptr<Model> MakeModel(const Config& config,
                                        int64_t group_sequences,
                                        ThreadPool& pool,
                                        Device& device = Cpu(),
                                        Recompute recompute = Recompute::kNone,
                                        Communicator* communicator = nullptr) {
  return device.MakeModel(config, group_sequences, pool, recompute,
                          communicator);
}

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_MODEL_H_
