// SPDX-License-Identifier: Apache-2.0
#include "optimized/updater.h"

namespace softmoe::optimized {

Updater::Updater(Model& model)
    : on_backend_(model.on_backend_->MakeUpdater()) {}

Updater::Updater(Model& model, Communicator& communicator, CarrierKind carrier)
    : on_backend_(model.on_backend_->MakeUpdater(communicator, carrier)) {}

UpdateGradient Updater::ComputeGradient(const RoutingState& routing,
                                        const GroupBatch& batch) {
  return on_backend_->ComputeGradient(routing, batch);
}

void Updater::Apply(double learning_rate, int64_t completed_updates) {
  on_backend_->Apply(learning_rate, completed_updates);
}

std::vector<float> Updater::ReadGradient() const {
  return on_backend_->ReadGradient();
}

std::vector<float> Updater::ReadFirstMoment() const {
  return on_backend_->ReadFirstMoment();
}

std::vector<float> Updater::ReadSecondMoment() const {
  return on_backend_->ReadSecondMoment();
}

void Updater::WriteMoments(std::span<const float> first,
                           std::span<const float> second) {
  on_backend_->WriteMoments(first, second);
}

int64_t Updater::num_groups() const { return on_backend_->num_groups(); }

}  // namespace softmoe::optimized
