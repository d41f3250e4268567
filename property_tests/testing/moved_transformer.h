// SPDX-License-Identifier: Apache-2.0
//
// moved_transformer.h - the reference's model, computed by a program that
// stores as bf16 at least what DESIGN.md ("Types on a device") says, but moves
// each stored number by a random relative amount instead of rounding it.
// Repeated runs show how far such storage errors carry.
//
// A plain program (property_tests/verify/engine/naive.h) stores the result of
// every operation, and of a sum once it is complete; the reference's formulas
// are run over such numbers. Of the numbers that are never bf16, these are not
// moved: the router from its input to its gates and back, logits and losses,
// and products that are parameter gradients, except for the experts'.
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_MOVED_TRANSFORMER_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_MOVED_TRANSFORMER_H_

#include <cstdint>
#include <span>

#include "core/config/config.h"
#include "reference/matrix.h"
#include "reference/transformer.h"

namespace softmoe::property_tests {

// Does what reference::TransformerLossAndGradients does, with every stored
// number moved by a factor 1 + unit * x, x uniform in [-1, 1] and determined by
// `seed`. The result's `stream` and `d_stream` stay empty.
reference::GroupResultAndGradients MovedTransformer(
    const Config& config, const reference::Vector& parameters,
    const reference::BalanceGroup& group,
    const reference::RoutingState& routing, double loss_scale,
    double group_scale, std::span<const reference::RoutingReplay> replay,
    double unit, uint64_t seed);

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_MOVED_TRANSFORMER_H_
