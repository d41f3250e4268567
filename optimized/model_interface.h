// SPDX-License-Identifier: Apache-2.0
//
// model_interface.h - what a model and its updater do, on whichever backend.
// model.h and updater.h, which hold one of these each, say what every function
// means.
#ifndef SOFTMOE_OPTIMIZED_MODEL_INTERFACE_H_
#define SOFTMOE_OPTIMIZED_MODEL_INTERFACE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "core/parallel_for.h"
#include "optimized/allocation.h"
#include "optimized/step.h"

namespace softmoe::optimized {

// What carries arrays as large as the parameters from rank to rank (carrier.h).
// It changes no bit.
enum class CarrierKind {
  kHost,  // the communicator, through memory of the host
  kNccl,  // from device to device, where each rank has one of its own
};

class Communicator;

class UpdaterInterface {
 public:
  virtual ~UpdaterInterface() = default;

  virtual UpdateGradient ComputeGradient(const RoutingState& routing,
                                         const GroupBatch& batch) = 0;
  virtual void Apply(double learning_rate, int64_t completed_updates) = 0;
  virtual std::vector<float> ReadGradient() const = 0;
  virtual std::vector<float> ReadFirstMoment() const = 0;
  virtual std::vector<float> ReadSecondMoment() const = 0;
  virtual void WriteMoments(std::span<const float> first,
                            std::span<const float> second) = 0;
  virtual int64_t num_groups() const = 0;
};

class ModelInterface {
 public:
  virtual ~ModelInterface() = default;

  virtual const Config& config() const = 0;
  virtual const ParameterLayout& layout() const = 0;
  virtual std::vector<float> ReadParameters() const = 0;
  virtual void WriteParameters(std::span<const float> values,
                               int64_t first) = 0;
  virtual std::vector<LayerAllocation> Allocations(
      const RoutingState& routing) const = 0;
  virtual StepStats Forward(const Batch& batch,
                            const RoutingState& routing) = 0;
  virtual StepStats ForwardBackward(const Batch& batch,
                                    const RoutingState& routing,
                                    double loss_scale, double group_scale,
                                    std::span<float> gradients) = 0;
  virtual std::vector<float> CollectSoftWeightRatios(
      const Batch& batch, const RoutingState& routing) = 0;
  virtual std::span<const float> LastTokenLosses() = 0;
  virtual std::span<const int32_t> LastTokensGreedy() = 0;
  virtual RoutingView LastRouting(int64_t layer) = 0;
  virtual int64_t MemoryBytes() const = 0;
  // Keeps a reference to this model.
  virtual std::unique_ptr<UpdaterInterface> MakeUpdater() = 0;
  // The updater of one of several ranks (ranked_updater.h). Also keeps one to
  // `communicator`, with which the model was made.
  virtual std::unique_ptr<UpdaterInterface> MakeUpdater(
      Communicator& communicator, CarrierKind carrier) = 0;
};

inline namespace backend_cpu {
// Keeps references to `pool` and `communicator` (device.h).
std::unique_ptr<ModelInterface> MakeModel(
    const Config& config, int64_t group_sequences, ThreadPool& pool,
    Recompute recompute = Recompute::kNone,
    Communicator* communicator = nullptr);
}  // namespace backend_cpu

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_MODEL_INTERFACE_H_
