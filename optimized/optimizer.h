// SPDX-License-Identifier: Apache-2.0
//
// optimizer.h - AdamW with clipping by the global norm (SPEC.md 4).
//
//   g = gradient * min(1, clip_norm / ||gradient||)
//   m = beta1 m + (1 - beta1) g;   v = beta2 v + (1 - beta2) g^2
//   p -= lr * (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + adam_epsilon)
//              + weight_decay * p)
// with t = completed updates + 1, and no weight decay on 1-D tensors. All
// constants are rounded to float, beta before 1 - beta is taken, but powers and
// corrections use beta in double: kBeta (config_fields.h) says how far off that
// can be.
#ifndef SOFTMOE_OPTIMIZED_OPTIMIZER_H_
#define SOFTMOE_OPTIMIZED_OPTIMIZER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "core/parallel_for.h"
#include "kernels/adamw.h"
#include "optimized/backend.h"
#include "optimized/buffer.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

// The largest norm, after clipping, of a gradient that AdamW takes. No element
// is larger than the norm, and v and v / (1 - beta2^t) are averages of squares
// of elements, up to roundings: at most 1e38, where floats end at 3.4e38. An
// infinite v would stay so, and its parameter would never move again.
inline constexpr double kLargestNorm = 1e19;

// The norm of a gradient, before clipping.
//
//   clip_norm  training.clip_norm: 0 does not clip
// Errors   DivergedError if it is not finite, or above kLargestNorm after
//          clipping.
double NormOf(double sum_of_squares, double clip_norm);

class Optimizer {
 public:
  // Keeps a reference to `queue`. The moments start at zero.
  Optimizer(const TrainingConfig& training, const ParameterLayout& layout,
            Queue& queue);

  // ||gradient||, summed in double in an order that does not depend on threads.
  //
  //   gradient           [layout.total]
  // Errors   as NormOf.
  double GradientNorm(std::span<const float> gradient);

  // GradientNorm in two halves: the norm is known once the host has waited.
  void StartGradientNorm(std::span<const float> gradient);
  double FinishGradientNorm() const;

  // Updates `parameters` and the moments: the part of the layout that begins at
  // `first` and is as long as `parameters`.
  //
  //   learning_rate      >= 0
  //   completed_updates  >= 0; the first update has 0
  //   norm               of the whole gradient, from NormOf
  //   gradient           [n], n <= layout.total - first
  //   parameters         [n]
  void Update(double learning_rate, int64_t completed_updates, double norm,
              std::span<const float> gradient, std::span<float> parameters,
              int64_t first = 0);

  // Updates the host's copy of the tensor at `offset`, and of its moments, to
  // the same bits. All arrays are in host memory and have the tensor's size.
  struct HostTensor {
    std::span<const float> gradient;
    std::span<float> parameters, first_moment, second_moment;
  };
  void UpdateOnHost(double learning_rate, int64_t completed_updates,
                    double norm, int64_t offset, const HostTensor& tensor);

  // The moments [layout.total].
  std::span<float> first_moment() { return first_moment_.span(); }
  std::span<float> second_moment() { return second_moment_.span(); }
  std::span<const float> first_moment() const { return first_moment_.span(); }
  std::span<const float> second_moment() const { return second_moment_.span(); }

 private:
  // Neighbouring tensors that are treated alike.
  struct Run {
    int64_t offset, size;
    bool weight_decay;
  };

  // The arguments of an update, without its arrays.
  kernels::AdamWArgs Step(double learning_rate, int64_t completed_updates,
                          double norm, const Run& run) const;

  TrainingConfig training_;
  Queue& queue_;
  std::vector<Run> runs_;
  int64_t total_;
  Buffer<float> first_moment_, second_moment_;
  Buffer<double> sum_of_squares_;  // [1]
  Buffer<double> scratch_;
  FetchedArray<double> fetched_sum_of_squares_;
  ThreadPool host_{1};  // for UpdateOnHost
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_OPTIMIZER_H_
