// SPDX-License-Identifier: Apache-2.0
//
// soft_topk.h - a user's small soft top-k, to show how to verify one's own. It
// uses nothing from this project: bisection in double for the root x, and the
// implicit function theorem for the gradient.
//
//   weights_i = F((score_i - x)/T),  F the Laplace distribution,
//   x such that the weights of a row sum to k.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_EXAMPLES_SOFT_TOPK_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_EXAMPLES_SOFT_TOPK_H_

#include <cstdint>

namespace soft_topk {

// Bugs planted on request, to show how they are found.
enum class Bug {
  kNone,
  kTemperature,  // the gradient lacks its 1/T
  kUnrolled,     // a loop over columns forgets the last partial group of 4
  kCrash,        // more than 20 rows overrun a buffer: the process aborts
};
// The bug named by $SOFT_TOPK_BUG: "temperature", "unrolled", "crash".
Bug PlantedBug();

struct Problem {
  int64_t rows, columns;
  const float* scores;     // [rows, columns]
  const float* d_weights;  // [rows, columns]: the cotangent
  double k, temperature;
};

struct Result {
  float* weights;   // [rows, columns]
  float* d_scores;  // [rows, columns]
  float* d_k;       // summed over the rows
  float* d_temperature;
};

void Run(const Problem& problem, Bug bug, const Result& result);

}  // namespace soft_topk

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_EXAMPLES_SOFT_TOPK_H_
