// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/adamw_body.h"
#include "optimized/optimizer.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/operations/adamw_case.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

namespace body = kernels::SOFTMOE_ISA;
using Floats = std::vector<float>;

// The numbers that a driver of the kernel passes for update s of `update`,
// whose gradient has this sum of squares.
struct Step {
  double bias1, bias2, gradient_scale;

  Step(const AdamWCase& update, int64_t s, double sum_of_squares) {
    const TrainingConfig& training = update.training;
    const double t = static_cast<double>(update.completed + s) + 1;
    const double norm = std::sqrt(sum_of_squares);
    const bool clipped = training.clip_norm > 0 && norm > training.clip_norm;
    bias1 = 1 / (1 - std::pow(training.beta1, t));
    bias2 = 1 / (1 - std::pow(training.beta2, t));
    gradient_scale = clipped ? training.clip_norm / norm : 1;
  }
};

}  // namespace

// Runs the kernel of one update, wherever it is. The part of the host is done
// here, as a driver of a device would do it, except for the norm.
TensorMap RunAdamW(const Case& c, const TensorMap& inputs,
                   const RowKernels& run) {
  const AdamWCase update(c, inputs);
  const int64_t size = update.layout.total, steps = c.Size("steps");
  const TrainingConfig& training = update.training;
  const std::vector<float> gradients = ToFloats(At(inputs, "gradient"));
  Guarded<float> parameter("parameter", ToFloats(At(inputs, "parameter")));
  Guarded<float> first("first_moment", ToFloats(At(inputs, "first_moment")));
  Guarded<float> second("second_moment", ToFloats(At(inputs, "second_moment")));
  for (int64_t s = 0; s < steps; ++s) {
    const float* gradient = gradients.data() + s * size;
    double squares = 0;
    for (int64_t i = 0; i < size; ++i) {
      squares += static_cast<double>(gradient[i]) * gradient[i];
    }
    const Step step(update, s, squares);
    for (const ParameterTensor& tensor : update.layout.tensors) {
      run.adamw({.size = tensor.size,
                 .learning_rate =
                     static_cast<float>(ScalarOf(inputs, "learning_rate")),
                 .beta1 = static_cast<float>(training.beta1),
                 .beta2 = static_cast<float>(training.beta2),
                 .epsilon = static_cast<float>(training.adam_epsilon),
                 .weight_decay = static_cast<float>(
                     tensor.weight_decay ? training.weight_decay : 0),
                 .bias1 = static_cast<float>(step.bias1),
                 .bias2 = static_cast<float>(step.bias2),
                 .gradient_scale = static_cast<float>(step.gradient_scale),
                 .gradient = gradient + tensor.offset,
                 .parameter = parameter.data() + tensor.offset,
                 .first_moment = first.data() + tensor.offset,
                 .second_moment = second.data() + tensor.offset});
    }
  }
  return {{"parameter", parameter.TakeTensor(Dtype::kF32, {size})},
          {"first_moment", first.TakeTensor(Dtype::kF32, {size})},
          {"second_moment", second.TakeTensor(Dtype::kF32, {size})}};
}

// Runs the optimizer itself.
TensorMap RunAdamWOnCpu(const Case& c, const TensorMap& inputs,
                        ThreadPool& pool) {
  const AdamWCase update(c, inputs);
  const int64_t size = update.layout.total, steps = c.Size("steps");
  optimized::Optimizer optimizer(update.training, update.layout, pool);
  const Floats m = ToFloats(At(inputs, "first_moment"));
  const Floats v = ToFloats(At(inputs, "second_moment"));
  std::ranges::copy(m, optimizer.first_moment().begin());
  std::ranges::copy(v, optimizer.second_moment().begin());
  const Floats gradients = ToFloats(At(inputs, "gradient"));
  Guarded<float> parameter("parameter", ToFloats(At(inputs, "parameter")));
  Tensor norm(Dtype::kF64, {steps});
  for (int64_t s = 0; s < steps; ++s) {
    const auto gradient = std::span(gradients).subspan(s * size, size);
    norm.values[s] = optimizer.GradientNorm(gradient);
    optimizer.Update(ScalarOf(inputs, "learning_rate"), update.completed + s,
                     norm.values[s], gradient,
                     {parameter.data(), static_cast<size_t>(size)});
  }
  const auto moment = [&](std::span<const float> x) {
    return FromVector(Dtype::kF32, {size}, Floats(x.begin(), x.end()));
  };
  return {{"parameter", parameter.TakeTensor(Dtype::kF32, {size})},
          {"first_moment", moment(optimizer.first_moment())},
          {"second_moment", moment(optimizer.second_moment())},
          {"norm", norm}};
}

TensorMap RunAdamWAtDouble(const Case& c, const TensorMap& inputs) {
  const AdamWCase update(c, inputs);
  const TrainingConfig& training = update.training;
  const int64_t size = update.layout.total;
  Tensor parameter = At(inputs, "parameter");
  Tensor first = At(inputs, "first_moment");
  Tensor second = At(inputs, "second_moment");
  for (int64_t s = 0; s < c.Size("steps"); ++s) {
    const std::span gradient =
        std::span(At(inputs, "gradient").values).subspan(s * size, size);
    double squares = 0;
    for (const double x : gradient) squares += x * x;
    const Step step(update, s, squares);
    for (const ParameterTensor& tensor : update.layout.tensors) {
      const body::AdamWConstants<double> constants = {
          ScalarOf(inputs, "learning_rate"),
          training.beta1,
          training.beta2,
          training.adam_epsilon,
          tensor.weight_decay ? training.weight_decay : 0,
          step.bias1,
          step.bias2,
          step.gradient_scale};
      for (int64_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
        body::AdamWUpdate(constants, gradient[i], parameter.values[i],
                          first.values[i], second.values[i]);
      }
    }
  }
  return {{"parameter", parameter},
          {"first_moment", first},
          {"second_moment", second}};
}

}  // namespace softmoe::verify
