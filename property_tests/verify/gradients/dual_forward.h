// SPDX-License-Identifier: Apache-2.0
//
// dual_forward.h - the forward pass of the operations over dual numbers, which
// gives J v without a step size and without a hand-written derivative.
//
// The formulas are the reference's own (namespace reference::formula), run
// over another kind of number; LapSum's is the closed form of the root. The
// values are checked against Operation::Forward before the slopes are trusted
// (gradient_check.h).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_DUAL_FORWARD_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_DUAL_FORWARD_H_

#include <map>
#include <string>
#include <vector>

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "reference/dual.h"

namespace softmoe::verify {

// Flat tensors of dual numbers; their shapes are those of the case.
using DualMap = std::map<std::string, std::vector<reference::Dual>>;

// The outputs that Operation::Forward returns, without the choices.
using DualForward = DualMap (*)(const Case& c, const DualMap& inputs,
                                const TensorMap& choice);

// Null if the operation has none.
DualForward FindDualForward(const std::string& op);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_DUAL_FORWARD_H_
