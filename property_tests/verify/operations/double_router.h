// SPDX-License-Identifier: Apache-2.0
//
// double_router.h - the routers' bodies at double, a row at a time.
//
// Whatever includes this must be compiled with -DSOFTMOE_ISA=isa_double.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_DOUBLE_ROUTER_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_DOUBLE_ROUTER_H_

#include <cstdint>
#include <vector>

#include "kernels/router_backward_body.h"
#include "kernels/router_body.h"
#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

using DoubleRouterConstants = kernels::SOFTMOE_ISA::RouterConstants<double>;
using DoubleGradientConstants =
    kernels::SOFTMOE_ISA::RouterGradientConstants<double>;

DoubleRouterConstants RouterConstantsOf(const Case& c, const TensorMap& inputs,
                                        int64_t max_active);
DoubleGradientConstants GradientConstantsOf(const DoubleRouterConstants& c);

// One row's forward pass.
struct DoubleRouterRow {
  DoubleRouterRow(const DoubleRouterConstants& c, const double* scores,
                  bool sparse, bool softmax_too);
  static bool Has(const std::vector<int32_t>& set, int64_t e) {
    return (static_cast<uint32_t>(set[e / 32]) >> (e % 32) & 1) != 0;
  }

  std::vector<double> weights, softmax, top;
  std::vector<int32_t> active, balance;
  double anchor = 0, offset = 0, log_sum_exp = 0;
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_DOUBLE_ROUTER_H_
