// SPDX-License-Identifier: Apache-2.0
#include "optimized/optimizer.h"

#include <cmath>
#include <string>

#include "core/errors.h"
#include "core/profile.h"
#include "kernels/adamw.h"
#include "optimized/diverged.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

Optimizer::Optimizer(const TrainingConfig& training,
                     const ParameterLayout& layout, Queue& queue)
    : training_(training),
      queue_(queue),
      total_(layout.total),
      first_moment_(layout.total),
      second_moment_(layout.total),
      sum_of_squares_(1),
      scratch_(kernels::SumOfSquaresScratch(layout.total)) {
  for (const ParameterTensor& tensor : layout.tensors) {
    if (!runs_.empty() && runs_.back().weight_decay == tensor.weight_decay) {
      runs_.back().size += tensor.size;
    } else {
      runs_.push_back({tensor.offset, tensor.size, tensor.weight_decay});
    }
  }
  ClearArray(queue, total_, first_moment_.data());
  ClearArray(queue, total_, second_moment_.data());
}

double Optimizer::GradientNorm(std::span<const float> gradient) {
  SOFTMOE_CHECK(static_cast<int64_t>(gradient.size()) == total_)
      << gradient.size() << " gradients, expected " << total_;
  BeginOperation("norm of the gradient",
                 {.bytes = 4.0 * static_cast<double>(total_)});
  ops::SumOfSquares({.size = total_,
                     .x = gradient.data(),
                     .result = sum_of_squares_.data(),
                     .scratch = scratch_.data()},
                    queue_);
  double sum_of_squares = 0;
  ReadArray<double>(queue_, sum_of_squares_.data(), {&sum_of_squares, 1});
  const double norm = std::sqrt(sum_of_squares);
  if (!std::isfinite(norm)) {
    ThrowDiverged("the norm of the gradient is " + std::to_string(norm));
  }
  return norm;
}

void Optimizer::Update(double learning_rate, int64_t completed_updates,
                       double norm, std::span<const float> gradient,
                       std::span<float> parameters) {
  SOFTMOE_CHECK(static_cast<int64_t>(gradient.size()) == total_ &&
                static_cast<int64_t>(parameters.size()) == total_)
      << gradient.size() << " gradients, " << parameters.size()
      << " parameters, expected " << total_;
  const double scale = training_.clip_norm > 0 && norm > training_.clip_norm
                           ? training_.clip_norm / norm
                           : 1.0;
  const double t = static_cast<double>(completed_updates) + 1.0;
  BeginOperation("AdamW", {.bytes = 28.0 * static_cast<double>(total_)});
  for (const Run& run : runs_) {
    ops::AdamW(
        {.size = run.size,
         .learning_rate = static_cast<float>(learning_rate),
         .beta1 = static_cast<float>(training_.beta1),
         .beta2 = static_cast<float>(training_.beta2),
         .epsilon = static_cast<float>(training_.adam_epsilon),
         .weight_decay = static_cast<float>(
             run.weight_decay ? training_.weight_decay : 0.0),
         .bias1 =
             static_cast<float>(1.0 / (1.0 - std::pow(training_.beta1, t))),
         .bias2 =
             static_cast<float>(1.0 / (1.0 - std::pow(training_.beta2, t))),
         .gradient_scale = static_cast<float>(scale),
         .gradient = gradient.data() + run.offset,
         .parameter = parameters.data() + run.offset,
         .first_moment = first_moment_.data() + run.offset,
         .second_moment = second_moment_.data() + run.offset},
        queue_);
  }
}

int64_t Optimizer::MemoryBytes() const {
  return first_moment_.bytes() + second_moment_.bytes() + scratch_.bytes();
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
