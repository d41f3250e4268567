// SPDX-License-Identifier: Apache-2.0
//
// training_oracle.h - golden/oracles/training.h5 in memory, for the tests that
// read it. Losses and gradients must match within oracle_bounds.h.
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_TRAINING_ORACLE_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_TRAINING_ORACLE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/config/config_toml.h"
#include "core/config/parameter_layout.h"
#include "core/files/paths.h"
#include "core/hdf5/hdf5_file.h"
#include "property_tests/testing/oracle_bounds.h"
#include "reference/matrix.h"

namespace softmoe::property_tests {

inline Hdf5Reader OpenTrainingOracle() {
  return {RunfilePath("golden/oracles/training.h5"), {"training-oracle", 1}};
}

// One model trained for a few steps.
struct TrainedCase {
  TrainedCase(const Hdf5Reader& oracle, const std::string& name)
      : file(oracle),
        group("/cases/" + name),
        config(ParseConfig(file.ReadString(group, "config"), name)),
        layout(config) {}

  std::string At(int64_t step) const {
    return group + "/" + std::to_string(step);
  }
  double Scalar(int64_t step, const std::string& name) const {
    return file.ReadDouble(At(step), name);
  }
  std::vector<double> Values(int64_t step, const std::string& name) const {
    return file.ReadDataset<double>(At(step) + "/" + name).values;
  }
  reference::Vector Flat(int64_t step, const std::string& name) const {
    const std::vector<double> values = Values(step, name);
    EXPECT_EQ(static_cast<int64_t>(values.size()), layout.total) << name;
    return Eigen::Map<const reference::Vector>(values.data(), layout.total);
  }
  int64_t num_groups() const {
    return config.training.global_batch_sequences /
           config.training.balance_group_sequences;
  }
  int64_t group_tokens() const {
    return config.training.balance_group_sequences *
           config.model.sequence_length;
  }
  double num_tokens() const {
    return static_cast<double>(num_groups() * group_tokens());
  }

  double ErrorFactor() const {
    return property_tests::ErrorFactor(config.model,
                                       num_groups() * group_tokens());
  }
  void ExpectScalar(int64_t step, const std::string& what, double got,
                    double unit) const {
    const double expected = Scalar(step, what);
    EXPECT_LE(std::abs(got - expected),
              OracleBound(expected, Scalar(step, what + "_error"),
                          ErrorFactor(), unit))
        << At(step) << " " << what;
  }
  template <typename T>
  void ExpectGradient(int64_t step, std::span<const T> got, double unit) const {
    const std::vector<double> expected = Values(step, "gradient");
    const std::vector<double> errors = Values(step, "gradient_error");
    ASSERT_EQ(errors.size(), layout.tensors.size());
    ASSERT_EQ(static_cast<int64_t>(expected.size()), layout.total);
    for (size_t i = 0; i < errors.size(); ++i) {
      const ParameterTensor& tensor = layout.tensors[i];
      const auto part = [&](auto all) {
        return all.subspan(static_cast<size_t>(tensor.offset),
                           static_cast<size_t>(tensor.size));
      };
      EXPECT_TRUE(MeetsOracle<T>(part(got),
                                 part(std::span<const double>(expected)),
                                 errors[i], ErrorFactor(), unit))
          << At(step) << " " << tensor.name;
    }
  }

  const Hdf5Reader& file;
  const std::string group;
  const Config config;
  const ParameterLayout layout;
};

// The text of one balance group.
struct GroupText {
  GroupText(const TrainedCase& c, int64_t step, int64_t group)
      : inputs(Part(c, step, group, "inputs")),
        targets(Part(c, step, group, "targets")),
        num_sequences(c.config.training.balance_group_sequences),
        first_token(group * c.group_tokens()) {}

  static std::vector<int32_t> Part(const TrainedCase& c, int64_t step,
                                   int64_t group, const std::string& name) {
    const auto all =
        c.file.ReadDataset<int32_t>(c.At(step) + "/" + name).values;
    const auto begin = all.begin() + group * c.group_tokens();
    return {begin, begin + c.group_tokens()};
  }

  std::vector<int32_t> inputs, targets;
  int64_t num_sequences, first_token;
};

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_TRAINING_ORACLE_H_
