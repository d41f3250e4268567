// SPDX-License-Identifier: Apache-2.0
//
// mini_claims_test_util.h - the mini grid with made-up results, for tests.
#ifndef SOFTMOE_EXPERIMENTS_TESTING_MINI_CLAIMS_TEST_UTIL_H_
#define SOFTMOE_EXPERIMENTS_TESTING_MINI_CLAIMS_TEST_UTIL_H_

#include "experiments/run/run_outcome.h"
#include "golden/testing/miniature_test_util.h"

namespace softmoe::experiments {

// All 76 runs of grids/mini.toml, finished, with the numbers of
// golden::MadeUpResults of the frozen claims.
GridOutcome MadeUpMini(const golden::RunChange& change = {});

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_TESTING_MINI_CLAIMS_TEST_UTIL_H_
