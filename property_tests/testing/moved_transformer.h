// SPDX-License-Identifier: Apache-2.0
//
// moved_transformer.h - the reference's model as a program computes it that
// stores as bf16 what DESIGN.md ("Types on a device") says, or more: but instead
// of being rounded, each stored number is moved by a random relative amount. So
// it can be run again and again, and says how far such storage carries.
//
// A plain program (property_tests/verify/engine/naive.h) stores the result of
// every operation, and sums once they are complete; the reference's formulas are
// run over such numbers. What is never of bf16 is not moved: the router from its
// input to its gates and back, logits and losses, products that are gradients of
// parameters.
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_MOVED_TRANSFORMER_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_MOVED_TRANSFORMER_H_

#include <cstdint>
#include <span>

#include "core/config/config.h"
#include "reference/matrix.h"
#include "reference/transformer.h"

namespace softmoe::property_tests {

// As reference::TransformerLossAndGradients, every stored number moved by a
// factor 1 + unit * x, x uniform in [-1, 1] and a function of `seed`. Without
// the residual stream and its gradient.
reference::GroupResultAndGradients MovedTransformer(
    const Config& config, const reference::Vector& parameters,
    const reference::BalanceGroup& group,
    const reference::RoutingState& routing, double loss_scale,
    double group_scale, std::span<const reference::RoutingReplay> replay,
    double unit, uint64_t seed);

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_MOVED_TRANSFORMER_H_
