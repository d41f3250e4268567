// SPDX-License-Identifier: Apache-2.0
//
// routing_margin.h - checks that two selections of experts differ only where
// the scores cannot decide.
//
// A selection is decided by comparisons: score against score at the cap or at
// top-k, soft weight against cutoff. A selection that differs from the
// reference's is wrong unless each differing expert lies at such a boundary
// within the error of the compared numbers (DESIGN.md, "Verification").
#ifndef SOFTMOE_PROPERTY_TESTS_ROUTING_MARGIN_H_
#define SOFTMOE_PROPERTY_TESTS_ROUTING_MARGIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/error_bounds.h"
#include "reference/matrix.h"
#include "reference/router.h"

namespace softmoe::property_tests {

struct SelectionCheck {
  int64_t ambiguous = 0;  // tokens that differ, with or without excuse
  std::string defect;     // the first token that differs without excuse
};

// Compares `got` [tokens, experts] with the selection that the reference makes
// from `scores`. `score_error` is how far the scores that led to `got` may be
// from `scores`; its effect on the soft weights adds to SoftWeightBounds.
SelectionCheck CheckSelection(const reference::RouterSettings& settings,
                              const reference::Matrix& scores,
                              const reference::BoolMatrix& got,
                              double score_error);

// The soft weights of one row of a soft router, each with the error that float
// arithmetic may make.
std::vector<Bounded> SoftWeightBounds(const reference::RouterSettings& settings,
                                      const reference::Vector& scores);

// The selection that follows from the soft weights that an implementation
// returned: weights strictly above the cutoff, at most max_active of them by
// largest score (ties to the lower expert), and the fallback; for a sparse
// router, the selection by scores alone. Scores and cutoff are exact on both
// sides, so nothing is ambiguous.
reference::BoolMatrix OwnSelection(const reference::RouterSettings& settings,
                                   const reference::Matrix& scores,
                                   const reference::Matrix& weights);

// Counts tokens whose `top`-th and next score are within 2*score_error: hard
// top-`top` counts may differ by one pair for each.
int64_t AmbiguousTop(const reference::Matrix& scores, int64_t top,
                     double score_error);

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_ROUTING_MARGIN_H_
