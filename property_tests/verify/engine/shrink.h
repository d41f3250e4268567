// SPDX-License-Identifier: Apache-2.0
//
// shrink.h - reduces a failing case to one that a person can read.
//
// Shrinks the shape first (fewer rows, experts, ..., from either end), then the
// fill and the real parameters, then the values (zeros, ones, few bits, one
// element). Keeps a step if the same output still fails.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_SHRINK_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_SHRINK_H_

#include "property_tests/verify/engine/check.h"

namespace softmoe::verify {

struct Shrunk {
  CaseResult result;  // fails like the original
  int runs = 0;       // cases tried
};

// Tries at most 400 cases with `check`, and stops after 20 seconds.
Shrunk Shrink(const CaseResult& failing, Implementation& implementation,
              const Checker& check);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_SHRINK_H_
