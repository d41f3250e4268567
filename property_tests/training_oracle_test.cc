// SPDX-License-Identifier: Apache-2.0
//
// Steps of training against golden/oracles/training.h5, in which PyTorch's
// automatic differentiation and numpy's metrics follow the definitions
// (golden/oracles/README.md). Every step starts from the recorded state, so
// this finds faults that the reference and the optimized model share: balance
// groups scaled wrongly, a temperature that is a step late, noise of the wrong
// token.
#include "property_tests/testing/training_oracle.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/hdf5/hdf5_file.h"
#include "core/parallel_for.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/queue.h"
#include "optimized/model.h"
#include "optimized/simulated_model.h"
#include "reference/calibration.h"
#include "reference/metrics.h"
#include "reference/schedules.h"
#include "reference/transformer.h"
#include "trainer/evaluation/routing_totals.h"
#include "trainer/run/calibration.h"
#include "trainer/run/schedules.h"

namespace softmoe::property_tests {
namespace {

using reference::BoolMatrix;
using reference::Vector;

// The reference's results for a step: sums over its groups, and the routing of
// each group.
struct StepSums {
  explicit StepSums(const TrainedCase& c)
      : gradient(Vector::Zero(c.layout.total)),
        active(static_cast<size_t>(c.config.model.num_layers)) {}

  Vector gradient;
  double loss = 0, balance = 0, z_loss = 0;
  // The soft weights of all layers and groups, as if each were a layer.
  std::vector<reference::Matrix> soft_weights;
  std::vector<double> cutoffs;
  // The active sets of each layer, for the tokens of all groups.
  std::vector<BoolMatrix> active;
};

class TrainingOracle : public ::testing::TestWithParam<const char*> {
 protected:
  // Adds the reference's results for a group of sequences.
  void AddGroup(int64_t step, int64_t group, const Vector& parameters,
                StepSums* sums) const;
  void ExpectLoads(int64_t step, const std::vector<BoolMatrix>& active) const;
  void ExpectModelAgrees(optimized::Model& model);

