// SPDX-License-Identifier: Apache-2.0
#include "optimized/optimizer.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "core/errors.h"
#include "core/profile.h"
#include "optimized/communicator/shards.h"
#include "optimized/step.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

double NormOf(double sum_of_squares, double clip_norm) {
  const double norm = std::sqrt(sum_of_squares);
  if (!std::isfinite(norm)) {
    ThrowDiverged("the norm of the gradient is " + std::to_string(norm));
  }
  const double clipped = clip_norm > 0 ? std::min(norm, clip_norm) : norm;
  if (clipped > kLargestNorm) {
    std::ostringstream what;
    what << "the norm of the gradient is " << norm;
    if (clipped < norm) what << ", after clipping " << clipped;
    what << ", and AdamW's second moment, a float, cannot hold the squares of "
         << "norms above " << kLargestNorm
         << "; set training.clip_norm to at most that";
    ThrowDiverged(what.str());
  }
  return norm;
}

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
  StartGradientNorm(gradient);
  Finish(queue_);
  return FinishGradientNorm();
}

void Optimizer::StartGradientNorm(std::span<const float> gradient) {
  SOFTMOE_CHECK(static_cast<int64_t>(gradient.size()) == total_)
      << gradient.size() << " gradients, expected " << total_;
  BeginOperation("norm of the gradient",
                 {.bytes = 4.0 * static_cast<double>(total_)});
  ops::SumOfSquares({.size = total_,
                     .x = gradient.data(),
                     .result = sum_of_squares_.data(),
                     .scratch = scratch_.data()},
                    queue_);
  fetched_sum_of_squares_.Start(queue_, sum_of_squares_.data(), 1);
}

double Optimizer::FinishGradientNorm() const {
  return NormOf(fetched_sum_of_squares_.view().front(), training_.clip_norm);
}

kernels::AdamWArgs Optimizer::Step(double learning_rate,
                                   int64_t completed_updates, double norm,
                                   const Run& run) const {
  const double scale = training_.clip_norm > 0 && norm > training_.clip_norm
                           ? training_.clip_norm / norm
                           : 1.0;
  const double t = static_cast<double>(completed_updates) + 1.0;
  return {
      .size = run.size,
      .learning_rate = static_cast<float>(learning_rate),
      .beta1 = static_cast<float>(training_.beta1),
      .beta2 = static_cast<float>(training_.beta2),
      .epsilon = static_cast<float>(training_.adam_epsilon),
      .weight_decay =
          static_cast<float>(run.weight_decay ? training_.weight_decay : 0.0),
      .bias1 = static_cast<float>(1.0 / (1.0 - std::pow(training_.beta1, t))),
      .bias2 = static_cast<float>(1.0 / (1.0 - std::pow(training_.beta2, t))),
      .gradient_scale = static_cast<float>(scale),
      .gradient = nullptr,
      .parameter = nullptr,
      .first_moment = nullptr,
      .second_moment = nullptr};
}

void Optimizer::Update(double learning_rate, int64_t completed_updates,
                       double norm, std::span<const float> gradient,
                       std::span<float> parameters, int64_t first) {
  const auto size = static_cast<int64_t>(parameters.size());
  SOFTMOE_CHECK(gradient.size() == parameters.size() && first >= 0 &&
                size <= total_ - first)
      << gradient.size() << " gradients, " << size << " parameters from "
      << first << " on, of " << total_;
  BeginOperation("AdamW", {.bytes = 28.0 * static_cast<double>(size)});
  for (const Run& run : runs_) {
    const Shard both =
        Overlap({run.offset, run.offset + run.size}, {first, first + size});
    if (both.size() == 0) continue;
    kernels::AdamWArgs args = Step(learning_rate, completed_updates, norm, run);
    args.size = both.size();
    args.gradient = gradient.data() + (both.begin - first);
    args.parameter = parameters.data() + (both.begin - first);
    args.first_moment = first_moment_.data() + both.begin;
    args.second_moment = second_moment_.data() + both.begin;
    ops::AdamW(args, queue_);
  }
}

void Optimizer::UpdateOnHost(double learning_rate, int64_t completed_updates,
                             double norm, int64_t offset,
                             const HostTensor& tensor) {
  const auto run = std::ranges::find_if(runs_, [&](const Run& r) {
    return offset >= r.offset && offset < r.offset + r.size;
  });
  SOFTMOE_CHECK(run != runs_.end()) << "no tensor at " << offset;
  kernels::AdamWArgs args = Step(learning_rate, completed_updates, norm, *run);
  args.size = static_cast<int64_t>(tensor.parameters.size());
  args.gradient = tensor.gradient.data();
  args.parameter = tensor.parameters.data();
  args.first_moment = tensor.first_moment.data();
  args.second_moment = tensor.second_moment.data();
  kernels::AdamW(args, host_);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
