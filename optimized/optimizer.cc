// SPDX-License-Identifier: Apache-2.0
#include "optimized/optimizer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/errors.h"
#include "core/profile.h"
#include "kernels/adamw.h"
#include "optimized/diverged.h"

namespace softmoe::optimized {

Optimizer::Optimizer(const TrainingConfig& training,
                     const ParameterLayout& layout, ThreadPool& pool)
    : training_(training),
      pool_(pool),
      total_(layout.total),
      first_moment_(layout.total),
      second_moment_(layout.total),
      scratch_(kernels::SumOfSquaresScratch(layout.total)) {
  for (const ParameterTensor& tensor : layout.tensors) {
    if (!runs_.empty() && runs_.back().weight_decay == tensor.weight_decay) {
      runs_.back().size += tensor.size;
    } else {
      runs_.push_back({tensor.offset, tensor.size, tensor.weight_decay});
    }
  }
  std::ranges::fill(first_moment_.span(), 0.0f);
  std::ranges::fill(second_moment_.span(), 0.0f);
}

double Optimizer::GradientNorm(std::span<const float> gradient) {
  SOFTMOE_CHECK(static_cast<int64_t>(gradient.size()) == total_)
      << gradient.size() << " gradients, expected " << total_;
  BeginOperation("norm of the gradient",
                 {.bytes = 4.0 * static_cast<double>(total_)});
  double sum_of_squares = 0;
  kernels::SumOfSquares({.size = total_,
                         .x = gradient.data(),
                         .result = &sum_of_squares,
                         .scratch = scratch_.data()},
                        pool_);
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
    kernels::AdamW(
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
        pool_);
  }
}

int64_t Optimizer::MemoryBytes() const {
  return first_moment_.bytes() + second_moment_.bytes() + scratch_.bytes();
}

}  // namespace softmoe::optimized
