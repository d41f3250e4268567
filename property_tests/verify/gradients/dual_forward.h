// SPDX-License-Identifier: Apache-2.0
//
// dual_forward.h - the forward pass of the operations over dual numbers: J v
// without a step and without a hand-written derivative.
//
// The formulas are the reference's own (reference/*_formula.h), run over
// another number; LapSum's is the closed form of the root. Values are checked
// against Operation::Forward before slopes are believed (gradient_check.h).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_DUAL_FORWARD_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_DUAL_FORWARD_H_

#include <map>
#include <string>
#include <vector>

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "reference/dual.h"

namespace softmoe::verify {

// Tensors of dual numbers, flat; shapes are those of the case.
using DualMap = std::map<std::string, std::vector<reference::Dual>>;

// The outputs that Operation::Forward returns, choices aside.
using DualForward = DualMap (*)(const Case& c, const DualMap& inputs,
                                const TensorMap& choice);

// Null for an operation that has none.
DualForward FindDualForward(const std::string& op);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_DUAL_FORWARD_H_
