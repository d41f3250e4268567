// SPDX-License-Identifier: Apache-2.0
#include "optimized/model.h"

#include "optimized/initialize.h"

namespace softmoe::optimized {

Model::Model(const Config& config, int64_t group_sequences, ThreadPool& pool,
             Device& device, Recompute recompute, Communicator* communicator)
    : pool_(pool),
      on_backend_(device.MakeModel(config, group_sequences, pool, recompute,
                                   communicator)) {}

const Config& Model::config() const { return on_backend_->config(); }

const ParameterLayout& Model::layout() const { return on_backend_->layout(); }

std::vector<float> Model::ReadParameters() const {
  return on_backend_->ReadParameters();
}

void Model::WriteParameters(std::span<const float> values, int64_t first) {
  on_backend_->WriteParameters(values, first);
}

void Model::InitializeParameters(uint64_t seed) {
  for (size_t i = 0; i < layout().tensors.size(); ++i) {
    const ParameterTensor& tensor = layout().tensors[i];
    std::vector<float> values(static_cast<size_t>(tensor.size));
    InitializeTensor(config(), layout(), i, seed, values, pool_);
    WriteParameters(values, tensor.offset);
  }
}

std::vector<LayerAllocation> Model::Allocations(
    const RoutingState& routing) const {
  return on_backend_->Allocations(routing);
}

StepStats Model::Forward(const Batch& batch, const RoutingState& routing) {
  return on_backend_->Forward(batch, routing);
}

StepStats Model::ForwardBackward(const Batch& batch,
                                 const RoutingState& routing, double loss_scale,
                                 double group_scale,
                                 std::span<float> gradients) {
  return on_backend_->ForwardBackward(batch, routing, loss_scale, group_scale,
                                      gradients);
}

std::vector<float> Model::CollectSoftWeightRatios(const Batch& batch,
                                                  const RoutingState& routing) {
  return on_backend_->CollectSoftWeightRatios(batch, routing);
}

std::span<const float> Model::LastTokenLosses() {
  return on_backend_->LastTokenLosses();
}

std::span<const int32_t> Model::LastTokensGreedy() {
  return on_backend_->LastTokensGreedy();
}

RoutingView Model::LastRouting(int64_t layer) {
  return on_backend_->LastRouting(layer);
}

int64_t Model::MemoryBytes() const { return on_backend_->MemoryBytes(); }

}  // namespace softmoe::optimized
