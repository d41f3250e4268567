// SPDX-License-Identifier: Apache-2.0
//
// One optimizer update from the reference's state ("teacher-forced": never
// parameters after several free steps), with clipping, weight decay and bias
// correction, after any number of updates.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "core/config/parameter_layout.h"
#include "kernels/adamw.h"
#include "optimized/optimizer.h"
#include "property_tests/error_bounds.h"
#include "property_tests/testing/kernel_case.h"
#include "property_tests/testing/simulated_case.h"
#include "reference/adamw.h"

namespace softmoe::property_tests {
namespace {

Config OptimizerConfig() {
  Config config;
  config.model = {.num_layers = 2,
                  .d_model = 6,
                  .num_heads = 1,
                  .d_ffn = 5,
                  .num_experts = 3,
                  .vocab_size = 17,
                  .sequence_length = 4};
  config.router.kind = RouterKind::kSoftLearned;
  return config;
}

struct UpdateBounds {
  std::vector<Bounded> parameter, first_moment, second_moment;
};

RC_GTEST_PROP(OptimizerDifference, OneUpdateIsWithinItsBounds, ()) {
  Config config = OptimizerConfig();
  TrainingConfig& training = config.training;
  training.clip_norm = *rc::gen::element(0.0, 0.5, 1e6);
  training.weight_decay = *rc::gen::element(0.0, 0.01, 0.3);
  const ParameterLayout layout(config);
  const int64_t size = layout.total;
  const uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  const double gradient_size = *rc::gen::element(1e-8, 1e-3, 1.0, 1e3);
  const int64_t completed = *rc::gen::element<int64_t>(0, 1, 7, 1000, 163999);
  const double learning_rate = *rc::gen::element(0.0, 1e-5, 1e-3);
  const Floats gradient = NormalFloats(size, seed, 1, gradient_size);
  const Floats p = NormalFloats(size, seed, 2);
  const Floats m = NormalFloats(size, seed, 3, gradient_size);
  Floats v = NormalFloats(size, seed, 4, gradient_size);
  for (float& x : v) x *= x;

  const auto levels = RunAtEveryLevel([&](ThreadPool& pool) {
    optimized::Optimizer optimizer(training, layout, pool);
    std::ranges::copy(m, optimizer.first_moment().begin());
    std::ranges::copy(v, optimizer.second_moment().begin());
    Floats parameters = p;
    optimizer.Update(learning_rate, completed, optimizer.GradientNorm(gradient),
                     gradient, parameters);
    const auto first = optimizer.first_moment();
    const auto second = optimizer.second_moment();
    return std::vector<Floats>{parameters, Floats(first.begin(), first.end()),
                               Floats(second.begin(), second.end())};
  });

  reference::AdamWState state = {AsVector(m), AsVector(v), completed};
  reference::Vector parameters = AsVector(p);
  const double norm = reference::AdamWUpdate(
      training, layout, learning_rate, AsVector(gradient), &parameters, &state);

  // Every constant of the formula is rounded to float once.
  const double t = static_cast<double>(completed) + 1;
  const auto rounded = [](double x) { return Bounded(x).Rounded(); };
  using reference::formula::Correction;
  const reference::formula::AdamWStep<Bounded> step = {
      .clip = rounded(reference::ClipFactor(norm, training.clip_norm)),
      .learning_rate = rounded(learning_rate),
      .beta1 = rounded(training.beta1),
      .beta2 = rounded(training.beta2),
      .epsilon = rounded(training.adam_epsilon),
      .first_correction = rounded(Correction(training.beta1, t)),
      .second_correction = rounded(Correction(training.beta2, t))};
  UpdateBounds bounds;
  for (const ParameterTensor& tensor : layout.tensors) {
    const Bounded decay =
        rounded(tensor.weight_decay ? training.weight_decay : 0.0);
    for (int64_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
      Bounded parameter = p[i], first = m[i], second = v[i];
      step.Update(gradient[i], decay, &parameter, &first, &second);
      bounds.parameter.push_back(parameter);
      bounds.first_moment.push_back(first);
      bounds.second_moment.push_back(second);
    }
  }
  const auto span = [](const reference::Vector& x) {
    return std::span<const double>(x.data(), static_cast<size_t>(x.size()));
  };
  for (const auto& got : levels) {
    RC_ASSERT(Mismatch("parameter", got[0], span(parameters),
                       bounds.parameter) == "");
    RC_ASSERT(Mismatch("first moment", got[1], span(state.first_moment),
                       bounds.first_moment) == "");
    RC_ASSERT(Mismatch("second moment", got[2], span(state.second_moment),
                       bounds.second_moment) == "");
  }
}

// Hence the bounds above hold for it, too.
RC_GTEST_PROP(OptimizerDifference, CudaKernelGivesTheBitsOfTheCpu, ()) {
  const int64_t size = *rc::gen::inRange<int64_t>(1, 700);
  const uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  const double gradient_size = *rc::gen::element(1e-30, 1e-8, 1.0, 1e3);
  const Floats gradient = NormalFloats(size, seed, 1, gradient_size);
  const Floats p = NormalFloats(size, seed, 2);
  const Floats m = NormalFloats(size, seed, 3, gradient_size);
  Floats v = NormalFloats(size, seed, 4, gradient_size);
  for (float& x : v) x *= x;
  ExpectTheBitsOfTheCpu(
      kernels::AdamW, SimulatedKernels().adamw, [&](const auto& update) {
        Floats parameter = p, first = m, second = v;
        update({size, 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 10.0f, 20.0f, 0.7f,
                gradient.data(), parameter.data(), first.data(),
                second.data()});
        return std::vector<Floats>{parameter, first, second};
      });
}

}  // namespace
}  // namespace softmoe::property_tests
