// SPDX-License-Identifier: Apache-2.0
//
// The whole model against golden/oracles/transformer.h5: loss, routing and
// every gradient of a tiny transformer, from PyTorch's automatic
// differentiation in double precision (golden/oracles/README.md). This finds a
// formula that is wrong in reference and kernels alike. For tolerances, per
// tensor, see testing/oracle_bounds.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/config/config_toml.h"
#include "core/config/parameter_layout.h"
#include "core/files/paths.h"
#include "core/hdf5/hdf5_file.h"
#include "core/parallel_for.h"
#include "optimized/model.h"
#include "property_tests/testing/oracle_bounds.h"
#include "reference/transformer.h"

namespace softmoe::property_tests {
namespace {

using reference::Vector;

// One group of the file.
struct OracleCase {
  OracleCase(const Hdf5Reader& oracle, const std::string& name)
      : file(oracle),
        group("/" + name),
        config(ParseConfig(file.ReadString(group, "config"), name)),
        layout(config),
        inputs(file.ReadDataset<int32_t>(group + "/inputs").values),
        targets(file.ReadDataset<int32_t>(group + "/targets").values),
        parameters(layout.total) {
    for (const ParameterTensor& tensor : layout.tensors) {
      const Hdf5Array<double> values =
          file.ReadDataset<double>(group + "/parameters/" + tensor.name);
      EXPECT_EQ(values.shape, tensor.shape) << name << " " << tensor.name;
      std::copy(values.values.begin(), values.values.end(),
                parameters.data() + tensor.offset);
    }
  }

  double Scalar(const std::string& name) const {
    return file.ReadDouble(group, name);
  }
  int64_t num_sequences() const { return file.ReadInt(group, "num_sequences"); }

  double ErrorFactor() const {
    return property_tests::ErrorFactor(
        config.model, num_sequences() * config.model.sequence_length);
  }

  // Fails unless `got` equals the recorded `what` within the bound for
  // arithmetic with unit of rounding `unit`.
  void ExpectScalar(const std::string& what, double got, double unit) const {
    const double expected = Scalar(what);
    EXPECT_LE(
        std::abs(got - expected),
        OracleBound(expected, Scalar(what + "_error"), ErrorFactor(), unit))
        << group << " " << what;
  }
  template <typename T>
  void ExpectGradients(std::span<const T> got, double unit) const {
    for (const ParameterTensor& tensor : layout.tensors) {
      const std::string place = group + "/gradients/" + tensor.name;
      const std::vector<double> expected =
          file.ReadDataset<double>(place).values;
      EXPECT_TRUE(MeetsOracle<T>(got.subspan(static_cast<size_t>(tensor.offset),
                                             static_cast<size_t>(tensor.size)),
                                 expected, file.ReadDouble(place, "error"),
                                 ErrorFactor(), unit))
          << place;
    }
  }

  const Hdf5Reader& file;
  const std::string group;
  const Config config;
  const ParameterLayout layout;
  const std::vector<int32_t> inputs, targets;
  Vector parameters;
};

class TransformerOracle : public ::testing::TestWithParam<const char*> {
 protected:
  const Hdf5Reader file_{RunfilePath("golden/oracles/transformer.h5"),
                         {"transformer-oracle", 1}};
  const OracleCase case_{file_, GetParam()};
};

TEST_P(TransformerOracle, ReferenceAgrees) {
  const OracleCase& c = case_;
  const reference::BalanceGroup group = {c.num_sequences(), c.inputs,
                                         c.targets};
  const double loss_scale = c.Scalar("loss_scale");
  const double group_scale = c.Scalar("group_scale");
  const reference::GroupResultAndGradients all =
      reference::TransformerLossAndGradients(
          c.config, c.parameters, group,
          {.temperature = c.Scalar("temperature"), .tau = c.Scalar("tau")},
          loss_scale, group_scale);
  const reference::GroupResult& result = all.result;
  const Vector& gradients = all.gradients;

  c.ExpectScalar("loss_sum", result.loss_sum, kDoubleUnit);
  c.ExpectScalar("objective", result.Objective(loss_scale, group_scale),
                 kDoubleUnit);
  c.ExpectGradients(
      std::span<const double>(gradients.data(),
                              static_cast<size_t>(gradients.size())),
      kDoubleUnit);
  const std::vector<double> allocation =
      file_.ReadDataset<double>(c.group + "/allocation").values;
  for (size_t layer = 0; layer < result.layers.size(); ++layer) {
    const reference::LayerRouting& routing = result.layers[layer];
    // softmax, a product and a sum of numbers of size k_l.
    EXPECT_NEAR(routing.allocation.mean_active, allocation[layer],
                8 * kDoubleUnit * allocation[layer]);
    const std::vector<uint8_t> active =
        file_.ReadDataset<uint8_t>(c.group + "/active/" + std::to_string(layer))
            .values;
    const reference::BoolMatrix& got = routing.routing.active;
    ASSERT_EQ(got.size(), static_cast<Eigen::Index>(active.size()));
    for (size_t i = 0; i < active.size(); ++i) {
      EXPECT_EQ(got.data()[i], active[i] != 0)
          << "layer " << layer << ", entry " << i;
      // Inactive gates are masked: the loss would not show an error there.
      EXPECT_EQ(routing.routing.gates.data()[i],
                active[i] != 0 ? routing.routing.soft_weights.data()[i] : 0)
          << "layer " << layer << ", entry " << i;
    }
  }
}

TEST_P(TransformerOracle, OptimizedModelAgrees) {
  const OracleCase& c = case_;
  ThreadPool pool(2);
  const auto model = optimized::MakeModel(c.config, c.num_sequences(), pool);
  // Exact: the oracle's parameters are multiples of 2^-12.
  const Eigen::VectorXf parameters = c.parameters.cast<float>();
  model->WriteParameters(
      {parameters.data(), static_cast<size_t>(parameters.size())}, 0);
  std::vector<float> gradients(static_cast<size_t>(c.layout.total));
  const optimized::StepStats stats = model->ForwardBackward(
      {c.num_sequences(), c.inputs, c.targets},
      {.temperature = c.Scalar("temperature"), .tau = c.Scalar("tau")},
      c.Scalar("loss_scale"), c.Scalar("group_scale"), gradients);
  c.ExpectScalar("loss_sum", stats.loss_sum, kFloatUnit);
  c.ExpectGradients(std::span<const float>(gradients), kFloatUnit);
}

INSTANTIATE_TEST_SUITE_P(Routers, TransformerOracle,
                         ::testing::Values("sparse", "soft_fixed",
                                           "soft_fixed_top1", "soft_learned",
                                           "soft_learned_megatron"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace softmoe::property_tests