  const Hdf5Reader file_ = OpenTrainingOracle();
  const TrainedCase case_{file_, GetParam()};
  const int64_t steps_ = case_.config.training.steps;
};

void TrainingOracle::AddGroup(int64_t step, int64_t group,
                              const Vector& parameters, StepSums* sums) const {
  const TrainedCase& c = case_;
  const reference::RoutingState routing = {
      .temperature = reference::Temperature(c.config, step),
      .tau = file_.ReadDouble(c.group, "tau"),
      .noise = true,
      .step = step};
  const GroupText text(c, step, group);
  const reference::GroupResultAndGradients all =
      reference::TransformerLossAndGradients(
          c.config, parameters,
          {text.num_sequences, text.inputs, text.targets, text.first_token},
          routing, 1 / c.num_tokens(), 1 / static_cast<double>(c.num_groups()));
  sums->gradient += all.gradients;
  sums->loss += all.result.loss_sum / c.num_tokens();
  const std::vector<double> allocation = c.Values(step, "allocation");
  for (size_t l = 0; l < sums->active.size(); ++l) {
    const reference::LayerRouting& layer = all.result.layers[l];
    sums->balance += layer.balance.loss / static_cast<double>(c.num_groups());
    sums->z_loss += layer.z_loss / static_cast<double>(c.num_groups());
    // softmax, a product and a sum of numbers of size k_l.
    EXPECT_NEAR(layer.allocation.mean_active, allocation[l],
                8 * kDoubleUnit * allocation[l]);
    sums->soft_weights.push_back(layer.routing.soft_weights);
    sums->cutoffs.push_back(layer.allocation.cutoff);
    BoolMatrix& active = sums->active[l];
    const BoolMatrix& more = layer.routing.active;
    active.conservativeResize(active.rows() + more.rows(), more.cols());
    active.bottomRows(more.rows()) = more;
  }
}

// Compares the tokens of each expert and their variance.
void TrainingOracle::ExpectLoads(int64_t step,
                                 const std::vector<BoolMatrix>& active) const {
  const TrainedCase& c = case_;
  const auto tokens =
      file_.ReadDataset<int64_t>(c.At(step) + "/tokens_per_expert");
  const std::vector<double> variance = c.Values(step, "load_variance");
  for (size_t l = 0; l < active.size(); ++l) {
    const std::vector<int64_t> counts = reference::TokensPerExpert(active[l]);
    const auto expected =
        tokens.values.begin() + static_cast<int64_t>(l) * tokens.shape[1];
    EXPECT_TRUE(std::equal(counts.begin(), counts.end(), expected)) << l;
    // With four experts mean and variance are exact, so a division is rounded
    // once, to the same number; cv twice, on either side.
    const auto expect_readings = [&](const auto& got) {
      EXPECT_EQ(got.relative, variance[3 * l]);
      const double cv = variance[3 * l + 1];
      EXPECT_NEAR(got.cv, cv, 4 * kDoubleUnit * cv);
      EXPECT_EQ(got.var_over_mean, variance[3 * l + 2]);
    };
    expect_readings(reference::LoadVarianceOf(counts));
    expect_readings(trainer::ComputeLoadVariance(counts));
  }
}

TEST_P(TrainingOracle, ReferenceAgreesOnLossesGradientAndMetrics) {
  const TrainedCase& c = case_;
  std::vector<double> activities;
  for (int64_t step = 0; step < steps_; ++step) {
    const Vector parameters = c.Flat(step, "parameters");
    StepSums sums(c);
    for (int64_t g = 0; g < c.num_groups(); ++g) {
      AddGroup(step, g, parameters, &sums);
    }
    c.ExpectScalar(step, "loss", sums.loss, kDoubleUnit);
    c.ExpectScalar(step, "balance", sums.balance, kDoubleUnit);
    c.ExpectScalar(step, "z_loss", sums.z_loss, kDoubleUnit);
    c.ExpectGradient(
        step,
        std::span<const double>(sums.gradient.data(),
                                static_cast<size_t>(sums.gradient.size())),
        kDoubleUnit);

    // A quotient of integers is rounded once, to the same number.
    activities.push_back(reference::MeanActiveExperts(sums.active));
    EXPECT_EQ(activities.back(), c.Scalar(step, "active_experts"));
    EXPECT_EQ(reference::ZeroActiveFraction(sums.soft_weights, sums.cutoffs),
              c.Scalar(step, "zero_active_fraction"));
    ExpectLoads(step, sums.active);
  }
  // A sum of positive numbers divided by their count: one rounding each.
  const double train_active = file_.ReadDouble(c.group, "train_active_experts");
  EXPECT_NEAR(
      reference::TrainActiveExperts(activities), train_active,
      2 * static_cast<double>(activities.size()) * kDoubleUnit * train_active);
  // A product and a sum, also of positive numbers.
  const double parameters = file_.ReadDouble(c.group, "active_parameters");
  EXPECT_NEAR(reference::ActiveParameters(c.config.model, train_active),
              parameters, 2 * 2 * kDoubleUnit * parameters);
}

// Compares every recorded step, starting from the recorded parameters.
void TrainingOracle::ExpectModelAgrees(optimized::Model& model) {
  const TrainedCase& c = case_;
  for (int64_t step = 0; step < steps_; ++step) {
    // Rounded to float, as in the oracle's own float32 runs.
    const Eigen::VectorXf parameters = c.Flat(step, "parameters").cast<float>();
    model.WriteParameters(
        {parameters.data(), static_cast<size_t>(parameters.size())}, 0);
    std::vector<float> sum(static_cast<size_t>(c.layout.total));
    std::vector<float> gradient(sum.size());
    trainer::RoutingTotals totals(c.config.model.num_layers,
                                  c.config.model.num_experts);
    for (int64_t g = 0; g < c.num_groups(); ++g) {
      const GroupText text(c, step, g);
      totals.Add(model.ForwardBackward(
          {text.num_sequences, text.inputs, text.targets, text.first_token},
          {.temperature = trainer::Temperature(c.config, step),
           .tau = file_.ReadDouble(c.group, "tau"),
           .noise = true,
           .step = step},
          1 / c.num_tokens(), 1 / static_cast<double>(c.num_groups()),
          gradient));
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
    }
    c.ExpectScalar(step, "loss", totals.MeanLoss(), kFloatUnit);
    c.ExpectScalar(step, "balance", totals.LoadBalanceLoss(), kFloatUnit);
    c.ExpectScalar(step, "z_loss", totals.ZLoss(), kFloatUnit);
    c.ExpectGradient(step, std::span<const float>(sum), kFloatUnit);
    EXPECT_EQ(totals.MeanActive(), c.Scalar(step, "active_experts"));
    EXPECT_EQ(totals.ZeroActiveFraction(),
              c.Scalar(step, "zero_active_fraction"));
  }
}

TEST_P(TrainingOracle, OptimizedModelAndTrainersTotalsAgree) {
  ThreadPool pool(2);
  ExpectModelAgrees(*optimized::MakeModel(
      case_.config, case_.config.training.balance_group_sequences, pool));
}

TEST_P(TrainingOracle, SimulatedDeviceAgrees) {
  const auto queue = kernels::isa_shim::MakeQueue(
      kernels::isa_shim::DeviceStream(), /*workspace=*/1 << 16);
  ExpectModelAgrees(*optimized::backend_simulated::MakeBackendModel(
      case_.config, case_.config.training.balance_group_sequences, *queue));
}

TEST(CalibrationOracle, TauIsTheSame) {
  const Hdf5Reader file = OpenTrainingOracle();
  const TrainedCase c(file, "soft_learned");
  ASSERT_FALSE(c.config.router.tau.has_value());
  const Vector parameters = c.Flat(0, "parameters");
  std::vector<double> ratios;
  int64_t pairs = 0;
  for (int64_t batch = 0; batch < c.config.router.calibration_batches;
       ++batch) {
    for (int64_t g = 0; g < c.num_groups(); ++g) {
      const GroupText text(c, batch, g);
      const double temperature = reference::Temperature(c.config, 0);
      const reference::GroupResult result = reference::TransformerForward(
          c.config, parameters,
          {text.num_sequences, text.inputs, text.targets, text.first_token},
          {.temperature = temperature});
      for (const reference::LayerRouting& layer : result.layers) {
        const std::vector<double> more = reference::CalibrationRatios(
            {.kind = c.config.router.kind,
             .mean_active = layer.allocation.mean_active,
             .temperature = temperature,
             .max_active = layer.allocation.max_active},
            layer.scores);
        ratios.insert(ratios.end(), more.begin(), more.end());
        pairs += c.group_tokens();
      }
    }
  }
  const double k = c.config.router.mean_active_experts;
  const double tau = file.ReadDouble(c.group, "tau");
  const double error = file.ReadDouble(c.group, "tau_error");
  EXPECT_NEAR(reference::CalibrateTau(ratios, k, pairs), tau,
              c.ErrorFactor() * error + 2 * kDoubleUnit * tau);
  // The trainer's computation of the same midpoint, over float ratios.
  std::vector<float> rounded(ratios.begin(), ratios.end());
  const trainer::RankMidpoint found = trainer::FindRankMidpoint(
      rounded, std::llround(k * static_cast<double>(pairs)));
  EXPECT_NEAR(found.midpoint, tau, 2 * kFloatUnit * tau);
}

// There are few distinct ratios, so the n-th and the next are often equal.
RC_GTEST_PROP(CalibrationProperty, OfEqualRatiosIsTheReferences, ()) {
  auto values = *rc::gen::container<std::vector<float>>(
      rc::gen::element(0.0f, 1e-40f, 0.5f, 1.0f, 1.5f));
  RC_PRE(values.size() >= 2u);
  const auto rank = *rc::gen::inRange<int64_t>(0, std::ssize(values) + 2);
  const std::vector<double> ratios(values.begin(), values.end());
  RC_ASSERT(trainer::FindRankMidpoint(values, rank).midpoint ==
            reference::CalibrateTau(ratios, static_cast<double>(rank), 1));
}

INSTANTIATE_TEST_SUITE_P(Routers, TrainingOracle,
                         ::testing::Values("sparse", "soft_fixed",
                                           "soft_learned"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace softmoe::property_tests
