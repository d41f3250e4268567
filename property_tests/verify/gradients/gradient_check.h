// SPDX-License-Identifier: Apache-2.0
//
// gradient_check.h - checks that the derivative against which everything else
// is judged is a derivative (`verify grad`).
//
// For outputs y = Forward(x), cotangents w (random, from the case's data) and a
// gradient g = J^T w to be judged, <g, v> must be the derivative of <w, y>
// along v, for random directions v of each input by itself. The two ways of
// finding that derivative know nothing of g:
//   by differences   Forward alone, in double (slope.h); discrete choices are
//                    kept, or their jumps would be all that is seen
//   by duals         <w, J v>, J v by dual numbers (dual_forward.h): the
//                    adjoint dot test, no step and no truncation
// The bound is the error of the differences, or the rounding that the dual
// numbers carry, plus the rounding of g and of Forward, which is 2^-29 of the
// bound that the operation derives for float: the same formula, with u = 2^-53
// for 2^-24. Only the truncation error of the differences is an estimate.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_GRADIENT_CHECK_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_GRADIENT_CHECK_H_

#include "property_tests/verify/engine/campaign.h"
#include "property_tests/verify/engine/check.h"

namespace softmoe::verify {

// Judges the outputs "d_NAME" of `derivative`, which must compute in double.
// Each input has one OutputResult per way: "d_scores by differences". Its
// elements are the directions that were decided; without any, it is MISTRUSTED.
// The case is UNSUPPORTED if its operation has no gradients.
// Errors  InternalError if Forward and Expect are not the same function.
CaseResult CheckGradients(const Case& c, Implementation& derivative);

// A campaign that checks gradients in this way, on cases of small sizes.
CampaignOptions ForGradients(CampaignOptions options);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_GRADIENT_CHECK_H_
