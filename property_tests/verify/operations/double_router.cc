// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/operations/double_router.h"

#include <algorithm>
#include <cmath>

#include "property_tests/verify/engine/expected.h"

namespace softmoe::verify {
namespace {

namespace body = kernels::SOFTMOE_ISA;

}  // namespace

DoubleRouterConstants RouterConstantsOf(const Case& c, const TensorMap& inputs,
                                        int64_t max_active) {
  DoubleRouterConstants constants = {};
  constants.num_experts = static_cast<int>(c.Size("num_experts"));
  constants.max_active = static_cast<int>(max_active);
  constants.mean_active = ScalarOf(inputs, "mean_active");
  constants.inverse_temperature = 1 / ScalarOf(inputs, "temperature");
  constants.top = std::min(
      constants.num_experts,
      std::max({1, constants.max_active,
                static_cast<int>(std::ceil(2 * constants.mean_active))}));
  return constants;
}

DoubleGradientConstants GradientConstantsOf(const DoubleRouterConstants& c) {
  DoubleGradientConstants constants = {};
  constants.num_experts = c.num_experts;
  constants.inverse_temperature = c.inverse_temperature;
  return constants;
}

DoubleRouterRow::DoubleRouterRow(const DoubleRouterConstants& c,
                                 const double* scores, bool sparse,
                                 bool softmax_too)
    : weights(c.num_experts),
      softmax(c.num_experts),
      top(2 * c.top),
      active((c.num_experts + 31) / 32),
      balance(active.size()) {
  body::RouterRow<body::SerialLane<double>> row = {};
  row.scores = scores;
  row.weights = weights.data();
  row.softmax = softmax_too ? softmax.data() : nullptr;
  row.top = top.data();
  row.active = active.data();
  row.balance = balance.data();
  if (sparse) {
    body::SparseRouterForwardRow<0>(c, row);
  } else {
    body::SoftRouterForwardRow<0>(c, row);
  }
  anchor = row.anchor;
  offset = row.offset;
  log_sum_exp = row.log_sum_exp;
}

}  // namespace softmoe::verify
