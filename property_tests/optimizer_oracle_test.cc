// SPDX-License-Identifier: Apache-2.0
//
// Schedules, AdamW and the initial parameters against
// golden/oracles/training.h5: mpmath, torch.optim.AdamW in double precision,
// and a Philox in plain integers (golden/oracles/README.md).
//
// The inputs are recorded exactly, so tolerances are the roundings of both
// sides' formulas, added up (reference/dual.h, Approximate).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/comparator.h"
#include "core/parallel_for.h"
#include "optimized/initialize.h"
#include "optimized/model.h"
#include "property_tests/testing/training_oracle.h"
#include "reference/adamw.h"
#include "reference/dual.h"
#include "reference/schedules.h"
#include "trainer/run/schedules.h"

namespace softmoe::property_tests {
namespace {

using reference::Approximate;
using reference::Vector;

// Both implementations take the cosine of an angle of at most pi that is 4
// roundings from the exact one, or of pi/2 and 5; the slope of half a cosine is
// at most 1/2, that of its square 1. With the 4 roundings around it and the
// scaling by at most `peak`, the bound is below 16 units; in the warm-up, 4.
double ScheduleBound(double value, double peak, bool warmup) {
  return kDoubleUnit * (warmup ? 4 * value : 16 * peak);
}
double LearningRateBound(const TrainingConfig& training, int64_t step) {
  const double warmup =
      training.warmup_fraction * static_cast<double>(training.steps);
  return ScheduleBound(reference::LearningRate(training, step),
                       training.learning_rate,
                       static_cast<double>(step) < warmup);
}

TEST(ScheduleOracle, BothImplementationsAgree) {
  const Hdf5Reader file = OpenTrainingOracle();
  const std::vector<std::string> names = file.Children("/schedules");
  EXPECT_EQ(names.size(), 5u);
  for (const std::string& name : names) {
    const std::string place = "/schedules/" + name;
    Config config;  // rates and temperatures are the defaults
    config.router.kind = RouterKind::kSoftLearned;
    config.training.steps = file.ReadInt(place, "steps");
    config.training.warmup_fraction = file.ReadDouble(place, "warmup_fraction");
    const TrainingConfig& training = config.training;
    const auto updates =
        file.ReadDataset<int64_t>(place + "/completed_updates").values;
    const auto rates =
        file.ReadDataset<double>(place + "/learning_rate").values;
    const auto temperatures =
        file.ReadDataset<double>(place + "/temperature").values;
    for (size_t i = 0; i < updates.size(); ++i) {
      const int64_t m = updates[i];
      const double bound = LearningRateBound(training, m);
      EXPECT_NEAR(reference::LearningRate(training, m), rates[i], bound)
          << name << " " << m;
      EXPECT_NEAR(trainer::LearningRate(training, m), rates[i], bound)
          << name << " " << m;
      const double heat_bound = ScheduleBound(0, 5, false);
      EXPECT_NEAR(reference::Temperature(config, m), temperatures[i],
                  heat_bound)
          << name << " " << m;
      EXPECT_NEAR(trainer::Temperature(config, m), temperatures[i], heat_bound)
          << name << " " << m;
    }
  }
}

TEST(InitializationOracle, ParametersAreTheSame) {
  const Hdf5Reader file = OpenTrainingOracle();
  const TrainedCase c(file, "soft_learned");
  const std::vector<double> expected =
      file.ReadDataset<double>("/initial_parameters").values;
  ASSERT_EQ(static_cast<int64_t>(expected.size()), c.layout.total);
  ThreadPool pool(2);
  const auto model =
      optimized::MakeModel(c.config, /*group_sequences=*/1, pool);
  optimized::InitializeParameters(
      *model, static_cast<uint64_t>(c.config.training.seed), pool);
  const std::vector<float> got = model->ReadParameters();
  std::vector<double> bounds;
  for (const double value : expected) {
    // Rounded to float once; before that, in double, at most 20 roundings and
    // functions of 1 ulp.
    bounds.push_back((kFloatUnit + 20 * kDoubleUnit) * std::abs(value));
  }
  const Comparison comparison =
      Compare(std::span<const float>(got), expected, bounds);
  EXPECT_TRUE(comparison.ok()) << comparison.Text();
}

// An updated element and its moments.
struct Updated {
  Approximate parameter, first_moment, second_moment;
};

// Ours is adamw.h, theirs torch.optim.AdamW: the formula is the same, but the
// roundings differ.
Updated Update(bool ours, const TrainingConfig& training, double decay,
               Approximate rate, double t, Approximate g, double p, double m,
               double v) {
  const Approximate one = 1, beta1 = training.beta1, beta2 = training.beta2;
  const auto correction = [&](double beta) {
    return one - Approximate(std::pow(beta, t)).Rounded(2);
  };
  const Approximate correction1 = correction(training.beta1);
  const Approximate correction2 = correction(training.beta2);
  if (ours) {
    Updated to = {p, m, v};
    const reference::formula::AdamWStep<Approximate> step = {
        .clip = 1,
        .learning_rate = rate,
        .beta1 = beta1,
        .beta2 = beta2,
        .epsilon = training.adam_epsilon,
        .first_correction = correction1,
        .second_correction = correction2};
    step.Update(g, decay, &to.parameter, &to.first_moment, &to.second_moment);
    return to;
  }
  Updated to;
  to.first_moment = m + (one - beta1) * (g - m);
  to.second_moment = beta2 * v + (one - beta2) * g * g;
  const Approximate step =
      to.first_moment /
      (sqrt(to.second_moment) / sqrt(correction2) + training.adam_epsilon);
  to.parameter = p * (one - rate * decay) - rate / correction1 * step;
  return to;
}

class OptimizerOracle : public ::testing::TestWithParam<const char*> {};

TEST_P(OptimizerOracle, ReferenceAgrees) {
  const Hdf5Reader file = OpenTrainingOracle();
  const TrainedCase c(file, GetParam());
  const TrainingConfig& training = c.config.training;
  for (int64_t step = 0; step < training.steps; ++step) {
    const Vector gradient = c.Flat(step, "gradient");
    const Vector before = c.Flat(step, "parameters");
    const reference::AdamWState old_state = {
        c.Flat(step, "first_moment"), c.Flat(step, "second_moment"), step};
    reference::AdamWState state = old_state;
    Vector parameters = before;
    const double rate = reference::LearningRate(training, step);
    const double norm = reference::AdamWUpdate(training, c.layout, rate,
                                               gradient, &parameters, &state);
    EXPECT_EQ(state.completed_updates, step + 1);

    // A sum of squares, in any order.
    const Approximate exact_norm =
        Approximate(c.Scalar(step, "gradient_norm"))
            .Rounded(static_cast<double>(c.layout.total) / 2 + 2);
    EXPECT_NEAR(norm, exact_norm.value, 2 * exact_norm.error);
    const bool clips = training.clip_norm > 0 && norm > training.clip_norm;
    const Approximate scale =
        clips ? training.clip_norm / exact_norm : Approximate(1);
    std::vector<double> bounds[3];
    for (const ParameterTensor& tensor : c.layout.tensors) {
      const double decay = tensor.shape.size() > 1 ? training.weight_decay : 0;
      for (int64_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
        double error[3] = {0, 0, 0};
        for (const bool ours : {false, true}) {
          const Updated to = Update(
              ours, training, decay, {rate, LearningRateBound(training, step)},
              static_cast<double>(step) + 1, scale * gradient[i], before[i],
              old_state.first_moment[i], old_state.second_moment[i]);
          error[0] += to.parameter.error;
          error[1] += to.first_moment.error;
          error[2] += to.second_moment.error;
        }
        for (int part = 0; part < 3; ++part)
          bounds[part].push_back(error[part]);
      }
    }
    const auto expect = [&](const std::string& name, const Vector& got,
                            const std::vector<double>& bound) {
      const Comparison comparison = Compare(
          std::span<const double>(got.data(), static_cast<size_t>(got.size())),
          c.Values(step + 1, name), bound);
      EXPECT_TRUE(comparison.ok())
          << c.At(step) << " " << name << ": " << comparison.Text();
    };
    expect("parameters", parameters, bounds[0]);
    expect("first_moment", state.first_moment, bounds[1]);
    expect("second_moment", state.second_moment, bounds[2]);
    if (step == 0) {
      EXPECT_EQ(parameters, before) << "the first learning rate is 0";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Routers, OptimizerOracle,
                         ::testing::Values("sparse", "soft_fixed",
                                           "soft_learned"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace softmoe::property_tests
