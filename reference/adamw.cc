// SPDX-License-Identifier: Apache-2.0
#include "reference/adamw.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/errors.h"

namespace softmoe::reference {
namespace {

// Throws NumericsError naming the tensor of the first element that is not
// finite.
void CheckFinite(const ParameterLayout& layout, const Vector& gradients) {
  for (const ParameterTensor& tensor : layout.tensors) {
    for (int64_t i = 0; i < tensor.size; ++i) {
      const double gradient = gradients[tensor.offset + i];
      if (!std::isfinite(gradient)) {
        throw NumericsError(fmt::format(
            "the gradient of {} is {:g} at element {}; lower the learning "
            "rate, or look for the layer that diverged first",
            tensor.name, gradient, i));
      }
    }
  }
}

}  // namespace

AdamWState InitialAdamWState(const ParameterLayout& layout) {
  return {.first_moment = Vector::Zero(layout.total),
          .second_moment = Vector::Zero(layout.total)};
}

double GlobalNorm(const Vector& gradients) {
  double squares = 0;
  for (const double gradient : gradients) squares += gradient * gradient;
  if (!std::isfinite(squares)) {
    throw NumericsError(
        "the norm of the gradient overflows; lower the learning rate");
  }
  return std::sqrt(squares);
}

double ClipFactor(double norm, double clip_norm) {
  if (clip_norm == 0 || norm == 0) return 1;
  return std::min(1.0, clip_norm / norm);
}

double AdamWUpdate(const TrainingConfig& training,
                   const ParameterLayout& layout, double learning_rate,
                   const Vector& gradients, Vector* parameters,
                   AdamWState* state) {
  SOFTMOE_CHECK(gradients.size() == layout.total &&
                parameters->size() == layout.total &&
                state->first_moment.size() == layout.total &&
                state->second_moment.size() == layout.total)
      << "the layout has " << layout.total << " parameters";
  CheckFinite(layout, gradients);
  const double norm = GlobalNorm(gradients);
  const double t = static_cast<double>(state->completed_updates + 1);
  const formula::AdamWStep<double> step = {
      .clip = ClipFactor(norm, training.clip_norm),
      .learning_rate = learning_rate,
      .beta1 = training.beta1,
      .beta2 = training.beta2,
      .epsilon = training.adam_epsilon,
      .first_correction = formula::Correction(training.beta1, t),
      .second_correction = formula::Correction(training.beta2, t)};
  for (const ParameterTensor& tensor : layout.tensors) {
    const double decay = tensor.weight_decay ? training.weight_decay : 0;
    for (int64_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
      step.Update(gradients[i], decay, &(*parameters)[i],
                  &state->first_moment[i], &state->second_moment[i]);
    }
  }
  ++state->completed_updates;
  return norm;
}

}  // namespace softmoe::reference
